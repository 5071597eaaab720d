//! The common state of the threads of a run, and what is measured.

use std::time::{Duration, Instant};

use spandrel_lab::placement;
use spandrel_stream::StreamError;
use spandrel_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::{Barrier, Condition, Mutex};

use crate::device::SenderCounts;
use crate::tcp::Statistics;
use crate::timed::Waits;

/// The time after which a run without an end has failed.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The reason for which a run has failed.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// Parameters that do not fit.
    #[error("{0}")]
    Settings(String),
    /// A stream cannot be built or closed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The application did not get what was sent.
    #[error("{0}")]
    Incorrect(String),
}

/// The measurements of a run, after the check that all messages came as they had to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The time from the first frame to the last message.
    pub elapsed: Duration,
    /// Messages that the application got, with those that came twice.
    pub received: u64,
    /// Different messages among them.
    pub distinct: u64,
    /// Messages that the application got in order (TCP).
    pub in_order: u64,
    /// Frames that were dropped on their way up.
    pub dropped: u64,
    /// Octets of the messages that the application got.
    pub octets: u64,
    /// Times at which a thread of the stack gave up its processor, because it had to wait.
    pub voluntary: u64,
    /// Times at which the system took it away.
    pub involuntary: u64,
    /// The waits for locks and conditions.
    pub waits: Waits,
    /// The counts of the receiving connections.
    pub connections: Vec<Statistics>,
    /// The events that the senders counted, one connection each.
    pub senders: Vec<SenderCounts>,
}

impl Outcome {
    /// Mbit of messages per second.
    #[must_use]
    pub fn mbits(&self) -> f64 {
        self.octets as f64 * 8.0 / self.elapsed.as_secs_f64() / 1e6
    }
}

/// The common state of the threads of a run.
pub(crate) struct Run {
    /// How often each message has come.
    counts: Vec<AtomicU8>,
    received: AtomicU64,
    in_order: AtomicU64,
    dropped: AtomicU64,
    wrong: AtomicU64,
    /// The number of messages after which the run is complete; with `in_order` for TCP.
    expected: u64,
    is_ordered: bool,
    voluntary: AtomicU64,
    involuntary: AtomicU64,
    /// The cores to which the processing elements are pinned; none to leave that to the system.
    cores: Vec<usize>,
    /// The threads of the stack, and the one that measures, meet here before the run.
    start: Barrier,
    /// The threads that wait for `is_open`.
    spinning: AtomicUsize,
    is_open: AtomicBool,
    gate: Mutex<Gate>,
    changed: Condition,
}

#[derive(Default)]
struct Gate {
    complete: Option<Instant>,
    /// The threads of data links that have ended.
    ended: usize,
}

impl Run {
    /// A run of so many threads of the stack.
    pub(crate) fn new(messages: usize, expected: u64, is_ordered: bool, is_pinned: bool, threads: usize) -> Self {
        Self {
            counts: (0..messages).map(|_| AtomicU8::new(0)).collect(),
            received: AtomicU64::new(0),
            in_order: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
            expected,
            is_ordered,
            voluntary: AtomicU64::new(0),
            involuntary: AtomicU64::new(0),
            cores: if is_pinned { placement::cores() } else { Vec::new() },
            start: Barrier::new(threads + 1),
            spinning: AtomicUsize::new(0),
            is_open: AtomicBool::new(false),
            gate: Mutex::default(),
            changed: Condition::new(),
        }
    }

