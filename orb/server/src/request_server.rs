//! The server side of one ORB: the implementation of the core's [`ServerSide`].
//!
//! It joins the server, the monitor and the object adapter of the ORB, and passes the core's calls on to
//! them. It runs no requests itself.

use std::{any::Any, fmt, io, time::Duration};

use spandrel_giop::{CompletionStatus, ListenPoint, ServiceContext, SystemException};
use spandrel_orb::{
    Collocation, Endpoint, Orb,
    internal::{
        CallFailure, CallKind, ClientConnection, Destination, NothingToSend, Reply, ServerLevels, ServerSettings,
        ServerSide, encode_collocated,
    },
};
use spandrel_sync::{Arc, Mutex, time};
use spandrel_transport::{Address, Deadline, IIOP, PublishedAddresses};

use crate::{
    EndpointNumber, ObjectAdapter,
    callbacks::Callbacks,
    collocated::{self, CollocatedCalls},
    connection::ServerConnection,
    dedicated::DedicatedEndpoints,
    listener::{AcceptedSockets, Server},
    resources::{ServerResources, ServingOrb},
};

/// The time that bidirectional peers have at shutdown to close their connections after CloseConnection.
const PEER_CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// The server side of one ORB: its server, monitor and adapter.
pub(crate) struct RequestServer {
    pub(crate) server: Arc<Server>,
    /// The resources of the server, which each collocated call uses.
    resources: Arc<ServerResources>,
    /// The published addresses; set when the server begins to listen.
    published: Mutex<Option<PublishedAddresses>>,
    dedicated: DedicatedEndpoints,
    pub(crate) collocated_calls: CollocatedCalls,
}

impl RequestServer {
    /// Creates the server side of an ORB with these settings.
    pub(crate) fn new(settings: ServerSettings, adapter: Arc<dyn ObjectAdapter>) -> Self {
        let server = Arc::new(Server::new(settings, adapter, None));
        let resources = Arc::clone(server.resources());
        let collocated_calls = CollocatedCalls::default();
        Self {
            server,
            resources,
            published: Mutex::default(),
            dedicated: DedicatedEndpoints::default(),
            collocated_calls,
        }
    }

    /// The server side of an ORB, if it is installed.
    #[inline]
    pub(crate) fn of(orb: &Orb) -> Option<&Self> {
        let server_side: &dyn Any = &**orb.server_side()?;
        server_side.downcast_ref()
    }

    /// The accepted connection with this address in memory.
    pub(crate) fn find_connection(&self, index: usize) -> Option<Arc<ServerConnection>> {
        let in_dedicated = || self.dedicated.servers().iter().find_map(|server| server.find(index));
        self.server.find(index).or_else(in_dedicated)
    }

    /// Opens a dedicated endpoint. The ORB listens already.
    ///
    /// # Errors
    /// See [`open_dedicated_endpoint`].
    fn open_dedicated(
        &self,
        orb: &Orb,
        number: EndpointNumber,
        endpoints: &[Endpoint],
        sockets: AcceptedSockets,
    ) -> Result<PublishedAddresses, SystemException> {
        let endpoints = endpoints.iter().map(|endpoint| self.publishing(endpoint)).collect();
        let opened = self.dedicated.open(orb, number, (endpoints, sockets), &self.server, cannot_listen)?;
        // References with these addresses are the ORB's own. It publishes its hosts and components in no others.
        if let Some(published) = &mut *self.published.lock() {
            published.addresses.extend_from_slice(&opened.addresses);
            published.bound.extend_from_slice(&opened.bound);
        }
        Ok(opened)
    }

    /// The endpoints of the ORB: those of its settings, or else the default one.
    fn endpoints(&self) -> Vec<Endpoint> {
        let default = [Endpoint::new("", 0)];
        let endpoints = match &*self.resources.settings.endpoints {
            [] => &default[..],
            configured => configured,
        };
        endpoints.iter().map(|endpoint| self.publishing(endpoint)).collect()
    }

    /// The endpoint with the addresses of `-ORBPublish`, unless it has a `publish` option.
    fn publishing(&self, endpoint: &Endpoint) -> Endpoint {
        match &self.resources.settings.publish {
            Some(publish) if endpoint.scheme() == IIOP && endpoint.option("publish").is_none() => {
                endpoint.clone().with("publish", publish)
            }
            _ => endpoint.clone(),
        }
    }

    /// The adapter that finds the servants of all requests.
    pub(crate) fn adapter(&self) -> &Arc<dyn ObjectAdapter> {
        &self.resources.adapter
    }
}

