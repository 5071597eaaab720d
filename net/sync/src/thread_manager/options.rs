//! Options of a managed thread: name, stack size, priority and affinity.

use super::{Priority, scheduling};
use crate::thread::Builder;
use crate::thread_manager::SpawnError;

/// Options for spawning a thread; a plain name converts to them.
///
/// ```
/// use spandrel_sync::{Priority, ThreadManager, ThreadOptions};
///
/// let manager = ThreadManager::new();
/// manager.spawn("plain", |_| ()).unwrap();
/// let options = ThreadOptions::named("background").stack_octets(256 * 1024).priority(Priority::Low);
/// manager.spawn(options, |_| ()).unwrap();
/// assert!(manager.wait().is_clean());
/// ```
#[derive(Clone, Debug, Default)]
pub struct ThreadOptions {
    pub(super) name: String,
    stack_octets: Option<usize>,
    priority: Option<Priority>,
    #[cfg(target_os = "linux")]
    cpus: Option<Vec<usize>>,
}

impl ThreadOptions {
    /// The options of the standard library, with this name. The operating system may show only the beginning
    /// of the name: Linux shows 15 octets.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The stack's size; by default the standard library's, 2 MiB.
    #[must_use]
    pub fn stack_octets(mut self, octets: usize) -> Self {
        self.stack_octets = Some(octets);
        self
    }

    /// The priority; by default that of the spawning thread. No effect under the model checker.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The processors on which the thread may run, by number (`sched_setaffinity(2)`); by default those of
    /// the spawning thread. [`allowed_cpus`](crate::allowed_cpus) returns the numbers to choose from. No
    /// effect under the model checker.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn affinity(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.cpus = Some(cpus.into_iter().collect());
        self
    }

    /// A builder of a thread with this name, or without one if it is empty.
    pub(super) fn builder(&self, name: &str) -> Result<Builder, SpawnError> {
        if name.contains('\0') {
            return Err(SpawnError::Name);
        }
        let mut builder = Builder::new();
        if !name.is_empty() {
            builder = builder.name(name.to_owned());
        }
        if let Some(octets) = self.stack_octets {
            builder = builder.stack_size(octets);
        }
        Ok(builder)
    }

    /// Whether the new thread has scheduling options to apply, which may fail.
    pub(super) fn has_scheduling(&self) -> bool {
        #[cfg(target_os = "linux")]
        let asks = self.cpus.is_some();
        #[cfg(not(target_os = "linux"))]
        let asks = false;
        asks || self.priority.is_some()
    }

    /// Applies the scheduling options, in the new thread.
    pub(super) fn apply_scheduling(&self) -> Result<(), SpawnError> {
        #[cfg(target_os = "linux")]
        if let Some(cpus) = &self.cpus {
            scheduling::set_affinity(cpus)?;
        }
        match self.priority {
            Some(priority) => scheduling::set_priority(priority),
            None => Ok(()),
        }
    }
}

impl From<&str> for ThreadOptions {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

impl From<String> for ThreadOptions {
    fn from(name: String) -> Self {
        Self::named(name)
    }
}
