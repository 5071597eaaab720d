//! The server side of an ORB with priorities: adapters whose requests run in thread pools.
//!
//! An adapter gets a `LaneExecutor` by its policies. The executor knows service contexts, object ids and pools, and gives
//! each request its priority; connections, adapters and servants are those of the crates below, which know priorities as
//! *levels* of [`RequestExecutor`](spandrel_server::RequestExecutor) alone.
//!
//! | priority model | priority of a request |
//! | --- | --- |
//! | CLIENT_PROPAGATED | of its RTCorbaPriority context; without one the policy's; for a collocated caller without one, its own |
//! | SERVER_DECLARED | of the object, or else the policy's; contexts are ignored |
//! | none | that of the pool's idle threads |
//!
//! A [`PriorityTransform`](crate::PriorityTransform) of the ORB then replaces it. The pool decides the rest: the lane,
//! the order, and the refusal of requests without room (TRANSIENT) or lane (INV_POLICY).

mod endpoints;
mod executor;
mod reply_priorities;
mod rt_poa;

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering}; // of one thread, which no model decides on

use spandrel_ipc::inet;
use spandrel_orb::transport::{ReactorTransport, SocketTuning};
use spandrel_server::{HandedOverRequest, RunningRequest};
use spandrel_sync::Arc;

use crate::mapping::NetworkPriority;
use crate::{Discarded, Job, PoolThread, RtOrb};

pub use reply_priorities::ReplyPriorities;
pub use rt_poa::{RtPoa, RtPoaBuilder};

/// The real-time objects of an ORB whose thread pools run requests.
pub type RtServerOrb = RtOrb<LaneRequest>;

/// A request of an adapter for a thread of a pool.
#[derive(Debug)]
pub struct LaneRequest {
    request: HandedOverRequest,
    /// The network priority of its reply; `None` for that of its connection.
    reply: Option<NetworkPriority>,
}

impl Job for LaneRequest {
    fn run(self, thread: &PoolThread<'_>) {
        let Self { request, reply } = self;
        let marked = reply.and_then(|priority| Some((priority, request.transport()?)));
        // The first call is the one before the reply; after it, the client's next request may run.
        let is_marked = AtomicBool::new(false);
        request.run(&|| {
            if let Some((priority, transport)) = &marked
                && !is_marked.swap(true, Ordering::Relaxed)
            {
                priority.apply(&**transport);
            }
            thread.release();
        });
    }

    fn discard(self, reason: Discarded) {
        self.request.refuse(reason.exception());
    }

    fn running(&self) -> Option<Arc<dyn RunningRequest>> {
        Some(self.request.running())
    }
}

impl NetworkPriority {
    /// Gives this priority to the packets that a TCP connection sends from now on.
    fn apply(self, transport: &dyn ReactorTransport) {
        let transport: &dyn Any = transport;
        let Some(stream) = transport.downcast_ref::<inet::Stream>() else { return };
        let mut tuning = SocketTuning::default();
        (tuning.traffic_class, tuning.priority) = (self.traffic_class, self.socket);
        if let Err(error) = tuning.apply(stream) {
            tracing::debug!(%error, "the reply keeps the network priority of its connection");
        }
    }
}
