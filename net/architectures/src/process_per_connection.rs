//! A process for each connection (paper 004, section 4.3).
//!
//! One process accepts, and forks a process that serves the connection and ends with it. Nothing that happens in one
//! connection can affect another. Forking is sound only in a process with one thread, so a process of its own does it.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use spandrel_ipc::inet::{Acceptor, Stream};
use spandrel_ipc::{Handle, Pollable, unix};
use spandrel_reactor::{ForkedProcesses, Signal};
use spandrel_sync::thread;
use spandrel_sync::time::Deadline;

use crate::blocking::ROOM;
use crate::listening::FAILURE_PAUSE;
use crate::open_streams::InputWaits;
use crate::process_protocol::{Order, answer, next_order, report_ready};
use crate::processes::ProcessServer;
use crate::{Port, Server, Service, Settings, blocking};

/// The number of forks after which the processes that have ended are reaped.
const REAPED_FORKS: usize = 16;
/// The time after which they are reaped at the latest. So their ends need not wake the process that forks.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// The signal that tells the processes that serve that no more connections are accepted.
const RETIRED: Signal = Signal::USR1;

/// The role of the process that forks.
pub(crate) const ROLE: &str = "process-per-connection";

/// Starts a server with up to [`Settings::max_connections`] processes that serve. While all of them do, further
/// connections wait in the backlog. The process that forks is this program again: its `main` begins with
/// [`serve_as_process`](crate::serve_as_process).
///
/// # Errors
/// Any error of the operating system, and the failure of the process to start.
pub fn start(port: &Port, service: &Service, settings: &Settings) -> io::Result<impl Server + use<>> {
    ProcessServer::start(port, service, settings, ROLE, 1)
}

// ANCHOR: serve
/// Accepts and forks, in a process with one thread.
pub(crate) fn serve(port: &Port, service: &Service, settings: &Settings, control: &unix::Stream) -> io::Result<()> {
    port.prepare_unwatched(settings)?;
    let acceptor = port.acceptor();
    acceptor.set_nonblocking(true)?;
    let mut processes = ForkedProcesses::new()?;
    service.begin_drain_after(RETIRED)?; // also in the processes that serve
    let handles = service.handles();
    // Those of the processes that serve. These allocate nothing, and copy few pages.
    let (waits, mut buffer) = (InputWaits::default(), [0; ROOM]);
    let mut serve = |stream: &Stream| {
        // In the backlog of a shared port are connections that have inherited the limits of another server.
        if port.is_shared() && stream.set_recv_timeout(Some(settings.idle)).is_err() {
            return;
        }
        blocking::serve(stream, service, settings, &waits, &mut buffer);
    };
    report_ready(control)?;
    let (mut is_accepting, mut forks) = (true, 0);
    loop {
        let has_room = is_accepting && processes.len() < settings.max_connections;
        let interval = (!processes.is_empty()).then_some(REAP_INTERVAL);
        let awaited = if has_room { Awaited::Connection(acceptor, interval) } else { Awaited::End(None) };
        let ready = wait(awaited, Some(control), &processes)?;
        if ready.has_ended || forks >= REAPED_FORKS {
            processes.reap();
            forks = 0;
        }
        if ready.has_order {
            match next_order(control) {
                Order::Retire => {
                    is_accepting = false;
                    processes.signal(RETIRED);
                }
                Order::Count(number) => {
                    processes.reap();
                    answer(control, number, processes.len());
                }
                Order::Drain(number, timeout) => {
                    answer(control, number, drain(&mut processes, control, Deadline::after(timeout))?);
                    return Ok(());
                }
            }
        }
        // Orders are looked for after some connections, or when there is no other one.
        while is_accepting && ready.has_connection && forks < REAPED_FORKS && processes.len() < settings.max_connections
        {
            match acceptor.accept_unnamed() {
                Ok(stream) => {
                    forks += 1;
                    if let Err(error) = processes.spawn(stream, &handles, &mut serve) {
                        tracing::warn!(%error, "a connection is closed, since no process can be forked");
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    tracing::debug!(%error, "cannot accept");
                    thread::park_timeout(FAILURE_PAUSE); // a shortage of memory must not become a busy loop
                    is_accepting = !acceptor.is_shut_down() && error.kind() != io::ErrorKind::InvalidInput;
                    break;
                }
            }
        }
    }
}
// ANCHOR_END: serve

/// Ends the input of all connections, and waits for their processes until `deadline`, or for less time if the server ends;
/// returns the number of those killed then.
fn drain(processes: &mut ForkedProcesses, control: &unix::Stream, mut deadline: Deadline) -> io::Result<usize> {
    processes.begin_drain();
    processes.reap();
    let mut control = Some(control);
    while !processes.is_empty() && !deadline.is_over() {
        let ready = wait(Awaited::End(deadline.remaining()), control, processes)?;
        if ready.has_order
            && let Some(control) = control.take()
            && let Order::Drain(_, timeout) = next_order(control)
        {
            deadline = deadline.earlier(Deadline::after(timeout));
        }
        processes.reap();
    }
    Ok(processes.kill())
}

/// An event to wait for besides orders, and the longest time; none waits for ever.
enum Awaited<'a> {
    /// A connection. After the time, processes count as ended.
    Connection(&'a Acceptor, Option<Duration>),
    /// The end of a process.
    End(Option<Duration>),
}

/// The events that have come.
#[derive(Default)]
struct Ready {
    has_ended: bool,
    has_order: bool,
    has_connection: bool,
}

/// Waits for an event, and for an order if there is a control.
fn wait(awaited: Awaited<'_>, control: Option<&unix::Stream>, processes: &ForkedProcesses) -> io::Result<Ready> {
    let (handle, timeout, is_connection) = match awaited {
        Awaited::Connection(acceptor, timeout) => (acceptor.handle(), timeout, true),
        Awaited::End(timeout) => (processes.handle(), timeout, false),
    };
    let mut handles = [Some(handle), control.map(Pollable::handle)].map(|handle: Option<Handle<'_>>| {
        // A handle that is not waited for is replaced by that of the processes, which has no events without flags.
        let flags = if handle.is_some() { PollFlags::IN } else { PollFlags::empty() };
        PollFd::from_borrowed_fd(handle.unwrap_or(processes.handle()), flags)
    });
    let timeout = timeout.and_then(|timeout| timeout.try_into().ok());
    let count = match poll(&mut handles, timeout.as_ref()) {
        Ok(count) => count,
        Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
        Err(error) => return Err(error.into()),
    };
    let [is_ready, has_order] = handles.map(|handle| !handle.revents().is_empty());
    let has_ended = if is_connection { count == 0 } else { is_ready };
    Ok(Ready { has_ended, has_order, has_connection: is_connection && is_ready })
}
