//! The offering side: endpoints, tokens and the transfers behind them.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt, io,
    path::PathBuf,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use spandrel_ipc::{Accept, Shutdown, inet};
use spandrel_poa::Poa;
use spandrel_sync::{Arc, Condition, Mutex, Weak, atomic::AtomicU64, thread, time::Deadline};

use crate::{
    bulk::{Direction, Failed, FailureCode, Offer, StreamEnd, Ticket},
    channel::Channel,
    endpoint::Endpoint,
    error::{BulkError, Party},
    flow::{Conversation, Outcome, Pace, Reception},
    limits::BulkLimits,
    peer::{ChargedParty, OfferedTo, PeerBinding, address_for_caller},
    sink::Sink,
    source::Source,
    stream_end::{Offering, Servant},
    token::new_token,
    transfer::{Flow, Transfer, refused},
    wire::{ErrorCode, Greeting, Token},
};

/// The octets in flight in one direction of a connection through shared memory. The connecting process has its memory.
#[cfg(target_os = "linux")]
const MAX_SHARED_QUEUE: usize = 1 << 20;
/// The searches for expired offers within the time of an offer.
const SEARCHES: u32 = 16;
/// The time for the end of a connection that makes room for another.
const EVICTION: Duration = Duration::from_secs(5);

/// Counters of the offering side since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkStatistics {
    /// Bulk connections that were accepted.
    pub accepted: u64,
    /// Transfers over a connection that an earlier transfer has left open.
    pub reused: u64,
    /// Greetings with a token that is unknown, used, expired or bound to another peer.
    pub refused_tokens: u64,
    /// Connections without a whole greeting of this protocol within the time.
    pub bad_greetings: u64,
    /// Connections that were closed because of the limit: new ones, or the oldest without a greeting in favour of a new
    /// one.
    pub refused_connections: u64,
    /// Connections of parties that had [`BulkLimits::connections_per_party`] already.
    pub refused_parties: u64,
    /// Transfers that were offered.
    pub offered: u64,
}

#[derive(Debug, Default)]
struct Counters {
    accepted: AtomicU64,
    reused: AtomicU64,
    refused_tokens: AtomicU64,
    bad_greetings: AtomicU64,
    refused_connections: AtomicU64,
    refused_parties: AtomicU64,
    offered: AtomicU64,
}

/// The endpoints and limits with which a [`BulkServer`] is opened.
#[derive(Debug)]
pub struct BulkServerBuilder {
    poa: Poa,
    limits: BulkLimits,
    tcp: Option<inet::Addr>,
    host: Option<String>,
    unix: Option<PathBuf>,
    #[cfg(target_os = "linux")]
    shm: Option<PathBuf>,
    tls: Option<(inet::Addr, spandrel_ssliop::Ssliop)>,
}

impl BulkServerBuilder {
    /// Sets the limits of offers and transfers, in place of the default ones.
    #[must_use]
    pub fn limits(mut self, limits: BulkLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Listens for TCP connections at this address; port 0 is chosen by the system.
    #[must_use]
    pub fn tcp(mut self, addr: inet::Addr) -> Self {
        self.tcp = Some(addr);
        self
    }

    /// Offers endpoints at this host, in place of the address by which the sender of the request has reached this side.
    #[must_use]
    pub fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// Listens at a UNIX-domain socket, for the processes of this user on this machine. The file of a killed process is
    /// replaced.
    #[cfg(unix)]
    #[must_use]
    pub fn unix(mut self, path: impl Into<PathBuf>) -> Self {
        self.unix = Some(path.into());
        self
    }

    /// Passes octets in memory that both processes map, for those of this user on this machine; the path is that of the
    /// socket which passes the memory. It is used where there is no file to pass: files go by [`unix`](Self::unix) first.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn shm(mut self, path: impl Into<PathBuf>) -> Self {
        self.shm = Some(path.into());
        self
    }

    /// Listens for TLS connections, with the certificate and the authorities of this protocol.
    #[must_use]
    pub fn tls(mut self, addr: inet::Addr, ssliop: &spandrel_ssliop::Ssliop) -> Self {
        self.tls = Some((addr, ssliop.clone()));
        self
    }

