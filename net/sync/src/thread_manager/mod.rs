//! Groups of threads that are managed together (paper 002, 2.6.2; `ACE_Thread_Manager`).
//!
//! A [`ThreadManager`] spawns threads in groups, starts a group at once, suspends, resumes and cancels it,
//! waits for it and reports panics. Threads cooperate: each gets a [`ThreadContext`] and checks it from time
//! to time. The work of the threads, and its distribution, belong to other crates.

mod context;
mod native_thread;
mod options;
mod priority;
mod registry;
mod report;
mod requests;
mod scheduling;
mod spawning;

use std::fmt;
use std::time::Duration;

use crate::Arc;
use registry::{Group, Registry, SpawnPosition};
use requests::Requests;

pub use context::ThreadContext;
pub use native_thread::{NativeThreadId, WorkingThread};
pub use options::ThreadOptions;
pub use priority::Priority;
pub use report::{Cancelled, Joined, SpawnError, StillRunning, ThreadPanic};
#[cfg(target_os = "linux")]
pub use scheduling::allowed_cpus;
pub use scheduling::{PriorityGuard, current_priority, set_current_priority};

const NO_LIMIT: &str = "a wait without a limit ends when the threads have";

/// Spawns threads in groups and keeps track of them.
///
/// Dropping it cancels its threads and waits for them; [`detach`](Self::detach) lets them go on instead. A
/// thread that waits for its own group waits for the other threads only.
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
///             done.post(1).unwrap(); // one unit of work
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

/// A group of threads of a [`ThreadManager`]. Clones refer to the same group, which lasts as long as any of
/// them.
#[derive(Clone)]
pub struct ThreadGroup {
    registry: Arc<Registry>,
    group: Arc<Group>,
}

impl ThreadManager {
    /// The threads at a time of a manager without a limit of its own.
    pub const DEFAULT_LIMIT: usize = 1_024;

    /// A manager of at most [`DEFAULT_LIMIT`](Self::DEFAULT_LIMIT) threads at a time.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// A manager of at most `threads` threads at a time.
    #[must_use]
    pub fn with_limit(threads: usize) -> Self {
        Self { registry: Arc::new(Registry::new(threads)) }
    }

    /// A new group. Names need not be unique.
    #[must_use]
    pub fn group(&self, name: &str) -> ThreadGroup {
        ThreadGroup { registry: Arc::clone(&self.registry), group: self.registry.group(name, 0) }
    }

    /// A new group whose threads do not begin before [`release`](ThreadGroup::release), so that everything
    /// they share can be set up first.
    #[must_use]
    pub fn held_group(&self, name: &str) -> ThreadGroup {
        ThreadGroup { registry: Arc::clone(&self.registry), group: self.registry.group(name, Requests::HOLD) }
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

    /// Suspends all threads at their next checkpoint. Threads spawned from now on do not begin.
    pub fn suspend_all(&self) {
        self.registry.change_requests(None, Requests::SUSPEND, 0);
    }

    /// Resumes all threads, however they were suspended.
    pub fn resume_all(&self) {
        self.registry.change_requests(None, 0, Requests::SUSPEND);
    }

    /// Cancels all threads at their next checkpoint, suspended or not; those that have not begun never do.
    /// The groups made so far accept no more threads.
    pub fn cancel_all(&self) {
        self.registry.change_requests(None, Requests::CANCEL, 0);
    }

    /// Waits until all threads have ended.
    pub fn wait(&self) -> Joined {
        self.registry.wait(None, None).expect(NO_LIMIT)
    }

    /// Waits until all threads have ended, for at most `timeout`.
    ///
    /// # Errors
    /// [`StillRunning`], with the names of the threads that have not ended.
    pub fn wait_for(&self, timeout: Duration) -> Result<Joined, StillRunning> {
        self.registry.wait(None, Some(timeout))
    }

    /// After [`suspend_all`](Self::suspend_all): waits until every thread has stopped at a checkpoint, has
    /// ended or has not begun. False after `timeout`.
    #[must_use]
    pub fn until_suspended(&self, timeout: Duration) -> bool {
        self.registry.until_stopped(None, timeout)
    }

    /// The threads that were spawned and have not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.registry.running(None)
    }

    /// Gives up the manager and lets its threads go on.
    pub fn detach(mut self) {
        self.registry = Arc::new(Registry::new(0)); // the registry that is dropped has no threads
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
    /// The name of the group, as given when it was created.
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
        self.registry.spawn(&self.group, &options.into(), SpawnPosition::ALONE, body).map(drop)
    }

    /// Spawns that many threads at once: all of them, or none. They begin when the last has been created, and
    /// differ by [`ThreadContext::index`], which is also appended to their names.
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
            let position = SpawnPosition { index, is_alone: false, requests: Requests::HOLD };
            match self.registry.spawn(&self.group, &options, position, move |context| body(context)) {
                Ok(id) => spawned.push(id),
                Err(error) => {
                    self.registry.change_requests_of(&spawned, Requests::CANCEL, 0);
                    spawned.into_iter().for_each(|id| self.registry.discard_unstarted(id));
                    return Err(error);
                }
            }
        }
        // A held group keeps its threads waiting.
        if self.group.requests.get() & Requests::HOLD == 0 {
            self.registry.change_requests_of(&spawned, 0, Requests::HOLD);
        }
        Ok(())
    }

    /// Lets the threads of a [held](ThreadManager::held_group) group begin, all at once, and threads spawned
    /// later immediately.
    pub fn release(&self) {
        self.change_requests(0, Requests::HOLD);
    }

    /// Suspends the threads at their next checkpoint. Threads spawned from now on do not begin.
    pub fn suspend(&self) {
        self.change_requests(Requests::SUSPEND, 0);
    }

    /// Resumes the threads, however they were suspended.
    pub fn resume(&self) {
        self.change_requests(0, Requests::SUSPEND);
    }

    /// Cancels the threads at their next checkpoint, suspended or not; those that have not begun never do.
    /// The group accepts no more threads.
    pub fn cancel(&self) {
        self.change_requests(Requests::CANCEL, 0);
    }

    /// Waits until the group's threads have ended.
    pub fn wait(&self) -> Joined {
        self.registry.wait(Some(self.group.id), None).expect(NO_LIMIT)
    }

    /// Waits until the group's threads have ended, for at most `timeout`.
    ///
    /// # Errors
    /// [`StillRunning`], with the names of the threads that have not ended.
    pub fn wait_for(&self, timeout: Duration) -> Result<Joined, StillRunning> {
        self.registry.wait(Some(self.group.id), Some(timeout))
    }

    /// After [`suspend`](Self::suspend): waits until every thread has stopped at a checkpoint, has ended or
    /// has not begun. False after `timeout`.
    #[must_use]
    pub fn until_suspended(&self, timeout: Duration) -> bool {
        self.registry.until_stopped(Some(self.group.id), timeout)
    }

    /// The number of the group's threads that have not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.registry.running(Some(self.group.id))
    }

    fn change_requests(&self, add: u8, remove: u8) {
        self.registry.change_requests(Some(self.group.id), add, remove);
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
