//! The store of a running service: group commit, changes that no call waits for, and the threads that write them.
//!
//! The committer writes the events of all suppliers that wait, together with the removals so far, by one synchronization;
//! those that come meanwhile are its next batch. No thread that serves suppliers waits for the disk: the committer puts the
//! events into queues and sends the replies. Removals have no synchronization of their own while events are written.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use spandrel::SystemException;
use spandrel::net::sync::{Arc, Condition, Mutex};
use spandrel_store::{Backup, GroupCommit, StoreFailure};

use crate::edit::{Edit, TargetKey};
use crate::store::Store;

/// The time for which changes that no call waits for are collected.
const COLLECTION: Duration = Duration::from_millis(20);
/// The collected changes that are written at once.
const COLLECTED: usize = 1_000;
/// The pause after a failed write.
const RETRY: Duration = Duration::from_secs(1);

/// The store of a service that runs.
#[derive(Debug)]
pub(crate) struct DurableStore {
    /// `None` after the end of the service.
    store: Mutex<Option<Store>>,
    commits: GroupCommit<Vec<Edit>, Result<(), StoreFailure>>,
    background: Mutex<Background>,
    changed: Condition,
    last_event: AtomicU64,
    /// The thread of jobs and of removals, and the committer.
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

/// The work of the store's thread.
#[derive(Default)]
struct Background {
    /// Changes that no call waits for: they are part of the next write.
    edits: Vec<Edit>,
    /// Whether the thread waits for further edits.
    is_collecting: bool,
    jobs: VecDeque<Box<dyn FnOnce() + Send>>,
    /// Whether the service ends: objects that end now stay in the store.
    is_frozen: bool,
    has_ended: bool,
}

impl std::fmt::Debug for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Background").field("edits", &self.edits.len()).finish_non_exhaustive()
    }
}

impl DurableStore {
    /// Starts the threads of a store. `last_event` is the number of its last event.
    pub(crate) fn start(store: Store, last_event: u64) -> Arc<Self> {
        let durable = Arc::new(Self {
            store: Mutex::new(Some(store)),
            commits: GroupCommit::default(),
            background: Mutex::default(),
            changed: Condition::new(),
            last_event: AtomicU64::new(last_event),
            threads: Mutex::default(),
        });
        let (running, committer) = (Arc::clone(&durable), Arc::clone(&durable));
        durable.add_thread("spandrel-store", move || running.run());
        durable.add_thread("spandrel-commit", move || {
            committer.commits.run_committer(|batch| committer.apply(&batch));
        });
        durable
    }

    fn add_thread(&self, name: &str, run: impl FnOnce() + Send + 'static) {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
        self.threads.lock().push(thread.expect("the system has a thread left"));
    }

