//! The threads that read a connection: its own thread, those of a reactor, and those that take over from them.
//!
//! The thread that reads a request also runs its upcall. A long upcall keeps that thread. The monitor finds it,
//! and a new thread takes over the reader role. If a reactor serves the connection, the pool counts the thread
//! of the upcall as blocked, and the new thread suspends the registration. It returns the reading to the
//! reactor when all upcalls have ended that lost the reader role.
//!
//! A reactor with a fixed number of threads gets no new thread. If one of its threads is free, the connection is
//! registered anew, because the old registration lasts as long as the upcall; so the free thread reads on.
//!
//! The reactor calls [`ServerConnection::serve_ready`] in one thread at a time.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Duration,
};

use spandrel_connection::{CancelledRequests, HandOverLoad, ReaderWord, Turn, UpcallNumber};
use spandrel_orb::CancelReason;
use spandrel_sync::{Arc, time::Instant};
use spandrel_transport::{Deadline, ReadError, Transport};

use super::{ServerConnection, closing::CloseOnDrop, reader_role::NextRead, registration::ReactorRegistration};
use crate::{monitor::LongUpcallAction, nesting, resources::ServerResources};

/// How long a thread that took over from the reactor waits for a further request before it checks whether it
/// is still needed. The time doubles while it is, so that thousands of such threads do not keep a processor
/// busy.
const READ_WAIT: Duration = Duration::from_millis(20);
/// The longest such time.
const LONGEST_READ_WAIT: Duration = Duration::from_millis(320);

/// How a visit of a reactor's thread ended.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum VisitOutcome {
    /// No more input is available, or another thread reads.
    Idle,
    /// The connection has ended.
    Ended,
}

impl ServerConnection {
    /// Reads and runs requests until the connection ends, another thread takes over, or a reactor serves it
    /// again.
    pub(crate) fn serve(self: &Arc<Self>) {
        let ending = CloseOnDrop(self);
        let mut registration = self.registration.get();
        let mut read_wait = READ_WAIT;
        loop {
            if self.is_blocked() {
                self.await_unblocked();
            }
            if self.resources.pool.shares_threads() && self.share_threads(&mut registration) {
                return mem::forget(ending);
            }
            let deadline = registration.as_ref().map(|_| Deadline::after(read_wait));
            let next = {
                let mut reader = self.reader.lock();
                let next = reader.next(self.link.transport(), deadline.as_ref());
                self.pipeline.record_read(reader.holds_request());
                next
            };
            let served = match next {
                Ok(message) => self.handle(&message),
                Err(ReadError::TimedOut) => match self.return_to_reactor(&mut registration) {
                    true => return mem::forget(ending),
                    false => {
                        read_wait = LONGEST_READ_WAIT.min(read_wait * 2);
                        Ok(NextRead::Continue)
                    }
                },
                Err(error) => self.handle_read_failure(error).map(|()| NextRead::Continue),
            };
            match served {
                Ok(NextRead::Continue) => {}
                Ok(NextRead::ByOther) => return mem::forget(ending),
                Err(error) => {
                    self.read_failed(&error);
                    return;
                }
            }
        }
    }

