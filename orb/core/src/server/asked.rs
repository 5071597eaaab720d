//! A request that is being served: what it asks, where it came from, and what is known of it so far.

#[cfg(not(feature = "interceptors"))]
use std::convert::Infallible;
use std::fmt;

use spandrel_cdr::GiopVersion;
use spandrel_giop::{Message, RequestHeader};
use spandrel_sync::{Arc, atomic::AtomicBool};

use super::{origin::Origin, place::Place};
use crate::Target;
#[cfg(feature = "interceptors")]
use crate::interception::ServerFlow;

/// What a request has with it for its interceptors.
#[cfg(feature = "interceptors")]
pub(super) type Flow = Arc<ServerFlow>;

/// What no request has, where there are no interceptors.
#[cfg(not(feature = "interceptors"))]
#[derive(Clone, Debug)]
pub(super) struct Flow(Infallible);

#[cfg(not(feature = "interceptors"))]
impl Flow {
    /// There is none.
    pub(super) fn never(&self) -> ! {
        match self.0 {}
    }
}

/// What was asked, by whom, and in which version it must be answered.
pub(super) struct Asked<'m> {
    pub(super) origin: &'m dyn Origin,
    pub(super) message: &'m Message,
    pub(super) header: &'m RequestHeader<'m>,
    pub(super) version: GiopVersion,
    /// What the adapter says of the object, once it has found it.
    pub(super) target: Option<&'m dyn Target>,
    /// What interceptors know of it.
    pub(super) flow: Option<&'m Flow>,
    /// What it has had since it was deferred, if it was.
    pub(super) place: Option<&'m Arc<Place>>,
    /// Set once an answer was sent, or is somebody else's matter: a servant that fails after that gets no second one.
    pub(super) is_answered: &'m AtomicBool,
}

impl<'m> Asked<'m> {
    #[inline]
    pub(super) fn new(
        origin: &'m dyn Origin,
        message: &'m Message,
        header: &'m RequestHeader<'m>,
        is_answered: &'m AtomicBool,
    ) -> Self {
        Self {
            origin,
            message,
            header,
            version: message.header.version,
            target: None,
            flow: None,
            place: None,
            is_answered,
        }
    }
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("header", self.header).field("version", &self.version).finish_non_exhaustive()
    }
}
