//! A thread for each connection (paper 004, section 4.4).
//!
//! One thread accepts, and starts a thread that serves the connection and ends with it.

use std::io;

use spandrel_sync::{Arc, Semaphore};

use crate::threads::ThreadedServer;
use crate::{Port, Protocol, Server, Settings};

// ANCHOR: start
/// Starts a server with up to [`Settings::max_connections`] threads that serve. While all of them do, further
/// connections wait in the backlog.
///
/// # Errors
/// Any error of the operating system.
pub fn start<P: Protocol>(port: &Port, protocol: P, settings: &Settings) -> io::Result<impl Server + use<P>> {
    // A thread is counted a little longer than its connection.
    let limit = settings.max_connections.saturating_mul(2).saturating_add(1);
    let server = ThreadedServer::new(port, protocol, settings, limit)?;
    let room = Arc::new(Semaphore::new(settings.max_connections));
    let threads = Arc::downgrade(server.threads());
    server.spawn("accept", 1, move |shared| {
        loop {
            let permit = room.acquire_owned();
            let Some(connection) = shared.accept() else { return };
            let Some(threads) = threads.upgrade() else { return };
            let serving = Arc::clone(shared);
            let serve = move |_: &spandrel_sync::ThreadContext| {
                serving.serve(connection);
                drop(permit);
            };
            if let Err(error) = threads.spawn("", serve) {
                tracing::warn!(%error, "a connection is closed, since no thread can be started");
            }
        }
    })?;
    Ok(server)
}
// ANCHOR_END: start
