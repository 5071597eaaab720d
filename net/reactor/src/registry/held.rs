//! Handlers that are registered together, and begin together.

use std::cell::{Cell, RefCell};
use std::ptr;

use super::Registry;
use crate::HandlerId;

spandrel_sync::thread_local! {
    /// Address of the reactor whose registrations this thread holds; zero if none.
    static HOLDING: Cell<usize> = const { Cell::new(0) };
    static HELD: RefCell<Vec<HandlerId>> = const { RefCell::new(Vec::new()) };
}

/// Handlers that the present thread registers in the meantime. They are [suspended](Registry::suspend) from their
/// registration on; [`Registry::resume`] lets each wait for its handle.
#[derive(Debug)]
pub struct HeldRegistrations {
    /// It belongs to its thread.
    _of_thread: std::marker::PhantomData<*const ()>,
}

impl Registry {
    /// Holds the handlers that this thread registers until [`HeldRegistrations::end`], so that several can begin at
    /// the same time. One reactor at a time: a second call before the end of the first takes its place.
    #[must_use]
    pub fn hold_registrations(&self) -> HeldRegistrations {
        HOLDING.with(|holding| holding.set(ptr::from_ref(self.core()).addr()));
        HELD.with(|held| held.borrow_mut().clear());
        HeldRegistrations { _of_thread: std::marker::PhantomData }
    }

    /// Whether a handler that this thread registers now is held.
    pub(super) fn holds_registrations(&self) -> bool {
        HOLDING.with(|holding| holding.get() == ptr::from_ref(self.core()).addr())
    }

    pub(super) fn hold(id: HandlerId) {
        HELD.with(|held| held.borrow_mut().push(id));
    }
}

impl HeldRegistrations {
    /// Ends the holding; returns the handlers that were registered, still suspended.
    #[must_use]
    pub fn end(self) -> Vec<HandlerId> {
        HELD.with(|held| std::mem::take(&mut *held.borrow_mut()))
    }
}

impl Drop for HeldRegistrations {
    fn drop(&mut self) {
        HOLDING.with(|holding| holding.set(0));
    }
}