    /// Runs an upcall, unless the connection accepts no further request. `answer` gets the number of its
    /// step.
    #[inline]
    pub(super) fn begin_upcall(&self, is_one_way: bool, answer: impl FnOnce(UpcallNumber)) -> NextRead {
        let upcall = self.reader_role.begin_upcall(is_one_way);
        if upcall.is_closing() {
            return self.refuse();
        }
        self.resources.upcall_monitor.record_upcall();
        let answered = catch_unwind(AssertUnwindSafe(|| answer(upcall.number())));
        self.exit_forked_copy();
        if answered.is_err() {
            self.end_pipeline();
        }
        self.pending.settle(upcall);
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

    /// Does not act on a request. The client learns that from CloseConnection, which was or will be sent.
    #[cold]
    fn refuse(&self) -> NextRead {
        self.end_pipeline();
        self.reader_role.end_refused();
        self.reader_role.record_unblocked(&self.resources.pool);
        self.send_close_when_idle();
        NextRead::Continue
    }

    /// Ends an upcall. Its thread reads on, unless it has lost the reader role.
    fn end_upcall(&self, upcall: ReaderWord) -> NextRead {
        let ended = self.reader_role.end_upcall(upcall);
        if upcall.is_registered() {
            self.reader_role.record_unblocked(&self.resources.pool);
        }
        match ended {
            Some(before) => {
                if before.is_closing() {
                    self.send_close_when_idle();
                }
                NextRead::Continue
            }
            None => {
                self.end_pipeline(); // the role may have been lost after the end of the servant
                self.end_handed_over();
                // Checked again: a thread that began to close meanwhile found this upcall still running.
                if self.reader_role.word().is_closing() {
                    self.send_close_when_idle();
                }
                NextRead::ByOther
            }
        }
    }

    /// Ends the count of an upcall whose thread has lost the reader role.
    pub(super) fn end_handed_over(&self) {
        if self.reader_role.uncount_handed_over() {
            self.finish_when_done();
        }
    }

    /// Handles a long upcall in a pool of fixed size whose threads are all in use: no other thread can read on
    /// for now, but the servant may have taken a cancellation token.
    pub(super) fn listen_in_full_pool(&self, upcall: ReaderWord, has_input: bool) -> LongUpcallAction {
        let may_read_on = self.may_hand_over();
        let awaits_cancellation = self.pending.awaits_cancellation();
        if !awaits_cancellation && !may_read_on {
            return LongUpcallAction::Settled;
        }
        if !has_input && self.can_await_input() {
            // The handle does not show what is in memory.
            let may_find_more = awaits_cancellation && self.look_for_cancel_requests(upcall, None);
            let awaits_input = may_find_more || may_read_on;
            return if awaits_input { LongUpcallAction::AwaitsInput } else { LongUpcallAction::Settled };
        }
        self.listen(upcall);
        LongUpcallAction::Listened
    }

    /// Whether the handle shows all input that is not in memory, so that the monitor can wait for it beside a
    /// reactor.
    pub(super) fn can_await_input(&self) -> bool {
        self.pollable().is_some_and(|pollable| pollable.is_plain())
    }

    /// Whether another thread may take the reader role from an upcall.
    pub(super) fn may_hand_over(&self) -> bool {
        self.service.queue().is_none()
            && (!self.reader_role.word().is_registered() || self.resources.pool.can_read_on())
    }

    /// The age of an upcall at which another thread reads on, by the rule of [`HandOverLoad`].
    pub(super) fn hand_over_delay(&self, upcall: ReaderWord) -> Duration {
        let ServerResources { settings, budget, threads, hand_over, .. } = &*self.resources;
        let load = HandOverLoad {
            running: self.reader_role.handed_over() + 1,
            begun_requests: upcall.number().requests_since(UpcallNumber::NONE),
            longest_reply: budget.longest_reply(),
            connection_limit: settings.max_connection_memory,
            threads: threads.count(),
            octets_in_use: budget.used(),
            server_limit: settings.max_server_memory,
        };
        load.delay(hand_over)
    }

    /// Has another thread take the reader role from `upcall`, if that still runs: a new one, or another
    /// one of a reactor with a fixed number of threads. Returns whether that was begun.
    pub(super) fn hand_over_reading(&self, upcall: ReaderWord) -> bool {
        let running = self.reader_role.handed_over() + 1;
        // A closing connection reads no requests, but a bidirectional one reads replies. Nothing is read from
        // a client that does not take its replies.
        let is_ending = upcall.is_closing() && !self.is_bidirectional();
        if is_ending || self.is_blocked() || running >= self.resources.settings.max_in_flight {
            self.listen(upcall);
            return false;
        }
        if upcall.is_registered() && self.resources.pool.is_fixed() {
            return self.release_to_reactor(upcall);
        }
        if !self.reader_role.expect_takeover() {
            return false;
        }
        let connection = self.shared();
        let started = self.resources.threads.spawn("spandrel-reader", move || connection.take_over(upcall));
        if let Err(error) = &started {
            // The monitor tries again at its next look. Until then, the requests behind the long upcall wait.
            self.reader_role.takeover_tried();
            log_limited!(
                error, self.resources, "no thread to read on", %error, peer = %self.link.peer(), "could not start a thread to read on during a long upcall"
            );
        }
        started.is_ok()
    }

    /// Gives the reader role of `upcall` to the reactor's other threads, unless the upcall has ended or another thread
    /// has the role. Returns whether it was given.
    pub(super) fn release_to_reactor(&self, upcall: ReaderWord) -> bool {
        // Counted before the change, so that the connection does not look idle in between, and twice: if the upcall
        // ends meanwhile, its thread must not end a connection that is about to be registered.
        self.reader_role.count_handed_over();
        self.reader_role.count_handed_over();
        let is_released = self.reader_role.change_word(|now| now.take_over(upcall)).is_ok();
        if is_released {
            self.end_holding();
            self.reader_role.record_unblocked(&self.resources.pool);
            let is_drained = {
                let mut reader = self.reader.lock();
                reader.rest();
                reader.is_drained()
            };
            let renewed = self.registration.get().map(|registration| registration.renew(!is_drained));
            if let Some(Err(error)) = renewed {
                tracing::error!(%error, peer = %self.link.peer(), "could not register a connection anew to read on");
                self.reader_role.step(ReaderWord::register);
                self.registration_closed();
            }
        } else {
            self.end_handed_over();
        }
        self.end_handed_over();
        if self.reader_role.word().is_closing() {
            self.send_close_when_idle();
        }
        is_released
    }

    /// Takes the reader role from `upcall` and reads on, unless it has ended.
    pub(crate) fn take_over(self: &Arc<Self>, upcall: ReaderWord) {
        // Counted before the change, so that the connection does not look idle in between.
        self.reader_role.count_handed_over();
        let word_change = self.reader_role.change_word(|now| now.take_over(upcall));
        self.reader_role.takeover_tried();
        if word_change.is_ok() {
            self.end_holding();
            if upcall.is_registered() {
                self.leave_reactor();
            }
            return self.serve();
        }
        self.end_handed_over();
        if self.reader_role.word().is_closing() {
            self.send_close_when_idle();
        }
    }

    /// Looks for CancelRequests and for the end of the client, while this long upcall keeps the reader role.
    pub(crate) fn listen(&self, upcall: ReaderWord) {
        if self.pending.awaits_cancellation() {
            self.look_for_cancel_requests(upcall, Some(self.link.transport()));
        }
    }

    /// Handles the CancelRequests, and the end of the client, that have arrived on `transport`, or only those in
    /// memory. Returns whether more may be found before `upcall` ends.
    fn look_for_cancel_requests(&self, upcall: ReaderWord, transport: Option<&dyn Transport>) -> bool {
        let Some(mut reader) = self.reader.try_lock() else { return true };
        // Checked with the reader locked: a thread that reads on waits for the lock.
        if self.reader_role.word().number() != upcall.number() {
            return true;
        }
        while let Some(message) = reader.look_ahead(transport) {
            // A CancelRequest that cannot be decoded cancels no request.
            if let Ok(cancelled) = self.cancelled_by(&message) {
                reader.cancel(cancelled);
                self.cancel(CancelledRequests::Request(cancelled), CancelReason::ClientCancelled);
            }
        }
        if reader.has_ended() {
            self.cancel(CancelledRequests::Awaited, self.close_state.end_reason());
        }
        reader.may_look_further()
    }

    /// Registers the connection with a reactor, which serves it from now on. An earlier registration has been
    /// [replaced](Self::serve_ready).
    pub(crate) fn register_with(&self, registration: Arc<dyn ReactorRegistration>) {
        self.registration.set(registration);
        if !self.reader_role.word().is_registered() {
            self.reader_role.step(ReaderWord::register);
        }
        if self.link.is_blocked() {
            self.registration.update_output(|| self.link.is_blocked());
        }
        // Checked afterwards: a thread that ends the connection first changes the phase and then ends the
        // registration that it finds.
        if self.close_state.is_closed() {
            self.registration.leave();
        }
    }

    /// Called when the registration has ended for any reason. A thread that took over reads on to the end.
    pub(crate) fn registration_closed(&self) {
        if self.reader_role.word().is_registered() {
            self.end_reading();
        }
        if self.close_state.is_write_side_shut() {
            self.finish_close();
        }
    }

    /// Runs the requests that are available now. `is_replaced`: whether the connection has a later registration
    /// than that of this visit. `others_are_ready`: whether other connections are known to have input.
    pub(crate) fn serve_ready(&self, is_replaced: impl Fn() -> bool, others_are_ready: bool) -> VisitOutcome {
        if self.close_state.is_reading_finished() {
            return self.drop_ready();
        }
        if self.is_blocked() {
            self.resources.pool.send_batch(); // its reply may be in the batch
        }
        // In this order: the word shows the registration by which another one was replaced, if it shows any.
        if !self.reader_role.word().is_registered() || is_replaced() || self.is_blocked() {
            // A thread has taken over reading, or left a reply to be written, and is about to update the
            // registration.
            return VisitOutcome::Idle;
        }
        let ending = CloseOnDrop(self);
        match self.serve_read(others_are_ready) {
            Ok(NextRead::Continue) => {
                mem::forget(ending);
                self.end_visit();
            }
            Ok(NextRead::ByOther) => mem::forget(ending),
            Err(error) => {
                self.read_failed(&error);
                self.reader.lock().end();
                drop(ending);
            }
        }
        if self.close_state.is_closed() { VisitOutcome::Ended } else { VisitOutcome::Idle }
    }

    /// Reads and drops late octets. Without that, the peer could take the last reply for undelivered.
    fn drop_ready(&self) -> VisitOutcome {
        let is_over = self.close_state.is_write_side_shut() && self.late_octets.drop_ready(self.link.transport());
        if is_over { VisitOutcome::Ended } else { VisitOutcome::Idle }
    }

    /// Serves the requests of one turn that are available now. Returns whether this thread still reads.
    fn serve_read(&self, others_are_ready: bool) -> Result<NextRead, ReadError> {
        if let Some(dispatch_queue) = self.service.queue() {
            return dispatch_queue.read(self).map(|()| NextRead::ByOther);
        }
        let mut next = {
            let mut reader = self.reader.lock();
            reader.wake();
            let next = reader.next_ready(self.link.transport());
            self.pipeline.record_read(reader.holds_request());
            next
        };
        let (mut turn, mut first_ended) = (Turn::default(), None);
        loop {
            match next {
                Ok(None) => break,
                Ok(Some(message)) => {
                    // The number of the upcall that may follow: no other thread reads, and so none takes a
                    // step.
                    let _inside = nesting::enter(|| self.shared(), self.reader_role.word().begin_upcall());
                    if self.handle(&message)? == NextRead::ByOther {
                        return Ok(NextRead::ByOther);
                    }
                }
                Err(error) => self.handle_read_failure(error)?,
            }
            let mut reader = self.reader.lock();
            if self.is_blocked() && !reader.is_drained() {
                drop(reader);
                self.resources.pool.send_batch();
                reader = self.reader.lock();
            }
            if self.is_blocked() {
                // Progress is not checked meanwhile: the client is not to blame for the pause.
                reader.stop();
                break;
            }
            let elapsed = || {
                let now = Instant::now();
                now.saturating_duration_since(*first_ended.get_or_insert(now))
            };
            if !reader.is_drained() && turn.ends(others_are_ready, elapsed) {
                drop(reader);
                if let Some(registration) = self.registration.get() {
                    registration.mark_ready();
                }
                break;
            }
            next = reader.buffered();
            self.pipeline.record_read(reader.holds_request());
            if let Ok(None) = next {
                // The usual end, under the same lock.
                reader.rest();
                drop(reader);
                self.end_pipeline();
                return Ok(NextRead::Continue);
            }
        }
        self.end_pipeline();
        self.reader.lock().rest();
        Ok(NextRead::Continue)
    }

    /// Suspends the registration: an upcall keeps the reactor's thread, and this thread reads.
    fn leave_reactor(&self) {
        if let Some(registration) = self.registration.get() {
            registration.suspend();
        }
    }

    /// Returns the reading to the reactor, unless an upcall still runs that has lost the reader role. If the
    /// registration has ended, `registration` becomes `None` and the caller reads on to the end.
    pub(super) fn return_to_reactor(&self, registration: &mut Option<Arc<dyn ReactorRegistration>>) -> bool {
        if self.reader_role.handed_over() != 0 {
            return false;
        }
        let Some(place) = registration.take() else { return false };
        let is_drained = {
            let mut reader = self.reader.lock();
            reader.rest();
            reader.is_drained()
        };
        let _ = self.reader_role.change_word(|now| Some(now.register()));
        let is_resumed = match is_drained {
            true => place.resume(),
            false => place.resume_marked(),
        };
        if is_resumed {
            return true;
        }
        let _ = self.reader_role.change_word(|now| Some(now.unregister()));
        false
    }
}
