//! Whether the present thread is one of a reactor's.

use std::cell::Cell;
use std::ptr;

spandrel_sync::thread_local! {
    /// Address of the reactor in whose `run` this thread is, innermost; zero if in none.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// Keeps this thread one of the reactor's until dropped.
#[derive(Debug)]
pub(crate) struct Inside {
    before: usize,
    /// It was one already: the reactor runs inside of one of its own handlers.
    pub(crate) is_nested: bool,
}

impl Inside {
    pub(crate) fn enter<R>(reactor: &R) -> Self {
        let address = ptr::from_ref(reactor).addr();
        let before = INSIDE.with(|inside| inside.replace(address));
        Self { before, is_nested: before == address }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(self.before));
    }
}

/// Whether this thread runs that reactor.
pub(crate) fn is<R>(reactor: &R) -> bool {
    INSIDE.with(|inside| inside.get() == ptr::from_ref(reactor).addr())
}
