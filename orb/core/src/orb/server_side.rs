//! The interface between the core and the server side of an ORB, which the crate `spandrel-server` implements.
//!
//! An ORB without an object adapter has no server side, and a program that installs none does not contain it.

use std::any::Any;

use spandrel_giop::{CompletionStatus, ServiceContext, SystemException};
use spandrel_sync::Arc;
use spandrel_transport::{Address, Deadline, PublishedAddresses};

use super::Orb;
use crate::client::{CallFailure, ClientConnection, Reply, call_kind::CallKind, destination::Destination};

/// The interface by which the client side reaches `orb/server`, which this crate does not link.
pub trait ServerSide: Any + Send + Sync {
    /// Begins to listen on the configured endpoints at first use, and returns the addresses for references.
    ///
    /// # Errors
    /// INITIALIZE if the server cannot listen on an endpoint.
    fn listen(&self, orb: &Orb) -> Result<PublishedAddresses, SystemException>;

    /// Accepts connections and datagrams from now on, if they wait for that.
    fn accept_connections(&self);

    /// Marks the destinations that are endpoints of this ORB, if it has collocated calls.
    fn mark_own(&self, orb: &Orb, destinations: &mut [Destination]);

    /// The addresses in references, if the server listens.
    fn published(&self) -> Option<PublishedAddresses>;

    /// Records that this thread sends a one-way to an object of this ORB.
    fn record_one_way(&self, orb: &Orb);

    /// Whether a two-way call of this thread may run at once. If not, it has to follow earlier one-ways,
    /// which it must not overtake; later calls need not.
    fn settle(&self, orb: &Orb) -> bool;

    /// Runs a request to an object of this ORB in the calling thread, and returns the reply.
    ///
    /// # Errors
    /// BAD_INV_ORDER after shutdown; TIMEOUT once the deadline has passed.
    fn call(
        &self,
        orb: &Orb,
        destination: &Destination,
        call_kind: &CallKind<'_, '_>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure>;

    /// The context with the listen points of this ORB, for a request on this connection; `None` if it has
    /// none. The connection accepts requests of the peer from then on.
    ///
    /// # Errors
    /// [`NothingToSend`] if a later request may carry the context.
    fn announce(&self, orb: &Orb, connection: &Arc<ClientConnection>) -> Result<Option<ServiceContext>, NothingToSend>;

    /// An open connection that the peer at this address has opened and announced. `code_sets`: the context of
    /// the requests.
    fn adopted_connection(
        &self,
        address: &Address,
        code_sets: Option<&ServiceContext>,
    ) -> Option<Arc<ClientConnection>>;

    /// The numbers of threads, waiting requests and octets at this moment.
    fn levels(&self) -> ServerLevels;

    /// Ends the wait of all requests that the adapter holds: the ORB begins to shut down.
    fn begin_close(&self);

    /// Closes the endpoints and the connections that carry requests to this ORB. Running requests have the
    /// configured time to end.
    fn shut_down(&self, orb: &Orb);

    /// Releases all servants, after the end of the ORB. Called without any lock held.
    fn close(&self);
}

/// There are no listen points to announce yet.
#[derive(Clone, Copy, Debug)]
pub struct NothingToSend;

/// The numbers of a server's threads, waiting requests and octets at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerLevels {
    /// Requests that adapter managers hold.
    pub held: usize,
    /// Threads that serve one connection alone.
    pub threaded: usize,
    /// Threads that serve any connection.
    pub pooled: usize,
    /// Requests that wait for a thread.
    pub queued: usize,
    /// Requests that will be answered later.
    pub deferred: usize,
    /// The octets of received messages in memory.
    pub octets: usize,
}

/// BAD_INV_ORDER for an operation that needs an object adapter.
pub(crate) fn no_server_side() -> SystemException {
    SystemException::bad_inv_order(0, CompletionStatus::No)
        .with_detail("the ORB has no object adapter: create the root adapter first (`Poa::root`)")
}
