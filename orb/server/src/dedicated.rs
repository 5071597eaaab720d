//! Dedicated endpoints: each has one thread that reads, connections, memory and limits of its own, and all of its
//! requests are handed over to executors. It may have an address for each of several protocols.
//!
//! A crate above opens such an endpoint under a [number](EndpointNumber) of its own choice, such as one for each lane of a
//! pool of threads. The executor of an adapter learns that number with each request
//! ([`RequestToPlace::endpoint`](crate::RequestToPlace)), refuses those that do not belong there, and names the endpoint
//! for references to its objects ([`RequestExecutor::endpoint`](crate::RequestExecutor::endpoint)).
//!
//! Each endpoint is a [`Server`] with the settings of the ORB. Its threads have the native priority of the thread that
//! opens it. An object of an adapter without an executor is not called there: its servant would run in the thread that
//! reads.

use std::any::Any;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{BidirectionalPolicy, Concurrency, Endpoint, Located, Orb, internal::ServerSettings};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};
use spandrel_transport::PublishedAddresses;

use crate::{
    EndpointNumber, Entry, ObjectAdapter, Placed, Resolution,
    listener::{AcceptedSockets, Server},
};

/// One open dedicated endpoint of the ORB, with its server.
#[derive(Debug)]
struct DedicatedEndpoint {
    number: EndpointNumber,
    server: Arc<Server>,
    objects: Arc<DedicatedObjects>,
    published: PublishedAddresses,
}

/// The dedicated endpoints of an ORB.
#[derive(Debug, Default)]
pub(crate) struct DedicatedEndpoints(Mutex<EndpointList>);

#[derive(Debug, Default)]
struct EndpointList {
    open: Vec<DedicatedEndpoint>,
    /// Whether the ORB is shutting down, and no endpoint is opened any more.
    is_closed: bool,
}

impl DedicatedEndpoints {
    /// Opens an endpoint with the settings of the ORB's server, and its objects.
    ///
    /// # Errors
    /// See [`open_dedicated_endpoint`](crate::open_dedicated_endpoint); `cannot_listen` makes the exception of a failure to listen.
    pub(crate) fn open(
        &self,
        orb: &Orb,
        number: EndpointNumber,
        (endpoints, sockets): (Vec<Endpoint>, AcceptedSockets),
        of_orb: &Arc<Server>,
        cannot_listen: impl FnOnce(&[Endpoint], std::io::Error) -> SystemException,
    ) -> Result<PublishedAddresses, SystemException> {
        let bad_order = |text: &'static str| SystemException::bad_inv_order(0, CompletionStatus::No).with_detail(text);
        let all = Arc::clone(&of_orb.resources().adapter);
        let objects = Arc::new(DedicatedObjects { all, number, is_closing: AtomicBool::new(false) });
        let settings = ServerSettings {
            endpoints,
            accepts_later: of_orb.holds_connections(),
            concurrency: Concurrency::Reactive,
            ..(*of_orb.resources().settings).clone()
        };
        // Under the lock, so that a shutdown finds all open endpoints.
        let mut list = self.0.lock();
        if list.is_closed {
            return Err(bad_order("the ORB is shutting down"));
        }
        if list.open.iter().any(|open| open.number == number) {
            return Err(bad_order("a dedicated endpoint of this number is open"));
        }
        let server = Arc::new(Server::new(settings, Arc::<DedicatedObjects>::clone(&objects), Some(sockets)));
        let endpoints = &server.resources().settings.endpoints;
        let published = server.listen(orb, endpoints).map_err(|error| cannot_listen(endpoints, error))?;
        list.open.push(DedicatedEndpoint { number, server, objects, published: published.clone() });
        Ok(published)
    }

    pub(crate) fn addresses(&self, number: EndpointNumber) -> Option<PublishedAddresses> {
        let list = self.0.lock();
        list.open.iter().find(|endpoint| endpoint.number == number).map(|endpoint| endpoint.published.clone())
    }

    /// The hosts and ports of all endpoints.
    pub(crate) fn hosts(&self) -> Vec<(String, u16)> {
        self.0.lock().open.iter().flat_map(|endpoint| endpoint.published.hosts.clone()).collect()
    }

    /// The servers of all endpoints.
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        self.0.lock().open.iter().map(|endpoint| Arc::clone(&endpoint.server)).collect()
    }

    /// Opens no further endpoint, and ends the waits of the threads that read.
    pub(crate) fn begin_close(&self) {
        let mut list = self.0.lock();
        list.is_closed = true;
        list.open.iter().for_each(|endpoint| endpoint.objects.is_closing.store(true, Ordering::Relaxed));
    }
}

/// The objects of an ORB at a dedicated endpoint: those of adapters with executors.
#[derive(Debug)]
struct DedicatedObjects {
    all: Arc<dyn ObjectAdapter>,
    number: EndpointNumber,
    /// Whether the ORB is shutting down.
    is_closing: AtomicBool,
}

impl ObjectAdapter for DedicatedObjects {
    fn resolve(&self, object_key: &[u8], operation: &str, entry: Entry<'_>) -> Result<Resolution, SystemException> {
        let is_placed =
            matches!(&entry, Entry::Request { reservation: Some(reservation), .. } if reservation.is::<Placed>());
        match self.all.resolve(object_key, operation, entry)? {
            Resolution::Serve(_) | Resolution::MainThread if !is_placed => {
                Err(SystemException::inv_policy(minor::POLICY_CONFLICT, CompletionStatus::No)
                    .with_detail("the endpoint serves objects of adapters with a thread pool alone"))
            }
            resolution => Ok(resolution),
        }
    }

    fn locate(&self, object_key: &[u8]) -> Result<Located, SystemException> {
        self.all.locate(object_key)
    }

    fn endpoint(&self) -> Option<EndpointNumber> {
        Some(self.number)
    }

    fn reader_may_wait(&self) -> bool {
        !self.is_closing.load(Ordering::Relaxed)
    }

    fn bidirectional_policy(&self, object_key: &[u8]) -> Option<BidirectionalPolicy> {
        self.all.bidirectional_policy(object_key)
    }

    /// Has no effect: the ORB closes the adapter itself.
    fn close(&self) {}

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
