//! The part of an ORB's interceptors that every call reads. The ORB owns it and does not know the interceptors
//! themselves, which `interception` gives it when the ORB is ready.

use std::{any::Any, sync::OnceLock};

use spandrel_sync::{
    Arc,
    atomic::{AtomicU8, AtomicU32, Ordering},
};

use crate::orb::lazy_part::LazyPart;

/// The number of a slot of [`PiCurrent`](crate::interception::PiCurrent) (16.4.3), from
/// [`allocate_slot`](crate::OrbBuilder::allocate_slot).
pub type SlotId = u32;

/// The identity of an ORB in the slots of its threads; unique while a weak reference to it exists.
pub(crate) type OrbToken = Arc<()>;

/// The sides of an ORB with interception points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterceptionPoints {
    /// Whether there are client interceptors.
    pub(crate) client: bool,
    /// Whether there are server interceptors or slots.
    pub(crate) server: bool,
}

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

/// The interceptors of one ORB, and the flags by which calls see that there are none.
#[derive(Debug, Default)]
pub struct InterceptionState {
    /// Set when the ORB is ready: while it is being made nothing is intercepted.
    registered: LazyPart,
    /// The sides with interception points. In most cases this is all that a call reads.
    sides: AtomicU8,
    token: OrbToken,
    requests: AtomicU32,
    /// Destroys the interceptors. Set with them.
    destroy: OnceLock<fn(&Self)>,
}

impl InterceptionState {
    /// The interceptors, once the ORB is ready.
    pub(crate) fn registered<T: Any>(&self) -> Option<&T> {
        self.registered.get()
    }

    /// Gives the ORB its interceptors, and the function that destroys them.
    pub(crate) fn begin<T: Any + Send + Sync>(&self, registered: T, points: InterceptionPoints, destroy: fn(&Self)) {
        let sides = if points.client { CLIENT } else { 0 } | if points.server { SERVER } else { 0 };
        self.registered.get_or_make(|| registered);
        self.destroy.get_or_init(|| destroy);
        self.sides.store(sides, Ordering::Release);
    }

    /// Whether client interceptors are registered.
    #[inline]
    pub(crate) fn has_client_points(&self) -> bool {
        self.sides.load(Ordering::Acquire) & CLIENT != 0
    }

    /// Whether a request has to pass server points, if only for the slots of its thread.
    #[inline]
    pub fn has_server_points(&self) -> bool {
        self.sides.load(Ordering::Acquire) & SERVER != 0
    }

    pub(crate) fn token(&self) -> &OrbToken {
        &self.token
    }

    /// A number that no other pending request has (16.3.12.1). It is not GIOP's request id, which one
    /// connection assigns.
    pub(crate) fn request_id(&self) -> u32 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// Destroys the interceptors, after the shutdown of the ORB.
    pub(crate) fn destroy(&self) {
        if let Some(destroy) = self.destroy.get() {
            destroy(self);
        }
    }
}
