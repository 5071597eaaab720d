//! The ORB's reactor for asynchronous calls.

use std::any::Any;

use super::shutdown::ReactorSlot;
use crate::client::ClientReactor;

impl ReactorSlot {
    /// The reactor, which is made by the first call of this; after shutdown it takes no calls.
    pub(crate) fn get(&self) -> &ClientReactor {
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
