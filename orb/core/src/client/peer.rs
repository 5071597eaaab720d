//! A host and port, and the connections that are open to it.

use std::{fmt, io, ops::Deref, time::Duration};

use spandrel_giop::{CompletionStatus, SystemException, SystemExceptionKind, TransmissionCodeSets, minor};
use spandrel_ipc::inet;
#[cfg(feature = "asynchronous")]
use spandrel_sync::thread;
use spandrel_sync::{Arc, Condition, Mutex};

#[cfg(feature = "asynchronous")]
use super::Awaiting;
use super::{CallFailure, ClientConnection, Told};
use crate::{
    invocation::no_reconnecting,
    reader::{Deadline, MessageReader},
};

/// The least that connecting to one of several addresses gets.
const SHORTEST: Duration = Duration::from_millis(1);

/// What the client side of an ORB is configured with.
#[derive(Clone, Debug)]
pub(crate) struct ClientSettings {
    /// Connections to one peer before calls share them.
    pub(crate) connections_per_peer: usize,
    /// Requests that wait for their replies on one connection before further asynchronous ones are refused.
    #[cfg(feature = "asynchronous")]
    pub(crate) max_pending: usize,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) max_message: usize,
    pub(crate) max_unfinished: usize,
    pub(crate) send_queue: Option<usize>,
    pub(crate) recv_queue: Option<usize>,
}

/// Host, port, and what was chosen from the code sets that a reference names: a connection has one agreement all its life.
type PeerKey = (String, u16, Option<TransmissionCodeSets>);

/// All peers that references of one ORB name, in the order of their keys: a table that is seldom added to, and small in every sense.
#[derive(Debug)]
pub(crate) struct PeerTable {
    settings: Arc<ClientSettings>,
    peers: Mutex<Vec<(PeerKey, Arc<Peer>)>>,
}

impl PeerTable {
    pub(crate) fn new(settings: ClientSettings) -> Self {
        Self { settings: Arc::new(settings), peers: Mutex::default() }
    }

    /// The peer at this address and with this agreement, the same for everybody who names it so.
    pub(crate) fn peer(&self, host: &str, port: u16, code_sets: Option<TransmissionCodeSets>) -> Arc<Peer> {
        let key = (host.to_owned(), port, code_sets);
        let mut peers = self.peers.lock();
        if let Ok(at) = peers.binary_search_by(|(known, _)| known.cmp(&key)) {
            return Arc::clone(&peers[at].1);
        }
        // Peers that no reference names any more are forgotten here, so that the table is bounded by what is in use.
        peers.retain(|(_, peer)| Arc::strong_count(peer) > 1);
        let peer = Arc::new(Peer::new(host, port, Arc::clone(&self.settings)));
        let at = peers.partition_point(|(known, _)| *known < key);
        peers.insert(at, (key, Arc::clone(&peer)));
        peer
    }

    /// Forgets all peers; connections close when their last call ends.
    pub(crate) fn clear(&self) {
        for peer in self.peers.lock().drain(..).map(|(_, peer)| peer) {
            peer.pool.lock().connections.clear();
        }
    }
}

/// Where a peer is.
#[derive(Debug)]
pub(crate) struct PeerName {
    host: String,
    port: u16,
}

impl PeerName {
    pub(crate) fn new(host: &str, port: u16) -> Arc<Self> {
        Arc::new(Self { host: host.to_owned(), port })
    }

