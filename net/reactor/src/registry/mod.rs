//! What everybody but the reactor's own threads does with a reactor, and the handlers that it calls.
//!
//! A registry leads to the handlers, and a handler's context to the registry: so they stand in one place. What a reactor consists of
//! ([`core`](crate::core)) is generic, and knows neither.

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
use crate::queue::{Mail, What};
use crate::state::{Claim, SUSPENDED, Word};
use crate::table::{NoSlot, Owned};
use crate::timer::{Time, TimerId};
use crate::{Trigger, core, inside, queue, table};

/// Something to run in a thread of the reactor.
pub(crate) type Job = Box<dyn FnOnce(&Registry) + Send>;
pub(crate) type Core = core::Core<dyn EventHandler, Job>;
pub(crate) type Slot = table::Slot<dyn EventHandler>;
pub(crate) type Item = queue::Item<Job>;

/// The handlers of a reactor: what is registered, what it waits for, when, and whom to tell.
///
/// Cheap to clone; every method may be called from any thread, also from inside a handler, and none waits for a handler. What is
/// done to a handler that is being called takes effect when that call has returned.
#[derive(Clone)]
pub struct Registry(pub(crate) Arc<Core>);

impl Registry {
    #[inline]
    pub(crate) fn core(&self) -> &Core {
        &self.0
    }

    /// Takes a handler over and waits for `interest`, as long as the handle is ready for it ([`Trigger::Level`]).
    ///
    /// Its [`handle_open`](EventHandler::handle_open) is called before this returns if the caller is a thread of the reactor, and
    /// otherwise by one of those; either way the id may be stale before anybody can use it.
    ///
    /// # Errors
    /// As [`register_with`](Self::register_with).
    pub fn register(&self, handler: impl EventHandler, interest: Interest) -> io::Result<HandlerId> {
        self.register_with(Box::new(handler), interest, Trigger::Level)
    }

