//! The wait strategy *on reactor*: a thread of the pool whose servant waits for a reply serves further requests meanwhile.
//!
//! The pool supplies these requests ([`NestedWork`]): from a reactor's connections, or from a queue.
//!
//! So a pool of one thread survives call-backs, to a limit: each level is a servant on the thread's stack, and the innermost returns
//! first. A servant that waits keeps nothing of its connection: the reactor reads on in its stead, in a new place, because the old
//! place's handler is still being called. The reply itself is read by the ORB's reactor for asynchronous calls; where it comes while
//! the thread is inside of another servant, it waits there, and was in time if it came in time.

use std::{
    cell::{Cell, RefCell},
    fmt,
    time::Duration,
};

use spandrel_giop::{CompletionStatus, SystemException, ids};
use spandrel_sync::{Arc, thread_local};

use crate::{
    deadlines::Unbounded,
    upcalls::{MAX_NESTING, upcalls},
};

thread_local! {
    /// Whether this thread serves others while it waits.
    static NESTS: Cell<bool> = const { Cell::new(false) };
    /// The pool that it belongs to.
    static POOL: RefCell<Option<Arc<dyn NestedWork>>> = const { RefCell::new(None) };
    /// The connections whose requests it runs, and in which of their turns, innermost last.
    static INSIDE: RefCell<Vec<(Arc<dyn PolledConnection>, u64)>> = const { RefCell::new(Vec::new()) };
}

/// The time in which a thread belongs to a pool whose threads serve others while they wait.
pub(super) struct PoolMembership(());

/// This thread does from now on.
pub(super) fn join(pool: Arc<dyn NestedWork>) -> PoolMembership {
    POOL.with(|joined| joined.replace(Some(pool)));
    NESTS.with(|nests| nests.set(true));
    PoolMembership(())
}

impl Drop for PoolMembership {
    fn drop(&mut self) {
        NESTS.with(|nests| nests.set(false));
        // Dropped outside of the cell.
        let left = POOL.with(RefCell::take);
        drop(left);
    }
}

/// Threads that have work for one of them that waits.
pub(crate) trait NestedWork: Send + Sync + fmt::Debug {
    /// Has those that serve meanwhile look whether what they wait for has come true.
    fn wake(&self);

    /// Serves until it has come true, the time is up, or the pool ends.
    fn serve_until(&self, timeout: Option<Duration>, is_true: &mut dyn FnMut() -> bool);
}

/// A connection that a thread of the pool reads from.
pub(super) trait PolledConnection: 'static {
    /// The upcall of `turn`, which this thread runs, waits for others: the reactor's threads read on, unless somebody does already.
    ///
    /// # Errors
    /// TRANSIENT if as many requests of this connection run as may: the one that is waited for might be behind them.
    fn release_reading(self: Arc<Self>, turn: u64) -> Result<(), SystemException>;
}

/// The time in which a thread runs a request of a connection that the reactor serves.
pub(super) struct UpcallNesting(());

/// Says so, if it matters in this thread. `shared`: the connection.
#[inline]
pub(super) fn enter<R: PolledConnection>(shared: impl FnOnce() -> Arc<R>, turn: u64) -> Option<UpcallNesting> {
    NESTS.with(Cell::get).then(|| UpcallNesting::begin(shared, turn))
}

impl UpcallNesting {
    #[cold]
    fn begin<R: PolledConnection>(shared: impl FnOnce() -> Arc<R>, turn: u64) -> Self {
        let connection: Arc<dyn PolledConnection> = shared();
        INSIDE.with(|inside| inside.borrow_mut().push((connection, turn)));
        Self(())
    }
}

impl Drop for UpcallNesting {
    fn drop(&mut self) {
        let left = INSIDE.with(|inside| inside.borrow_mut().pop());
        drop(left);
    }
}

/// Has the reactor read on in place of this thread, which is about to wait.
pub(super) fn release_reading() -> Result<(), SystemException> {
    let innermost = INSIDE.with(|inside| inside.borrow().last().cloned());
    innermost.map_or(Ok(()), |(connection, turn)| connection.release_reading(turn))
}

/// TRANSIENT for a servant that would wait for a reply with so many requests of its connection running that nobody could read it.
pub(super) fn too_many(running: u32) -> SystemException {
    SystemException::transient(ids::TRANSIENT_NESTING, CompletionStatus::No)
        .with_detail(|| format!("{running} requests of one connection run already"))
}

/// A pretend reactor's thread serves others while it waits.
#[cfg(all(test, shuttle))]
pub(super) fn pretend() {
    NESTS.with(|nests| nests.set(true));
}

/// A thread that is about to wait for a reply, and to serve others until it comes.
pub(crate) struct NestedWait(Arc<dyn NestedWork>);

impl NestedWait {
    /// Whether this thread serves others while it waits.
    #[inline]
    pub(crate) fn is_due() -> bool {
        NESTS.with(Cell::get)
    }

    /// Prepares this thread to serve others; nothing if it is no such thread.
    ///
    /// # Errors
    /// TRANSIENT if it is inside of too many upcalls, or too many requests of the connection run whose request it serves.
    pub(crate) fn begin() -> Result<Option<Self>, SystemException> {
        let Some(pool) = POOL.with(|pool| pool.borrow().clone()) else { return Ok(None) };
        if upcalls() >= MAX_NESTING {
            return Err(SystemException::transient(ids::TRANSIENT_NESTING, CompletionStatus::No)
                .with_detail(|| format!("{MAX_NESTING} requests are nested in this thread")));
        }
        release_reading()?;
        Ok(Some(Self(pool)))
    }

    /// Whom to [wake](Meanwhile::wake) when it has come true.
    pub(crate) fn others(&self) -> Arc<dyn NestedWork> {
        Arc::clone(&self.0)
    }

    /// Serves until it has come true, the time is up, or the pool ends.
    pub(crate) fn serve_until(&self, timeout: Option<Duration>, mut is_true: impl FnMut() -> bool) {
        let _unbounded = Unbounded::enter();
        self.0.serve_until(timeout, &mut is_true);
    }
}
