//! Threads for jobs that services give away: work that would keep a reactor from its other connections.

use std::{
    collections::VecDeque,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_sync::{Arc, Condition, Mutex, thread};

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads that run jobs, with a bounded queue. Jobs begin in the order in which they were given.
///
/// Dropping the pool waits until all jobs have run, those of the queue included. A job that panics is logged, and
/// concerns no other.
///
/// ```
/// use spandrel_reactor::JobPool;
///
/// let (send, results) = std::sync::mpsc::channel();
/// let pool = JobPool::new("report", 2, 100)?;
/// pool.execute(move || send.send(6 * 7).expect("the program waits for it"))?;
/// assert_eq!(results.recv(), Ok(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JobPool {
    shared: Arc<Shared>,
    threads: Vec<thread::JoinHandle<()>>,
}

/// The queue of a [`JobPool`] is full; the job was dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{capacity} jobs wait for a thread of the pool, which is the limit")]
pub struct TooManyJobs {
    /// The most jobs that may wait for a thread.
    pub capacity: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condition,
    capacity: usize,
}

struct Queue {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job.
    idle: usize,
    is_closed: bool,
}

impl JobPool {
    /// Starts this many threads, at least one, with a queue for `capacity` jobs that no thread is free for.
    ///
    /// # Errors
    /// Those of the system; then no thread is left.
    pub fn new(name: &str, threads: usize, capacity: usize) -> io::Result<Self> {
        let queue = Mutex::new(Queue { jobs: VecDeque::new(), idle: 0, is_closed: false });
        let shared = Arc::new(Shared { queue, changed: Condition::new(), capacity });
        let mut pool = Self { shared, threads: Vec::new() };
        for _ in 0..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            pool.threads.push(thread::Builder::new().name(name.to_owned()).spawn(move || shared.run())?);
        }
        Ok(pool)
    }

    /// Gives a job to a thread of the pool. Never waits.
    ///
    /// # Errors
    /// [`TooManyJobs`] if no thread is free and the queue is full.
    pub fn execute(&self, job: impl FnOnce() + Send + 'static) -> Result<(), TooManyJobs> {
        let mut queue = self.shared.queue.lock();
        if queue.jobs.len() >= self.shared.capacity + queue.idle {
            return Err(TooManyJobs { capacity: self.shared.capacity });
        }
        queue.jobs.push_back(Box::new(job));
        drop(queue);
        self.shared.changed.notify_one();
        Ok(())
    }

    /// The number of jobs that no thread has begun.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.queue.lock().jobs.len()
    }
}

impl Shared {
    /// Runs jobs until the pool is dropped and the queue is empty.
    fn run(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    tracing::error!("a job of a pool panicked");
                }
                queue = self.queue.lock();
            } else if queue.is_closed {
                return;
            } else {
                queue.idle += 1;
                self.changed.wait(&mut queue);
                queue.idle -= 1;
            }
        }
    }
}

impl Drop for JobPool {
    fn drop(&mut self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.changed.notify_all();
        let own = thread::current().id();
        // A job that drops the pool does not wait for itself.
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for JobPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobPool").field("threads", &self.threads.len()).field("waiting", &self.waiting()).finish()
    }
}