    /// As [`register`](Self::register), with a choice of [`Trigger`].
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] when the reactor holds as many handlers as its [options](crate::Options::max_handlers)
    /// allow; [`io::ErrorKind::NotConnected`] when it is closed; [`io::ErrorKind::AlreadyExists`] when another handler waits on the
    /// same handle; [`io::ErrorKind::Unsupported`] for a trigger that the back end does not have; those of the system, such as for
    /// handles that cannot be waited on. The handler is dropped then, and none of its methods was called but `pollable`.
    pub fn register_with(
        &self,
        handler: Box<dyn EventHandler>,
        interest: Interest,
        trigger: Trigger,
    ) -> io::Result<HandlerId> {
        let core = self.core();
        let (key, slot) = core.table.take().map_err(|why| no_slot(why, core.table.limit()))?;
        let decodes = handler.pollable().is_some_and(|pollable| !pollable.is_plain());
        let word = Word::new(key.generation(), interest, trigger, decodes);
        *slot.handler.lock() = Some(Owned(handler));
        // Claimed, so that a leader to whom it is shown while we are at it does not take it for one that is gone.
        slot.state.store(word);
        let armed = self.arm(&mut slot.arming.lock(), &slot.handler.lock(), key, word);
        if let Err(error) = armed {
            let handler = slot.handler.lock().take();
            core.table.give_back(key, slot);
            drop(handler);
            return Err(error);
        }
        if inside::is(core) {
            self.open_claimed(slot, key);
        } else {
            self.settle(slot, key)?;
            core.queue.push(Item { key, what: What::Mail });
            core.nudge();
        }
        if core.table.is_closed() {
            self.remove(HandlerId(key));
        }
        Ok(HandlerId(key))
    }

    /// Closes a handler: its [`handle_close`](EventHandler::handle_close) is told [`CloseReason::Removed`], before this returns
    /// unless the handler is being called at the moment.
    ///
    /// False if it was removed before.
    pub fn remove(&self, id: HandlerId) -> bool {
        let Some(slot) = self.slot(id) else { return false };
        match slot.state.remove(id.0.generation()) {
            Claim::Claimed(_) => {
                self.close_claimed(slot, id.0, self.reason());
                true
            }
            Claim::Noted | Claim::Spinning => true,
            Claim::Moot => false,
        }
    }

    /// Closes a handler from inside of its own call: its handle is waited for no longer from now on, so that another handler may be
    /// registered for it at once; [`handle_close`](EventHandler::handle_close) comes when the present call has returned, as after
    /// [`remove`](Self::remove). To be called by the thread that is in the call, by which several may work at one handle.
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

    /// Waits for a handler's handle no longer, until [`resume`](Self::resume). Its timers, signals and notices go on.
    ///
    /// False if it was removed.
    pub fn suspend(&self, id: HandlerId) -> bool {
        self.alter(id, |word| word.with(SUSPENDED)).is_ok()
    }

    /// Waits again for a handler's handle that was [suspended](Self::suspend), or has had its [one shot](Trigger::OneShot).
    ///
    /// False if it was removed, or its handle cannot be waited on any more: the handler is closed then.
    pub fn resume(&self, id: HandlerId) -> bool {
        self.alter(id, |word| word.without(SUSPENDED)).is_ok()
    }

    /// Waits for something else for a handler. Suspended handlers stay so, except for those that have had their
    /// [one shot](Trigger::OneShot).
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if it was removed. If its handle cannot be waited on any more, the error says why, and the
    /// handler is closed.
    pub fn set_interest(&self, id: HandlerId, interest: Interest) -> io::Result<()> {
        self.alter(id, |word| {
            let word = word.with_interest(interest);
            if word.trigger() == Trigger::OneShot { word.without(SUSPENDED) } else { word }
        })
    }

    /// Has a handler called as if its handle had shown `ready`, as far as it wants that and is not suspended: for what has changed
    /// about an endpoint and its handle does not show, such as the end of what can be received, where this side has brought it
    /// about (Windows shows no such end).
    ///
    /// False if it was removed.
    pub fn mark_ready(&self, id: HandlerId, ready: Interest) -> bool {
        self.alter(id, |word| word.missing(ready)).is_ok()
    }

    fn alter(&self, id: HandlerId, change: impl Fn(Word) -> Word) -> io::Result<()> {
        let slot = self.slot(id).ok_or_else(stale)?;
        match slot.state.alter(id.0.generation(), change) {
            Claim::Claimed(_) => self.settle(slot, id.0),
            Claim::Noted | Claim::Spinning => Ok(()),
            Claim::Moot => Err(stale()),
        }
    }

    /// Releases a slot that was claimed from outside.
    fn settle(&self, slot: &Slot, key: Key) -> io::Result<()> {
        self.release(slot, key).map_err(|error| {
            let told = io::Error::new(error.kind(), error.to_string());
            self.close_claimed(slot, key, CloseReason::Failed(error));
            told
        })
    }

    /// Has [`handle_notice`](EventHandler::handle_notice) called in a thread of the reactor. Notices for one handler arrive in the
    /// order in which one thread sent them. At most one system call, and none unless the reactor sleeps.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the handler was removed; [`io::ErrorKind::WouldBlock`] if as many notices and jobs are under
    /// way as the reactor's [options](crate::Options::max_notices) allow.
    pub fn notify(&self, id: HandlerId, notice: u64) -> io::Result<()> {
        self.core().queue.admit()?;
        if !self.core().send(id.0, Mail::Notice(notice)) {
            self.core().queue.dismiss(1);
            return Err(stale());
        }
        Ok(())
    }

    /// Runs `job` in a thread of the reactor. A panic in it is caught and reported. When the reactor is closed first, the job is
    /// dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] as for [`notify`](Self::notify); [`io::ErrorKind::NotConnected`] if the reactor is closed.
    pub fn execute(&self, job: impl FnOnce(&Self) + Send + 'static) -> io::Result<()> {
        if self.core().table.is_closed() {
            return Err(no_slot(NoSlot::Closed, 0));
        }
        self.core().queue.admit()?;
        self.core().queue.push(Item { key: Key(0), what: What::Job(Box::new(job)) });
        self.core().nudge();
        Ok(())
    }

    /// Ends the wait that is under way, or else the next one, and has all threads in
    /// [`run_until`](crate::Reactor::run_until) look whether what they run for has come true.
    pub fn wake(&self) {
        // In this order: a follower that has not been told yet may lead by now, and is the one to be raised.
        self.core().lead.look();
        self.core().raise();
    }

    /// Has every [`run`](crate::Reactor::run) return; see [`Reactor::stop`](crate::Reactor::stop).
    pub fn stop(&self) {
        self.core().lead.stop();
        self.core().raise();
    }

    /// Schedules a timer: `delay` from now, and then every `interval`, [`handle_timeout`](EventHandler::handle_timeout) is called
    /// with `argument`.
    ///
    /// A handler need not cancel its timers before it is closed. Those that are left are passed over when their time comes, and
    /// take room in the queue until then.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the handler was removed; [`io::ErrorKind::QuotaExceeded`] if there are too many timers.
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

    /// Cancels a timer. False if it has expired or was cancelled. (Where it has expired just now, and its handler is busy,
    /// [`handle_timeout`](EventHandler::handle_timeout) may still be called.)
    pub fn cancel(&self, timer: TimerId) -> bool {
        self.core().with_timers(|timers| timers.cancel(timer)).is_some()
    }

    /// Gives a timer another time and interval. False if it has expired or was cancelled.
    pub fn reschedule(&self, timer: TimerId, delay: Duration, interval: Option<Duration>) -> bool {
        let at = self.now() + delay;
        self.core().with_timers(|timers| timers.reschedule(timer, at, interval))
    }

    /// What the reactor's clock shows.
    #[must_use]
    pub fn now(&self) -> Time {
        self.core().clock.now()
    }

    /// How many handlers there are.
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

    /// What waits for the handles.
    #[must_use]
    pub fn backend(&self) -> crate::Backend {
        self.core().demux.backend()
    }

    /// Whether a handler is registered under that id.
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

fn no_slot(why: NoSlot, limit: usize) -> io::Error {
    match why {
        NoSlot::Full => {
            let text = format!("the reactor holds {limit} handlers, the most that its options allow");
            io::Error::new(io::ErrorKind::QuotaExceeded, text)
        }
        NoSlot::Closed => io::Error::new(io::ErrorKind::NotConnected, "the reactor is closed"),
    }
}
