//! A thread for each connection (paper 004, section 4.4).
//!
//! One thread accepts, and starts a thread that serves the connection and ends with it.

use std::io;
use std::time::Duration;

use crate::threads::ThreadedServer;
use crate::{Port, Protocol, Server, Settings};

/// The stack of a thread that serves, in octets. The C library keeps some stacks for further threads, by their sizes.
const STACK: usize = 512 << 10;

// ANCHOR: start
/// Starts a server with up to [`Settings::max_connections`] threads that serve. While all of them do, further
/// connections wait in the backlog.
///
/// # Errors
/// Any error of the operating system.
pub fn start<P: Protocol>(port: &Port, protocol: P, settings: &Settings) -> io::Result<impl Server + use<P>> {
    let server = ThreadedServer::new(port, protocol, settings, 1)?;
    server.watch(settings.idle, |_| {})?;
    let limit = settings.max_connections;
    server.spawn("accept", 1, move |shared| {
        while shared.open.wait_below(limit, Duration::MAX)
            && let Some(connection) = shared.accept()
        {
            connection.serve_in_thread(STACK);
        }
    })?;
    Ok(server)
}
// ANCHOR_END: start
