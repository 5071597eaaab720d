//! A process for each connection.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::str::FromStr;

use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, WaitOptions, getppid, kill_process, pidfd_getfd, pidfd_open,
    pidfd_send_signal, test_kill_process, waitpid,
};
use spandrel_ipc::{Family, Handle, Interest, Pollable};
use spandrel_sync::Arc;

use super::Concurrency;
use crate::service::population::{Guest, Member, Population};
use crate::service::{Service, blocking};
use crate::sys::fork;
use crate::{Context, EventHandler, ServiceHandler};

/// Set for a process that was started to serve one connection: where that comes from.
const HANDED: &str = "SPANDREL_HANDED_CONNECTION";
/// Set as well: the process that started it. Those that it starts in turn inherit both, but they are not meant.
const HANDED_BY: &str = "SPANDREL_HANDED_BY";

/// Serves each connection in a process of its own: what goes wrong there, even a crash, concerns that connection only.
///
/// The connection is handed over as the standard input of a new process, as inetd does; by default that runs this same program with
/// the same arguments, which asks [`serve_handed`] first of all. With [`forking`](Self::forking) the process is copied instead, which is
/// sound only while it has one thread, and is refused otherwise.
///
/// The processes inherit standard output and error, and no other handle. They are reaped when they end, and killed when the reactor is
/// closed; if this process dies without that, each goes on to the end of its connection. Draining ends their input, as it does for other services.
#[derive(Debug)]
pub struct ProcessPerConnection {
    limit: usize,
    how: How,
    running: Arc<Population>,
}

#[derive(Debug)]
enum How {
    Execute { program: PathBuf, arguments: Vec<std::ffi::OsString> },
    Fork,
}

impl ProcessPerConnection {
    /// Runs this program again, with its arguments, for each connection; up to `limit` at a time.
    ///
    /// # Errors
    /// When the system does not tell where this program is.
    pub fn new(limit: usize) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        Ok(Self::running(limit, program, std::env::args_os().skip(1)))
    }

    /// Runs `program` with `arguments` for each connection; up to `limit` at a time.
    pub fn running(
        limit: usize,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<std::ffi::OsString>>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { limit, how: How::Execute { program: program.into(), arguments }, running: Arc::default() }
    }

    /// Copies this process for each connection; up to `limit` at a time. Each is refused while this process has more than one thread.
    #[must_use]
    pub fn forking(limit: usize) -> Self {
        Self { limit, how: How::Fork, running: Arc::default() }
    }
}

impl<F, H> Concurrency<F, H> for ProcessPerConnection
where
    F: Family<Stream: Into<OwnedFd>>,
    H: ServiceHandler<F>,
{
    fn activate(&mut self, context: &Context<'_>, mut service: Service<F, H>) -> io::Result<()> {
        if self.running.len() >= self.limit {
            let message = format!("all {} processes are serving", self.limit);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        }
        let (process, guest) = match &self.how {
            How::Execute { program, arguments } => {
                let Service { connection, .. } = service;
                let Some(stream) = Arc::into_inner(connection.stream) else {
                    return Err(io::Error::other("the connection is being cut"));
                };
                let mut command = Command::new(program);
                command.args(arguments).env(HANDED, connection.remote.to_string());
                command.env(HANDED_BY, std::process::id().to_string());
                let child = command.stdin(Stdio::from(stream.into())).spawn()?;
                (Process::executed(child), connection.guest)
            }
            How::Fork => match fork::fork()? {
                // Never comes back: what the copy has of everything else is not its own.
                None => {
                    service.connection.guest.leave_quietly(); // whoever would hear it is the original
                    let stream = Arc::clone(&service.connection.stream);
                    fork::end_copy(stream.handle(), || blocking::serve(service))
                }
                Some(pid) => {
                    let handle = crate::sys::number(service.connection.stream.handle());
                    (Process { child: Child::Forked(pid), handle, is_reaped: false }, service.connection.guest)
                }
            },
        };
        watch(context, &self.running, process, guest)
    }
}

/// Sees to it that the process is reaped when it ends. Where that is not possible, it is ended at once.
fn watch(context: &Context<'_>, running: &Arc<Population>, process: Process, guest: Guest) -> io::Result<()> {
    let pidfd = Arc::new(pidfd_open(process.pid(), PidfdFlags::empty())?);
    let serving = || ServingProcess { pidfd: Arc::clone(&pidfd), handle: process.handle };
    guest.population().replace(&guest, serving());
    let place = running.enter(serving());
    let watched = Watched { process, pidfd, _place: place, _guest: guest };
    context.register(watched, Interest::INPUT).map(drop)
}

/// A child of this process. Dropped before it is reaped, it is killed: it must not outlive what looks after it, nor keep its number.
struct Process {
    child: Child,
    /// What the connection's handle is there.
    handle: RawFd,
    is_reaped: bool,
}

