//! The nesting of upcalls in a thread: servants and jobs that the ORB runs.
//!
//! The deadline that the calls of a servant inherit is in `request_deadlines`.

use std::cell::{Cell, RefCell};

use spandrel_sync::{held, thread_local};

/// The limit on nested upcalls in one thread (design decision 3): each has frames of the ORB and of a servant
/// on the stack.
pub(crate) const MAX_NESTING: u32 = 64;

thread_local! {
    /// The number of upcalls that this thread is inside of.
    static UPCALLS: Cell<u32> = const { Cell::new(0) };
    /// The addresses of the ORBs whose deferred requests this thread polls; innermost last.
    static POLLED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Whether this thread is inside of an upcall.
pub(crate) fn is_in_upcall() -> bool {
    upcalls() > 0
}

/// The number of upcalls that this thread is inside of.
#[inline]
pub fn upcalls() -> u32 {
    UPCALLS.with(Cell::get)
}

/// The time in which this thread runs a servant.
#[derive(Debug)]
pub struct UpcallScope(());

impl UpcallScope {
    /// Counts an upcall of this thread until the value is dropped.
    #[inline]
    pub fn enter() -> Self {
        held::assert_none("a servant");
        UPCALLS.with(|upcalls| upcalls.set(upcalls.get() + 1));
        Self(())
    }
}

impl Drop for UpcallScope {
    #[inline]
    fn drop(&mut self) {
        UPCALLS.with(|upcalls| upcalls.set(upcalls.get() - 1));
    }
}

/// The time in which this thread polls the future of a deferred request.
#[derive(Debug)]
pub struct PollScope {
    _upcall: UpcallScope,
}

impl PollScope {
    /// Records until the value is dropped that this thread runs a request of the ORB with this
    /// [`instance`](crate::Orb::instance).
    pub fn enter(orb: usize) -> Self {
        let upcall = UpcallScope::enter();
        POLLED.with(|polled| polled.borrow_mut().push(orb));
        Self { _upcall: upcall }
    }

    /// Whether this thread polls a request of this ORB.
    pub fn is_inside_of(orb: usize) -> bool {
        POLLED.with(|polled| polled.borrow().contains(&orb))
    }
}

impl Drop for PollScope {
    fn drop(&mut self) {
        POLLED.with(|polled| polled.borrow_mut().pop());
    }
}