    #[cfg(feature = "server")]
    fn is(&self, host: &str, port: u16) -> bool {
        self.port == port && self.host == host
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// One address that requests are sent to.
#[derive(Debug)]
pub(crate) struct Peer {
    name: Arc<PeerName>,
    settings: Arc<ClientSettings>,
    pool: Mutex<Pool>,
    /// Notified when a connection was opened or could not be.
    opened: Condition,
}

#[derive(Debug, Default)]
struct Pool {
    connections: Vec<Pooled>,
    /// Connections that are being opened right now.
    opening: usize,
    /// How often none could be opened, and why the last time.
    refused: Option<(u64, CallFailure)>,
    /// Asynchronous calls that wait for one that is being opened.
    parked: Vec<Told>,
}

#[derive(Debug)]
struct Pooled {
    connection: Arc<ClientConnection>,
    users: usize,
}

/// A connection for the time of one call.
#[derive(Debug)]
pub(crate) struct Lease<P: Deref<Target = Peer>> {
    peer: P,
    connection: Arc<ClientConnection>,
    /// True if it was opened for this lease, so that it cannot have been closed while it lay idle.
    pub(crate) fresh: bool,
}

/// What an asynchronous call gets that asks for a connection.
#[cfg(feature = "asynchronous")]
#[derive(Debug)]
pub(crate) enum Leasing {
    Leased(Lease<Arc<Peer>>),
    /// It is told when one may be there.
    Parked,
}

impl Peer {
    fn new(host: &str, port: u16, settings: Arc<ClientSettings>) -> Self {
        Self { name: PeerName::new(host, port), settings, pool: Mutex::default(), opened: Condition::new() }
    }

    /// Whether it is this one.
    #[cfg(feature = "server")]
    pub(crate) fn is_at(&self, host: &str, port: u16) -> bool {
        self.name.is(host, port)
    }

    /// A connection that nobody uses, or a new one, or, at the limit, the one with the fewest users.
    pub(crate) fn lease(&self, timeout: Option<Duration>) -> Result<Lease<&Self>, CallFailure> {
        self.lease_or(timeout, || self.connect(timeout))
    }

    /// A connection that is open: one that nobody uses, or the one with the fewest users.
    ///
    /// # Errors
    /// REBIND if there is none.
    pub(crate) fn lease_open(&self) -> Result<Lease<&Self>, CallFailure> {
        Ok(Lease { peer: self, connection: self.open_now(is_free)?, fresh: false })
    }

    fn open_now(&self, suits: impl Fn(&ClientConnection) -> bool) -> Result<Arc<ClientConnection>, CallFailure> {
        let mut pool = self.pool.lock();
        let connection = pool.idle(&suits).or_else(|| pool.least_used(&suits));
        connection.ok_or_else(|| CallFailure::new(no_reconnecting()))
    }

    /// `connect` opens one more.
    fn lease_or(
        &self,
        timeout: Option<Duration>,
        connect: impl FnOnce() -> Result<ClientConnection, CallFailure>,
    ) -> Result<Lease<&Self>, CallFailure> {
        if let Some(connection) = self.open_already(timeout)? {
            return Ok(Lease { peer: self, connection, fresh: false });
        }
        let opened = connect().map(Arc::new);
        self.settle(&opened, timeout.is_some(), 1, || {});
        Ok(Lease { peer: self, connection: opened?, fresh: true })
    }

    /// Tells everybody what came of opening a connection. `is_limited`: a time-out may be that of the one who opened it.
    /// `first` tells whom it was opened for.
    fn settle(
        &self,
        opened: &Result<Arc<ClientConnection>, CallFailure>,
        is_limited: bool,
        users: usize,
        first: impl FnOnce(),
    ) {
        let mut pool = self.pool.lock();
        pool.opening -= 1;
        let mut outcome = Ok(());
        match opened {
            Ok(connection) => pool.connections.push(Pooled { connection: Arc::clone(connection), users }),
            // The time of this call is not that of others.
            Err(failure) if is_limited && is_timeout(failure) => {}
            Err(failure) => {
                pool.refused = Some((pool.refusals() + 1, failure.clone()));
                if pool.open() == 0 {
                    outcome = Err(failure.clone());
                }
            }
        }
        let parked = std::mem::take(&mut pool.parked);
        drop(pool);
        self.opened.notify_all();
        first();
        for call in parked {
            call.opened(outcome.clone());
        }
    }

    /// As [`lease`](Self::lease), without waiting: where a connection has to be opened a thread does that, and the call is told.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn lease_soon(
        self: &Arc<Self>,
        timeout: Option<Duration>,
        call: &Arc<dyn Awaiting>,
    ) -> Result<Leasing, CallFailure> {
        self.lease_soon_or(timeout.is_some(), call, move |peer| peer.connect(timeout))
    }

    /// As [`lease_open`](Self::lease_open), for asynchronous calls.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn lease_open_soon(self: &Arc<Self>) -> Result<Leasing, CallFailure> {
        let connection = self.open_now(|_| true)?;
        Ok(Leasing::Leased(Lease { peer: Arc::clone(self), connection, fresh: false }))
    }

