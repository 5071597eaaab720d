//! Detection of threads of tasks that wait for each other.
//!
//! A task's thread that passes a message to a full queue waits until the queue's own task has taken messages. Where
//! messages turn round, tasks can wait for each other in a circle. Every thread in it holds a message that it has taken
//! from a queue, so that the circle has room as soon as one of them may exceed the limit of a queue by its message.
//! The thread whose wait would close the circle does that ([`Excess`](crate::excess::Excess)).
//!
//! Threads that bring messages in from outside (those of the application, of devices) are in no circle: no task
//! waits for them. They always obey the limits.

use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::{Arc, Mutex};

/// The threads of a task, and the tasks for which they wait.
#[derive(Debug, Default)]
pub(crate) struct TaskThreads {
    /// The number of threads that run the task's `svc`.
    running: AtomicUsize,
    /// An entry for each of them that waits for room in a queue: the threads of that queue's task.
    awaited: Mutex<Vec<Arc<TaskThreads>>>,
}

/// A thread's wait for another task; it ends when this is dropped.
pub(crate) struct TaskWait<'t> {
    waiting: &'t TaskThreads,
    awaited: &'t Arc<TaskThreads>,
}

impl TaskThreads {
    pub(crate) fn started(&self, threads: usize) {
        self.running.fetch_add(threads, Ordering::SeqCst);
    }

    /// One of them has ended; returns whether it was the last.
    pub(crate) fn ended(&self) -> bool {
        self.running.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// The number of threads that run the task's `svc`.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Records that one of these threads waits for `awaited`. The record precedes the search for a circle, so that of
    /// several threads that close it at the same time at least one finds it.
    pub(crate) fn wait_for<'t>(&'t self, awaited: &'t Arc<Self>) -> TaskWait<'t> {
        self.awaited.lock().push(Arc::clone(awaited));
        TaskWait { waiting: self, awaited }
    }

    /// The tasks for which its threads wait, if all of them do.
    fn all_awaited(&self) -> Option<Vec<Arc<Self>>> {
        let awaited = self.awaited.lock();
        let running = self.running();
        (running > 0 && awaited.len() >= running).then(|| awaited.clone())
    }
}

impl TaskWait<'_> {
    /// Whether no thread on which the end of this wait can depend is able to go on.
    ///
    /// A task goes on as soon as one of its threads does, and a thread waits for one task. So the wait can end if a
    /// task with a thread that does not wait can be reached from it.
    pub(crate) fn is_in_circle(&self) -> bool {
        let mut visited: Vec<Arc<TaskThreads>> = vec![Arc::clone(self.awaited)];
        let mut next = 0;
        while let Some(task) = visited.get(next).cloned() {
            next += 1;
            let Some(awaited) = task.all_awaited() else { return false };
            for other in awaited {
                if !visited.iter().any(|known| Arc::ptr_eq(known, &other)) {
                    visited.push(other);
                }
            }
        }
        true
    }
}

impl Drop for TaskWait<'_> {
    fn drop(&mut self) {
        let mut awaited = self.waiting.awaited.lock();
        if let Some(place) = awaited.iter().position(|other| Arc::ptr_eq(other, self.awaited)) {
            awaited.swap_remove(place);
        }
    }
}
