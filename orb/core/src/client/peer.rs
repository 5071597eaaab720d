//! A host and port, and the connections that are open to it.

use std::{collections::HashMap, io, time::Duration};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_ipc::inet;
use spandrel_sync::{Arc, Mutex};

use super::{CallFailure, ClientConnection};
use crate::reader::MessageReader;

/// What the client side of an ORB is configured with.
#[derive(Clone, Debug)]
pub(crate) struct ClientSettings {
    /// Connections to one peer before calls share them.
    pub(crate) connections_per_peer: usize,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) max_message: usize,
    pub(crate) max_unfinished: usize,
    pub(crate) send_queue: Option<usize>,
    pub(crate) recv_queue: Option<usize>,
}

/// All peers that references of one ORB name.
#[derive(Debug)]
pub(crate) struct PeerTable {
    settings: Arc<ClientSettings>,
    peers: Mutex<HashMap<(String, u16), Arc<Peer>>>,
}

impl PeerTable {
    pub(crate) fn new(settings: ClientSettings) -> Self {
        Self { settings: Arc::new(settings), peers: Mutex::default() }
    }

    /// The peer at this address, the same for everybody who names it so.
    pub(crate) fn peer(&self, host: &str, port: u16) -> Arc<Peer> {
        let mut peers = self.peers.lock();
        if let Some(peer) = peers.get(&(host.to_owned(), port)) {
            return Arc::clone(peer);
        }
        // Peers that no reference names any more are forgotten here, so that the table is bounded by what is in use.
        peers.retain(|_, peer| Arc::strong_count(peer) > 1);
        let peer = Arc::new(Peer::new(host, port, Arc::clone(&self.settings)));
        peers.insert((host.to_owned(), port), Arc::clone(&peer));
        peer
    }

    /// Forgets all peers; connections close when their last call ends.
    pub(crate) fn clear(&self) {
        for peer in self.peers.lock().drain().map(|(_, peer)| peer) {
            peer.pool.lock().connections.clear();
        }
    }
}

/// One address that requests are sent to.
#[derive(Debug)]
pub(crate) struct Peer {
    host: String,
    port: u16,
    /// `host:port`, for messages.
    name: Arc<str>,
    settings: Arc<ClientSettings>,
    pool: Mutex<Pool>,
}

#[derive(Debug, Default)]
struct Pool {
    connections: Vec<Pooled>,
    /// Connections that are being opened right now.
    opening: usize,
}

#[derive(Debug)]
struct Pooled {
    connection: Arc<ClientConnection>,
    users: usize,
}

/// A connection for the time of one call.
#[derive(Debug)]
pub(crate) struct Lease<'p> {
    peer: &'p Peer,
    connection: Arc<ClientConnection>,
    /// True if it was opened for this lease, so that it cannot have been closed while it lay idle.
    pub(crate) fresh: bool,
}

impl Peer {
    fn new(host: &str, port: u16, settings: Arc<ClientSettings>) -> Self {
        let name = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Self { host: host.to_owned(), port, name: name.into(), settings, pool: Mutex::default() }
    }

    /// A connection that nobody uses, or a new one, or, at the limit, the one with the fewest users.
    pub(crate) fn lease(&self, timeout: Option<Duration>) -> Result<Lease<'_>, CallFailure> {
        let mut pool = self.pool.lock();
        if let Some(connection) = pool.idle() {
            return Ok(Lease { peer: self, connection, fresh: false });
        }
        if pool.connections.len() + pool.opening >= self.settings.connections_per_peer
            && let Some(connection) = pool.least_used()
        {
            return Ok(Lease { peer: self, connection, fresh: false });
        }
        pool.opening += 1;
        drop(pool);
        let opened = self.connect(timeout);
        let mut pool = self.pool.lock();
        pool.opening -= 1;
        let connection = Arc::new(opened?);
        pool.connections.push(Pooled { connection: Arc::clone(&connection), users: 1 });
        Ok(Lease { peer: self, connection, fresh: true })
    }

    fn connect(&self, timeout: Option<Duration>) -> Result<ClientConnection, CallFailure> {
        let timeout = match (timeout, self.settings.connect_timeout) {
            (Some(call), Some(setting)) => Some(call.min(setting)),
            (call, setting) => call.or(setting),
        };
        let stream = self.open(timeout).map_err(|error| self.connect_failed(error))?;
        tracing::debug!(peer = %self.name, "connected");
        let reader = MessageReader::new(self.settings.max_message, self.settings.max_unfinished);
        Ok(ClientConnection::new(Arc::clone(&self.name), Box::new(stream), reader))
    }

    /// Tries each address of the name in turn.
    fn open(&self, timeout: Option<Duration>) -> io::Result<inet::Stream> {
        let mut connector = inet::Connector::new().no_delay(true);
        if let Some(octets) = self.settings.send_queue {
            connector = connector.send_queue(octets);
        }
        if let Some(octets) = self.settings.recv_queue {
            connector = connector.recv_queue(octets);
        }
        if let Some(timeout) = timeout {
            connector = connector.timeout(timeout);
        }
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for addr in inet::Addr::resolve(&self.host, self.port)? {
            match connector.open(&addr) {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn connect_failed(&self, error: io::Error) -> CallFailure {
        let no = CompletionStatus::No;
        let detail = format!("cannot connect to {}", self.name);
        let exception = if error.kind() == io::ErrorKind::TimedOut {
            SystemException::timeout(minor::ROUND_TRIP_EXPIRED, no)
        } else {
            SystemException::transient(minor::NO_USABLE_PROFILE, no)
        };
        CallFailure { exception: exception.with_detail(detail).with_source(error), stale: false }
    }
}

impl Pool {
    fn idle(&mut self) -> Option<Arc<ClientConnection>> {
        let pooled = self.connections.iter_mut().find(|pooled| pooled.users == 0)?;
        pooled.users = 1;
        Some(Arc::clone(&pooled.connection))
    }

    fn least_used(&mut self) -> Option<Arc<ClientConnection>> {
        let pooled = self.connections.iter_mut().min_by_key(|pooled| pooled.users)?;
        pooled.users += 1;
        Some(Arc::clone(&pooled.connection))
    }

    /// One user less; a connection that must not be used again leaves the pool.
    fn release(&mut self, connection: &Arc<ClientConnection>) {
        let Some(at) = self.connections.iter().position(|pooled| Arc::ptr_eq(&pooled.connection, connection)) else {
            return;
        };
        self.connections[at].users -= 1;
        if connection.is_retired() {
            self.connections.swap_remove(at);
        }
    }
}

impl std::ops::Deref for Lease<'_> {
    type Target = ClientConnection;

    fn deref(&self) -> &ClientConnection {
        &self.connection
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.peer.pool.lock().release(&self.connection);
    }
}
