//! The reader role of a connection: the right to read its messages.
//!
//! The thread that reads a request also runs its upcall. It reads on after the upcall, unless the role was
//! handed over meanwhile. The monitor finds long upcalls; this module hands their reader roles over.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Duration,
};

use spandrel_connection::ReaderWord;
use spandrel_sync::{Arc, atomic::Ordering};

use super::ServerConnection;
use crate::monitor::LongUpcallAction;

/// The age of an upcall at which another thread reads on, where the replies of all running requests may
/// exceed a memory limit.
const LONG_DELAY: Duration = Duration::from_millis(100);
/// The greatest such age, in milliseconds, while a client has not taken as many replies as it has requests
/// running.
const SLOW_START: u32 = 64;

/// The next step of the thread that served a request.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum NextRead {
    /// The thread reads on.
    Continue,
    /// Another thread has the reader role.
    ByOther,
}

impl ServerConnection {
    /// Runs an upcall, unless the connection accepts no further request. `answer` gets the number of its
    /// step.
    #[inline]
    pub(super) fn begin_upcall(&self, is_one_way: bool, answer: impl FnOnce(u64)) -> NextRead {
        self.is_one_way.store(is_one_way, Ordering::Relaxed);
        // Sequentially consistent: see `UpcallMonitor::note_upcall`.
        let before = self.turn.fetch_add(ReaderWord::STEP, Ordering::SeqCst);
        let upcall = ReaderWord::from_bits(before).begin_upcall();
        if upcall.is_closing() {
            // The request is not acted on. The client learns that from CloseConnection, which was or will be
            // sent.
            self.turn.fetch_add(ReaderWord::STEP, Ordering::SeqCst);
            self.note_unblocked();
            self.send_close_when_idle();
            return NextRead::Continue;
        }
        self.resources.upcall_monitor.note_upcall();
        let answered = catch_unwind(AssertUnwindSafe(|| answer(upcall.count())));
        self.exit_forked_copy();
        self.settle(upcall);
        let served = self.end_upcall(upcall);
        match answered {
            Ok(()) => served,
            // The panic ends the connection that the thread reads, and nothing else.
            Err(panic) if served == NextRead::Continue => resume_unwind(panic),
            Err(_) => {
                tracing::error!(peer = %self.link.peer(), "a request could not be answered: its thread panicked");
                served
            }
        }
    }

    /// Ends an upcall. Its thread reads on, unless it has lost the reader role.
    fn end_upcall(&self, upcall: ReaderWord) -> NextRead {
        let end = |now| ReaderWord::from_bits(now).end_upcall(upcall).map(ReaderWord::bits);
        let ended = self.turn.fetch_update(Ordering::AcqRel, Ordering::Relaxed, end);
        if upcall.is_registered() {
            self.note_unblocked();
        }
        match ended {
            Ok(now) => {
                if ReaderWord::from_bits(now).is_closing() {
                    self.send_close_when_idle();
                }
                NextRead::Continue
            }
            Err(_) => {
                self.end_handed_over();
                // Checked again: a thread that began to close meanwhile found this upcall still running.
                if self.word().is_closing() {
                    self.send_close_when_idle();
                }
                NextRead::ByOther
            }
        }
    }

    /// The bits of the reader word; odd while an upcall keeps the reading thread.
    pub(crate) fn turn(&self) -> u64 {
        self.turn.load(Ordering::SeqCst)
    }

    /// The reader word.
    #[inline]
    pub(super) fn word(&self) -> ReaderWord {
        ReaderWord::from_bits(self.turn())
    }

    /// Changes the reader word. Returns the word before the change, or the present one if `transition` finds
    /// that another thread came first.
    pub(super) fn change_word(
        &self,
        transition: impl Fn(ReaderWord) -> Option<ReaderWord>,
    ) -> Result<ReaderWord, ReaderWord> {
        let change = |now| transition(ReaderWord::from_bits(now)).map(ReaderWord::bits);
        let changed = self.turn.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
        changed.map(ReaderWord::from_bits).map_err(ReaderWord::from_bits)
    }

