//! The flushing of buffered one-ways (sync scope NONE), for references and the ORB.

use spandrel_giop::SystemException;
use spandrel_transport::Deadline;

use crate::{
    ObjectRef, Orb,
    client::{CallFailure, first_failure},
};

impl ObjectRef {
    /// Writes the buffered one-ways of this reference's connections: those with the sync scope NONE, sent by
    /// any reference (`TAO::BUFFER_FLUSH`). Each other message on these connections also flushes them, and so
    /// does a short timer.
    ///
    /// # Errors
    /// TIMEOUT if the peer does not read within the reference's time-out; the one-ways stay buffered.
    /// COMM_FAILURE if they are lost.
    pub fn flush(&self) -> Result<(), SystemException> {
        self.orb().check_running()?;
        let deadline = self.call_policies().deadline;
        let forward = self.forwarded();
        let destinations = self.destinations(forward.as_deref())?;
        let flushed = destinations.iter().map(|destination| destination.peer.flush(deadline.as_ref()));
        first_failure(flushed).map_err(exception)
    }
}

impl Orb {
    /// Writes all buffered one-ways with the sync scope NONE ([`ObjectRef::flush`]).
    ///
    /// # Errors
    /// As [`ObjectRef::flush`], by the ORB's time-out.
    pub fn flush(&self) -> Result<(), SystemException> {
        self.check_running()?;
        let deadline = self.settings().request_timeout.map(Deadline::after);
        first_failure(self.peers().all().iter().map(|peer| peer.flush(deadline.as_ref()))).map_err(exception)
    }
}

fn exception(failure: CallFailure) -> SystemException {
    failure.exception
}