    /// Opens the endpoints. Without any, offers are taken by calls alone.
    ///
    /// # Errors
    /// The errors of listening.
    pub fn open(self) -> io::Result<BulkServer> {
        let inner = Arc::new(Inner {
            poa: self.poa,
            limits: self.limits,
            host: self.host,
            registry: Mutex::new(Registry::default()),
            endpoints: Mutex::new(Vec::new()),
            connections: Mutex::new(Connections::default()),
            freed: Condition::new(),
            counters: Counters::default(),
        });
        let mut server = BulkServer { inner, listeners: Vec::new() };
        #[cfg(unix)]
        if let Some(path) = self.unix {
            let path = std::path::absolute(path)?;
            let options = spandrel_ipc::unix::AcceptorOptions::default().mode(0o600).replace_stale(true);
            let addr = spandrel_ipc::unix::Addr::path(&path)?;
            let acceptor = spandrel_ipc::unix::Acceptor::open_with(&addr, &options)?;
            server.listen(acceptor, Channel::Unix, |_| Endpoint::Unix(path.clone()))?;
        }
        #[cfg(target_os = "linux")]
        if let Some(path) = self.shm {
            use spandrel_ipc::shm::{Acceptor, AcceptorOptions, Addr};
            let path = std::path::absolute(path)?;
            let socket = spandrel_ipc::unix::AcceptorOptions::default().mode(0o600).replace_stale(true);
            let options = AcceptorOptions::default().socket(socket).max_queue(MAX_SHARED_QUEUE);
            let acceptor = Acceptor::open_with(&Addr::path(&path)?, &options)?;
            server.listen(acceptor, |stream| Channel::Shm(Box::new(stream)), |_| Endpoint::Shm(path.clone()))?;
        }
        if let Some(addr) = self.tcp {
            let acceptor = inet::Acceptor::open(&addr)?;
            server.listen(acceptor, Channel::Tcp, |bound| Endpoint::Tcp(reachable(&bound), bound.port()))?;
        }
        if let Some((addr, ssliop)) = self.tls {
            let family = ssliop.server_family().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let acceptor = spandrel_ipc::Family::open(&family.handshake_timeout(server.inner.limits.greeting), &addr)?;
            let channel = |stream| Channel::Tls(Box::new(stream));
            server.listen(acceptor, channel, |bound| Endpoint::Tls(reachable(&bound), bound.port()))?;
        }
        Ok(server)
    }
}

/// The side that offers ends of streams. Dropping it cancels its transfers.
///
/// ```no_run
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub use spandrel_bulk as bulk; }
/// use spandrel::bulk::{BulkServer, FileSource, OfferedTo, bulk::Offer};
/// # fn example(poa: &spandrel::Poa) -> Result<Offer, Box<dyn std::error::Error>> {
/// let server = BulkServer::builder(poa).tcp("0.0.0.0:7100".parse()?).open()?;
/// // In an operation that returns a `Bulk::Offer`:
/// let (offer, _transfer) = server.offer_source(FileSource::open("scan.raw")?, &OfferedTo::Caller)?;
/// # Ok(offer)
/// # }
/// ```
#[derive(Debug)]
pub struct BulkServer {
    inner: Arc<Inner>,
    listeners: Vec<Listening>,
}

/// An open endpoint with its thread.
struct Listening {
    close: Box<dyn Fn() + Send + Sync>,
    thread: Option<thread::JoinHandle<()>>,
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").finish_non_exhaustive()
    }
}

/// A transfer that this side has offered; it may wait, run, or have ended.
#[derive(Clone)]
pub struct OfferedTransfer(Arc<Transfer>);

impl OfferedTransfer {
    /// Waits for its end, at most for this time; `None` if it goes on.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Option<Result<Outcome, Arc<BulkError>>> {
        self.0.wait(limit)
    }

    /// The octets that have been sent or received.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.0.progress().octets
    }

    /// Ends it. The other party gets the reason.
    pub fn cancel(&self, reason: &str) {
        self.0.cancel(Party::Own, reason);
    }
}

