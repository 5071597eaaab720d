//! Connections that wait for the next transfer over the same endpoint.

use std::time::{Duration, Instant};

use spandrel_sync::Mutex;

use crate::channel::{Channel, Route};

/// The most connections of a client that wait.
const MAX_CONNECTIONS: usize = 8;
/// The time for which a connection waits, less than the offering party waits by default.
const MAX_AGE: Duration = Duration::from_secs(4);

/// A connection to an endpoint of an offer.
#[derive(Debug)]
pub(crate) struct Connection {
    endpoint: String,
    pub(crate) channel: Channel,
    /// The buffer of received data.
    pub(crate) buffer: Vec<u8>,
    since: Instant,
}

impl Connection {
    pub(crate) fn new(endpoint: &str, channel: Channel) -> Self {
        Self { endpoint: endpoint.to_owned(), channel, buffer: Vec::new(), since: Instant::now() }
    }

    /// Whether it may have a further transfer. Shared memory is released with its transfer.
    pub(crate) fn can_wait(&self) -> bool {
        self.channel.route() != Route::SharedMemory
    }

    /// Whether the other party has neither ended it nor sent anything.
    fn is_silent(&self) -> bool {
        let received = self.channel.stream().try_recv(&mut [0]);
        received.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

/// The connections of a client that wait, the longest waiting one first.
#[derive(Debug, Default)]
pub(crate) struct IdleConnections(Mutex<Vec<Connection>>);

impl IdleConnections {
    /// A connection to this endpoint that is still open.
    pub(crate) fn take(&self, endpoint: &str) -> Option<Connection> {
        let mut connections = self.0.lock();
        connections.retain(|connection| connection.since.elapsed() < MAX_AGE);
        let at = connections.iter().rposition(|connection| connection.endpoint == endpoint)?;
        let connection = connections.remove(at);
        drop(connections);
        connection.is_silent().then_some(connection)
    }

    /// Lets a connection wait, in place of the longest waiting one if there are too many.
    pub(crate) fn put(&self, mut connection: Connection) {
        connection.since = Instant::now();
        let mut connections = self.0.lock();
        let oldest = (connections.len() >= MAX_CONNECTIONS).then(|| connections.remove(0));
        connections.push(connection);
        drop(connections);
        drop(oldest);
    }
}
