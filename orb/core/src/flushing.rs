//! One-ways that are written together (the sync scope NONE), as references and the ORB see them.

use spandrel_giop::SystemException;
use spandrel_transport::Deadline;

use crate::{
    ObjectRef, Orb,
    client::{Buffering, CallFailure, all},
    policies::{BufferingConstraintPolicy, SyncScopePolicy},
};

impl ObjectRef {
    /// Has the one-ways written that were sent with the sync scope NONE over this reference's connections, whichever references they
    /// were sent by (`TAO::BUFFER_FLUSH`). Anything else that is sent there does this by itself, and so does time, soon.
    ///
    /// # Errors
    /// TIMEOUT if the peer does not read within the reference's time-out; then they still wait. COMM_FAILURE if they are lost.
    pub fn flush(&self) -> Result<(), SystemException> {
        self.orb().check_running()?;
        let deadline = self.call_policies().deadline;
        let destinations = self.destinations()?;
        let flushed = destinations.iter().map(|destination| destination.peer.flush(deadline.as_ref()));
        all(flushed).map_err(exception)
    }

    /// How a one-way that is sent now is buffered, if nobody waits until it is written.
    pub(crate) fn buffering(&self) -> Option<Buffering> {
        if !self.has_policies() {
            return None;
        }
        let policy_values = self.policy_values();
        if policy_values.sync_scope() != SyncScopePolicy::None {
            return None;
        }
        if policy_values.has_buffering()
            && let Some(policy) = self.buffering_constraint()
        {
            let BufferingConstraintPolicy { timeout, messages, octets } = policy;
            return Some(Buffering { timeout, messages, octets, is_prompt: false });
        }
        Some(Buffering::default())
    }
}

impl Orb {
    /// Has all one-ways written that were sent with the sync scope NONE ([`ObjectRef::flush`]).
    ///
    /// # Errors
    /// As [`ObjectRef::flush`], by the ORB's time-out.
    pub fn flush(&self) -> Result<(), SystemException> {
        self.check_running()?;
        let deadline = self.settings().request_timeout.map(Deadline::after);
        self.flush_peers(deadline.as_ref()).map_err(exception)
    }
}

fn exception(failure: CallFailure) -> SystemException {
    failure.exception
}