impl fmt::Debug for OfferedTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfferedTransfer").field("octets", &self.octets()).finish_non_exhaustive()
    }
}

struct Inner {
    poa: Poa,
    limits: BulkLimits,
    host: Option<String>,
    registry: Mutex<Registry>,
    endpoints: Mutex<Vec<Endpoint>>,
    connections: Mutex<Connections>,
    /// Notified when a connection has ended.
    freed: Condition,
    counters: Counters,
}

/// The open connections, each with a thread.
#[derive(Default)]
struct Connections {
    count: usize,
    /// Those that transfer, by the parties to which they are charged.
    charged: HashMap<ChargedParty, usize>,
    /// Those that wait for a greeting, the first or a further one, by number. The longest waiting one is the first.
    ungreeted: VecDeque<(u64, Arc<Channel>)>,
    next: u64,
    /// Whether the offering side has ended, so that no connection waits for a further greeting.
    is_closed: bool,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The transfers by number, and the tokens that open connections to them: at most one for each.
#[derive(Default)]
struct Registry {
    next: u64,
    transfers: HashMap<u64, Entry>,
    tokens: HashMap<Token, u64>,
    /// The transfers that had not ended at the last look.
    waiting: BTreeSet<u64>,
    /// The others, with the times of their ends, the first one at the front.
    ended: VecDeque<(Instant, u64)>,
    /// The time of the last search for expired offers.
    searched: Option<Instant>,
    is_closed: bool,
}

impl Registry {
    /// Finds the transfers that have ended since the last look.
    fn find_ended(&mut self) {
        let (transfers, mut ended) = (&self.transfers, Vec::new());
        self.waiting.retain(|number| match transfers.get(number).map(|entry| entry.transfer.ended()) {
            Some(Some(time)) => {
                ended.push((time, *number));
                false
            }
            entry => entry.is_some(),
        });
        ended.sort_unstable();
        self.ended.extend(ended);
    }

    /// Takes out the transfer that ended first, or was asked about the longest time ago since.
    fn remove_ended(&mut self) -> Option<Entry> {
        for _ in 0..self.ended.len() {
            let (time, number) = self.ended.pop_front()?;
            match self.transfers.get(&number).and_then(|entry| entry.transfer.ended()) {
                Some(later) if later != time => self.ended.push_back((later, number)),
                Some(_) => return self.remove(number),
                None => {}
            }
        }
        let (_, number) = self.ended.pop_front()?;
        self.remove(number)
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.transfers.remove(&number)?;
        self.tokens.remove(&entry.token);
        Some(entry)
    }
}

struct Entry {
    transfer: Arc<Transfer>,
    token: Token,
    control: Option<StreamEnd>,
}

impl BulkServer {
    /// Settings of a server whose stream ends are objects of this adapter.
    #[must_use]
    pub fn builder(poa: &Poa) -> BulkServerBuilder {
        BulkServerBuilder {
            poa: poa.clone(),
            limits: BulkLimits::default(),
            tcp: None,
            host: None,
            unix: None,
            #[cfg(target_os = "linux")]
            shm: None,
            tls: None,
        }
    }

    /// Offers octets to a party.
    ///
    /// # Errors
    /// [`BulkError::TooMany`]; the errors of activating an object.
    pub fn offer_source(
        &self,
        source: impl Source + 'static,
        party: &OfferedTo,
    ) -> Result<(Offer, OfferedTransfer), BulkError> {
        self.offer(Flow::Sending(Box::new(source), None), party)
    }

    /// Offers to take octets from a party.
    ///
    /// # Errors
    /// As [`offer_source`](Self::offer_source).
    pub fn offer_sink(
        &self,
        sink: impl Sink + 'static,
        party: &OfferedTo,
    ) -> Result<(Offer, OfferedTransfer), BulkError> {
        self.offer(Flow::Receiving(Reception::new(Box::new(sink), self.inner.limits.upload)), party)
    }

