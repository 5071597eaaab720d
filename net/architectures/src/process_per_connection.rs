//! A process for each connection (paper 004, section 4.3).
//!
//! One process accepts, and forks a process that serves the connection and ends with it. Nothing that happens in one
//! connection can affect another. Forking is sound only in a process with one thread, so a process of its own does it.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use spandrel_ipc::{Handle, Pollable, unix};
use spandrel_reactor::ForkedProcesses;
use spandrel_sync::thread;
use spandrel_sync::time::Instant;

use crate::listening::FAILURE_PAUSE;
use crate::process_protocol::{Order, answer, next_order, report_ready};
use crate::processes::ProcessServer;
use crate::{Port, Server, Service, Settings, blocking};

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
    port.prepare(settings)?;
    let acceptor = port.acceptor();
    acceptor.set_nonblocking(true)?;
    let mut processes = ForkedProcesses::new()?;
    report_ready(control)?;
    let mut is_accepting = true;
    loop {
        let has_room = is_accepting && processes.len() < settings.max_connections;
        let [has_ended, has_order, has_connection] = wait(has_room.then_some(&**acceptor), control, &processes, None)?;
        if has_ended {
            processes.reap();
        }
        if has_order {
            match next_order(control) {
                Order::Retire => is_accepting = false,
                Order::Count => answer(control, processes.len()),
                Order::Drain(timeout) => {
                    answer(control, drain(&mut processes, Instant::now() + timeout, control)?);
                    return Ok(());
                }
            }
        } else if has_connection {
            match acceptor.accept() {
                Ok((stream, _)) => {
                    let serve = |stream: &_| blocking::serve(stream, service, settings);
                    if let Err(error) = processes.spawn(stream, &service.handles(), serve) {
                        tracing::warn!(%error, "a connection is closed, since no process can be forked");
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    tracing::debug!(%error, "cannot accept");
                    thread::park_timeout(FAILURE_PAUSE); // a shortage of memory must not become a busy loop
                    is_accepting = !acceptor.is_shut_down() && error.kind() != io::ErrorKind::InvalidInput;
                }
            }
        }
    }
}
// ANCHOR_END: serve

/// Ends the input of all connections, and waits for their processes until `end`; returns the number of those killed
/// then.
fn drain(processes: &mut ForkedProcesses, end: Instant, control: &unix::Stream) -> io::Result<usize> {
    processes.begin_drain();
    processes.reap();
    while !processes.is_empty() && Instant::now() < end {
        wait(None::<&unix::Stream>, control, processes, Some(end))?;
        processes.reap();
    }
    Ok(processes.kill())
}

/// Waits for the end of a process, an order or a connection; returns which of them have come. With an end, it waits for
/// processes only.
fn wait(
    acceptor: Option<&impl Pollable>,
    control: &unix::Stream,
    processes: &ForkedProcesses,
    end: Option<Instant>,
) -> io::Result<[bool; 3]> {
    // A handle that is not waited for is replaced by that of the processes, since its end would be reported.
    let order = end.is_none().then(|| control.handle());
    let mut handles =
        [Some(processes.handle()), order, acceptor.map(Pollable::handle)].map(|handle: Option<Handle<'_>>| {
            let flags = if handle.is_some() { PollFlags::IN } else { PollFlags::empty() };
            PollFd::from_borrowed_fd(handle.unwrap_or(processes.handle()), flags)
        });
    let left = end.map(|end| end.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| left.try_into().ok());
    match poll(&mut handles, left.as_ref()) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok([false; 3]),
        Err(error) => return Err(error.into()),
    }
    Ok(handles.map(|handle| !handle.revents().is_empty()))
}
