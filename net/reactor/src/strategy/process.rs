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
use crate::service::open_connections::{ConnectionEntry, Member, OpenConnections};
use crate::service::{Service, blocking};
use crate::sys::fork;
use crate::{Context, EventHandler, ServiceHandler};

/// Environment variable of a process that was started to serve one connection: the address of the peer.
const PEER_ADDRESS_VARIABLE: &str = "SPANDREL_HANDED_CONNECTION";
/// Environment variable: the process ID of the server that started it. Processes that it starts in turn
/// inherit both variables, but are not meant.
const SERVER_PID_VARIABLE: &str = "SPANDREL_HANDED_BY";

/// Serves each connection in its own process: a failure there, even a crash, concerns that connection only.
///
/// The connection is passed as the standard input of a new process, as inetd does. By default that process
/// runs this same program with the same arguments, and calls [`serve_handed`] first of all. With
/// [`forking`](Self::forking) the process is forked instead, which is sound only while it has one thread, and
/// is refused otherwise.
///
/// The processes inherit standard output and error, and no other handle. They are reaped when they end, and
/// killed when the reactor is closed; if this process dies otherwise, each continues to the end of its
/// connection. Draining ends their input, as with other services.
#[derive(Debug)]
pub struct ProcessPerConnection {
    limit: usize,
    launch: Launch,
    running: Arc<OpenConnections>,
}

#[derive(Debug)]
enum Launch {
    Execute { program: PathBuf, arguments: Vec<std::ffi::OsString> },
    Fork,
}

impl ProcessPerConnection {
    /// Runs this program again, with its arguments, for each connection; up to `limit` at a time.
    ///
    /// # Errors
    /// When the system does not report the path of this program.
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
        Self { limit, launch: Launch::Execute { program: program.into(), arguments }, running: Arc::default() }
    }

    /// Forks this process for each connection; up to `limit` at a time. A connection is refused while this
    /// process has more than one thread.
    #[must_use]
    pub fn forking(limit: usize) -> Self {
        Self { limit, launch: Launch::Fork, running: Arc::default() }
    }
}

impl<F, H> Concurrency<F, H> for ProcessPerConnection
where
    F: Family<Stream: Into<OwnedFd>>,
    H: ServiceHandler<F>,
{
    fn activate(&mut self, context: &Context<'_>, mut service: Service<F, H>) -> io::Result<()> {
        if self.running.len() >= self.limit {
            let message = format!("all {} processes of the ProcessPerConnection strategy are serving", self.limit);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        }
        let (process, entry) = match &self.launch {
            Launch::Execute { program, arguments } => {
                let Service { connection, .. } = service;
                let Some(stream) = Arc::into_inner(connection.stream) else {
                    return Err(io::Error::other("the connection is being cut"));
                };
                let mut command = Command::new(program);
                command.args(arguments).env(PEER_ADDRESS_VARIABLE, connection.remote.to_string());
                command.env(SERVER_PID_VARIABLE, std::process::id().to_string());
                let child = command.stdin(Stdio::from(stream.into())).spawn()?;
                (Process::executed(child), connection.entry)
            }
            Launch::Fork => match fork::fork()? {
                // Never returns: the child owns nothing but its connection.
                None => {
                    service.connection.entry.remove_silently(); // the parent counts connections
                    let stream = Arc::clone(&service.connection.stream);
                    fork::end_copy(stream.handle(), &[], || blocking::serve(service))
                }
                Some(pid) => {
                    let handle = crate::sys::number(service.connection.stream.handle());
                    (Process { child: Child::Forked(pid), handle, is_reaped: false }, service.connection.entry)
                }
            },
        };
        supervise(context, &self.running, process, entry)
    }
}

/// Arranges that the process is reaped when it ends. Where that is not possible, it is killed at once.
fn supervise(
    context: &Context<'_>,
    running: &Arc<OpenConnections>,
    process: Process,
    entry: ConnectionEntry,
) -> io::Result<()> {
    let pidfd = Arc::new(pidfd_open(process.pid(), PidfdFlags::empty())?);
    let serving = || ServingProcess { pidfd: Arc::clone(&pidfd), handle: process.handle };
    entry.open_connections().set(&entry, serving());
    let slot = running.add(Arc::new(serving()));
    let watched = SupervisedProcess { process, pidfd, _room: slot, _entry: entry };
    context.register(watched, Interest::INPUT).map(drop)
}

