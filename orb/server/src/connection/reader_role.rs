//! The reader role of a connection: the right to read its messages.
//!
//! The thread that reads a request also runs its upcall. It reads on after the upcall, unless the role was
//! handed over meanwhile.

use spandrel_connection::{ReaderWord, UpcallNumber};
use spandrel_sync::{
    Mutex, ProcessorShortage, WorkingThread,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use crate::reactor_pool::Pool;

/// The next step of the thread that served a request.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum NextRead {
    /// The thread reads on.
    Continue,
    /// Another thread has the reader role.
    ByOther,
}

/// The reader role, and the upcalls whose threads have lost it. The fields that each upcall needs come first.
#[derive(Debug)]
#[repr(C)]
pub(super) struct ReaderRole {
    /// The bits of the [`ReaderWord`]. Its number grows with each step of the reading thread: it is odd while
    /// that thread runs an upcall, and even while it reads. The change from odd to even decides which thread
    /// reads next.
    bits: AtomicU64,
    /// Running upcalls whose threads have lost the reader role. With a dispatch queue: all accepted requests
    /// that have not ended.
    handed_over: AtomicU32,
    /// The thread of the last upcall.
    thread: WorkingThread,
    /// Whether a thread was started to take over reading and has not tried yet.
    is_takeover_due: AtomicBool,
    /// Whether the upcall of the reading thread is a one-way's.
    is_one_way: AtomicBool,
    /// Whether the pool counts one of its threads as blocked by an upcall of this connection.
    is_counted_blocked: AtomicBool,
    /// The last long upcall, and whether its thread lacks a processor.
    shortage: Mutex<Option<Box<(UpcallNumber, ProcessorShortage)>>>,
}

impl ReaderRole {
    /// The role on a connection that begins with this word.
    pub(super) fn new(word: ReaderWord) -> Self {
        Self {
            bits: AtomicU64::new(word.bits()),
            handed_over: AtomicU32::new(0),
            thread: WorkingThread::none(),
            is_takeover_due: AtomicBool::new(false),
            is_one_way: AtomicBool::new(false),
            is_counted_blocked: AtomicBool::new(false),
            shortage: Mutex::default(),
        }
    }

    /// The reader word as it is now: the phase of the reading, and the number of the upcall.
    #[inline]
    pub(super) fn word(&self) -> ReaderWord {
        ReaderWord::from_bits(self.bits.load(Ordering::SeqCst))
    }

    /// Changes the reader word. Returns the word before the change, or the present one if `transition` finds
    /// that another thread came first.
    pub(super) fn change_word(
        &self,
        transition: impl Fn(ReaderWord) -> Option<ReaderWord>,
    ) -> Result<ReaderWord, ReaderWord> {
        let change = |now| transition(ReaderWord::from_bits(now)).map(ReaderWord::bits);
        let changed = self.bits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
        changed.map(ReaderWord::from_bits).map_err(ReaderWord::from_bits)
    }

    /// Changes the reader word in any case. Returns the new one.
    pub(super) fn step(&self, transition: fn(ReaderWord) -> ReaderWord) -> ReaderWord {
        match self.change_word(|now| Some(transition(now))) {
            Ok(before) | Err(before) => transition(before),
        }
    }

    /// Begins an upcall in the reading thread. If the result is closing, the connection accepts no further request, and
    /// [`end_refused`](Self::end_refused) is to be called.
    #[inline]
    pub(super) fn begin_upcall(&self, is_one_way: bool) -> ReaderWord {
        self.set_one_way(is_one_way);
        self.thread.record_current();
        // Sequentially consistent: see `UpcallMonitor::record_upcall`.
        let before = self.bits.fetch_add(ReaderWord::STEP, Ordering::SeqCst);
        ReaderWord::from_bits(before).begin_upcall()
    }

    /// Whether the thread of this long upcall can run, and lacks a processor.
    pub(super) fn lacks_processor(&self, upcall: ReaderWord) -> bool {
        let (number, mut shortage) = (upcall.number(), self.shortage.lock());
        let shortage = shortage.get_or_insert_with(|| Box::new((number, ProcessorShortage::default())));
        if shortage.0 != number {
            **shortage = (number, ProcessorShortage::default());
        }
        shortage.1.delays(&self.thread)
    }

    /// Ends the step of a request that the connection has not accepted.
    pub(super) fn end_refused(&self) {
        self.bits.fetch_add(ReaderWord::STEP, Ordering::SeqCst);
    }

    /// Ends an upcall. Returns the word before, or `None` if the thread has lost the reader role.
    #[inline]
    pub(super) fn end_upcall(&self, upcall: ReaderWord) -> Option<ReaderWord> {
        let end = |now| ReaderWord::from_bits(now).end_upcall(upcall).map(ReaderWord::bits);
        self.bits.fetch_update(Ordering::AcqRel, Ordering::Relaxed, end).ok().map(ReaderWord::from_bits)
    }

    /// Whether the upcall that keeps the reading thread is a one-way's.
    pub(super) fn is_one_way(&self) -> bool {
        self.is_one_way.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn set_one_way(&self, is_one_way: bool) {
        self.is_one_way.store(is_one_way, Ordering::Relaxed);
    }

    /// The number of running upcalls whose threads have lost the reader role.
    pub(super) fn handed_over(&self) -> u32 {
        self.handed_over.load(Ordering::SeqCst)
    }

    /// Counts an upcall whose thread loses the reader role. To be called before the change of the word, so
    /// that the connection does not look idle in between.
    pub(super) fn count_handed_over(&self) {
        self.handed_over.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the count of such an upcall. Returns whether it was the last.
    pub(super) fn uncount_handed_over(&self) -> bool {
        self.handed_over.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Records that a thread is started to take over reading. Returns false if one is due already.
    pub(super) fn expect_takeover(&self) -> bool {
        !self.is_takeover_due.swap(true, Ordering::AcqRel)
    }

    /// Records that this thread has tried, or could not be started.
    pub(super) fn takeover_tried(&self) {
        self.is_takeover_due.store(false, Ordering::Release);
    }

    /// Counts the thread of `upcall` as a blocked one of the pool, once.
    pub(super) fn record_blocked(&self, pool: &Pool, upcall: ReaderWord) {
        if self.is_counted_blocked.load(Ordering::SeqCst) {
            return;
        }
        // Counted before the flag is set, so that no other thread uncounts it first.
        pool.record_blocked();
        if self.is_counted_blocked.swap(true, Ordering::SeqCst) {
            pool.record_unblocked();
        } else if self.word().without_closing() != upcall.without_closing() {
            // The upcall has ended meanwhile, and may have checked the flag too early.
            self.record_unblocked(pool);
        }
    }

    /// Ends the count of the upcall's thread as a blocked one, if it is counted.
    #[inline]
    pub(super) fn record_unblocked(&self, pool: &Pool) {
        if self.is_counted_blocked.load(Ordering::SeqCst) && self.is_counted_blocked.swap(false, Ordering::SeqCst) {
            pool.record_unblocked();
        }
    }
}
