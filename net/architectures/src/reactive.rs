//! Event-driven: one thread waits for all connections at once (paper 004, section 4.2).
//!
//! No client delays another, and a connection costs memory instead of a thread. The work of a session must be short,
//! since it is done while all others wait.

use std::io;

use spandrel_reactor::ThreadStrategy;

use crate::event_driven::EventDrivenServer;
use crate::{Port, Protocol, Server, Settings};

/// Starts an event-driven server with the mechanism of [`Settings::backend`].
///
/// # Errors
/// Any error of the operating system.
pub fn start<P: Protocol>(port: &Port, protocol: P, settings: &Settings) -> io::Result<impl Server + use<P>> {
    EventDrivenServer::start(port, protocol, settings, ThreadStrategy::Reactive, 1)
}
