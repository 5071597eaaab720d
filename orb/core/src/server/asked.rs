//! A request that is being served: what it asks, where it came from, and what is known of it so far.

#[cfg(not(feature = "interceptors"))]
use std::convert::Infallible;
use std::fmt;

use spandrel_cdr::GiopVersion;
use spandrel_giop::{ContextLimits, Message, RequestHeader, ResponseFlags, ServiceContexts, SystemException};
use spandrel_sync::{Arc, atomic::AtomicBool};

use super::{
    origin::{Origin, Which},
    place::Place,
};
#[cfg(feature = "interceptors")]
use crate::interception::ServerFlow;
use crate::{Target, cancellation::Trip, deadlines::Due, diagnostics::WatchedRequest, policies::due};

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

/// What a request says besides what it asks; few say anything.
#[derive(Debug)]
pub(super) struct Noted {
    /// What is wrong with it.
    pub(super) said: Result<(), SystemException>,
    /// Until when the request is worth anything.
    pub(super) due: Option<Due>,
}

impl Noted {
    /// What these contexts say of a request. `remember` keeps what they say for those after it, if they are not too many or too long.
    pub(super) fn said_by(
        contexts: &ServiceContexts<'_>,
        limits: ContextLimits,
        remember: impl FnOnce() -> Result<(), SystemException>,
    ) -> Self {
        let said = contexts.check(limits).and_then(|()| remember());
        Self { said, due: due(contexts) }
    }

    /// Only that.
    pub(super) fn of(due: Option<Due>) -> Option<Self> {
        due.map(|due| Self { said: Ok(()), due: Some(due) })
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
    /// What those have of it who watch it.
    pub(super) watched: Option<&'m Arc<WatchedRequest>>,
    /// What it has had since it was deferred, if it was.
    pub(super) place: Option<&'m Arc<Place>>,
    /// Which upcall of its origin it is.
    pub(super) turn: u64,
    /// What its client has said besides.
    pub(super) noted: Option<&'m Noted>,
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
            watched: None,
            place: None,
            turn: 0,
            noted: None,
            is_answered,
        }
    }
}

impl Asked<'_> {
    /// Until when it is worth anything, if its client has said.
    pub(super) fn due(&self) -> Option<Due> {
        self.noted?.due
    }

    /// Which request it is of its origin's.
    pub(super) fn which(&self, is_one_way: bool) -> Which {
        Which { request_id: self.header.request_id, is_one_way, turn: self.turn }
    }

    /// A place among the deferred requests of its origin, for one that runs.
    ///
    /// # Errors
    /// TRANSIENT if too many have one.
    pub(super) fn enter_deferred(&self, is_one_way: bool) -> Result<Arc<Place>, SystemException> {
        let (origin, due) = (self.origin.shared(), self.due());
        let which = self.which(is_one_way);
        let trip = origin.trip(which, due.and_then(|due| due.answer));
        let key = origin.enter_deferred(which, self.message.header.total_len(), &trip)?;
        Ok(Arc::new(Place { origin, key, is_one_way, trip, due }))
    }

    /// What may cancel it.
    pub(super) fn trip(&self) -> Arc<Trip> {
        match self.place {
            Some(place) => Arc::clone(&place.trip),
            None => {
                let is_one_way = self.header.response != ResponseFlags::TWO_WAY;
                self.origin.trip(self.which(is_one_way), self.due().and_then(|due| due.answer))
            }
        }
    }
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("header", self.header).field("version", &self.version).finish_non_exhaustive()
    }
}