    /// `connect` opens one more.
    #[cfg(feature = "asynchronous")]
    fn lease_soon_or(
        self: &Arc<Self>,
        is_limited: bool,
        call: &Arc<dyn Awaiting>,
        connect: impl FnOnce(&Self) -> Result<ClientConnection, CallFailure> + Send + 'static,
    ) -> Result<Leasing, CallFailure> {
        let mut pool = self.pool.lock();
        if let Some(connection) = pool.idle(|_| true) {
            return Ok(Leasing::Leased(Lease { peer: Arc::clone(self), connection, fresh: false }));
        }
        let limit = self.settings.connections_per_peer;
        if pool.open() + pool.opening >= limit
            && let Some(connection) = pool.least_used(|_| true)
        {
            return Ok(Leasing::Leased(Lease { peer: Arc::clone(self), connection, fresh: false }));
        }
        if pool.opening >= limit {
            pool.parked.push(Arc::clone(call));
            return Ok(Leasing::Parked);
        }
        pool.opening += 1;
        drop(pool);
        let (peer, opener) = (Arc::clone(self), Arc::clone(call));
        let open = move || {
            let opened = connect(&peer).map(Arc::new);
            // It was there before those that are parked.
            let first = || opener.opened(opened.as_ref().map(drop).map_err(CallFailure::clone));
            peer.settle(&opened, is_limited, 0, first);
        };
        let started = thread::Builder::new().name("spandrel-connect".into()).spawn(open);
        if let Err(error) = started {
            let exception = SystemException::no_resources(0, CompletionStatus::No)
                .with_detail(|| format!("no thread to connect to {} in", self.name))
                .with_source(error);
            let failure = CallFailure::new(exception);
            self.settle(&Err(failure.clone()), false, 0, || {});
            return Err(failure);
        }
        Ok(Leasing::Parked)
    }

