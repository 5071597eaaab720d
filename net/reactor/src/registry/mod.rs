//! The interface of a reactor for other threads, and the handlers that it calls.
//!
//! A registry refers to the handlers, and a handler's context to the registry: so both are in one module. The
//! reactor's [`core`](crate::core) is generic, and depends on neither.

mod context;
mod handler;

use std::fmt;
use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;
use spandrel_sync::Arc;

pub use self::context::Context;
pub use self::handler::{CloseReason, EventHandler};
use crate::key::{HandlerId, Key};
use crate::queue::{ItemKind, Mail};
use crate::state::{Claim, SUSPENDED, Word};
use crate::table::{NoSlot, Owned};
use crate::timer::{Time, TimerId};
use crate::{Trigger, core, current, queue, table};

/// A job to run in a thread of the reactor.
pub(crate) type Job = Box<dyn FnOnce(&Registry) + Send>;
pub(crate) type Core = core::Core<dyn EventHandler, Job>;
pub(crate) type Slot = table::Slot<dyn EventHandler>;
pub(crate) type Item = queue::Item<Job>;

/// The handlers of a reactor: registration, interest, timers, and notification.
///
/// Cheap to clone; every method may be called from any thread, also from inside a handler, and none waits for
/// a handler. A change to a handler that is being called takes effect when the call has returned.
#[derive(Clone)]
pub struct Registry(pub(crate) Arc<Core>);

impl Registry {
    #[inline]
    pub(crate) fn core(&self) -> &Core {
        &self.0
    }

    /// Takes ownership of a handler and waits for `interest`, as long as the handle is ready for it
    /// ([`Trigger::Level`]).
    ///
    /// Its [`handle_open`](EventHandler::handle_open) is called before this returns if the caller is a thread
    /// of the reactor, and otherwise in one of its threads; in both cases the returned identifier may already
    /// be stale.
    ///
    /// # Errors
    /// As [`register_with`](Self::register_with).
    pub fn register(&self, handler: impl EventHandler, interest: Interest) -> io::Result<HandlerId> {
        self.register_with(Box::new(handler), interest, Trigger::Level)
    }