    /// Handles a long upcall in a pool of fixed size: no other thread may read on, but the servant may have
    /// taken a cancellation token.
    pub(super) fn listen_in_fixed_pool(&self, turn: u64, has_input: bool) -> LongUpcallAction {
        if !self.awaits_cancellation() {
            return LongUpcallAction::Settled;
        }
        if !has_input && self.can_await_input() {
            // A message that was stored for the next reader ends the search for CancelRequests.
            let has_pending_result = self.reader.try_lock().is_some_and(|reader| reader.has_pending_result());
            return if has_pending_result { LongUpcallAction::Settled } else { LongUpcallAction::AwaitsInput };
        }
        self.listen(turn);
        LongUpcallAction::Listened
    }

    /// Whether the handle shows all input that is not in memory, so that the monitor can wait for it beside a
    /// reactor.
    pub(super) fn can_await_input(&self) -> bool {
        self.pollable().is_some_and(|pollable| pollable.is_plain())
    }

    /// Whether another thread may take the reader role from an upcall.
    pub(super) fn may_hand_over(&self) -> bool {
        self.dispatch_queue.is_none() && (!self.word().is_registered() || !self.resources.pool.is_fixed())
    }

    /// The age of an upcall at which another thread reads on. Normally zero: as soon as the monitor finds the
    /// upcall.
    ///
    /// A client that has not yet shown that it takes replies gets further threads more and more slowly. The
    /// first reply that it does not take ends this.
    ///
    /// The age is [`LONG_DELAY`] where the replies of all threads could exceed half of a memory limit. The
    /// estimate is that none is taken, and that each is as long as the longest recent one. Half, because each
    /// reply exists twice for a moment: as the servant's result and as the copy that is kept.
    pub(super) fn hand_over_delay(&self, turn: u64) -> Duration {
        let resources = &self.resources;
        let running = self.handed_over.load(Ordering::Relaxed) + 1;
        let begun = ReaderWord::from_bits(turn).count().div_ceil(2);
        let has_answered = begun.saturating_sub(u64::from(running)) >= u64::from(running);
        let longest = resources.budget.longest_reply();
        let of_connection = longest.saturating_mul(running as usize + 1);
        let of_all = longest.saturating_mul(resources.threads.count()).saturating_add(resources.budget.used());
        match () {
            () if cfg!(shuttle) => Duration::ZERO,
            () if of_connection > resources.settings.max_connection_memory / 2 => LONG_DELAY,
            () if longest > 0 && of_all > resources.settings.max_server_memory / 2 => LONG_DELAY,
            () if has_answered => Duration::ZERO,
            () => Duration::from_millis(running.saturating_mul(running).saturating_mul(2).min(SLOW_START).into()),
        }
    }

    /// Starts a thread that takes the reader role from the upcall of `turn`, if that still runs. Returns
    /// whether a thread was started.
    pub(super) fn hand_over_reading(&self, turn: u64) -> bool {
        let running = self.handed_over.load(Ordering::Relaxed) + 1;
        // A closing connection reads no requests, but a bidirectional one reads replies. Nothing is read from
        // a client that does not take its replies.
        let is_ending = ReaderWord::from_bits(turn).is_closing() && !self.is_bidirectional();
        if is_ending || self.is_blocked() || running >= self.resources.settings.max_in_flight {
            self.listen(turn);
            return false;
        }
        if self.is_relief_due.swap(true, Ordering::AcqRel) {
            return false;
        }
        let connection = self.shared();
        let started = self.resources.threads.spawn("spandrel-relief", move || connection.take_over(turn));
        if let Err(error) = &started {
            // The monitor tries again at its next look. Until then, the requests behind the long upcall wait.
            self.is_relief_due.store(false, Ordering::Release);
            log_limited!(
                error, self.resources, "no thread to read on", %error, peer = %self.link.peer(), "could not start a thread to read on during a long upcall"
            );
        }
        started.is_ok()
    }

    /// Takes the reader role from the upcall of `turn` and reads on, unless the upcall has ended.
    pub(crate) fn take_over(self: &Arc<Self>, turn: u64) {
        // Counted before the change, so that the connection does not look idle in between.
        self.handed_over.fetch_add(1, Ordering::SeqCst);
        let upcall = ReaderWord::from_bits(turn);
        let taken = self.change_word(|now| now.take_over(upcall));
        self.is_relief_due.store(false, Ordering::Release);
        if taken.is_ok() {
            if upcall.is_registered() {
                self.leave_reactor();
            }
            return self.serve();
        }
        self.end_handed_over();
        if self.word().is_closing() {
            self.send_close_when_idle();
        }
    }
}
