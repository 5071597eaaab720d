//! Calling handlers: claim, call, release; and what is done with what happened meanwhile.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_ipc::{Interest, Pollable, Prepared};
use spandrel_sync::MutexGuard;

use crate::key::Key;
use crate::lead::Turn;
use crate::queue::{Listed, Mail, What};
use crate::registry::{Item, Job, Slot};
use crate::state::{BUSY, Claim, DECODES, DISARMED, LISTED, MAIL, REMOVED, UNOPENED, Word};
use crate::table::{Arming, Owned};
use crate::{CloseReason, Context, EventHandler, HandlerId, Registry, sys};

/// How a call of a handler ended.
type Outcome = Result<(), CloseReason>;

impl Registry {
    /// Dispatches one item and returns how many methods of handlers that called.
    pub(crate) fn dispatch(&self, item: Item, turn: Turn) -> usize {
        let Item { key, what } = item;
        match what {
            What::Shown(ready) => match self.claim_shown(key, ready) {
                Some((slot, word)) => self.call_ready(slot, key, word, ready, turn),
                None => 0,
            },
            other => self.dispatch_other(key, other, turn),
        }
    }

    /// Claims a handler for which `ready` was shown, if that is to be dispatched.
    ///
    /// Who leads does this before anybody else may lead: otherwise the handle could be shown again, dispatched, and drained, and
    /// then be dispatched once more for nothing.
    #[inline]
    pub(crate) fn claim_shown(&self, key: Key, ready: Interest) -> Option<(&Slot, Word)> {
        let slot = self.core().table.slot(key)?;
        match slot.state.claim_ready(key.generation(), ready, Some(self.core().round())) {
            Claim::Claimed(word) => Some((slot, word)),
            Claim::Spinning => {
                self.disarm_busy(slot, key);
                None
            }
            Claim::Noted | Claim::Moot => None,
        }
    }

    fn dispatch_other(&self, key: Key, what: What<Job>, turn: Turn) -> usize {
        let what = match what {
            What::Job(job) => return self.run_job(job),
            what => what,
        };
        let Some(slot) = self.core().table.slot(key) else { return 0 };
        match what {
            What::Claimed(ready) => {
                let word = slot.state.load();
                self.call_ready(slot, key, word, ready, turn)
            }
            What::Ready(how) => {
                slot.state.unlist(key.generation());
                self.dispatch_listed(slot, key, how, turn)
            }
            _ => self.dispatch_mail(slot, key, turn),
        }
    }

    fn dispatch_listed(&self, slot: &Slot, key: Key, how: Listed, turn: Turn) -> usize {
        let Listed { ready, marked } = how;
        match slot.state.claim_ready(key.generation(), ready | marked, None) {
            Claim::Claimed(word) => self.call(slot, key, word, turn, |handler, cx, calls| {
                let mut ready = ready & word.wanted();
                if word.has(DECODES) {
                    // It may have been dispatched since it was listed.
                    ready = handler.pollable().map_or(Interest::NONE, |pollable| prepare(pollable, ready).ready);
                }
                call_kinds(slot, handler, cx, ready | marked & word.wanted(), calls)
            }),
            // Whoever has claimed it asks again whether it is ready, but would not learn of what was marked.
            Claim::Noted | Claim::Spinning if !marked.is_none() => {
                self.mark_ready(HandlerId(key), marked);
                0
            }
            Claim::Noted | Claim::Spinning | Claim::Moot => 0,
        }
    }