    /// As [`register`](Self::register), with a choice of [`Trigger`].
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] when the reactor has as many handlers as its
    /// [options](crate::Options::max_handlers) allow; [`io::ErrorKind::NotConnected`] when it is closed;
    /// [`io::ErrorKind::AlreadyExists`] when another handler waits on the same handle;
    /// [`io::ErrorKind::Unsupported`] for a trigger that the back end lacks; those of the system, such as for
    /// handles that cannot be waited on. The handler is dropped then, and none of its methods was called but
    /// `pollable`.
    pub fn register_with(
        &self,
        handler: Box<dyn EventHandler>,
        interest: Interest,
        trigger: Trigger,
    ) -> io::Result<HandlerId> {
        let core = self.core();
        let (key, slot) = core.table.take().map_err(|reason| no_slot(reason, core.table.limit()))?;
        let decodes = handler.pollable().is_some_and(|pollable| !pollable.is_plain());
        let word = Word::new(key.generation(), interest, trigger, decodes);
        *slot.handler.lock() = Some(Owned(handler));
        // Claimed, so that a leader that gets an event for it now does not take it for a removed one.
        slot.state.store(word);
        let armed = self.arm(&mut slot.arming.lock(), &slot.handler.lock(), key, word);
        if let Err(error) = armed {
            let handler = slot.handler.lock().take();
            core.table.give_back(key, slot);
            drop(handler);
            return Err(error);
        }
        if current::is(core) {
            self.open_claimed(slot, key);
        } else {
            self.settle(slot, key)?;
            core.queue.push(Item { key, kind: ItemKind::Mail });
            core.nudge();
        }
        if core.table.is_closed() {
            self.remove(HandlerId(key));
        }
        Ok(HandlerId(key))
    }

    /// Closes a handler: its [`handle_close`](EventHandler::handle_close) gets [`CloseReason::Removed`],
    /// before this returns unless the handler is being called at the moment.
    ///
    /// False if it was removed before.
    pub fn remove(&self, id: HandlerId) -> bool {
        let Some(slot) = self.slot(id) else { return false };
        match slot.state.remove(id.0.generation()) {
            Claim::Claimed(_) => {
                self.close_claimed(slot, id.0, self.reason());
                true
            }
            Claim::Deferred | Claim::MustDisarm => true,
            Claim::NotNeeded => false,
        }
    }

    /// Closes a handler from inside of its own call. Its handle is deregistered at once, so that another
    /// handler may be registered for it. [`handle_close`](EventHandler::handle_close) is called when the
    /// present call has returned, as after [`remove`](Self::remove). To be called by the thread that is in
    /// the call; this way several threads can take turns at one handle.
    ///
    /// False if it was removed before.
    pub fn detach(&self, id: HandlerId) -> bool {
        let is_news = self.remove(id);
        if let (true, Some(slot)) = (is_news, self.slot(id)) {
            let mut arming = slot.arming.lock();
            if slot.state.load().generation() == id.0.generation()
                && let Some(handle) = arming.take()
            {
                let _ = self.core().demux.remove(handle);
            }
        }
        is_news
    }

    /// Stops waiting for a handler's handle, until [`resume`](Self::resume). Its timers, signals and notices
    /// continue.
    ///
    /// False if it was removed.
    pub fn suspend(&self, id: HandlerId) -> bool {
        self.alter(id, |word| word.with(SUSPENDED)).is_ok()
    }

    /// Waits again for the handle of a handler that was [suspended](Self::suspend), or whose [one
    /// shot](Trigger::OneShot) has fired.
    ///
    /// False if it was removed, or its handle cannot be waited on any more: the handler is closed then.
    pub fn resume(&self, id: HandlerId) -> bool {
        self.alter(id, |word| word.without(SUSPENDED)).is_ok()
    }

    /// Changes the events that a handler waits for. Suspended handlers stay so, except for those whose [one
    /// shot](Trigger::OneShot) has fired.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if it was removed. If its handle cannot be waited on any more, the error
    /// gives the reason, and the handler is closed.
    pub fn set_interest(&self, id: HandlerId, interest: Interest) -> io::Result<()> {
        self.alter(id, |word| {
            let word = word.with_interest(interest);
            if word.trigger() == Trigger::OneShot { word.without(SUSPENDED) } else { word }
        })
    }

    /// Makes the reactor call a handler as if its handle were `ready`, as far as it wants that and is not
    /// suspended: for changes of an endpoint that its handle does not show, such as the end of input caused
    /// by this side (which Windows does not show).
    ///
    /// False if it was removed.
    pub fn mark_ready(&self, id: HandlerId, ready: Interest) -> bool {
        self.alter(id, |word| word.missing(ready)).is_ok()
    }

    fn alter(&self, id: HandlerId, change: impl Fn(Word) -> Word) -> io::Result<()> {
        let slot = self.slot(id).ok_or_else(stale)?;
        match slot.state.alter(id.0.generation(), change) {
            Claim::Claimed(_) => self.settle(slot, id.0),
            Claim::Deferred | Claim::MustDisarm => Ok(()),
            Claim::NotNeeded => Err(stale()),
        }
    }

    /// Releases a slot that was claimed from outside.
    fn settle(&self, slot: &Slot, key: Key) -> io::Result<()> {
        self.release(slot, key).map_err(|error| {
            let copy = io::Error::new(error.kind(), error.to_string());
            self.close_claimed(slot, key, CloseReason::Failed(error));
            copy
        })
    }

    /// Calls [`handle_notice`](EventHandler::handle_notice) in a thread of the reactor. Notices of one thread
    /// for one handler arrive in order. At most one system call, and none unless the reactor sleeps.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the handler was removed; [`io::ErrorKind::WouldBlock`] if as many
    /// notices and jobs are pending as the reactor's [options](crate::Options::max_notices) allow.
    pub fn notify(&self, id: HandlerId, notice: u64) -> io::Result<()> {
        self.core().queue.admit()?;
        if !self.core().send(id.0, Mail::Notice(notice)) {
            self.core().queue.dismiss(1);
            return Err(stale());
        }
        Ok(())
    }

    /// Runs `job` in a thread of the reactor. A panic in it is caught and logged. If the reactor is closed
    /// first, the job is dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] as for [`notify`](Self::notify); [`io::ErrorKind::NotConnected`] if the
    /// reactor is closed.
    pub fn execute(&self, job: impl FnOnce(&Self) + Send + 'static) -> io::Result<()> {
        if self.core().table.is_closed() {
            return Err(no_slot(NoSlot::Closed, 0));
        }
        self.core().queue.admit()?;
        self.core().queue.push(Item { key: Key(0), kind: ItemKind::Job(Box::new(job)) });
        self.core().nudge();
        Ok(())
    }

    /// Ends the pending wait, or else the next one, and makes all threads in
    /// [`run_until`](crate::Reactor::run_until) check their conditions.
    pub fn wake(&self) {
        // In this order: a follower that was not notified yet may lead by now, and then it has to be woken.
        self.core().lead.check_conditions();
        self.core().raise();
    }

    /// Makes every [`run`](crate::Reactor::run) return; see [`Reactor::stop`](crate::Reactor::stop).
    pub fn stop(&self) {
        self.core().lead.stop();
        self.core().raise();
    }

    /// Schedules a timer: `delay` from now, and then every `interval`,
    /// [`handle_timeout`](EventHandler::handle_timeout) is called with `argument`.
    ///
    /// A handler need not cancel its timers before it is closed. Remaining ones are skipped when they expire,
    /// and take room in the queue until then.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the handler was removed; [`io::ErrorKind::QuotaExceeded`] if there are
    /// too many timers.
    pub fn schedule(
        &self,
        id: HandlerId,
        delay: Duration,
        interval: Option<Duration>,
        argument: u64,
    ) -> io::Result<TimerId> {
        self.live(id)?;
        let at = self.now() + delay;
        self.core()
            .with_timers(|timers| timers.schedule(at, interval, (id.0, argument)))
            .map_err(|full| io::Error::new(io::ErrorKind::QuotaExceeded, full))
    }

    /// Cancels a timer. False if it has expired or was cancelled. (If it has just expired, and its handler is
    /// busy, [`handle_timeout`](EventHandler::handle_timeout) may still be called.)
    pub fn cancel(&self, timer: TimerId) -> bool {
        self.core().with_timers(|timers| timers.cancel(timer)).is_some()
    }

    /// Sets a new time and interval of a timer. False if it has expired or was cancelled.
    pub fn reschedule(&self, timer: TimerId, delay: Duration, interval: Option<Duration>) -> bool {
        let at = self.now() + delay;
        self.core().with_timers(|timers| timers.reschedule(timer, at, interval))
    }

    /// The present time of the reactor's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.core().clock.now()
    }

    /// The number of handlers.
    #[must_use]
    pub fn len(&self) -> usize {
        let ours = {
            #[cfg(unix)]
            let sources = self.core().signals.len();
            #[cfg(not(unix))]
            let sources = 0;
            sources
        };
        self.core().table.len().saturating_sub(ours)
    }

    /// Whether there is no handler.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The mechanism that waits for the handles.
    #[must_use]
    pub fn backend(&self) -> crate::Backend {
        self.core().demux.backend()
    }

    /// Whether a handler with that identifier is registered.
    #[must_use]
    pub fn contains(&self, id: HandlerId) -> bool {
        self.live(id).is_ok()
    }

    fn slot(&self, id: HandlerId) -> Option<&Slot> {
        self.core().table.slot(id.0)
    }

    pub(crate) fn live(&self, id: HandlerId) -> io::Result<()> {
        let is_live = self.slot(id).is_some_and(|slot| slot.state.load().is(id.0.generation()));
        if is_live { Ok(()) } else { Err(stale()) }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.0).finish()
    }
}

fn stale() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no such handler: it was closed")
}

fn no_slot(reason: NoSlot, limit: usize) -> io::Error {
    match reason {
        NoSlot::Full => {
            let text = format!("the reactor has {limit} handlers, the limit of its options (max_handlers)");
            io::Error::new(io::ErrorKind::QuotaExceeded, text)
        }
        NoSlot::Closed => io::Error::new(io::ErrorKind::NotConnected, "the reactor is closed"),
    }
}
