//! Iterative: one thread serves one connection after another (paper 004, section 4.1).
//!
//! A client that is slow, or silent, keeps all others waiting until a time limit ends its connection.

use std::io;

use crate::blocking::ROOM;
use crate::threads::ThreadedServer;
use crate::{Port, Protocol, Server, Settings};

// ANCHOR: start
/// Starts a server whose one thread serves connections one after another.
///
/// # Errors
/// Any error of the operating system.
pub fn start<P: Protocol>(port: &Port, protocol: P, settings: &Settings) -> io::Result<impl Server + use<P>> {
    let server = ThreadedServer::new(port, protocol, settings, 1)?;
    server.watch(settings.idle, |_| {})?;
    server.spawn("iterative", 1, |shared| {
        let mut buffer = [0; ROOM];
        while let Some(connection) = shared.accept() {
            connection.serve(&mut buffer);
        }
    })?;
    Ok(server)
}
// ANCHOR_END: start
