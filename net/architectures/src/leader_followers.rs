//! Leader and followers: the threads of a pool take turns to wait for all connections.
//!
//! The leader waits for events, makes a follower the new leader, and serves the event itself: no hand-over of
//! connections between threads, and no thread for each connection.

use std::io;

use spandrel_reactor::ThreadStrategy;

use crate::event_driven::EventDrivenServer;
use crate::{Port, Protocol, Server, Settings};

/// Starts a server with [`Settings::workers`] threads.
///
/// # Errors
/// Any error of the operating system.
pub fn start<P: Protocol>(port: &Port, protocol: P, settings: &Settings) -> io::Result<impl Server + use<P>> {
    EventDrivenServer::start(port, protocol, settings, ThreadStrategy::LeaderFollowers, settings.workers)
}
