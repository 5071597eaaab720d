//! Groups of threads that are managed together (paper 002, 2.6.2; `ACE_Thread_Manager`).
//!
//! A [`ThreadManager`] spawns threads in groups, starts a group at once, suspends, resumes and cancels it, waits for it
//! and tells which of its threads panicked. Threads cooperate: they are given a [`ThreadContext`] and look into it from
//! time to time. What the threads do, and how work reaches them, belongs to others.

mod context;
mod options;
mod orders;
mod registry;
mod report;
mod scheduling;
mod spawning;

use std::fmt;
use std::time::Duration;

use crate::Arc;
use orders::Orders;
use registry::{Group, Place, Registry};

pub use context::ThreadContext;
pub use options::{Priority, ThreadOptions};
pub use report::{Cancelled, Joined, SpawnError, StillRunning, ThreadPanic};
#[cfg(target_os = "linux")]
pub use scheduling::allowed_cpus;

const NO_LIMIT: &str = "a wait without a limit ends when the threads have";

/// Spawns threads in groups and keeps account of them.
///
/// Dropped, it cancels its threads and waits for them; [`detach`](Self::detach) lets them go on instead. A thread that
/// waits for a group that it belongs to waits for the others only.
///
/// ```
/// use spandrel_sync::{Arc, Semaphore, ThreadManager};
///
/// let manager = ThreadManager::new();
/// let done = Arc::new(Semaphore::new(0));
/// let group = manager.held_group("pipeline");
/// for stage in ["read", "parse", "write"] {
///     let done = Arc::clone(&done);
///     group.spawn(stage, move |context| {
///         while context.checkpoint().is_ok() {
///             done.post(1).unwrap(); // a turn of its work
///         }
///     }).unwrap();
/// }
/// assert_eq!(done.available(), 0); // all exist, none runs
/// group.release();
/// done.acquire().forget();
/// group.cancel();
/// assert!(group.wait().is_clean());
/// ```
pub struct ThreadManager {
    registry: Arc<Registry>,
}

/// A group of a [`ThreadManager`]'s threads. Its clones are the same group, which lasts as long as any of them.
#[derive(Clone)]
pub struct ThreadGroup {
    registry: Arc<Registry>,
    group: Arc<Group>,
}

impl ThreadManager {
    /// How many threads a manager has at most if not told otherwise.
    pub const DEFAULT_LIMIT: usize = 1_024;

    /// A manager of at most [`DEFAULT_LIMIT`](Self::DEFAULT_LIMIT) threads at a time.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// A manager of at most so many threads at a time.
    #[must_use]
    pub fn with_limit(threads: usize) -> Self {
        Self { registry: Arc::new(Registry::new(threads)) }
    }

    /// A new group. Names need not differ.
    #[must_use]
    pub fn group(&self, name: &str) -> ThreadGroup {
        ThreadGroup { registry: Arc::clone(&self.registry), group: self.registry.group(name, 0) }
    }

    /// A new group whose threads do not begin before [`release`](ThreadGroup::release): so that all that they need of
    /// each other can be put in place first.
    #[must_use]
    pub fn held_group(&self, name: &str) -> ThreadGroup {
        ThreadGroup { registry: Arc::clone(&self.registry), group: self.registry.group(name, Orders::HOLD) }
    }

    /// Spawns a thread into a group of its own, of the same name.
    ///
    /// # Errors
    /// As [`ThreadGroup::spawn`].
    pub fn spawn(
        &self,
        options: impl Into<ThreadOptions>,
        body: impl FnOnce(&ThreadContext) + Send + 'static,
    ) -> Result<ThreadGroup, SpawnError> {
        let options = options.into();
        let group = self.group(&options.name);
        group.spawn(options, body)?;
        Ok(group)
    }

    /// Asks all threads to stop at their next checkpoint, and those spawned from now on not to begin.
    pub fn suspend_all(&self) {
        self.registry.order(None, Orders::SUSPEND, 0);
    }

    /// Lets all threads go on, whoever suspended them.
    pub fn resume_all(&self) {
        self.registry.order(None, 0, Orders::SUSPEND);
    }

    /// Asks all threads to end at their next checkpoint, suspended or not; those that have not begun never do. The groups
    /// made so far take no more threads.
    pub fn cancel_all(&self) {
        self.registry.order(None, Orders::CANCEL, 0);
    }

    /// Waits until all threads have ended.
    pub fn wait(&self) -> Joined {
        self.registry.wait(None, None).expect(NO_LIMIT)
    }

