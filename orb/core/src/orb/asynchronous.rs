//! The ORB's reactor for asynchronous calls.

use std::any::Any;

use spandrel_giop::SystemException;

use super::{Orb, shutdown::ReactorSlot};
use crate::client::ClientReactor;

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
