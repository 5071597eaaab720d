//! The connections whose requests a thread runs inside one another, under the wait strategy *on reactor*.
//!
//! A servant that waits does not keep the reading of its connection. The reactor reads on in its stead with a
//! new registration, because the handler of the old one is still being called.

use std::cell::RefCell;

use spandrel_connection::ReaderWord;
use spandrel_giop::{CompletionStatus, SystemException, ids};
use spandrel_sync::{Arc, thread_local};

thread_local! {
    /// The connections whose requests this thread runs, and the reader words of their upcalls, innermost last.
    static INSIDE: RefCell<Vec<(Arc<dyn PolledConnection>, ReaderWord)>> = const { RefCell::new(Vec::new()) };
}

/// A connection that threads of the pool read from.
pub(super) trait PolledConnection: 'static {
    /// Lets the reactor's threads read on while `upcall`, which this thread runs, waits. Does nothing
    /// if another thread reads already.
    ///
    /// # Errors
    /// TRANSIENT if as many requests of this connection run as may: the awaited message might be behind them.
    fn release_reading(self: Arc<Self>, upcall: ReaderWord) -> Result<(), SystemException>;
}

/// The time in which a thread runs a request of a connection that the reactor serves.
pub(super) struct UpcallNesting(());

/// Records that this thread runs a request of a connection, if the thread nests requests. `shared`: the
/// connection.
#[inline]
pub(super) fn enter<R: PolledConnection>(shared: impl FnOnce() -> Arc<R>, upcall: ReaderWord) -> Option<UpcallNesting> {
    spandrel_orb::internal::nesting::nests().then(|| UpcallNesting::begin(shared, upcall))
}

impl UpcallNesting {
    #[cold]
    fn begin<R: PolledConnection>(shared: impl FnOnce() -> Arc<R>, upcall: ReaderWord) -> Self {
        let connection: Arc<dyn PolledConnection> = shared();
        INSIDE.with(|inside| inside.borrow_mut().push((connection, upcall)));
        Self(())
    }
}

impl Drop for UpcallNesting {
    fn drop(&mut self) {
        let left = INSIDE.with(|inside| inside.borrow_mut().pop());
        drop(left);
    }
}

/// Lets the reactor read on in place of this thread, which is about to wait.
pub(super) fn release_reading() -> Result<(), SystemException> {
    let innermost = INSIDE.with(|inside| inside.borrow().last().cloned());
    innermost.map_or(Ok(()), |(connection, upcall)| connection.release_reading(upcall))
}

/// The TRANSIENT exception of a servant that would wait for a reply while no further request of its
/// connection may be read.
pub(super) fn too_many(running: u32) -> SystemException {
    SystemException::transient(ids::TRANSIENT_NESTING, CompletionStatus::No).with_detail(|| {
        format!("{running} requests of this connection run, so that its reading cannot go on during a further call")
    })
}