    fn offer(&self, flow: Flow, party: &OfferedTo) -> Result<(Offer, OfferedTransfer), BulkError> {
        let inner = &self.inner;
        inner.remove_expired(inner.limits.valid_for / SEARCHES);
        let binding = PeerBinding::new(party);
        let at = inner.endpoints_for(&binding, flow.passes_file());
        let transfer = Arc::new(Transfer::new(flow, binding, inner.limits));
        let token = new_token()?;
        let number = inner.enter(&transfer, token).or_else(|_| {
            // Offers that have expired since the last search make room.
            inner.remove_expired(Duration::ZERO);
            inner.enter(&transfer, token)
        })?;
        let offering: Arc<dyn Offering> = Arc::<Inner>::clone(inner);
        let servant = Servant::new(Arc::clone(&transfer), Arc::downgrade(&offering), number);
        let control: StreamEnd = inner.poa.serve(servant).inspect_err(|_| inner.remove(number))?;
        if let Some(entry) = inner.registry.lock().transfers.get_mut(&number) {
            entry.control = Some(control.clone());
        }
        inner.counters.offered.fetch_add(1, Ordering::Relaxed);
        let valid_for = u32::try_from(inner.limits.valid_for.as_millis()).unwrap_or(u32::MAX);
        let (way, length) = (transfer.way(), transfer.length());
        let offer = Offer { secret: token.0, way, length, valid_for, at, control: Some(control) };
        Ok((offer, OfferedTransfer(transfer)))
    }

    /// The offers, and the accepted and refused connections, since the start.
    #[must_use]
    pub fn statistics(&self) -> BulkStatistics {
        let Counters { accepted, reused, refused_tokens, bad_greetings, refused_connections, refused_parties, offered } =
            &self.inner.counters;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BulkStatistics {
            accepted: load(accepted),
            reused: load(reused),
            refused_tokens: load(refused_tokens),
            bad_greetings: load(bad_greetings),
            refused_connections: load(refused_connections),
            refused_parties: load(refused_parties),
            offered: load(offered),
        }
    }

