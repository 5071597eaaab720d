//! The search for a lack of processors: whether a thread without progress merely waits for one.
//!
//! Whoever starts another thread in place of one that makes no progress first asks here. If all processors are busy, a
//! thread more takes time from the others, so that these look stuck too.

use std::time::Duration;

use crate::{WorkingThread, time::Instant};

/// The processor time that shows that a thread computes.
const COMPUTING: Duration = Duration::from_millis(1);
/// The longest time for which a lack of processors counts as the reason. After that another thread may have more luck,
/// for instance by another priority.
const LONGEST: Duration = Duration::from_millis(100);

/// The looks at a thread that makes no progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorShortage(Finding);

#[derive(Clone, Copy, Debug, Default)]
enum Finding {
    /// There was no look at the thread yet.
    #[default]
    Unknown,
    /// The thread was runnable at the time of the first look, and had used this processor time.
    Suspected { since: Instant, processor_time: Duration },
    /// The thread waits for something else, or computes.
    Refuted,
}

impl ProcessorShortage {
    /// Looks at a thread that has made no progress since the look before. Returns whether it lacks a processor: it can
    /// run, and has used less than 1 ms of processor time since the first look, which is at most 100 ms ago.
    ///
    /// The answer is `false` for a thread that waits for an event, and on systems other than Linux. It is final for
    /// this lack of progress; begin anew once there was some.
    pub fn delays(&mut self, thread: &WorkingThread) -> bool {
        self.0 = self.0.after_look(thread);
        matches!(self.0, Finding::Suspected { .. })
    }
}

impl Finding {
    fn after_look(self, thread: &WorkingThread) -> Self {
        let processor_time = || {
            let thread = thread.get()?;
            if thread.is_runnable()? { thread.processor_time() } else { None }
        };
        match self {
            Self::Unknown => match processor_time() {
                Some(processor_time) => Self::Suspected { since: Instant::now(), processor_time },
                None => Self::Refuted,
            },
            Self::Suspected { since, processor_time: before } => match processor_time() {
                Some(now) if now.saturating_sub(before) < COMPUTING && Instant::now() - since < LONGEST => self,
                _ => Self::Refuted,
            },
            Self::Refuted => self,
        }
    }
}
