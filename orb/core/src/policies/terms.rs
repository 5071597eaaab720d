//! What is in force for a call that begins now: what the reference, the thread and the ORB say, and until when whoever waits for it has time.

use spandrel_transport::Deadline;

use super::{Quality, RebindPolicy};
#[cfg(feature = "policies")]
use super::{Starts, current};
use crate::ObjectRef;
#[cfg(feature = "server")]
use crate::deadlines;
#[cfg(any(feature = "policies", feature = "server"))]
use crate::thread_terms;

/// What a call goes by that begins now.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) deadline: Option<Deadline>,
    pub(crate) rebind: RebindPolicy,
    /// What must not be delivered yet.
    #[cfg(feature = "policies")]
    pub(crate) starts: Option<Starts>,
}

impl ObjectRef {
    /// The policies in force for this thread's calls.
    pub(crate) fn quality(&self) -> Quality {
        let own = self.own_quality();
        #[cfg(feature = "policies")]
        let own = if thread_terms::are_there() { own.or(current::quality(self.orb())) } else { own };
        own.or(self.orb().quality().get())
    }

    #[inline]
    pub(crate) fn terms(&self) -> Terms {
        if self.has_policies() {
            return self.terms_set();
        }
        Terms {
            deadline: None,
            rebind: RebindPolicy::default(),
            #[cfg(feature = "policies")]
            starts: None,
        }
    }

    /// True if there may be policies for this thread's calls.
    #[inline]
    pub(crate) fn has_policies(&self) -> bool {
        #[cfg(any(feature = "policies", feature = "server"))]
        if thread_terms::are_there() {
            return true;
        }
        self.orb().quality().is_said() || self.own_quality().is_said()
    }

    /// Where there are policies.
    #[inline(never)]
    fn terms_set(&self) -> Terms {
        let quality = self.quality();
        #[cfg(feature = "policies")]
        let (own, starts) = match quality.is_limited() {
            true => (self.limits(quality.round_trip()), self.starts()),
            false => (quality.round_trip().map(Deadline::after), None),
        };
        #[cfg(not(feature = "policies"))]
        let own = quality.round_trip().map(Deadline::after);
        Terms {
            deadline: self.within_inherited(own),
            rebind: quality.rebind(),
            #[cfg(feature = "policies")]
            starts,
        }
    }

    /// Not later than whoever waits for what this thread serves has time.
    #[cfg(feature = "server")]
    fn within_inherited(&self, own: Option<Deadline>) -> Option<Deadline> {
        let Some(inherited) = deadlines::inherited().filter(|_| self.orb().settings().serving.inherits_deadlines)
        else {
            return own;
        };
        match own {
            Some(own) if own.end() <= inherited => Some(own),
            own => Some(Deadline::until(inherited, own)),
        }
    }

    #[cfg(not(feature = "server"))]
    fn within_inherited(&self, own: Option<Deadline>) -> Option<Deadline> {
        own
    }
}
