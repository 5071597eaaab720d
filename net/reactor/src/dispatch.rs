//! Dispatch: claim a handler, call it, release it, and handle the notes left meanwhile.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_ipc::{Interest, Pollable, Prepared};
use spandrel_sync::MutexGuard;

use crate::key::Key;
use crate::leader_followers::DispatchId;
use crate::queue::{ItemKind, ListedReady, Mail};
use crate::registry::{Item, Job, Slot};
use crate::state::{BUSY, Claim, DECODES, DISARMED, LISTED, MAIL, REMOVED, UNOPENED, Word};
use crate::table::{Arming, Owned};
use crate::{CloseReason, Context, EventHandler, HandlerId, Registry, sys};

/// The result of a call of a handler.
type Outcome = Result<(), CloseReason>;

impl Registry {
    /// Dispatches one item and returns the number of handler methods called.
    pub(crate) fn dispatch(&self, item: Item, dispatch_id: DispatchId) -> usize {
        let Item { key, kind } = item;
        match kind {
            ItemKind::ReadyHandle(ready) => match self.claim_ready_handle(key, ready) {
                Some((slot, word)) => self.call_ready(slot, key, word, ready, dispatch_id),
                None => 0,
            },
            other => self.dispatch_other(key, other, dispatch_id),
        }
    }

    /// Claims a handler whose handle was reported `ready`, if it is to be dispatched.
    ///
    /// The leader does this before another thread may lead. Otherwise the next leader could report the handle
    /// again and drain it, and this dispatch would find nothing.
    #[inline]
    pub(crate) fn claim_ready_handle(&self, key: Key, ready: Interest) -> Option<(&Slot, Word)> {
        let slot = self.core().table.slot(key)?;
        match slot.state.claim_ready(key.generation(), ready, Some(self.core().round())) {
            Claim::Claimed(word) => Some((slot, word)),
            Claim::MustDisarm => {
                self.disarm_busy(slot, key);
                None
            }
            Claim::Deferred | Claim::NotNeeded => None,
        }
    }

    fn dispatch_other(&self, key: Key, kind: ItemKind<Job>, dispatch_id: DispatchId) -> usize {
        let kind = match kind {
            ItemKind::Job(job) => return self.run_job(job),
            kind => kind,
        };
        let Some(slot) = self.core().table.slot(key) else { return 0 };
        match kind {
            ItemKind::Claimed(ready) => {
                let word = slot.state.load();
                self.call_ready(slot, key, word, ready, dispatch_id)
            }
            ItemKind::Ready(entry) => {
                slot.state.unlist(key.generation());
                self.dispatch_ready_list(slot, key, entry, dispatch_id)
            }
            _ => self.dispatch_mail(slot, key, dispatch_id),
        }
    }

    fn dispatch_ready_list(&self, slot: &Slot, key: Key, entry: ListedReady, dispatch_id: DispatchId) -> usize {
        let ListedReady { ready, marked } = entry;
        match slot.state.claim_ready(key.generation(), ready | marked, None) {
            Claim::Claimed(word) => self.call(slot, key, word, dispatch_id, |handler, cx, calls| {
                let mut ready = ready & word.wanted();
                if word.has(DECODES) {
                    // It may have been dispatched since it was listed.
                    ready = handler.pollable().map_or(Interest::NONE, |pollable| prepare(pollable, ready).ready);
                }
                call_kinds(slot, handler, cx, ready | marked & word.wanted(), calls)
            }),
            // The claiming thread checks again for readiness, but would not find the marked events.
            Claim::Deferred | Claim::MustDisarm if !marked.is_none() => {
                self.mark_ready(HandlerId(key), marked);
                0
            }
            Claim::Deferred | Claim::MustDisarm | Claim::NotNeeded => 0,
        }
    }