    /// Waits until all threads have ended, for at most `timeout`.
    ///
    /// # Errors
    /// [`StillRunning`], with the names of those that have not.
    pub fn wait_for(&self, timeout: Duration) -> Result<Joined, StillRunning> {
        self.registry.wait(None, Some(timeout))
    }

    /// After [`suspend_all`](Self::suspend_all): waits until every thread has stopped at a checkpoint, has ended or has
    /// not begun. False if that takes longer than `timeout`.
    #[must_use]
    pub fn until_suspended(&self, timeout: Duration) -> bool {
        self.registry.until_stopped(None, timeout)
    }

    /// How many threads have not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.registry.running(None)
    }

    /// Gives the manager up and lets its threads go on.
    pub fn detach(mut self) {
        self.registry = Arc::new(Registry::new(0)); // what is dropped has no threads
    }
}

impl Default for ThreadManager {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ThreadManager {
    fn drop(&mut self) {
        self.cancel_all();
        let _ = self.wait();
    }
}

impl ThreadGroup {
    /// The group's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.group.name
    }

    /// Spawns a thread into the group. It begins at once unless the group is held or suspended.
    ///
    /// # Errors
    /// [`SpawnError`]; nothing of `body` has run then.
    pub fn spawn(
        &self,
        options: impl Into<ThreadOptions>,
        body: impl FnOnce(&ThreadContext) + Send + 'static,
    ) -> Result<(), SpawnError> {
        self.registry.spawn(&self.group, &options.into(), Place::ALONE, body).map(drop)
    }

    /// Spawns so many threads at once: all of them, or none. They begin when the last has been created, and are told
    /// apart by [`ThreadContext::index`], which is also added to their names.
    ///
    /// # Errors
    /// [`SpawnError`]; nothing of `body` has run then, in any thread.
    pub fn spawn_n(
        &self,
        threads: usize,
        options: impl Into<ThreadOptions>,
        body: impl Fn(&ThreadContext) + Send + Sync + 'static,
    ) -> Result<(), SpawnError> {
        let (options, body) = (options.into(), Arc::new(body));
        let mut spawned = Vec::new();
        for index in 0..threads {
            let body = Arc::clone(&body);
            let place = Place { index, is_alone: false, orders: Orders::HOLD };
            match self.registry.spawn(&self.group, &options, place, move |context| body(context)) {
                Ok(id) => spawned.push(id),
                Err(error) => {
                    self.registry.order_these(&spawned, Orders::CANCEL, 0);
                    spawned.into_iter().for_each(|id| self.registry.forget(id));
                    return Err(error);
                }
            }
        }
        // A held group keeps them.
        if self.group.orders.get() & Orders::HOLD == 0 {
            self.registry.order_these(&spawned, 0, Orders::HOLD);
        }
        Ok(())
    }

    /// Lets the threads of a [held](ThreadManager::held_group) group begin, all at once, and those spawned later as they
    /// come.
    pub fn release(&self) {
        self.order(0, Orders::HOLD);
    }

    /// Asks the threads to stop at their next checkpoint, and those spawned from now on not to begin.
    pub fn suspend(&self) {
        self.order(Orders::SUSPEND, 0);
    }

    /// Lets the threads go on, whoever suspended them.
    pub fn resume(&self) {
        self.order(0, Orders::SUSPEND);
    }

    /// Asks the threads to end at their next checkpoint, suspended or not; those that have not begun never do. The group
    /// takes no more threads.
    pub fn cancel(&self) {
        self.order(Orders::CANCEL, 0);
    }

    /// Waits until the group's threads have ended.
    pub fn wait(&self) -> Joined {
        self.registry.wait(Some(self.group.id), None).expect(NO_LIMIT)
    }

    /// Waits until the group's threads have ended, for at most `timeout`.
    ///
    /// # Errors
    /// [`StillRunning`], with the names of those that have not.
    pub fn wait_for(&self, timeout: Duration) -> Result<Joined, StillRunning> {
        self.registry.wait(Some(self.group.id), Some(timeout))
    }

    /// After [`suspend`](Self::suspend): waits until every thread has stopped at a checkpoint, has ended or has not
    /// begun. False if that takes longer than `timeout`.
    #[must_use]
    pub fn until_suspended(&self, timeout: Duration) -> bool {
        self.registry.until_stopped(Some(self.group.id), timeout)
    }

    /// How many of the group's threads have not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.registry.running(Some(self.group.id))
    }

    fn order(&self, add: u8, remove: u8) {
        self.registry.order(Some(self.group.id), add, remove);
    }
}

impl fmt::Debug for ThreadManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadManager").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ThreadGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadGroup").field("name", &self.group.name).field("running", &self.running()).finish()
    }
}
