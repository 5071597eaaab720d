//! A process for each connection.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use spandrel_ipc::{Family, Handle, Interest, Pollable};
use spandrel_sync::Arc;

use super::Concurrency;
use crate::service::population::{Guest, Member, Population};
use crate::service::{Service, blocking};
use crate::sys::fork;
use crate::{CloseReason, Context, EventHandler, ServiceHandler};

/// Set for a process that was started to serve one connection: where that comes from.
const HANDED: &str = "SPANDREL_HANDED_CONNECTION";

/// Serves each connection in a process of its own: what goes wrong there, even a crash, concerns that connection only.
///
/// The connection is handed over as the standard input of a new process, as inetd does; by default that runs this same program with
/// the same arguments, which asks [`serve_handed`] first of all. With [`forking`](Self::forking) the process is copied instead, which is
/// sound only while it has one thread, and is refused otherwise.
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
                let child = command.stdin(Stdio::from(stream.into())).spawn()?;
                (Process::Executed(child), connection.guest)
            }
            How::Fork => match fork::fork()? {
                // Never comes back: what the copy has of everything else is not its own.
                None => {
                    service.connection.guest.leave_quietly(); // whoever would hear it is the original
                    let stream = Arc::clone(&service.connection.stream);
                    fork::end_copy(stream.handle(), || blocking::serve(service))
                }
                Some(pid) => (Process::Forked(pid), service.connection.guest),
            },
        };
        watch(context, &self.running, process, guest)
    }
}

/// Sees to it that the process is reaped when it ends.
fn watch(context: &Context<'_>, running: &Arc<Population>, process: Process, guest: Guest) -> io::Result<()> {
    let pidfd = Arc::new(pidfd_open(process.pid(), PidfdFlags::empty())?);
    guest.population().replace(&guest, ServingProcess(Arc::clone(&pidfd)));
    let place = running.enter(ServingProcess(Arc::clone(&pidfd)));
    context.register(Watched { process, pidfd, _place: place, _guest: guest }, Interest::INPUT).map(drop)
}

/// A child of this process.
enum Process {
    Executed(Child),
    Forked(Pid),
}

impl Process {
    fn pid(&self) -> Pid {
        match self {
            Self::Executed(child) => Pid::from_child(child),
            Self::Forked(pid) => *pid,
        }
    }

    /// After it has ended: without that its number would stay taken.
    fn reap(&mut self) {
        let reaped = match self {
            Self::Executed(child) => child.wait().map(drop),
            Self::Forked(pid) => rustix::process::waitpid(Some(*pid), rustix::process::WaitOptions::empty())
                .map(drop)
                .map_err(Into::into),
        };
        if let Err(error) = reaped {
            tracing::warn!(%error, "a process could not be reaped");
        }
    }
}

/// A process that serves. Draining lets it end its connection by itself: the stream is its own.
struct ServingProcess(Arc<OwnedFd>);

impl Member for ServingProcess {
    fn drain(&self) {}

    fn cut(&self) {
        let _ = pidfd_send_signal(&*self.0, Signal::KILL);
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

    fn handle_close(&mut self, _context: &Context<'_>, reason: CloseReason) {
        if !matches!(reason, CloseReason::Removed) {
            // The reactor stops before the process does: it must not outlive what looks after it.
            ServingProcess(Arc::clone(&self.pidfd)).cut();
            self.process.reap();
        }
    }
}

/// The connection that this process was started to serve by a [`ProcessPerConnection`], and where it comes from; `None` in a process that
/// was started otherwise.
///
/// # Errors
/// When standard input is no such connection, or its address cannot be read.
pub fn handed_connection<F>() -> io::Result<Option<(F::Stream, F::Addr)>>
where
    F: Family<Stream: TryFrom<OwnedFd, Error: Into<io::Error>>, Addr: FromStr>,
{
    let Ok(remote) = std::env::var(HANDED) else { return Ok(None) };
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
    Ok(true)
}
