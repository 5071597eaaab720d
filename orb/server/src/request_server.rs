//! The server side of one ORB: the implementation of the core's [`ServerSide`].
//!
//! It joins the server, the monitor and the object adapter of the ORB, and passes the core's calls on to
//! them. It runs no requests itself.

use std::{any::Any, fmt, io, time::Duration};

use spandrel_giop::{CompletionStatus, ListenPoint, ServiceContext, SystemException};
use spandrel_orb::{
    BidirectionalPolicy, Collocation, Endpoint, Orb, Spawn, WaitStrategy,
    call_kind::CallKind,
    cancellation::{self, RequestOfThread},
    client::{CallFailure, ClientConnection, Reply},
    destination::Destination,
    encode_collocated,
    orb::server_side::{NothingToSend, ServerLevels, ServerSide},
    server_settings::ServerSettings,
};
use spandrel_reactor::LogLimit;
use spandrel_sync::{Arc, Mutex};
use spandrel_transport::{Address, BidirectionalOnly, Deadline, Diop, IIOP, Iiop, PublishedAddresses, ServerProtocols};

use crate::{
    CollocatedCalls, ObjectAdapter, Server, UpcallMonitor, callbacks::Callbacks, collocated,
    connection::announced_addresses::AnnouncedAddresses, current, upcall::origin::UpcallServices,
};

/// The time that bidirectional peers have at shutdown to close their connections after CloseConnection.
const PEER_CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// The server side of one ORB: its server, monitor and adapter.
pub(crate) struct RequestServer {
    server: Arc<Server>,
    upcall_monitor: Arc<UpcallMonitor>,
    adapter: Arc<dyn ObjectAdapter>,
    /// The published addresses; set when the server begins to listen.
    published: Mutex<Option<PublishedAddresses>>,
    collocated_calls: CollocatedCalls,
    announced: AnnouncedAddresses,
}

impl RequestServer {
    /// The calls on objects of the same ORB.
    #[inline]
    pub(crate) fn collocated_calls(&self) -> &CollocatedCalls {
        &self.collocated_calls
    }
}

impl UpcallServices for RequestServer {
    #[inline]
    fn adapter(&self) -> &Arc<dyn ObjectAdapter> {
        &self.adapter
    }

    fn settings(&self) -> &ServerSettings {
        self.server.settings()
    }

    fn log_limit(&self) -> &LogLimit {
        self.server.log_limit()
    }

    fn with_spawner(&self, then: &mut dyn FnMut(&dyn Spawn)) -> io::Result<()> {
        match &self.server.settings().spawner {
            Some(spawner) => then(&*spawner.0),
            None => then(&self.server.pool().workers()?),
        }
        Ok(())
    }
}

/// Installs an object adapter in an ORB, and with it the server side. Returns the installed adapter: the one
/// from the first such call.
pub fn install_adapter(orb: &Orb, adapter: Arc<dyn ObjectAdapter>) -> Arc<dyn ObjectAdapter> {
    cancellation::set_request_of_thread(RequestOfThread {
        served: current::served_request,
        current: current::cancellation,
    });
    orb.install_server_side(|| {
        let mut settings = orb.server_settings();
        settings.protocols = protocols(&settings);
        settings.nests = orb.settings().wait == WaitStrategy::OnReactor;
        Arc::new(RequestServer {
            server: Arc::new(Server::new(settings)),
            upcall_monitor: Arc::default(),
            adapter,
            published: Mutex::default(),
            collocated_calls: CollocatedCalls::default(),
            announced: AnnouncedAddresses::default(),
        })
    });
    Arc::clone(orb.request_server().map_or_else(|| unreachable!("it was installed"), |installed| &installed.adapter))
}

/// The protocols of the server: the standard ones, and those of the settings.
fn protocols(settings: &ServerSettings) -> ServerProtocols {
    let mut protocols = ServerProtocols::default();
    protocols.register(Arc::new(Iiop));
    protocols.register(Arc::new(BidirectionalOnly));
    protocols.register(Arc::new(Diop));
    if settings.has_local_transports {
        #[cfg(unix)]
        protocols.register(Arc::new(spandrel_transport::Uds));
        #[cfg(target_os = "linux")]
        protocols.register(Arc::new(spandrel_transport::Shm));
    }
    protocols.extend(settings.protocols.clone());
    protocols
}

impl ServerSide for RequestServer {
    fn listen(&self, orb: &Orb) -> Result<PublishedAddresses, SystemException> {
        let mut published = self.published.lock();
        if let Some(published) = &*published {
            return Ok(published.clone());
        }
        let default = [Endpoint::new("", 0)];
        let serving = self.server.settings();
        let endpoints = match &*serving.endpoints {
            [] => &default[..],
            configured => configured,
        };
        let publishing = |endpoint: &Endpoint| match &serving.publish {
            // The addresses of `-ORBPublish`, unless the endpoint has a `publish` option.
            Some(publish) if endpoint.scheme() == IIOP && endpoint.option("publish").is_none() => {
                endpoint.clone().with("publish", publish)
            }
            _ => endpoint.clone(),
        };
        let endpoints: Vec<Endpoint> = endpoints.iter().map(publishing).collect();
        let opened = self.server.listen(orb, &endpoints).map_err(|error| cannot_listen(&endpoints, error))?;
        Ok(published.insert(opened).clone())
    }

