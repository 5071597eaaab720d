//! A pool of processes that compete for `accept` (paper 004, section 4.3.1).
//!
//! Each process is iterative. A crash ends one process and its connection; the server starts another one.

use std::io;
use std::os::fd::AsFd as _;

use spandrel_ipc::unix;
use spandrel_sync::thread;

use crate::process_protocol::{Order, answer, next_order, report_ready};
use crate::processes::ProcessServer;
use crate::{Port, Server, Service, Settings, iterative};

/// The role of its processes.
pub(crate) const ROLE: &str = "pre-forked";

/// Starts a pool of [`Settings::workers`] processes, which are this program again: its `main` begins with
/// [`serve_as_process`](crate::serve_as_process).
///
/// # Errors
/// Any error of the operating system, and the failure of a process to start.
pub fn start(port: &Port, service: &Service, settings: &Settings) -> io::Result<impl Server + use<>> {
    ProcessServer::start(port, service, settings, ROLE, settings.workers)
}

/// Serves in a process of the pool.
pub(crate) fn serve(port: &Port, service: Service, settings: &Settings, control: &unix::Stream) -> io::Result<()> {
    let server = iterative::start(port, service, settings)?;
    report_ready(control)?;
    loop {
        match next_order(control) {
            Order::Retire => server.retire(),
            Order::Count(number) => answer(control, number, server.connections()),
            Order::Drain(number, timeout) => {
                if let Err(error) = end_with_server(control) {
                    tracing::debug!(%error, "this process drains without regard to the end of its server");
                }
                answer(control, number, server.stop(timeout));
                return Ok(());
            }
        }
    }
}

/// Ends this process soon after its server has ended, though it still drains.
fn end_with_server(control: &unix::Stream) -> io::Result<()> {
    let control = unix::Stream::try_from(control.as_fd().try_clone_to_owned()?)?;
    let wait = move || {
        if let Order::Drain(_, timeout) = next_order(&control) {
            thread::park_timeout(timeout);
            std::process::exit(0);
        }
    };
    thread::Builder::new().name("end".to_owned()).spawn(wait).map(drop)
}
