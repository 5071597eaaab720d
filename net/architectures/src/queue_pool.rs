//! A pool of threads behind a message queue (paper 004, section 4.3.2).
//!
//! One thread accepts and queues the connections; workers take them from the queue. The accepting thread never waits
//! for a client, and every connection costs a hand-over between two threads.

use std::io;

use spandrel_stream::{MessageQueue, Position, Queued, Wait, WaterMarks};
use spandrel_sync::Arc;

use crate::blocking::ROOM;
use crate::threads::{Connection, ThreadedServer};
use crate::{Port, Protocol, Server, Settings};

// ANCHOR: start
/// Starts a pool of [`Settings::workers`] threads behind a queue of [`Settings::queue`] connections. While the queue
/// is full, further connections wait in the backlog.
///
/// # Errors
/// Any error of the operating system.
pub fn start<P: Protocol>(port: &Port, protocol: P, settings: &Settings) -> io::Result<impl Server + use<P>> {
    let server = ThreadedServer::new(port, protocol, settings, settings.workers.saturating_add(1))?;
    let marks = WaterMarks::DEFAULT.messages(settings.queue);
    let queue = Arc::new(MessageQueue::<Accepted<P>>::new(marks));
    let jobs = Arc::clone(&queue);
    server.watch(settings.idle, |_| {})?;
    server.spawn("queue-pool", settings.workers, move |_| {
        let mut buffer = [0; ROOM];
        while let Ok(Accepted(connection)) = jobs.dequeue(Wait::Forever) {
            connection.serve(&mut buffer);
        }
    })?;
    server.spawn("accept", 1, move |shared| {
        while let Some(connection) = shared.accept() {
            // Fails only if the queue is closed, which this thread does.
            let _ = queue.enqueue(Accepted(connection), Position::Tail, Wait::Forever);
        }
        queue.close(); // the workers serve what is queued, and end
    })?;
    Ok(server)
}
// ANCHOR_END: start

/// A connection that waits for a worker.
struct Accepted<P: Protocol>(Connection<P>);

impl<P: Protocol> Queued for Accepted<P> {
    /// Only the number of connections is limited.
    fn octets(&self) -> usize {
        0
    }
}