    fn listen<A: Accept>(
        &mut self,
        acceptor: A,
        channel: fn(A::Stream) -> Channel,
        endpoint: impl FnOnce(A::Addr) -> Endpoint,
    ) -> io::Result<()> {
        self.inner.endpoints.lock().push(endpoint(acceptor.local_addr()?));
        let acceptor = Arc::new(acceptor);
        let (inner, accepting) = (Arc::downgrade(&self.inner), Arc::clone(&acceptor));
        let thread = thread::Builder::new()
            .name("spandrel-bulk".into())
            .spawn(move || accept_connections(&inner, &*accepting, channel))?;
        let close = Box::new(move || _ = acceptor.shutdown());
        self.listeners.push(Listening { close, thread: Some(thread) });
        Ok(())
    }
}

impl Drop for BulkServer {
    fn drop(&mut self) {
        for listener in &mut self.listeners {
            (listener.close)();
            if let Some(thread) = listener.thread.take() {
                _ = thread.join();
            }
        }
        let transfers = {
            let mut registry = self.inner.registry.lock();
            registry.is_closed = true;
            registry.tokens.clear();
            std::mem::take(&mut registry.transfers)
        };
        let mut connections = self.inner.connections.lock();
        connections.is_closed = true;
        for (_, channel) in connections.ungreeted.drain(..) {
            _ = channel.stream().shutdown(Shutdown::Both); // the peer may have ended it
        }
        drop(connections);
        for entry in transfers.into_values() {
            entry.transfer.cancel(Party::Own, "the offering side has ended");
            self.inner.deactivate(entry.control);
        }
    }
}

/// The host at which an endpoint is offered where nothing else is known: that of its address, or the name of this machine.
fn reachable(bound: &inet::Addr) -> String {
    if bound.ip().is_unspecified() { spandrel_transport::host_name() } else { bound.host() }
}

/// Accepts until the endpoint is shut down.
fn accept_connections<A: Accept>(inner: &Weak<Inner>, acceptor: &A, channel: fn(A::Stream) -> Channel) {
    loop {
        match acceptor.accept() {
            Ok((stream, _)) => {
                let Some(inner) = inner.upgrade() else { return };
                inner.start(channel(stream));
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => return,
            Err(error) => {
                tracing::warn!(%error, "a bulk connection could not be accepted");
                thread::park_timeout(Duration::from_millis(10)); // such as for want of memory
            }
        }
    }
}

impl Inner {
    /// Serves a connection in a thread of its own, unless there are too many.
    fn start(self: Arc<Self>, channel: Channel) {
        self.counters.accepted.fetch_add(1, Ordering::Relaxed);
        let Ok(channel) = channel.prepared().map(Arc::new) else { return };
        let Some(mut slot) = self.admit() else { return };
        let number = self.await_greeting(&channel);
        let serve = move || Arc::clone(&slot.server).serve(&channel, number, &mut slot);
        if let Err(error) = thread::Builder::new().name("spandrel-bulk".into()).spawn(serve) {
            self.has_greeted(number);
            tracing::warn!(%error, "a bulk connection was closed, because it could get no thread");
        }
    }

    /// A place for one more connection. If there is none, the oldest connection without a greeting makes room: peers
    /// that send nothing keep nobody out.
    fn admit(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let deadline = Deadline::after(EVICTION);
        let mut connections = self.connections.lock();
        if connections.count >= self.limits.connections {
            self.counters.refused_connections.fetch_add(1, Ordering::Relaxed);
            let (_, oldest) = connections.ungreeted.pop_front()?;
            _ = oldest.stream().shutdown(Shutdown::Both); // the peer may have ended it
        }
        while connections.count >= self.limits.connections {
            if self.freed.wait_until(&mut connections, deadline).timed_out() {
                return None;
            }
        }
        connections.count += 1;
        Some(ConnectionSlot { server: Arc::clone(self), party: None })
    }

    /// Puts a connection among those that wait for a greeting.
    fn await_greeting(&self, channel: &Arc<Channel>) -> u64 {
        let mut connections = self.connections.lock();
        let number = connections.next;
        connections.next += 1;
        connections.ungreeted.push_back((number, Arc::clone(channel)));
        number
    }

    /// Takes a connection from those without a greeting. False if it had to make room for another.
    fn has_greeted(&self, number: u64) -> bool {
        let mut connections = self.connections.lock();
        let at = connections.ungreeted.iter().position(|(other, _)| *other == number);
        at.and_then(|at| connections.ungreeted.remove(at)).is_some()
    }

    /// Serves the transfers of a connection, one after the other.
    fn serve(&self, channel: &Arc<Channel>, number: u64, slot: &mut ConnectionSlot) {
        if !self.serve_first(channel, number, slot) {
            return;
        }
        loop {
            slot.discharge();
            let number = self.await_greeting(channel);
            if self.connections.lock().is_closed {
                return;
            }
            let greeting = self.receive_greeting(channel, self.limits.reuse);
            // The other party may end the connection at any time, and say nothing.
            let (true, Ok(greeting)) = (self.has_greeted(number), greeting) else { return };
            self.counters.reused.fetch_add(1, Ordering::Relaxed);
            if !self.transfer(channel, &greeting, slot) {
                return;
            }
        }
    }

    /// Serves the first transfer. Returns whether another one may follow.
    fn serve_first(&self, channel: &Channel, number: u64, slot: &mut ConnectionSlot) -> bool {
        let greeting = self.receive_greeting(channel, self.limits.greeting);
        if !self.has_greeted(number) {
            return false;
        }
        match greeting {
            Ok(greeting) => self.transfer(channel, &greeting, slot),
            Err(error) => {
                self.counters.bad_greetings.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%error, "a bulk connection brought no greeting");
                if matches!(error, BulkError::Wire(_)) {
                    self.refuse(channel, ErrorCode::Protocol, &error.to_string());
                }
                false
            }
        }
    }

    fn receive_greeting(&self, channel: &Channel, within: Duration) -> Result<Greeting, BulkError> {
        let no_stop = || None;
        let pace = Pace { deadline: Deadline::after(within), idle: within, stop: &no_stop, progress: &|_| {} };
        Conversation::new(channel, &pace).receive_greeting()
    }

    fn refuse(&self, channel: &Channel, code: ErrorCode, text: &str) {
        let (no_stop, within) = (|| None, self.limits.greeting);
        let pace = Pace { deadline: Deadline::after(within), idle: within, stop: &no_stop, progress: &|_| {} };
        Conversation::new(channel, &pace).refuse(code, text);
    }

    /// Serves the transfer of a greeting. Returns whether another one may follow.
    fn transfer(&self, channel: &Channel, greeting: &Greeting, slot: &mut ConnectionSlot) -> bool {
        match self.redeem(greeting, channel, slot) {
            Ok(transfer) => {
                let is_complete = transfer.serve(channel, greeting.offset, greeting.takes_files);
                return is_complete && greeting.reuses && !self.limits.reuse.is_zero();
            }
            Err(ErrorCode::Busy) => self.refuse(channel, ErrorCode::Busy, &self.too_many_of_party()),
            Err(code) => {
                self.counters.refused_tokens.fetch_add(1, Ordering::Relaxed);
                self.refuse(channel, code, "the token is unknown, used, expired, or of another peer");
            }
        }
        false
    }

    /// The transfer of a token, which is used by that. A peer to which it does not belong leaves it as it is, and so does
    /// a party with too many connections.
    fn redeem(
        &self,
        greeting: &Greeting,
        channel: &Channel,
        slot: &mut ConnectionSlot,
    ) -> Result<Arc<Transfer>, ErrorCode> {
        let peer = channel.peer().map_err(|_| ErrorCode::Token)?;
        let mut registry = self.registry.lock();
        let number = *registry.tokens.get(&greeting.token).ok_or(ErrorCode::Token)?;
        let transfer = &registry.transfers.get(&number).ok_or(ErrorCode::Token)?.transfer;
        if transfer.has_expired() {
            drop(registry);
            self.remove(number);
            return Err(ErrorCode::Token);
        }
        if !transfer.binding.admits(&peer) || transfer.peer_role() != greeting.role {
            return Err(ErrorCode::Token);
        }
        if !slot.charge(ChargedParty::of_peer(&peer)) {
            return Err(ErrorCode::Busy);
        }
        let transfer = Arc::clone(transfer);
        registry.tokens.remove(&greeting.token);
        Ok(transfer)
    }

    fn too_many_of_party(&self) -> String {
        let most = self.limits.connections_per_party;
        format!("this party has {most} bulk connections already: wait for the end of one (BulkLimits)")
    }

    fn enter(&self, transfer: &Arc<Transfer>, token: Token) -> Result<u64, BulkError> {
        let mut registry = self.registry.lock();
        registry.find_ended();
        // A party that takes no offer up keeps others from none.
        let offers = registry.waiting.iter().filter_map(|number| registry.transfers.get(number));
        let of_party = offers.filter(|entry| entry.transfer.binding.is_party_of(&transfer.binding));
        if of_party.count() >= self.limits.offers_per_party {
            return Err(BulkError::TooMany(self.limits.offers_per_party));
        }
        // The transfer that ended first makes room, under the lock under which the new one takes it.
        let mut forgotten = None;
        if registry.transfers.len() >= self.limits.offers {
            forgotten = Some(registry.remove_ended().ok_or(BulkError::TooMany(self.limits.offers))?);
        }
        let number = registry.next;
        registry.next += 1;
        registry.tokens.insert(token, number);
        registry.waiting.insert(number);
        registry.transfers.insert(number, Entry { transfer: Arc::clone(transfer), token, control: None });
        drop(registry);
        if let Some(entry) = forgotten {
            self.deactivate(entry.control);
        }
        Ok(number)
    }

    /// The endpoints that the party may use, in the order in which it should try them: shared memory is the fastest one
    /// for octets, and an open file that is passed needs no copy.
    fn endpoints_for(&self, party: &PeerBinding, passes_file: bool) -> crate::bulk::Endpoints {
        let host = self.host.clone().or_else(|| address_for_caller().map(|ip| ip.to_string()));
        let endpoints = self.endpoints.lock();
        let usable = endpoints.iter().filter_map(|endpoint| party.may_use(endpoint, host.as_deref()));
        let mut usable: Vec<Endpoint> = usable.collect();
        usable.sort_by_key(|endpoint| match endpoint {
            Endpoint::Shm(_) => u8::from(passes_file),
            Endpoint::Unix(_) => u8::from(!passes_file),
            _ => 2,
        });
        let texts: Vec<String> = usable.iter().map(Endpoint::to_string).collect();
        texts.try_into().unwrap_or_default() // there are four kinds
    }

    /// Ends the offers whose time is over. Ended transfers are kept for that time, so that a party that resumes them is
    /// told how they ended. Searches are this time apart at least.
    fn remove_expired(&self, interval: Duration) {
        let expired: Vec<u64> = {
            let mut registry = self.registry.lock();
            if registry.searched.is_some_and(|time| time.elapsed() < interval) {
                return;
            }
            registry.searched = Some(Instant::now());
            let Registry { transfers, ended, .. } = &mut *registry;
            ended.retain(|(_, number)| transfers.contains_key(number));
            let expired = transfers.iter().filter(|(_, entry)| entry.transfer.has_expired());
            expired.map(|(number, _)| *number).collect()
        };
        expired.into_iter().for_each(|number| self.remove(number));
    }

    fn remove(&self, number: u64) {
        let entry = self.registry.lock().remove(number);
        if let Some(entry) = entry {
            entry.transfer.cancel(Party::Own, "the offer has expired");
            self.deactivate(entry.control);
        }
    }

    fn deactivate(&self, control: Option<StreamEnd>) {
        if let Some(control) = control {
            _ = self.poa.deactivate(control.as_object()); // the adapter may have ended
        }
    }
}

impl Offering for Inner {
    fn renew(&self, number: u64, transfer: &Transfer) -> Result<Ticket, Failed> {
        let offset = transfer.cut()?;
        let token = new_token().map_err(|error| refused(FailureCode::Storage, &error.to_string()))?;
        let mut registry = self.registry.lock();
        let Some(entry) = registry.transfers.get_mut(&number) else {
            return Err(refused(FailureCode::Cancelled, "the offer has expired"));
        };
        let old = std::mem::replace(&mut entry.token, token);
        registry.tokens.remove(&old);
        registry.tokens.insert(token, number);
        let offset = if transfer.way() == Direction::Upload { offset } else { 0 };
        Ok(Ticket { secret: token.0, offset })
    }

