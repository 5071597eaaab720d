//! The ORB's reactor for asynchronous calls, and the flushing of buffered one-ways.

use std::any::Any;

use spandrel_giop::SystemException;

use spandrel_transport::Deadline;

use super::{Orb, shutdown::ReactorSlot};
use crate::client::{ClientReactor, first_failure};

impl Orb {
    /// The reactor of asynchronous calls.
    pub fn client_reactor(&self) -> &ClientReactor {
        self.0.client_reactor.get()
    }

    /// Runs a future in the ORB's reactor thread for asynchronous calls, until it is ready or the ORB is shut
    /// down. The future must not block: all asynchronous calls of this ORB would block with it.
    ///
    /// # Errors
    /// NO_RESOURCES if the thread could not be started; BAD_INV_ORDER after shutdown.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        self.client_reactor().run(Box::pin(task))
    }

    /// Writes all buffered one-ways with the sync scope NONE ([`ObjectRef::flush`](crate::ObjectRef::flush)).
    ///
    /// # Errors
    /// As [`ObjectRef::flush`](crate::ObjectRef::flush), by the ORB's time-out.
    pub fn flush(&self) -> Result<(), SystemException> {
        self.check_running()?;
        let deadline = self.settings().request_timeout.map(Deadline::after);
        first_failure(self.peers().all().iter().map(|peer| peer.flush(deadline.as_ref())))
            .map_err(|failure| failure.exception)
    }
}

impl ReactorSlot {
    /// The reactor, which is made by the first call of this; after shutdown it takes no calls.
    fn get(&self) -> &ClientReactor {
        let reactor = self.reactor.get().unwrap_or_else(|| {
            let is_closed = self.is_closed.lock();
            let reactor = self.reactor.get_or_init(|| Box::<ClientReactor>::default());
            if *is_closed {
                reactor.shut_down();
            }
            reactor
        });
        (&**reactor as &dyn Any).downcast_ref().expect("there is one kind of reactor")
    }
}