    fn mark_own(&self, orb: &Orb, destinations: &mut [Destination]) {
        if orb.settings().collocation != Collocation::No {
            let published = self.published.lock();
            let own = published.as_ref().map_or(&[][..], |published| &published.addresses);
            for destination in destinations {
                destination.is_collocated = own.contains(destination.peer.address());
            }
        }
    }

    fn published(&self) -> Option<PublishedAddresses> {
        self.published.lock().clone()
    }

    fn call(
        &self,
        orb: &Orb,
        destination: &Destination,
        call_kind: &CallKind<'_, '_>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        let request_id = self.collocated_calls.request_id();
        let request = encode_collocated(destination, call_kind, request_id, collocated::deliver)?;
        self.collocated_calls.call(orb, self, &request, destination.wire(), deadline)
    }

    fn note_one_way(&self, orb: &Orb) {
        collocated::note_one_way(orb);
    }

    fn settle(&self, orb: &Orb) -> bool {
        collocated::settle(orb)
    }

    fn announce(&self, orb: &Orb, connection: &Arc<ClientConnection>) -> Result<Option<ServiceContext>, NothingToSend> {
        // Without references the peer cannot call back.
        let published = self.published().ok_or(NothingToSend)?;
        let points: Vec<_> = published
            .hosts
            .into_iter()
            .map(|(host, port)| ListenPoint { host, port })
            .filter(|point| point.port != 0)
            .collect();
        if points.is_empty() {
            return Ok(None);
        }
        let context = ListenPoint::to_context(&points).map_err(|_| NothingToSend)?;
        // Registered before the peer may send requests.
        if let Err(exception) = orb.client_reactor().register_connection(connection) {
            tracing::warn!(%exception, "a connection cannot be registered, and is not bidirectional");
            return Err(NothingToSend);
        }
        connection.accept_callbacks(|| Callbacks::of(orb, connection));
        Ok(Some(context))
    }

    fn adopted_connection(
        &self,
        address: &Address,
        code_sets: Option<&ServiceContext>,
    ) -> Option<Arc<ClientConnection>> {
        self.announced.find(address, code_sets)
    }

    fn levels(&self) -> ServerLevels {
        ServerLevels { held: self.adapter.held(), ..self.server.levels() }
    }

    fn begin_close(&self) {
        self.adapter.begin_close();
    }

    fn shut_down(&self, orb: &Orb) {
        let timeout = self.server.settings().shutdown_timeout;
        let deadline = Deadline::after(timeout);
        self.server.shutdown(timeout);
        self.upcall_monitor.stop();
        self.collocated_calls.shut_down(deadline.remaining());
        ClientConnection::close_bidirectional(orb.peers().connections(), PEER_CLOSE_TIMEOUT);
    }

    fn close(&self) {
        self.adapter.close();
    }
}

impl fmt::Debug for RequestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestServer").field("adapter", &self.adapter).finish_non_exhaustive()
    }
}

fn cannot_listen(endpoints: &[Endpoint], error: io::Error) -> SystemException {
    let endpoints: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    SystemException::initialize(0, CompletionStatus::No)
        .with_detail(|| format!("cannot listen on {}", endpoints.join(", ")))
        .with_source(error)
}

/// The parts of an ORB's server side.
pub(crate) trait ServingOrb {
    /// The server side, if it is installed.
    fn request_server(&self) -> Option<&RequestServer>;

    /// The server side of an ORB that serves: its requests and connections exist only with it.
    #[inline]
    fn serving(&self) -> &RequestServer {
        self.request_server().expect("an ORB that serves has a server side")
    }

    /// The server.
    #[inline]
    fn server(&self) -> &Arc<Server> {
        &self.serving().server
    }

    /// The monitor of upcalls.
    #[inline]
    fn upcall_monitor(&self) -> &Arc<UpcallMonitor> {
        &self.serving().upcall_monitor
    }

    /// The object adapter.
    #[inline]
    fn adapter(&self) -> &Arc<dyn ObjectAdapter> {
        &self.serving().adapter
    }

    /// The calls on objects of the same ORB.
    #[inline]
    fn collocated_calls(&self) -> &CollocatedCalls {
        &self.serving().collocated_calls
    }

    /// The addresses that clients have announced.
    fn announced_addresses(&self) -> &AnnouncedAddresses {
        &self.serving().announced
    }

    /// Whether the object may be called over connections that this side has opened.
    fn takes_callbacks(&self, object_key: &[u8]) -> bool;
}

impl ServingOrb for Orb {
    #[inline]
    fn request_server(&self) -> Option<&RequestServer> {
        let server_side: &dyn Any = &**self.server_side()?;
        server_side.downcast_ref()
    }

    fn takes_callbacks(&self, object_key: &[u8]) -> bool {
        let own = self.adapter().bidirectional_policy(object_key);
        own.map_or(self.bidirectional().is_default(), |own| own == BidirectionalPolicy::Both)
    }
}
