//! The wait strategy *on reactor*: a thread of the server's pool runs further requests while its servant waits
//! for a reply.
//!
//! The pool supplies these requests ([`NestedWork`]). So a pool of one thread survives callbacks, to a limit:
//! each level is a servant on the thread's stack, and the innermost returns first. The reply itself is read by
//! the ORB's reactor for asynchronous calls. If it arrives while the thread is inside of another servant, it
//! waits there, and was in time if it arrived in time.
//!
//! The end of a nested call when its servant's request is cancelled is in `await_reply`.

use std::{
    cell::{Cell, RefCell},
    fmt,
    time::Duration,
};

use spandrel_giop::{CompletionStatus, SystemException, ids};
use spandrel_sync::{Arc, thread_local, time::Instant};

use super::helped_attempt::set_thread_help;
use crate::{
    policy::request_deadlines::replace_inherited,
    servant_side::upcall_scope::{MAX_NESTING, upcalls},
};

thread_local! {
    /// Whether this thread runs other requests while it waits.
    static NESTS: Cell<bool> = const { Cell::new(false) };
    /// The pool of this thread.
    static POOL: RefCell<Option<Arc<dyn NestedWork>>> = const { RefCell::new(None) };
}

/// The time in which a thread belongs to a pool whose threads run other requests while they wait.
#[derive(Debug)]
pub struct PoolMembership(());

/// Lets this thread run requests of the pool while it waits for replies, until the result is dropped.
pub fn join(pool: Arc<dyn NestedWork>) -> PoolMembership {
    set_thread_help(true);
    POOL.with(|joined| joined.replace(Some(pool)));
    NESTS.with(|nests| nests.set(true));
    PoolMembership(())
}

impl Drop for PoolMembership {
    fn drop(&mut self) {
        NESTS.with(|nests| nests.set(false));
        set_thread_help(false);
        // Dropped outside of the cell.
        let left = POOL.with(RefCell::take);
        drop(left);
    }
}

/// A pool as seen by one of its threads that waits for a reply.
pub trait NestedWork: Send + Sync + fmt::Debug {
    /// Makes another thread read on from the connections whose requests this thread runs.
    ///
    /// # Errors
    /// TRANSIENT if as many requests of a connection run as may: the awaited reply might be behind them.
    fn release_reading(&self) -> Result<(), SystemException>;

    /// Wakes the threads in [`serve_until`](Self::serve_until), so that they check their condition.
    fn wake(&self);

    /// Runs requests until the condition is true, the time has passed, or the pool ends.
    fn serve_until(&self, timeout: Option<Duration>, is_true: &mut dyn FnMut() -> bool);
}

/// Whether this thread runs other requests while it waits.
#[inline]
pub fn nests() -> bool {
    NESTS.with(Cell::get)
}

/// Makes this thread appear as one of a pool.
#[cfg(shuttle)]
pub fn appear_as_pool_thread() {
    set_thread_help(true);
    NESTS.with(|nests| nests.set(true));
}

/// A thread that is about to wait for a reply, and to run other requests until it arrives.
#[derive(Debug)]
pub struct NestedWait(Arc<dyn NestedWork>);

impl NestedWait {
    /// Prepares this thread to run other requests; `None` if it belongs to no pool.
    ///
    /// # Errors
    /// TRANSIENT if the thread is inside of too many upcalls, or if too many requests of a connection run.
    pub fn begin() -> Result<Option<Self>, SystemException> {
        let Some(pool) = POOL.with(|pool| pool.borrow().clone()) else { return Ok(None) };
        if upcalls() >= MAX_NESTING {
            return Err(SystemException::transient(ids::TRANSIENT_NESTING, CompletionStatus::No)
                .with_detail(|| format!("{MAX_NESTING} upcalls are nested in this thread, which is the limit of the wait strategy on reactor")));
        }
        pool.release_reading()?;
        Ok(Some(Self(pool)))
    }

    /// The pool, to be woken when the condition has become true.
    pub fn pool(&self) -> Arc<dyn NestedWork> {
        Arc::clone(&self.0)
    }

    /// Runs requests until the condition is true, the time has passed, or the pool ends.
    pub fn serve_until(&self, timeout: Option<Duration>, mut is_true: impl FnMut() -> bool) {
        let _unbounded = Unbounded::enter();
        self.0.serve_until(timeout, &mut is_true);
    }
}

/// The time in which a thread serves other requests while its own waits: they do not inherit its deadline.
#[derive(Debug)]
struct Unbounded {
    outer: Option<Instant>,
}

impl Unbounded {
    /// Takes the thread's deadline away until the value is dropped.
    fn enter() -> Self {
        Self { outer: replace_inherited(None) }
    }
}

impl Drop for Unbounded {
    fn drop(&mut self) {
        replace_inherited(self.outer);
    }
}
