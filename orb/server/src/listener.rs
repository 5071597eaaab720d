//! The listeners of an ORB and its accepted connections: opening, admitting and closing them.

use std::{fmt, io, net::IpAddr, time::Duration};

use spandrel_cdr::{ByteOrder, GiopVersion};
use spandrel_giop::{MessageType, bare_message};
use spandrel_ipc::{Interest, Pollable};
use spandrel_orb::{
    Endpoint, Orb,
    internal::{RESERVED_THREADS, ServerLevels, ServerSettings, WeakOrb},
    statistics::Level,
};
use spandrel_reactor::{AcceptLoop, ConnectionSource, Context, HandlerId, LogLimit};
use spandrel_sync::{
    Arc, Mutex, MutexGuard, Weak,
    atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Deadline,
};
use spandrel_transport::{
    Address, ConnectionAcceptor, IIOP, Listener, ListenerSource, PendingConnection, PublishedAddresses,
    ReactorTransport, SocketSettings, host_name, send_octets,
};

use crate::{
    ObjectAdapter, ServerConnection,
    admission::{AdmissionControl, Admitted, Refusal},
    connection::{ClosePhase, ConnectionOwner, ServiceStrategy, pooled},
    datagrams::Datagrams,
    resources::ServerResources,
    threads::ServerThreads,
};

/// The time that peers have at shutdown to close their side after CloseConnection. A peer that does not read
/// its idle connections finds CloseConnection later.
const PEER_CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// Sends CloseConnection, so that the client knows that no request was or will be acted on here.
fn refuse(transport: &dyn ReactorTransport, order: ByteOrder) {
    // In GIOP 1.0, which every peer reads. An error means that the client is gone.
    let _ = send_octets(transport, &bare_message(GiopVersion::V1_0, order, MessageType::CloseConnection));
    transport.close_writer();
}

/// An acceptor of any family, for the reactor.
struct AnyAcceptor(Box<dyn ConnectionAcceptor>);

impl ConnectionSource for AnyAcceptor {
    type Stream = PendingConnection;
    type Remote = String;

    fn pollable(&self) -> &dyn Pollable {
        self.0.pollable()
    }

    fn accept(&mut self) -> io::Result<(PendingConnection, String)> {
        self.0.accept()
    }
}

/// Chooses the settings of the sockets that a dedicated endpoint accepts. Called for each connection with the
/// scheme of its address, such as `iiop`, and the settings with which the endpoint was opened; `None` keeps
/// the latter.
#[derive(Clone)]
pub struct AcceptedSockets(pub Arc<ChooseSockets>);

type ChooseSockets = dyn Fn(&str, SocketSettings) -> Option<SocketSettings> + Send + Sync;

impl fmt::Debug for AcceptedSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AcceptedSockets")
    }
}

/// The listeners' handlers in the reactor.
#[derive(Debug)]
struct Listeners {
    handlers: Vec<HandlerId>,
    /// Whether connections wait in the system's queue.
    are_held: bool,
}

impl Listeners {
    fn interest(&self) -> Interest {
        if self.are_held { Interest::NONE } else { Interest::INPUT }
    }
}

/// All listeners and accepted connections of one ORB.
#[derive(Debug)]
pub(crate) struct Server {
    resources: Arc<ServerResources>,
    /// The service of the connections without a thread of their own.
    pooled_service: ServiceStrategy,
    listeners: Mutex<Listeners>,
    admitted: Mutex<Admitted>,
    admission: AdmissionControl,
    /// The number of connections with a thread of their own.
    threaded: AtomicUsize,
    closing: AtomicBool,
    /// The settings of accepted sockets, if they are not those of the endpoints.
    sockets: Option<AcceptedSockets>,
}

impl Server {
    /// Creates the server of an ORB, and its resources.
    pub(crate) fn new(
        settings: ServerSettings,
        adapter: Arc<dyn ObjectAdapter>,
        sockets: Option<AcceptedSockets>,
    ) -> Self {
        let threads = Arc::new(ServerThreads::new(settings.thread_limit()));
        let log_limit: Arc<LogLimit> = Arc::default();
        let listeners = Mutex::new(Listeners { handlers: Vec::new(), are_held: settings.accepts_later });
        let pooled_service = ServiceStrategy::pooled(settings.concurrency, &threads, &log_limit);
        let queue = pooled_service.queue();
        Self {
            resources: Arc::new(ServerResources::new(settings, adapter, threads, log_limit, queue)),
            pooled_service,
            listeners,
            admitted: Mutex::default(),
            admission: AdmissionControl::default(),
            threaded: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            sockets,
        }
    }

