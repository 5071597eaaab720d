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

use spandrel_server::{HandedOverRequest, RunningRequest};
use spandrel_sync::Arc;

use crate::{Discarded, Job, PoolThread, RtOrb};

pub use reply_priorities::ReplyPriorities;
pub use rt_poa::{RtPoa, RtPoaBuilder};

/// The real-time objects of an ORB whose thread pools run requests.
pub type RtServerOrb = RtOrb<LaneRequest>;

/// A request of an adapter for a thread of a pool.
#[derive(Debug)]
pub struct LaneRequest(HandedOverRequest);

impl Job for LaneRequest {
    fn run(self, thread: &PoolThread<'_>) {
        self.0.run(&|| thread.release());
    }

    fn discard(self, reason: Discarded) {
        self.0.refuse(reason.exception());
    }

    fn running(&self) -> Option<Arc<dyn RunningRequest>> {
        Some(self.0.running())
    }
}
