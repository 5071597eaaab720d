//! The nesting of upcalls in a thread: servants and jobs that the ORB runs.

#[cfg(feature = "server")]
use std::cell::{Cell, RefCell};

#[cfg(feature = "server")]
use spandrel_sync::{held, thread_local};

/// The limit on nested upcalls in one thread (design decision 3): each has frames of the ORB and of a servant
/// on the stack.
#[cfg(feature = "server")]
pub(crate) const MAX_NESTING: u32 = 64;

#[cfg(feature = "server")]
thread_local! {
    /// The number of upcalls that this thread is inside of.
    static UPCALLS: Cell<u32> = const { Cell::new(0) };
    /// The addresses of the ORBs whose deferred requests this thread polls; innermost last.
    static POLLED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Whether this thread is inside of an upcall.
pub(crate) fn is_in_upcall() -> bool {
    #[cfg(feature = "server")]
    return upcalls() > 0;
    #[cfg(not(feature = "server"))]
    false
}

/// The number of upcalls that this thread is inside of.
#[cfg(feature = "server")]
#[inline]
pub(crate) fn upcalls() -> u32 {
    UPCALLS.with(Cell::get)
}

/// The time in which this thread runs a servant.
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct UpcallScope(());

#[cfg(feature = "server")]
impl UpcallScope {
    #[inline]
    pub(crate) fn enter() -> Self {
        held::assert_none("a servant");
        UPCALLS.with(|upcalls| upcalls.set(upcalls.get() + 1));
        Self(())
    }
}

#[cfg(feature = "server")]
impl Drop for UpcallScope {
    #[inline]
    fn drop(&mut self) {
        UPCALLS.with(|upcalls| upcalls.set(upcalls.get() - 1));
    }
}

/// The time in which this thread polls the future of a deferred request.
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct PollScope {
    _upcall: UpcallScope,
}

#[cfg(feature = "server")]
impl PollScope {
    pub(crate) fn enter(orb: usize) -> Self {
        let upcall = UpcallScope::enter();
        POLLED.with(|polled| polled.borrow_mut().push(orb));
        Self { _upcall: upcall }
    }

    /// Whether this thread polls a request of this ORB.
    pub(crate) fn is_inside_of(orb: usize) -> bool {
        POLLED.with(|polled| polled.borrow().contains(&orb))
    }
}

#[cfg(feature = "server")]
impl Drop for PollScope {
    fn drop(&mut self) {
        POLLED.with(|polled| polled.borrow_mut().pop());
    }
}