    /// The resources that its connections share.
    #[inline]
    pub(crate) fn resources(&self) -> &Arc<ServerResources> {
        &self.resources
    }

    /// Listens on all endpoints, or on none. Returns the addresses to publish.
    pub(crate) fn listen(self: &Arc<Self>, orb: &Orb, endpoints: &[Endpoint]) -> io::Result<PublishedAddresses> {
        let settings = &self.resources.settings;
        let open = |endpoint: &Endpoint| settings.protocols.open(endpoint, &settings.sockets);
        let opened: Vec<Listener> = endpoints.iter().map(open).collect::<io::Result<_>>()?;
        let mut listeners = self.listeners.lock();
        if self.closing.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the ORB is shutting down"));
        }
        let ServerResources { settings, pool, budget, upcall_monitor, .. } = &*self.resources;
        upcall_monitor.attend(pool, budget, settings.client_timeouts(), settings.concurrency.own_threads());
        let registry = pool.registry()?;
        warn_of_unencrypted(&opened);
        let mut published = PublishedAddresses::default();
        for listener in opened {
            let addresses = listener.published().addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
            let (at, names) = (listener.bound().clone(), addresses.join(" "));
            let scheme = at.scheme().to_owned();
            let (source, mut addresses) = listener.into_parts();
            if matches!(source, ListenerSource::Nothing) {
                tracing::info!(published = names, "no port is open: servers call over the connections of this ORB");
            } else {
                tracing::info!(%at, published = names, "listening");
            }
            match source {
                ListenerSource::Connections(acceptor) => {
                    addresses.bound.push(at);
                    let (server, orb) = (Arc::clone(self), orb.clone());
                    let admit = move |_: &Context<'_>, pending: PendingConnection, _| {
                        let (transport, from) = pending()?;
                        if let Some(sockets) = &server.sockets
                            && let Some(settings) = sockets.0(from.scheme(), server.resources.settings.sockets)
                        {
                            settings.apply(&*transport)?;
                        }
                        server.admit(transport, &from, &orb)
                    };
                    let handler = AcceptLoop::new(AnyAcceptor(acceptor), admit);
                    let handler = registry.register(handler, listeners.interest())?;
                    listeners.handlers.push(handler);
                }
                ListenerSource::Datagrams(socket, max_octets) => {
                    let (orb, settings) = (WeakOrb::of(orb), Arc::clone(settings));
                    let room = vec![0; max_octets as usize];
                    let (running, deferred) = <(Arc<_>, Arc<_>)>::default();
                    let datagrams = Datagrams { socket, orb, settings, room, running, deferred };
                    let handler = registry.register(datagrams, listeners.interest())?;
                    listeners.handlers.push(handler);
                }
                ListenerSource::Nothing => {}
            }
            published.add(&scheme, addresses);
        }
        if published.hosts.is_empty() {
            // A profile has a host. Port 0, also used by omniORB, means that the server is not reached there.
            published.hosts.push((host_name(), 0));
        }
        Ok(published)
    }

    /// Accepts connections and datagrams from now on.
    pub(crate) fn accept_connections(&self) {
        let mut listeners = self.listeners.lock();
        if std::mem::take(&mut listeners.are_held)
            && let Ok(registry) = self.resources.pool.registry()
        {
            for &handler in &listeners.handlers {
                // An unknown handler is one of a server that was shut down.
                _ = registry.set_interest(handler, Interest::INPUT);
            }
        }
    }

    /// Whether connections wait until the ORB is told to accept them.
    pub(crate) fn holds_connections(&self) -> bool {
        self.listeners.lock().are_held
    }

    fn admit(self: &Arc<Self>, transport: Box<dyn ReactorTransport>, from: &Address, orb: &Orb) -> io::Result<()> {
        let ServerResources { settings, pool, threads, upcall_monitor, .. } = &*self.resources;
        if settings.rules.rank(from).is_none() {
            orb.statistics().note(spandrel_orb::statistics::Event::RefusedForAddress);
            log_limited!(warn, self.resources, "address refused", %from, "connection rejected by -ORBServerTransportRule");
            refuse(&*transport, settings.order);
            return Ok(());
        }
        let connection = {
            let mut admitted = match self.reserve(from) {
                Ok(admitted) => admitted,
                Err(refusal) => {
                    orb.statistics().note(refusal.event());
                    self.admission.tell(&from.to_string(), refusal);
                    refuse(&*transport, settings.order);
                    return Ok(());
                }
            };
            let is_threaded = self.threaded.load(Ordering::Relaxed) < settings.concurrency.own_threads()
                && threads.has_room_for(1 + RESERVED_THREADS);
            self.threaded.fetch_add(usize::from(is_threaded), Ordering::Relaxed);
            let service = if is_threaded { ServiceStrategy::OwnThread } else { self.pooled_service.clone() };
            let owner: Weak<dyn ConnectionOwner> = Arc::<Self>::downgrade(self);
            let resources = Arc::clone(&self.resources);
            let connection = ServerConnection::new(orb.clone(), resources, owner, from.clone(), transport, service);
            admitted.enter(&connection, settings);
            connection
        };
        orb.statistics().connection_accepted();
        orb.statistics().change(Level::ServerConnections, 1);
        tracing::debug!(%from, "accepted");
        upcall_monitor.add(&connection);
        let serving = if connection.has_own_thread() {
            let served = Arc::clone(&connection);
            threads.spawn("spandrel-serve", move || served.serve())
        } else {
            pooled::serve_in(pool, &connection, false)
        };
        serving.inspect_err(|_| {
            orb.statistics().refused_for_resources();
            // No request was acted on, and none will be.
            connection.begin_close();
            upcall_monitor.forget(&*connection);
            self.forget(&connection);
        })
    }

    /// Reserves room for one more client. Evicts an idle connection if the server is full and the settings
    /// allow it.
    fn reserve(&self, from: &Address) -> Result<MutexGuard<'_, Admitted>, Refusal> {
        let from = from.to_string();
        let mut has_room = false;
        loop {
            let admitted = self.admitted.lock();
            if self.closing.load(Ordering::Acquire) {
                return Err(Refusal::Closing);
            }
            match self.admission.admits(&admitted, &from, &self.resources.settings) {
                Err(Refusal::TooMany { .. }) if has_room => return Ok(admitted),
                Err(refusal @ Refusal::TooMany { .. }) if self.resources.settings.evicts_idle => {
                    drop(admitted);
                    has_room = self.evict_idle();
                    if !has_room {
                        return Err(refusal);
                    }
                }
                Err(refusal) => return Err(refusal),
                Ok(()) => return Ok(admitted),
            }
        }
    }

    /// Closes an idle connection, if there is one.
    fn evict_idle(&self) -> bool {
        const ATTEMPTS: usize = 4;
        (0..ATTEMPTS).any(|_| {
            // The connection is closed without the lock.
            let idle = self.admitted.lock().connections.values().find(|connection| connection.is_idle()).cloned();
            idle.is_some_and(|connection| connection.evict_idle())
        })
    }

    /// The present levels for metrics, without those of the adapter.
    pub(crate) fn levels(&self) -> ServerLevels {
        let (pooled, queued) = self.resources.pool.look();
        let connections: Vec<_> = self.admitted.lock().connections.values().cloned().collect();
        let deferred = connections.iter().map(|connection| connection.deferred()).sum();
        let threaded = self.threaded.load(Ordering::Relaxed);
        ServerLevels { held: 0, threaded, pooled, queued, deferred, octets: self.resources.budget.used() }
    }

    /// The connection with this address in memory.
    pub(super) fn find(&self, index: usize) -> Option<Arc<ServerConnection>> {
        self.admitted.lock().connections.get(&index).cloned()
    }

    /// Stops accepting, and begins to close all connections, which it returns.
    fn begin_shutdown(&self) -> Vec<Arc<ServerConnection>> {
        self.closing.store(true, Ordering::Release);
        let listeners = std::mem::take(&mut self.listeners.lock().handlers);
        if let (false, Ok(registry)) = (listeners.is_empty(), self.resources.pool.registry()) {
            for listener in listeners {
                registry.remove(listener);
            }
        }
        let connections: Vec<_> = self.admitted.lock().connections.values().cloned().collect();
        connections.iter().for_each(|connection| connection.begin_close());
        connections
    }

    /// Has the servers of an ORB stop accepting, lets running requests end, sends CloseConnection to every client, and
    /// waits a bounded time for the connections' ends.
    ///
    /// `timeout`: the longest time for running requests.
    pub(crate) fn shut_down(servers: &[Arc<Self>], timeout: Duration) {
        let connections: Vec<_> = servers.iter().flat_map(|server| server.begin_shutdown()).collect();
        for (stage, time) in [(ClosePhase::CloseSent, timeout), (ClosePhase::Ended, PEER_CLOSE_TIMEOUT)] {
            let deadline = Deadline::after(time);
            connections.iter().for_each(|connection| connection.await_close_phase(stage, deadline));
        }
        for server in servers {
            server.resources.pool.close();
        }
    }
}