    /// The number of a new event.
    pub(crate) fn next_event(&self) -> u64 {
        self.last_event.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Writes edits, together with those of other threads. They are durable when this returns.
    ///
    /// # Errors
    /// PERSIST_STORE if the store cannot be written.
    pub(crate) fn write(&self, edits: Vec<Edit>) -> Result<(), SystemException> {
        self.commits.submit(edits, |batch| self.apply(&batch)).map_err(SystemException::from)
    }

    /// As [`write`](Self::write), without a wait: `report` is called with the outcome, by the committer.
    pub(crate) fn write_then(
        &self,
        edits: Vec<Edit>,
        report: impl FnOnce(Result<(), SystemException>) + Send + 'static,
    ) {
        if self.has_ended() {
            return report(Err(ended().into()));
        }
        let report = move |outcome: Result<(), StoreFailure>| report(outcome.map_err(SystemException::from));
        self.commits.submit_to_committer(edits, Box::new(report));
    }

    fn apply(&self, batch: &[Vec<Edit>]) -> Vec<Result<(), StoreFailure>> {
        let mut later = std::mem::take(&mut self.background.lock().edits);
        let edits = batch.iter().flatten().chain(&later);
        let written = if edits.clone().next().is_none() {
            Ok(())
        } else {
            self.store.lock().as_mut().ok_or_else(ended).and_then(|store| store.write(edits))
        };
        if written.is_err() {
            let mut background = self.background.lock();
            later.append(&mut background.edits);
            background.edits = later;
        }
        vec![written; batch.len()]
    }

    /// Makes an edit with the next write, after the edits of its calls.
    pub(crate) fn write_later(&self, edit: Edit) {
        let mut background = self.background.lock();
        if background.is_frozen {
            return;
        }
        background.edits.push(edit);
        // The thread that collects them wakes by itself.
        if (background.edits.len() == 1 && !background.is_collecting) || background.edits.len() == COLLECTED {
            self.changed.notify_all();
        }
    }

    /// Does work that may wait for the disk on the store's thread, and returns when it is done. Without the thread, the work
    /// is dropped.
    pub(crate) async fn run_job(&self, job: impl FnOnce() + Send + 'static) {
        let completion: Arc<Mutex<(bool, Option<Waker>)>> = Arc::default();
        {
            let end = JobEnd(Arc::clone(&completion));
            let mut background = self.background.lock();
            background.jobs.push_back(Box::new(move || {
                let _end = end;
                job();
            }));
            self.changed.notify_all();
        }
        poll_fn(|context| {
            let mut state = completion.lock();
            if state.0 {
                return Poll::Ready(());
            }
            state.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn run(&self) {
        loop {
            let job = {
                let mut background = self.background.lock();
                while background.jobs.is_empty() && background.edits.is_empty() && !background.has_ended {
                    self.changed.wait(&mut background);
                }
                if background.has_ended {
                    return;
                }
                let job = background.jobs.pop_front();
                if job.is_none() {
                    let end = Instant::now() + COLLECTION;
                    background.is_collecting = true;
                    while background.jobs.is_empty() && !background.has_ended && background.edits.len() < COLLECTED {
                        let rest = end.saturating_duration_since(Instant::now());
                        if rest.is_zero() {
                            break;
                        }
                        _ = self.changed.wait_for(&mut background, rest);
                    }
                    background.is_collecting = false;
                    if background.edits.is_empty() {
                        continue; // the committer has written them
                    }
                }
                job
            };
            if let Some(job) = job {
                job();
            } else if let Err(error) = self.write(Vec::new()) {
                tracing::error!(%error, "the store cannot be written: it is tried again");
                let mut background = self.background.lock();
                if !background.has_ended {
                    _ = self.changed.wait_for(&mut background, RETRY);
                }
            }
        }
    }

    /// Leaves the objects and events that end from now on in the store: the service ends.
    pub(crate) fn freeze(&self) {
        self.background.lock().is_frozen = true;
    }

    /// Writes the changes that are left, ends the threads, and closes the file, which then needs no redo log.
    pub(crate) fn stop(&self) {
        self.freeze();
        if let Err(error) = self.write(Vec::new()) {
            tracing::error!(%error, "the last changes of the store could not be written");
        }
        let jobs = {
            let mut background = self.background.lock();
            background.has_ended = true;
            std::mem::take(&mut background.jobs)
        };
        self.changed.notify_all();
        drop(jobs);
        self.commits.close();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            _ = thread.join();
        }
        if let Some(Err(error)) = self.store.lock().take().map(|mut store| store.complete()) {
            tracing::warn!(%error, "the redo log of the store remains in use");
        }
    }

    /// Whether the thread has ended: jobs are dropped.
    pub(crate) fn has_ended(&self) -> bool {
        self.background.lock().has_ended
    }

    /// Begins a copy of the state in the file.
    pub(crate) fn begin_backup(&self) -> Result<Backup, StoreFailure> {
        self.store.lock().as_mut().ok_or_else(ended)?.begin_backup()
    }
}

/// The failure of a write after the end of the service.
fn ended() -> StoreFailure {
    StoreFailure::Unchanged("the service has ended".to_owned())
}

/// Reports the end of a job, also of one that is dropped.
struct JobEnd(Arc<Mutex<(bool, Option<Waker>)>>);

impl Drop for JobEnd {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.lock();
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// An event in the store, until all its targets have ended.
#[derive(Debug)]
pub(crate) struct StoredEvent {
    pub(crate) number: u64,
    pub(crate) store: Arc<DurableStore>,
}

impl Drop for StoredEvent {
    fn drop(&mut self) {
        self.store.write_later(Edit::Event(self.number, None));
    }
}

/// A consumer that has not yet got an event of the store: in its queue, or in its last pull.
#[derive(Debug)]
pub(crate) struct Target {
    key: TargetKey,
    event: Arc<StoredEvent>,
}

impl Target {
    /// The target of a proxy of a channel.
    pub(crate) fn new(channel: i32, proxy: i32, event: &Arc<StoredEvent>) -> Self {
        Self { key: (channel, proxy, event.number), event: Arc::clone(event) }
    }

    pub(crate) fn key(&self) -> TargetKey {
        self.key
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.event.store.write_later(Edit::Target(self.key, None));
    }
}
