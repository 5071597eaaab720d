//! What the request is that the calling thread serves: for servants that ask for its [token](CancellationToken), or for what it came over.

use std::any::Any;

use spandrel_ipc::Transfer;
use spandrel_orb::{cancellation::CancellationSource, deadlines, orb::WeakOrb};
use spandrel_sync::Arc;

use super::{
    connection::ServerConnection,
    frame::{Frame, orb, served},
    origin::RequestKey,
};
use crate::ServingOrb;

/// What may cancel what this thread runs.
pub(super) fn cancellation() -> Arc<CancellationSource> {
    served_request().or_else(of_deadline).unwrap_or_else(CancellationSource::never)
}

/// What may cancel the request that this thread serves, if it serves one from elsewhere.
pub(crate) fn served_request() -> Option<Arc<CancellationSource>> {
    of_connection().or_else(served)
}

/// Shows `look` what carries the connection over which the request came that this thread runs now, inside of a servant or of a future that serves:
/// for protocols, which know the types of their own streams, and tell servants what they know of the other side.
///
/// Nothing outside of requests, for those that came by something else than an `S`, and once their connection has ended. Inside of
/// calls on objects of the same process it is the request from outside that counts, as for [`CancellationToken::current`](spandrel_orb::CancellationToken::current).
pub fn with_current_stream<S: Transfer, R>(look: impl FnOnce(&S) -> R) -> Option<R> {
    let transport = match connection() {
        Some((_, connection)) => Arc::clone(connection.link().shared_transport()),
        None => served()?.transport()?,
    };
    let transport: &dyn Any = &*transport;
    transport.downcast_ref().map(look)
}

fn of_connection() -> Option<Arc<CancellationSource>> {
    let (Frame { turn, request_id, is_one_way, .. }, connection) = connection()?;
    Some(connection.cancellation_source(RequestKey { request_id, is_one_way, turn }, deadlines::inherited()))
}

/// The connection of the request that this thread runs.
fn connection() -> Option<(Frame, Arc<ServerConnection>)> {
    let frame = Frame::current()?;
    Some((frame, orb()?.server().find(frame.connection)?))
}

/// A caller in this ORB that nobody waits for but itself has its deadline.
fn of_deadline() -> Option<Arc<CancellationSource>> {
    let deadline = deadlines::inherited()?;
    Some(CancellationSource::new(WeakOrb::of(&orb()?), Some(deadline)))
}