enum Child {
    Executed(std::process::Child),
    Forked(Pid),
}

impl Process {
    fn executed(child: std::process::Child) -> Self {
        Self { child: Child::Executed(child), handle: 0, is_reaped: false }
    }

    fn pid(&self) -> Pid {
        match &self.child {
            Child::Executed(child) => Pid::from_child(child),
            Child::Forked(pid) => *pid,
        }
    }

    /// After it has ended, and only once: its number is given to others then.
    fn reap(&mut self) {
        if std::mem::replace(&mut self.is_reaped, true) {
            return;
        }
        let reaped = match &mut self.child {
            Child::Executed(child) => child.wait().map(drop),
            Child::Forked(pid) => {
                let reaped = retry_on_intr(|| waitpid(Some(*pid), WaitOptions::empty()));
                reaped.map(drop).map_err(Into::into)
            }
        };
        if let Err(error) = reaped {
            tracing::warn!(%error, "a process could not be reaped");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_reaped {
            let _ = kill_process(self.pid(), Signal::KILL);
            self.reap();
        }
    }
}

/// A process that serves.
struct ServingProcess {
    pidfd: Arc<OwnedFd>,
    handle: RawFd,
}

impl Member for ServingProcess {
    /// Ends the input of the stream, which is the process's own; but it is our child. Where the system does not let us have the handle, the
    /// process goes on until its peer has finished.
    fn drain(&self) {
        let shut = pidfd_getfd(&*self.pidfd, self.handle, PidfdGetfdFlags::empty())
            .and_then(|stream| rustix::net::shutdown(stream, rustix::net::Shutdown::Read));
        if let Err(error) = shut {
            tracing::debug!(%error, "a process that serves a connection cannot be asked to end");
        }
    }

    fn cut(&self) {
        let _ = pidfd_send_signal(&*self.pidfd, Signal::KILL);
    }
}

/// Waits for the end of a process.
struct Watched {
    process: Process,
    pidfd: Arc<OwnedFd>,
    _place: Option<Guest>,
    _guest: Guest,
}

impl Pollable for Watched {
    fn handle(&self) -> Handle<'_> {
        std::os::fd::AsFd::as_fd(&*self.pidfd)
    }
}

impl EventHandler for Watched {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(self)
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        self.process.reap();
        context.close();
        Ok(())
    }
}

/// The connection that this process was started to serve by a [`ProcessPerConnection`], and where it comes from; `None` in a process that
/// was started otherwise, also by a process that serves a connection.
///
/// Standard input stays open as well, so the connection ends with the process unless it is shut down.
///
/// # Errors
/// When standard input is no such connection, or its address cannot be read; [`io::ErrorKind::BrokenPipe`] when the process that handed it
/// over is gone already.
pub fn handed_connection<F>() -> io::Result<Option<(F::Stream, F::Addr)>>
where
    F: Family<Stream: TryFrom<OwnedFd, Error: Into<io::Error>>, Addr: FromStr>,
{
    let Ok(remote) = std::env::var(HANDED) else { return Ok(None) };
    if !is_handed_to_us()? {
        return Ok(None);
    }
    let addr = remote.parse().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{HANDED} is `{remote}`, which is no address of this family"),
        )
    })?;
    let input = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
    let stream = F::Stream::try_from(input).map_err(Into::into)?;
    Ok(Some((stream, addr)))
}

/// Whether it was us whom the server started, and not the process that started us.
fn is_handed_to_us() -> io::Result<bool> {
    let by = std::env::var(HANDED_BY).ok().and_then(|by| by.parse().ok()).and_then(Pid::from_raw);
    match by {
        None => Ok(false),
        by if by == getppid() => Ok(true),
        // It is our grandparent; or it was our parent, and we were just going to serve for it.
        Some(by) if test_kill_process(by) != Err(rustix::io::Errno::SRCH) => Ok(false),
        Some(_) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the server that handed the connection over is gone")),
    }
}

/// Serves the connection that this process was started for, to its end, and says whether there was one. For the first line of `main`
/// in a server with a [`ProcessPerConnection`].
///
/// # Errors
/// As [`handed_connection`].
pub fn serve_handed<F, H>(handler: H) -> io::Result<bool>
where
    F: Family<Stream: TryFrom<OwnedFd, Error: Into<io::Error>>, Addr: FromStr>,
    H: ServiceHandler<F>,
{
    let Some((stream, remote)) = handed_connection::<F>()? else { return Ok(false) };
    let stream = Arc::new(stream);
    let population = Arc::new(Population::default());
    let guest = population.enter(Arc::downgrade(&stream)).expect("nobody drains what was made just now");
    blocking::serve(Service::new(stream, remote, handler, guest));
    // Standard input is the connection too.
    let _ = rustix::net::shutdown(io::stdin(), rustix::net::Shutdown::Both);
    Ok(true)
}