impl ConnectionOwner for Server {
    fn forget(&self, connection: &ServerConnection) {
        let admitted = self.admitted.lock().leave(connection);
        if admitted.is_some() {
            connection.orb().statistics().change(Level::ServerConnections, -1);
        }
        if admitted.is_some_and(|admitted| admitted.has_own_thread()) {
            self.left_thread();
        }
    }

    fn left_thread(&self) {
        self.threaded.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_ipc::inet::{Acceptor, Addr, Connector};

    use spandrel_giop::{CompletionStatus, SystemException};
    use spandrel_orb::{Concurrency, Located};

    use super::*;
    use crate::{Entry, Resolution, request_server::RequestServer};

    /// An adapter without objects.
    #[derive(Debug)]
    struct NoObjects;

    impl ObjectAdapter for NoObjects {
        fn resolve(&self, _: &[u8], _: &str, _: Entry<'_>) -> Result<Resolution, SystemException> {
            Err(SystemException::object_not_exist(0, CompletionStatus::No))
        }

        fn locate(&self, _: &[u8]) -> Result<Located, SystemException> {
            Ok(Located::Unknown)
        }

        fn close(&self) {}

        fn into_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
            self
        }
    }

    #[test]
    fn a_connection_that_the_reactor_refuses_is_closed_in_order() {
        let orb = Orb::builder().concurrency(Concurrency::LeaderFollowers { threads: None }).build().unwrap();
        crate::install_adapter(&orb, Arc::new(NoObjects));
        let server = &RequestServer::of(&orb).unwrap().server;
        server.resources.pool.registry().unwrap();
        server.resources.pool.close();
        let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
        let client = Connector::connect(&acceptor.local_addr().unwrap()).unwrap();
        let (stream, addr) = acceptor.accept().unwrap();
        let from = Address::new("iiop", addr.to_string());
        let error = server.admit(Box::new(stream), &from, &orb).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        assert!(server.admitted.lock().connections.is_empty());
        let mut received = [0; 64];
        let close_connection = bare_message(GiopVersion::V1_0, ByteOrder::NATIVE, MessageType::CloseConnection);
        assert_eq!(client.recv(&mut received).unwrap(), close_connection.len());
        assert_eq!(received[..close_connection.len()], close_connection);
        assert_eq!(client.recv(&mut received).unwrap(), 0);
        orb.shutdown().unwrap();
    }
}
/// Warns if other machines can connect, and none of the endpoints has TLS.
fn warn_of_unencrypted(opened: &[Listener]) {
    let accepts_others = |listener: &&Listener| {
        let bound = listener.bound();
        let host = bound.host_and_port().and_then(|(host, _)| host.parse::<IpAddr>().ok());
        bound.scheme() == IIOP && host.is_some_and(|ip| !ip.to_canonical().is_loopback())
    };
    let has_tls = opened.iter().any(|listener| listener.bound().scheme() == "ssliop");
    if let Some(listener) = opened.iter().find(accepts_others).filter(|_| !has_tls) {
        tracing::warn!(
            at = %listener.bound(),
            "other machines can connect without encryption; for TLS, or for this machine only: \
             -ORBListenEndpoints ssliop://HOST:PORT, or iiop://127.0.0.1:PORT"
        );
    }
}