    /// A thread of the stack begins: it waits until all have begun. Its switches are counted from then on. The last part of
    /// the wait is active, so that all threads run when the measurement begins.
    /// `element` is the index of its processing element.
    pub(crate) fn thread_begins(&self, element: usize) -> CountedThread<'_> {
        if let Some(core) = self.cores.get(element % self.cores.len().max(1)) {
            // Without the right to choose cores, the system places the threads.
            _ = placement::pin(*core);
        }
        self.start.wait();
        let before = switches();
        self.spinning.fetch_add(1, Ordering::AcqRel);
        while !self.is_open.load(Ordering::Acquire) {
            spandrel_sync::thread::yield_now();
        }
        CountedThread { run: self, before }
    }

    /// Lets the threads begin, as soon as all wait; returns the time.
    pub(crate) fn open(&self) -> Result<Instant, StackError> {
        let threads = self.start.parties() - 1;
        if self.start.wait_for(LIMIT).is_none() {
            return Err(StackError::Incorrect(format!("{} of {threads} threads began", self.start.waiting())));
        }
        while self.spinning.load(Ordering::Acquire) < threads {
            spandrel_sync::thread::yield_now();
        }
        let begin = Instant::now();
        self.is_open.store(true, Ordering::Release);
        Ok(begin)
    }

    /// A message that is not the one that was sent.
    pub(crate) fn wrong(&self) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
    }

    /// A frame was dropped.
    pub(crate) fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// A message has come; so many can be given to the application in order.
    pub(crate) fn arrived(&self, number: usize, in_order: u64) {
        match self.counts.get(number) {
            Some(count) => _ = count.fetch_add(1, Ordering::Relaxed),
            None => return self.wrong(),
        }
        let received = self.received.fetch_add(1, Ordering::Relaxed) + 1;
        let done = if self.is_ordered {
            in_order > 0 && self.in_order.fetch_add(in_order, Ordering::Relaxed) + in_order == self.expected
        } else {
            received == self.expected
        };
        if done {
            self.gate.lock().complete = Some(Instant::now());
            self.changed.notify_all();
        }
    }

    /// Waits until all expected messages have come; returns the time.
    pub(crate) fn until_complete(&self) -> Result<Instant, StackError> {
        let deadline = Instant::now() + LIMIT;
        let mut gate = self.gate.lock();
        loop {
            if let Some(at) = gate.complete {
                return Ok(at);
            }
            if Instant::now() >= deadline {
                let (received, dropped) = (self.received.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed));
                return Err(StackError::Incorrect(format!(
                    "{received} of {} messages came, {} in order, {dropped} dropped, {} wrong",
                    self.expected,
                    self.in_order.load(Ordering::Relaxed),
                    self.wrong.load(Ordering::Relaxed)
                )));
            }
            self.changed.wait_for(&mut gate, Duration::from_millis(100));
        }
    }

    /// A thread of a data link has ended, and told the modules above.
    pub(crate) fn device_thread_ended(&self) {
        self.gate.lock().ended += 1;
        self.changed.notify_all();
    }

    /// Waits until so many threads of data links have ended.
    pub(crate) fn until_ended(&self, threads: usize) -> Result<(), StackError> {
        let deadline = Instant::now() + LIMIT;
        let mut gate = self.gate.lock();
        while gate.ended < threads {
            if Instant::now() >= deadline {
                return Err(StackError::Incorrect(format!("{} of {threads} threads ended", gate.ended)));
            }
            self.changed.wait_for(&mut gate, Duration::from_millis(100));
        }
        Ok(())
    }

    /// The measurements, if all messages are those that were sent.
    pub(crate) fn outcome(&self, elapsed: Duration, octets: usize) -> Result<Outcome, StackError> {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        if get(&self.wrong) > 0 {
            return Err(StackError::Incorrect(format!("{} messages are not those that were sent", get(&self.wrong))));
        }
        let distinct = self.counts.iter().filter(|count| count.load(Ordering::Relaxed) > 0).count() as u64;
        Ok(Outcome {
            elapsed,
            received: get(&self.received),
            distinct,
            in_order: get(&self.in_order),
            dropped: get(&self.dropped),
            octets: get(&self.received) * octets as u64,
            voluntary: get(&self.voluntary),
            involuntary: get(&self.involuntary),
            ..Outcome::default()
        })
    }

    /// How often each message has come.
    pub(crate) fn counts(&self) -> Vec<u8> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

/// A thread of the stack whose context switches are counted.
pub(crate) struct CountedThread<'r> {
    run: &'r Run,
    before: [u64; 2],
}

impl CountedThread<'_> {
    pub(crate) fn end(self) {
        let [voluntary, involuntary] = switches();
        self.run.voluntary.fetch_add(voluntary - self.before[0], Ordering::Relaxed);
        self.run.involuntary.fetch_add(involuntary - self.before[1], Ordering::Relaxed);
    }
}

/// The voluntary and involuntary context switches of the calling thread since its start; zero where the system does not
/// report them.
#[must_use]
pub fn switches() -> [u64; 2] {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    })
}