impl ServerSide for RequestServer {
    fn listen(&self, orb: &Orb) -> Result<PublishedAddresses, SystemException> {
        let mut published = self.published.lock();
        if let Some(published) = &*published {
            return Ok(published.clone());
        }
        let endpoints = self.endpoints();
        let opened = self.server.listen(orb, &endpoints).map_err(|error| cannot_listen(&endpoints, error))?;
        Ok(published.insert(opened).clone())
    }

    fn accept_connections(&self) {
        self.server.accept_connections();
        self.dedicated.servers().iter().for_each(|server| server.accept_connections());
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
        self.collocated_calls.call(orb, &self.resources, &request, destination.wire(), deadline)
    }

    fn record_one_way(&self, orb: &Orb) {
        collocated::record_one_way(orb);
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
        let in_dedicated =
            || self.dedicated.servers().iter().find_map(|server| server.resources().announced.find(address, code_sets));
        self.resources.announced.find(address, code_sets).or_else(in_dedicated)
    }

    fn levels(&self) -> ServerLevels {
        let of_orb = ServerLevels { held: self.adapter().held(), ..self.server.levels() };
        self.dedicated.servers().iter().map(|server| server.levels()).fold(of_orb, |sum, levels| ServerLevels {
            held: sum.held,
            threaded: sum.threaded + levels.threaded,
            pooled: sum.pooled + levels.pooled,
            queued: sum.queued + levels.queued,
            deferred: sum.deferred + levels.deferred,
            octets: sum.octets + levels.octets,
        })
    }

    fn begin_close(&self) {
        self.adapter().begin_close();
        self.dedicated.begin_close();
    }

    fn shut_down(&self, orb: &Orb) {
        let resources = &self.resources;
        let timeout = resources.settings.shutdown_timeout;
        let deadline = time::Deadline::after(timeout);
        self.dedicated.begin_close();
        let mut servers = self.dedicated.servers();
        servers.push(Arc::clone(&self.server));
        Server::shut_down(&servers, timeout);
        servers.iter().for_each(|server| server.resources().upcall_monitor.stop());
        self.collocated_calls.shut_down(&resources.running_calls, deadline);
        ClientConnection::close_bidirectional(orb.peers().connections(), PEER_CLOSE_TIMEOUT);
    }

    fn close(&self) {
        self.adapter().close();
    }
}

/// Opens a dedicated endpoint of an ORB, with these addresses. `sockets` chooses the settings of the connections that it
/// accepts. The ORB itself begins to listen before, if it has not done so.
///
/// # Errors
/// BAD_INV_ORDER if an endpoint has the number already, after shutdown, or without an object adapter; INITIALIZE if the
/// ORB cannot listen there.
pub fn open_dedicated_endpoint(
    orb: &Orb,
    number: EndpointNumber,
    endpoints: &[Endpoint],
    sockets: AcceptedSockets,
) -> Result<PublishedAddresses, SystemException> {
    orb.published()?;
    let server_side = RequestServer::of(orb).unwrap_or_else(|| unreachable!("the ORB listens"));
    server_side.open_dedicated(orb, number, endpoints, sockets)
}

/// The endpoints that an ORB was told to listen at, or its default one; none before the ORB has an object adapter.
#[must_use]
pub fn server_endpoints(orb: &Orb) -> Vec<Endpoint> {
    RequestServer::of(orb).map_or_else(Vec::new, RequestServer::endpoints)
}

/// The addresses for references of a dedicated endpoint; `None` if it is not open.
#[must_use]
pub fn dedicated_addresses(orb: &Orb, number: EndpointNumber) -> Option<PublishedAddresses> {
    RequestServer::of(orb)?.dedicated.addresses(number)
}

/// The hosts and ports of all dedicated endpoints of an ORB.
#[must_use]
pub fn dedicated_hosts(orb: &Orb) -> Vec<(String, u16)> {
    let Some(server_side) = RequestServer::of(orb) else { return Vec::new() };
    server_side.dedicated.hosts()
}

impl fmt::Debug for RequestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestServer").field("adapter", self.adapter()).finish_non_exhaustive()
    }
}

fn cannot_listen(endpoints: &[Endpoint], error: io::Error) -> SystemException {
    let endpoints: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    SystemException::initialize(0, CompletionStatus::No)
        .with_detail(|| format!("cannot listen on {}", endpoints.join(", ")))
        .with_source(error)
}

impl ServingOrb for Orb {
    #[inline]
    fn resources(&self) -> &Arc<ServerResources> {
        &RequestServer::of(self).expect("an ORB that serves has a server side").resources
    }
}