/// A child of this process. Dropped before it is reaped, it is killed, so that it neither outlives its
/// supervision nor stays a zombie.
struct Process {
    child: Child,
    /// The number of the connection's handle in the child.
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

    /// Called after it has ended, and only once: afterwards its process ID may be reused.
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

/// A child process that serves one connection.
struct ServingProcess {
    pidfd: Arc<OwnedFd>,
    handle: RawFd,
}

impl Member for ServingProcess {
    /// Ends the input of the stream, which the child owns. Where the system does not let us duplicate the
    /// child's handle, the process continues until its peer has finished.
    fn drain(&self) {
        let shut = pidfd_getfd(&*self.pidfd, self.handle, PidfdGetfdFlags::empty())
            .and_then(|stream| rustix::net::shutdown(stream, rustix::net::Shutdown::Read));
        if let Err(error) = shut {
            tracing::debug!(%error, "a process that serves a connection cannot be drained");
        }
    }

    fn cut(&self) {
        let _ = pidfd_send_signal(&*self.pidfd, Signal::KILL);
    }
}

/// Waits for the end of a process.
struct SupervisedProcess {
    process: Process,
    pidfd: Arc<OwnedFd>,
    _room: Option<ConnectionEntry>,
    _entry: ConnectionEntry,
}

impl Pollable for SupervisedProcess {
    fn handle(&self) -> Handle<'_> {
        std::os::fd::AsFd::as_fd(&*self.pidfd)
    }
}

impl EventHandler for SupervisedProcess {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(self)
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        self.process.reap();
        context.close();
        Ok(())
    }
}

/// The connection that a [`ProcessPerConnection`] started this process for, and the peer's address; `None` in
/// a process started otherwise, also by a serving process.
///
/// Standard input stays open as well, so the connection ends with the process unless it is shut down.
///
/// # Errors
/// When standard input is not such a connection, or its address cannot be parsed;
/// [`io::ErrorKind::BrokenPipe`] when the server that passed it has ended.
pub fn handed_connection<F>() -> io::Result<Option<(F::Stream, F::Addr)>>
where
    F: Family<Stream: TryFrom<OwnedFd, Error: Into<io::Error>>, Addr: FromStr>,
{
    let Ok(remote) = std::env::var(PEER_ADDRESS_VARIABLE) else { return Ok(None) };
    if !is_started_by_server()? {
        return Ok(None);
    }
    let addr = remote.parse().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{PEER_ADDRESS_VARIABLE} is `{remote}`, which is not an address of this family"),
        )
    })?;
    let input = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
    let stream = F::Stream::try_from(input).map_err(Into::into)?;
    Ok(Some((stream, addr)))
}

/// Whether the server started this process, and not its parent.
fn is_started_by_server() -> io::Result<bool> {
    let by = std::env::var(SERVER_PID_VARIABLE).ok().and_then(|by| by.parse().ok()).and_then(Pid::from_raw);
    match by {
        None => Ok(false),
        by if by == getppid() => Ok(true),
        // The server is the grandparent; or it was the parent, and ended before this process served.
        Some(by) if test_kill_process(by) != Err(rustix::io::Errno::SRCH) => Ok(false),
        Some(_) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the server that passed the connection has ended")),
    }
}

/// Serves the connection that this process was started for, to its end, and returns whether there was one.
/// For the first line of `main` in a server with a [`ProcessPerConnection`].
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
    let open_connections = Arc::new(OpenConnections::default());
    let entry = open_connections.admit().expect("a new set of connections is not draining");
    blocking::serve(Service::new(stream, remote, handler, entry));
    // Standard input is the connection too.
    let _ = rustix::net::shutdown(io::stdin(), rustix::net::Shutdown::Both);
    Ok(true)
}
