//! The nesting of upcalls in a thread: servants and jobs that the ORB runs.
//!
//! The deadline that the calls of a servant inherit is in `request_deadlines`.

use std::cell::{Cell, RefCell};

use spandrel_sync::{Arc, held, thread_local};

use crate::policy::thread_flags::{self, ThreadFlag};

/// The limit on nested upcalls in one thread (design decision 3): each has frames of the ORB and of a servant
/// on the stack.
pub(crate) const MAX_NESTING: u32 = 64;

thread_local! {
    /// The number of upcalls that this thread is inside of.
    static UPCALLS: Cell<u32> = const { Cell::new(0) };
    /// The deferred requests that this thread polls; innermost last.
    static POLLED: RefCell<Vec<PolledRequest>> = const { RefCell::new(Vec::new()) };
}

/// An executor of the application, whose threads poll requests.
pub trait PollingExecutor: Send + Sync {
    /// A synchronous call of this operation is about to wait for its reply in a thread that polls a request.
    fn call_blocks(&self, operation: &str);
}

/// A deferred request that a thread polls.
struct PolledRequest {
    /// The instance of the ORB (`Orb::instance`).
    orb: usize,
    /// `None`: a thread of the ORB polls it.
    executor: Option<Arc<dyn PollingExecutor>>,
    /// Whether an upcall polls it, which answers as that of a synchronous servant does.
    is_in_upcall: bool,
}

/// Tells the executor whose thread this is, if it polls a request, that a call is about to wait.
#[cold]
pub(crate) fn call_blocks(operation: &str) {
    if !thread_flags::is_set(ThreadFlag::Polled) {
        return;
    }
    let executor = POLLED.with(|polled| polled.borrow().iter().rev().find_map(|request| request.executor.clone()));
    if let Some(executor) = executor {
        executor.call_blocks(operation);
    }
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
    /// [`instance`](crate::Orb::instance). `executor`: the one of the application that the thread belongs to.
    pub fn enter(orb: usize, executor: Option<Arc<dyn PollingExecutor>>) -> Self {
        let is_in_upcall = is_in_upcall();
        let upcall = UpcallScope::enter();
        if executor.is_some() {
            thread_flags::set(ThreadFlag::Polled, true);
        }
        POLLED.with(|polled| polled.borrow_mut().push(PolledRequest { orb, executor, is_in_upcall }));
        Self { _upcall: upcall }
    }

    /// Whether this thread polls a request of this ORB.
    pub(crate) fn is_inside_of(orb: usize) -> bool {
        POLLED.with(|polled| polled.borrow().iter().any(|request| request.orb == orb))
    }

    /// Whether this thread polls a request of this ORB as a job of an executor, and not as a part of its upcall.
    pub fn is_job_of(orb: usize) -> bool {
        POLLED.with(|polled| polled.borrow().iter().any(|request| request.orb == orb && !request.is_in_upcall))
    }
}

impl Drop for PollScope {
    fn drop(&mut self) {
        let (ended, is_polled) = POLLED.with(|polled| {
            let mut polled = polled.borrow_mut();
            (polled.pop(), polled.iter().any(|request| request.executor.is_some()))
        });
        if ended.is_some_and(|request| request.executor.is_some()) && !is_polled {
            thread_flags::set(ThreadFlag::Polled, false);
        }
    }
}
