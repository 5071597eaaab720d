//! Information on the request that the calling thread serves, for servants: its
//! [token](spandrel_orb::CancellationToken) and its stream.

use std::any::Any;

use spandrel_ipc::Transfer;
use spandrel_orb::internal::{WeakOrb, cancellation::CancellationSource, request_deadlines};
use spandrel_sync::Arc;
use spandrel_transport::Address;

use crate::{
    connection::ServerConnection,
    request_of_thread::{Frame, orb, served},
    request_server::RequestServer,
    upcall::origin::{RequestKey, RequestOrigin},
};

/// The cancellation source of this thread's work. It never cancels if there is neither a request nor a
/// deadline.
pub(super) fn cancellation() -> Arc<CancellationSource> {
    served_request().or_else(of_deadline).unwrap_or_else(CancellationSource::never)
}

/// The cancellation source of the request from outside that this thread serves, if there is one.
pub(crate) fn served_request() -> Option<Arc<CancellationSource>> {
    of_connection().or_else(served)
}

/// Calls `look` with the stream of the request that this thread runs, in a servant or in a future that
/// serves. For protocols, which know their own stream types and give servants information on the peer.
///
/// Returns `None` outside requests, for requests that did not come over an `S`, and once their connection has
/// ended. In calls on objects of the same process the request from outside counts, as for
/// [`CancellationToken::current`](spandrel_orb::CancellationToken::current).
pub fn with_current_stream<S: Transfer, R>(look: impl FnOnce(&S) -> R) -> Option<R> {
    let transport = match connection() {
        Some((_, connection)) => Arc::clone(connection.link().shared_transport()),
        None => served()?.transport()?,
    };
    let transport: &dyn Any = &*transport;
    transport.downcast_ref().map(look)
}

/// The address of the peer whose request this thread runs, in a servant or in a future that serves. `None` outside
/// requests, and once their connection has ended.
///
/// In calls on objects of the same process the request from outside counts, as for
/// [`CancellationToken::current`](spandrel_orb::CancellationToken::current). The sender of a datagram can forge its
/// address.
#[must_use]
pub fn current_peer_address() -> Option<Arc<Address>> {
    match connection() {
        Some((_, connection)) => Some(Arc::clone(connection.link().from())),
        None => served()?.peer().cloned(),
    }
}

fn of_connection() -> Option<Arc<CancellationSource>> {
    let (Frame { upcall, request_id, is_one_way, .. }, connection) = connection()?;
    Some(connection.cancellation_source(RequestKey { request_id, is_one_way, upcall }, request_deadlines::inherited()))
}

/// The connection of the request that this thread runs, with its frame.
fn connection() -> Option<(Frame, Arc<ServerConnection>)> {
    let frame = Frame::current()?;
    Some((frame, RequestServer::of(&orb()?)?.find_connection(frame.connection)?))
}

/// The cancellation source of a caller in this ORB that serves no request but has a deadline.
fn of_deadline() -> Option<Arc<CancellationSource>> {
    let deadline = request_deadlines::inherited()?;
    Some(CancellationSource::new(WeakOrb::of(&orb()?), Some(deadline)))
}
