//! Whether the present thread is running a reactor.

use std::cell::Cell;
use std::ptr;

use crate::leader_followers::Nesting;

spandrel_sync::thread_local! {
    /// Address of the innermost reactor whose `run` this thread executes; zero if none.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// Marks this thread as running the reactor until dropped.
#[derive(Debug)]
pub(crate) struct CurrentReactor {
    before: usize,
    /// `Nested` if the thread was running it already: a handler of the reactor runs it again.
    pub(crate) nesting: Nesting,
}

impl CurrentReactor {
    pub(crate) fn enter<R>(reactor: &R) -> Self {
        let address = ptr::from_ref(reactor).addr();
        let before = CURRENT.with(|current| current.replace(address));
        let nesting = if before == address { Nesting::Nested } else { Nesting::Outermost };
        Self { before, nesting }
    }
}

impl Drop for CurrentReactor {
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(self.before));
    }
}

/// Whether this thread runs that reactor.
pub(crate) fn is<R>(reactor: &R) -> bool {
    CURRENT.with(|current| current.get() == ptr::from_ref(reactor).addr())
}