    fn dispatch_mail(&self, slot: &Slot, key: Key, dispatch_id: DispatchId) -> usize {
        const AT_ONCE: usize = 16;
        // The claiming thread finds the note about mail when it releases.
        let Claim::Claimed(word) = slot.state.claim(key.generation(), MAIL) else { return 0 };
        self.call(slot, key, word, dispatch_id, |handler, cx, calls| {
            let mut left = slot.mailbox.lock().len();
            for _ in 0..left.min(AT_ONCE) {
                // Each by itself: the handler may cancel a timer of those behind.
                let mail;
                (mail, left) = slot.mailbox.lock().take();
                let Some(mail) = mail else { break };
                if let Mail::Timeout(due) = &mail
                    && !self.core().begin_timeout(due)
                {
                    continue;
                }
                *calls += 1;
                passing_over(match mail {
                    Mail::Timeout(due) => handler.handle_timeout(cx, due.expired),
                    #[cfg(unix)]
                    Mail::Signal(signal) => handler.handle_signal(cx, signal),
                    Mail::Notice(notice) => {
                        self.core().queue.dismiss(1);
                        handler.handle_notice(cx, notice)
                    }
                    Mail::Wakeup => handler.handle_wakeup(cx),
                })?;
                if slot.state.load().has(REMOVED) {
                    return Ok(());
                }
            }
            if left > 0 {
                // There is more mail, and other handlers are dispatched first.
                slot.state.note(MAIL);
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

    /// Calls a claimed handler for the events of its handle.
    #[inline]
    pub(crate) fn call_ready(
        &self,
        slot: &Slot,
        key: Key,
        word: Word,
        handle_events: Interest,
        dispatch_id: DispatchId,
    ) -> usize {
        self.call(slot, key, word, dispatch_id, |handler, cx, calls| {
            let mut ready = handle_events & word.wanted();
            if word.has(DECODES) {
                ready = handler.pollable().map_or(ready, |pollable| pollable.interpret(handle_events, word.wanted()));
                ready = ready & word.wanted();
            }
            call_kinds(slot, handler, cx, ready, calls)
        })
    }

    /// Calls a claimed handler, and releases it. Returns the number of methods called.
    #[inline]
    fn call(
        &self,
        slot: &Slot,
        key: Key,
        word: Word,
        dispatch_id: DispatchId,
        call: impl FnOnce(&mut dyn EventHandler, &Context<'_>, &mut usize) -> io::Result<()>,
    ) -> usize {
        // Claimed, so that no thread waits for it; the call may take long.
        self.call_locked(slot, slot.handler.lock_claimed(), key, word, dispatch_id, call)
    }

    /// As [`call`](Self::call), with the handler locked already.
    #[inline]
    fn call_locked(
        &self,
        slot: &Slot,
        mut body: MutexGuard<'_, Option<Owned<dyn EventHandler>>>,
        key: Key,
        word: Word,
        dispatch_id: DispatchId,
        call: impl FnOnce(&mut dyn EventHandler, &Context<'_>, &mut usize) -> io::Result<()>,
    ) -> usize {
        let mut calls = 0;
        let cx = Context::new(self, HandlerId(key), dispatch_id);
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
        let word = word.without(UNOPENED);
        // The usual case: no notes, and the handle shows everything.
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
            Err(reason) => self.close_claimed(slot, key, reason),
        }
    }

    /// Opens a handler that the caller claimed and locked at its registration, and releases it.
    pub(crate) fn open_claimed(&self, slot: &Slot, body: MutexGuard<'_, Option<Owned<dyn EventHandler>>>, key: Key) {
        self.call_locked(slot, body, key, slot.state.load(), DispatchId::NONE, |_, _, _| Ok(()));
    }

    /// Releases a claimed slot, after handling its notes. If the handle cannot be armed as wanted, the slot
    /// stays claimed.
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
                    self.core().queue.push(Item { key, kind: ItemKind::Mail });
                    self.core().nudge();
                }
                return Ok(());
            }
        }
    }

    /// Under the lock of the arming, so that a leader disarms a busy handle before or after this, but not
    /// meanwhile.
    fn arm_and_release(&self, slot: &Slot, key: Key, word: Word) -> io::Result<bool> {
        let mut arming = slot.arming.lock();
        let body = slot.handler.lock();
        let ready = self.arm(&mut arming, &body, key, word)?;
        drop(body);
        let marked = word.missed() & word.awaited();
        // A handler on the list is checked again after its dispatch; but missed events are not reported
        // again.
        let lists = !marked.is_none() || !ready.is_none() && !word.has(LISTED);
        let released = word.armed().released(self.core().round());
        let is_released = slot.state.swap(word, if lists { released.with(LISTED) } else { released });
        drop(arming);
        if is_released && lists {
            self.core().list(key, ListedReady { ready, marked }, word.has(LISTED));
        }
        Ok(is_released)
    }

    /// Arms the handle in the demultiplexer, and returns the events that are ready without waiting.
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
            // The handler replaced its handle, and the old one may be closed already.
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

    /// Removes a handle from the demultiplexer that is reported again and again while its handler is busy.
    #[cold]
    fn disarm_busy(&self, slot: &Slot, key: Key) {
        let mut arming = slot.arming.lock();
        loop {
            let word = slot.state.load();
            if word.generation() != key.generation() || !word.has(BUSY) {
                return;
            }
            // The claiming thread finds this note when it releases, and then waits for the lock of the
            // arming.
            if slot.state.swap(word, word.with(DISARMED)) {
                if let Some(handle) = arming.take() {
                    let _ = self.core().demux.remove(handle);
                }
                return;
            }
        }
    }

    /// Closes a handler whose slot is claimed.
    pub(crate) fn close_claimed(&self, slot: &Slot, key: Key, reason: CloseReason) {
        if !slot.state.load().has(REMOVED) {
            slot.state.note(REMOVED);
        }
        if let Some(handle) = slot.arming.lock().take() {
            let _ = self.core().demux.remove(handle);
        }
        let body = slot.handler.lock().take();
        if let CloseReason::Failed(_) | CloseReason::Panicked(_) = reason {
            tracing::debug!(handler = ?HandlerId(key), %reason, "a handler is closed");
        }
        let cx = Context::new(self, HandlerId(key), DispatchId::NONE);
        let closed = catch_unwind(AssertUnwindSafe(|| {
            if let Some(Owned(mut handler)) = body {
                handler.handle_close(&cx, reason);
            }
        }));
        if let Err(panic) = closed {
            tracing::error!(panic = message(panic), "a handler panicked while it was closed");
        }
        let mail = slot.mailbox.lock().drain();
        for piece in mail {
            match piece {
                Mail::Notice(_) => self.core().queue.dismiss(1),
                Mail::Timeout(due) => {
                    // It leaves the queue.
                    let _ = self.core().begin_timeout(&due);
                }
                _ => {}
            }
        }
        self.core().table.give_back(key, slot);
    }

    /// The reason of closing a handler that did not fail.
    pub(crate) fn reason(&self) -> CloseReason {
        if self.core().table.is_closed() { CloseReason::Stopped } else { CloseReason::Removed }
    }
}

/// Prepares a decoding endpoint for a wait, and returns the events to wait for and those that are ready
/// already.
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

/// Converts errors and panics of a handler to the reason for closing it.
#[inline]
fn guarded(call: impl FnOnce() -> io::Result<()>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => passing_over(Err(error)).map_err(CloseReason::Failed),
        Err(panic) => Err(CloseReason::Panicked(message(panic))),
    }
}

/// Ignores the two errors that mean that there was nothing to do.
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