    /// A call waits for a connection no longer.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn unpark(&self, call: &Arc<dyn Awaiting>) {
        let mut pool = self.pool.lock();
        let left: Vec<_> = pool.parked.extract_if(.., |parked| Arc::ptr_eq(parked, call)).collect();
        drop(pool);
        drop(left);
    }

    /// Requests that may wait for their replies on one connection.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn max_pending(&self) -> usize {
        self.settings.max_pending
    }

    /// A connection that is open; none, and one more that is being opened, if the caller is to open it.
    fn open_already(&self, timeout: Option<Duration>) -> Result<Option<Arc<ClientConnection>>, CallFailure> {
        let limit = self.settings.connections_per_peer;
        let mut waiting = None;
        let mut pool = self.pool.lock();
        loop {
            // Rather is one more opened than there should be.
            if let Some(connection) = pool.idle(is_free) {
                return Ok(Some(connection));
            }
            let open = pool.open();
            if open + pool.opening >= limit
                && let Some(connection) = pool.least_used(is_free)
            {
                return Ok(Some(connection));
            }
            let (deadline, refusals) = waiting.get_or_insert_with(|| (timeout.map(Deadline::after), pool.refusals()));
            // What kept others from opening those that this call waited for would keep it too.
            if let Some((count, failure)) = &pool.refused
                && open == 0
                && count != refusals
            {
                return Err(failure.clone());
            }
            // Below the limit; or what was counted as open has been retired meanwhile.
            if pool.opening < limit {
                pool.opening += 1;
                return Ok(None);
            }
            match deadline.as_ref().map(Deadline::remaining) {
                None => self.opened.wait(&mut pool),
                Some(Duration::ZERO) => return Err(self.connect_failed(io::ErrorKind::TimedOut.into(), true)),
                Some(remaining) => drop(self.opened.wait_for(&mut pool, remaining)),
            }
        }
    }

    /// Forgets the connections that nobody uses: one that lay idle was found closed.
    pub(crate) fn drop_idle(&self) {
        let mut pool = self.pool.lock();
        let idle: Vec<_> = pool.connections.extract_if(.., |pooled| pooled.users == 0).collect();
        drop(pool);
        // Closed outside of the lock.
        drop(idle);
    }

    fn connect(&self, timeout: Option<Duration>) -> Result<ClientConnection, CallFailure> {
        let timeout = match (timeout, self.settings.connect_timeout) {
            (Some(call), Some(setting)) => Some(call.min(setting)),
            (call, setting) => call.or(setting),
        };
        let stream = self.open(timeout).map_err(|error| self.connect_failed(error, timeout.is_some()))?;
        tracing::debug!(peer = %self.name, "connected");
        let reader = MessageReader::new(self.settings.max_message, self.settings.max_unfinished);
        Ok(ClientConnection::new(Arc::clone(&self.name), Arc::new(stream), reader))
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
        let deadline = timeout.map(Deadline::after);
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let addrs = inet::Addr::resolve(&self.name.host, self.name.port)?;
        for (index, addr) in addrs.iter().enumerate() {
            if let Some(deadline) = &deadline {
                // Each gets its share, or a dead one would leave nothing for those behind it.
                let left = u32::try_from(addrs.len() - index).unwrap_or(u32::MAX);
                connector = connector.timeout((deadline.remaining() / left).max(SHORTEST));
            }
            match connector.open(addr) {
                Ok(stream) => {
                    // So that a peer that vanished without a word is noticed some day.
                    stream.set_keep_alive(true)?;
                    return Ok(stream);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// `is_limited`: a time-out may be ours and not the system's.
    fn connect_failed(&self, error: io::Error, is_limited: bool) -> CallFailure {
        let no = CompletionStatus::No;
        let detail = || format!("cannot connect to {}", self.name);
        let exception = if is_limited && error.kind() == io::ErrorKind::TimedOut {
            SystemException::timeout(minor::ROUND_TRIP_EXPIRED, no)
        } else {
            SystemException::transient(minor::NO_USABLE_PROFILE, no)
        };
        CallFailure::new(exception.with_detail(detail).with_source(error))
    }
}

impl Pool {
    fn idle(&mut self, suits: impl Fn(&ClientConnection) -> bool) -> Option<Arc<ClientConnection>> {
        loop {
            let at = self.connections.iter().position(|pooled| pooled.users == 0 && suits(&pooled.connection))?;
            let pooled = &mut self.connections[at];
            if !pooled.connection.is_retired() {
                pooled.users = 1;
                return Some(Arc::clone(&pooled.connection));
            }
            // The reactor has seen it end while nobody used it.
            self.connections.swap_remove(at);
        }
    }

    /// How many may be given to further callers.
    fn open(&self) -> usize {
        self.connections.iter().filter(|pooled| !pooled.connection.is_retired()).count()
    }

    fn refusals(&self) -> u64 {
        self.refused.as_ref().map_or(0, |(count, _)| *count)
    }

    fn least_used(&mut self, suits: impl Fn(&ClientConnection) -> bool) -> Option<Arc<ClientConnection>> {
        let suits = |pooled: &&mut Pooled| !pooled.connection.is_retired() && suits(&pooled.connection);
        let open = self.connections.iter_mut().filter(suits);
        let pooled = open.min_by_key(|pooled| pooled.users)?;
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

/// Whether a thread may wait for a reply there: not if it reads there itself, for it would wait for itself.
fn is_free(connection: &ClientConnection) -> bool {
    !connection.is_read_here()
}

fn is_timeout(failure: &CallFailure) -> bool {
    failure.exception.kind() == SystemExceptionKind::Timeout
}

impl<P: Deref<Target = Peer>> Deref for Lease<P> {
    type Target = Arc<ClientConnection>;

    fn deref(&self) -> &Arc<ClientConnection> {
        &self.connection
    }
}

impl<P: Deref<Target = Peer>> Drop for Lease<P> {
    fn drop(&mut self) {
        self.peer.pool.lock().release(&self.connection);
    }
}

#[cfg(all(test, shuttle))]
mod models;
