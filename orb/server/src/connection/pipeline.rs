//! The state of a connection whose requests come in a pipeline. [`held_replies`](super::held_replies) describes what is
//! done with it.

use spandrel_sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// The last request that was read was alone.
const ALONE: u8 = 0;
/// It was the last of several.
const LAST: u8 = 1;
/// A further whole request is in memory.
const HAS_FURTHER: u8 = 2;

/// The state of a connection whose requests come in a pipeline.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    /// Where the last request that was read stands among those in memory. Only the thread that reads changes it.
    position: AtomicU8,
    /// The threads that have corked the link, or uncork it now, and one more while it is corked until a task has run.
    /// Grows from zero only in an accepted upcall or before the end of a deferred request, and is zero only if no reply is
    /// held and no thread is about to write those that were. So a thread that closes the connection finds the
    /// writer's lock free.
    corks: AtomicU32,
    /// Whether a task will uncork the link.
    is_scheduled: AtomicBool,
    /// Whether the present upcall of the thread that reads, or else its last one, has spawned a future. Only that thread
    /// uses it.
    is_spawning: AtomicBool,
}

impl Pipeline {
    /// Records that a message was read, and whether a further whole request is in memory.
    #[inline]
    pub(super) fn record_read(&self, has_further: bool) {
        let before = self.position.load(Ordering::Relaxed);
        let now = match has_further {
            true => HAS_FURTHER,
            false if before == HAS_FURTHER => LAST,
            false => ALONE,
        };
        if now != before {
            self.position.store(now, Ordering::Relaxed);
        }
    }

    /// Whether the last request that was read is one of several.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.position.load(Ordering::Relaxed) != ALONE
    }

    /// Whether a further whole request is in memory.
    pub(super) fn has_further(&self) -> bool {
        self.position.load(Ordering::Relaxed) == HAS_FURTHER
    }

    /// Whether replies may be held.
    pub(super) fn is_corked(&self) -> bool {
        self.corks.load(Ordering::SeqCst) != 0
    }

    /// Counts a thread that corks the link, in an accepted upcall.
    pub(super) fn enter(&self) {
        self.corks.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the count of a thread that has uncorked it.
    pub(super) fn leave(&self) {
        self.corks.fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts the task that uncorks the link, before the end of a deferred request.
    pub(super) fn begin_schedule(&self) {
        self.enter();
        self.is_scheduled.store(true, Ordering::SeqCst);
    }

    /// Ends the count of that task, which has uncorked it, or for which another thread has.
    pub(super) fn end_schedule(&self) {
        self.is_scheduled.store(false, Ordering::SeqCst);
        self.leave();
    }

    /// Whether a task will uncork the link.
    pub(super) fn is_scheduled(&self) -> bool {
        self.is_scheduled.load(Ordering::SeqCst)
    }

    /// Begins an upcall of the reading thread. Returns whether its last one has spawned a future.
    pub(super) fn begin_upcall(&self) -> bool {
        let has_spawned = self.is_spawning.load(Ordering::Relaxed);
        self.is_spawning.store(false, Ordering::Relaxed);
        has_spawned
    }

    /// Records that the upcall of the reading thread spawns a future.
    pub(super) fn record_spawned(&self) {
        self.is_spawning.store(true, Ordering::Relaxed);
    }

    /// Whether the upcall of the reading thread has spawned a future.
    pub(super) fn has_spawned(&self) -> bool {
        self.is_spawning.load(Ordering::Relaxed)
    }

    /// Counts a thread that uncorks for another one, if replies may be held.
    pub(super) fn join(&self) -> bool {
        let more = |corks: u32| if corks == 0 { None } else { Some(corks + 1) };
        self.corks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }
}