    fn dispatch_mail(&self, slot: &Slot, key: Key, turn: Turn) -> usize {
        const AT_ONCE: usize = 16;
        // Whoever has claimed it says again that there is mail, when it releases.
        let Claim::Claimed(word) = slot.state.claim(key.generation(), MAIL) else { return 0 };
        self.call(slot, key, word, turn, |handler, cx, calls| {
            let mut batch = [None; AT_ONCE];
            if slot.mailbox.lock().take(&mut batch) {
                // There is more, for which somebody else gets a turn first.
                slot.state.note(MAIL);
            }
            let notices = batch.iter().filter(|mail| matches!(mail, Some(Mail::Notice(_)))).count();
            self.core().queue.dismiss(notices);
            for mail in batch.into_iter().map_while(|mail| mail) {
                *calls += 1;
                passing_over(match mail {
                    Mail::Timeout(expired) => handler.handle_timeout(cx, expired),
                    #[cfg(unix)]
                    Mail::Signal(signal) => handler.handle_signal(cx, signal),
                    Mail::Notice(notice) => handler.handle_notice(cx, notice),
                })?;
                if slot.state.load().has(REMOVED) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn run_job(&self, job: Job) -> usize {
        self.core().queue.dismiss(1);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(self))) {
            tracing::error!(panic = message(panic), "a job panicked in a reactor");
        }
        1
    }

    /// Calls a handler that was claimed for what its handle showed.
    #[inline]
    pub(crate) fn call_ready(&self, slot: &Slot, key: Key, word: Word, shown: Interest, turn: Turn) -> usize {
        self.call(slot, key, word, turn, |handler, cx, calls| {
            let mut ready = shown & word.wanted();
            if word.has(DECODES) {
                ready = handler.pollable().map_or(ready, |pollable| pollable.interpret(shown, word.wanted()));
                ready = ready & word.wanted();
            }
            call_kinds(slot, handler, cx, ready, calls)
        })
    }

    /// Calls a claimed handler, and releases it. Returns how many methods were called.
    #[inline]
    fn call(
        &self,
        slot: &Slot,
        key: Key,
        word: Word,
        turn: Turn,
        call: impl FnOnce(&mut dyn EventHandler, &Context<'_>, &mut usize) -> io::Result<()>,
    ) -> usize {
        let mut calls = 0;
        let cx = Context::new(self, HandlerId(key), turn);
        // Claimed, so that nobody waits for it; the handler may be called for long.
        let mut body = slot.handler.lock_claimed();
        let outcome = match body.as_mut() {
            Some(Owned(handler)) if !word.has(REMOVED) => {
                let handler = handler.as_mut();
                let calls = &mut calls;
                guarded(|| {
                    if word.has(UNOPENED) {
                        open(slot, handler, &cx, calls)?;
                    }
                    if tracing::enabled!(target: "spandrel_reactor::dispatch", tracing::Level::TRACE) {
                        in_span(key, || call(handler, &cx, calls))
                    } else {
                        call(handler, &cx, calls)
                    }
                })
            }
            _ => Ok(()),
        };
        drop(body);
        // The usual case: nothing happened meanwhile, and the handle tells everything.
        if outcome.is_ok() && word.is_clean() && slot.state.swap(word, word.released(self.core().round())) {
            return calls;
        }
        self.release_after(slot, key, outcome);
        calls
    }

    #[cold]
    fn release_after(&self, slot: &Slot, key: Key, outcome: Outcome) {
        match outcome {
            Ok(()) => {
                if let Err(error) = self.release(slot, key) {
                    self.close_claimed(slot, key, CloseReason::Failed(error));
                }
            }
            Err(why) => self.close_claimed(slot, key, why),
        }
    }

    /// Opens a handler that the caller has claimed at its registration, and releases it.
    pub(crate) fn open_claimed(&self, slot: &Slot, key: Key) {
        self.call(slot, key, slot.state.load(), Turn::NONE, |_, _, _| Ok(()));
    }

    /// Releases a claimed slot, after doing what notes say. If the handle cannot be armed as wanted, the slot stays claimed.
    pub(crate) fn release(&self, slot: &Slot, key: Key) -> io::Result<()> {
        loop {
            let word = slot.state.load();
            if word.has(REMOVED) {
                self.close_claimed(slot, key, self.reason());
                return Ok(());
            }
            let is_released = if word.is_to_arm() {
                self.arm_and_release(slot, key, word)?
            } else {
                slot.state.swap(word, word.armed().released(self.core().round()))
            };
            if is_released {
                if word.has(MAIL) {
                    self.core().queue.push(Item { key, what: What::Mail });
                    self.core().nudge();
                }
                return Ok(());
            }
        }
    }

    /// Under the lock of the arming, so that a leader who disarms a busy handle does it before or after, but not meanwhile.
    fn arm_and_release(&self, slot: &Slot, key: Key, word: Word) -> io::Result<bool> {
        let mut arming = slot.arming.lock();
        let body = slot.handler.lock();
        let ready = self.arm(&mut arming, &body, key, word)?;
        drop(body);
        let marked = word.missed() & word.awaited();
        // One that is listed already is asked again after its dispatch; but what was missed nobody shows again.
        let lists = !marked.is_none() || !ready.is_none() && !word.has(LISTED);
        let released = word.armed().released(self.core().round());
        let is_released = slot.state.swap(word, if lists { released.with(LISTED) } else { released });
        drop(arming);
        if is_released && lists {
            self.core().list(key, Listed { ready, marked }, word.has(LISTED));
        }
        Ok(is_released)
    }

    /// Tells the demultiplexer what to wait for, and says what is ready without waiting.
    pub(crate) fn arm(
        &self,
        arming: &mut Arming,
        body: &MutexGuard<'_, Option<Owned<dyn EventHandler>>>,
        key: Key,
        word: Word,
    ) -> io::Result<Interest> {
        let demux = &self.core().demux;
        let Some(pollable) = body.as_ref().and_then(|Owned(handler)| handler.pollable()) else {
            return Ok(Interest::NONE);
        };
        let handle = sys::number(pollable.handle());
        let mut wait_for = word.awaited();
        let mut ready = Interest::NONE;
        if word.has(DECODES) && !wait_for.is_none() {
            Prepared { wait_for, ready } = prepare(pollable, wait_for);
        }
        if arming.armed().is_some_and(|(armed, _)| armed != handle)
            && let Some(armed) = arming.take()
        {
            // It exchanged its handle, and the old one may be closed and gone already.
            let _ = demux.remove(armed);
        }
        let again = word.has(crate::state::DIRTY) && word.trigger() != crate::Trigger::Level;
        match arming.armed() {
            None if wait_for.is_none() => return Ok(ready),
            None => demux.add(handle, key.0, wait_for, word.trigger())?,
            Some(_) if wait_for.is_none() => demux.remove(handle)?,
            Some((_, interest)) if interest == wait_for && !again => return Ok(ready),
            Some(_) => demux.modify(handle, key.0, wait_for, word.trigger())?,
        }
        arming.set(handle, wait_for);
        Ok(ready)
    }

    /// Takes a handle out of the demultiplexer that shows up again and again while its handler is busy.
    #[cold]
    fn disarm_busy(&self, slot: &Slot, key: Key) {
        let mut arming = slot.arming.lock();
        loop {
            let word = slot.state.load();
            if word.generation() != key.generation() || !word.has(BUSY) {
                return;
            }
            // The claimer finds this note when it releases, and waits for the lock of the arming then.
            if slot.state.swap(word, word.with(DISARMED)) {
                if let Some(handle) = arming.take() {
                    let _ = self.core().demux.remove(handle);
                }
                return;
            }
        }
    }

    /// Closes a handler whose slot is claimed.
    pub(crate) fn close_claimed(&self, slot: &Slot, key: Key, why: CloseReason) {
        slot.state.note(REMOVED);
        if let Some(handle) = slot.arming.lock().take() {
            let _ = self.core().demux.remove(handle);
        }
        let body = slot.handler.lock().take();
        if let CloseReason::Failed(_) | CloseReason::Panicked(_) = why {
            tracing::debug!(handler = ?HandlerId(key), %why, "a handler is closed");
        }
        let cx = Context::new(self, HandlerId(key), Turn::NONE);
        let closed = catch_unwind(AssertUnwindSafe(|| {
            if let Some(Owned(mut handler)) = body {
                handler.handle_close(&cx, why);
            }
        }));
        if let Err(panic) = closed {
            tracing::error!(panic = message(panic), "a handler panicked while it was closed");
        }
        let notices = slot.mailbox.lock().clear();
        self.core().queue.dismiss(notices);
        self.core().table.give_back(key, slot);
    }

    /// Why a handler is closed that did nothing wrong.
    pub(crate) fn reason(&self) -> CloseReason {
        if self.core().table.is_closed() { CloseReason::Stopped } else { CloseReason::Removed }
    }
}

/// Readies an endpoint that decodes for a wait, and says what it is to be waited for, and what is so already.
fn prepare(pollable: &dyn Pollable, wanted: Interest) -> Prepared {
    let mut prepared = pollable.prepare(wanted);
    if pollable.pending() {
        prepared.ready |= Interest::INPUT;
    }
    prepared.ready = prepared.ready & wanted;
    prepared
}

/// Output before exception before input, each only as long as the handler wants it.
#[inline]
fn call_kinds(
    slot: &Slot,
    handler: &mut dyn EventHandler,
    cx: &Context<'_>,
    ready: Interest,
    calls: &mut usize,
) -> io::Result<()> {
    if ready == Interest::INPUT {
        *calls += 1;
        return handler.handle_input(cx);
    }
    for kind in [Interest::OUTPUT, Interest::EXCEPTION, Interest::INPUT] {
        let word = slot.state.load();
        if !ready.contains(kind) || word.has(REMOVED) || !word.wanted().contains(kind) {
            continue;
        }
        *calls += 1;
        passing_over(match kind {
            Interest::OUTPUT => handler.handle_output(cx),
            Interest::EXCEPTION => handler.handle_exception(cx),
            _ => handler.handle_input(cx),
        })?;
    }
    Ok(())
}

#[cold]
fn open(slot: &Slot, handler: &mut dyn EventHandler, cx: &Context<'_>, calls: &mut usize) -> io::Result<()> {
    slot.state.clear(UNOPENED);
    *calls += 1;
    passing_over(handler.handle_open(cx))
}

#[cold]
fn in_span<R>(key: Key, call: impl FnOnce() -> R) -> R {
    let span = tracing::trace_span!(target: "spandrel_reactor::dispatch", "dispatch", handler = ?HandlerId(key));
    span.in_scope(call)
}

/// Turns errors and panics of a handler into the reason why it is closed.
#[inline]
fn guarded(call: impl FnOnce() -> io::Result<()>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => passing_over(Err(error)).map_err(CloseReason::Failed),
        Err(panic) => Err(CloseReason::Panicked(message(panic))),
    }
}

/// Two errors only say that there was nothing to do.
fn passing_over(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
        result => result,
    }
}

pub(crate) fn message(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().map_or_else(|| "no message".to_owned(), |text| (*text).to_owned()),
    }
}