    fn call(
        self: Arc<Self>,
        transfer: Arc<Transfer>,
        party: ChargedParty,
        connect: &dyn Fn() -> io::Result<Channel>,
        token: Token,
    ) -> Result<(), Failed> {
        let unreachable = |error: io::Error| refused(FailureCode::Unreachable, &error.to_string());
        let Some(mut slot) = self.admit() else {
            return Err(refused(FailureCode::Busy, "there are too many bulk connections"));
        };
        if !slot.charge(party) {
            return Err(refused(FailureCode::Busy, &self.too_many_of_party()));
        }
        let channel = connect().and_then(Channel::prepared).map_err(unreachable)?;
        let run = move || {
            transfer.call(&channel, token);
            drop(slot);
        };
        thread::Builder::new().name("spandrel-bulk".into()).spawn(run).map(drop).map_err(unreachable)
    }
}

/// A place among the connections, until it is dropped.
struct ConnectionSlot {
    server: Arc<Inner>,
    party: Option<ChargedParty>,
}

impl ConnectionSlot {
    /// Charges the connection to a party. False if that has its share already.
    fn charge(&mut self, party: ChargedParty) -> bool {
        let mut connections = self.server.connections.lock();
        let count = connections.charged.get(&party).copied().unwrap_or(0);
        if count >= self.server.limits.connections_per_party {
            self.server.counters.refused_parties.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        connections.charged.insert(party.clone(), count + 1);
        drop(connections);
        self.party = Some(party);
        true
    }

    /// Charges it to no party any more.
    fn discharge(&mut self) {
        let Some(party) = self.party.take() else { return };
        let mut connections = self.server.connections.lock();
        let left = connections.charged.get(&party).map_or(0, |count| count - 1);
        if left == 0 {
            connections.charged.remove(&party);
        } else {
            connections.charged.insert(party, left);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.discharge();
        self.server.connections.lock().count -= 1;
        self.server.freed.notify_all();
    }
}
