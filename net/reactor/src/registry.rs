//! The interface of a reactor for other threads, and the handlers that it calls.
//!
//! A registry refers to the handlers, and a handler's context to the registry: so all are in one file. The
//! reactor's [`core`](crate::core) is generic, and depends on neither.

mod close_reason;
mod held;
mod registration;

use std::fmt;
use std::io;
use std::ops::Deref;
use std::time::Duration;

use spandrel_ipc::{Interest, Pollable};
use spandrel_sync::Arc;

use crate::key::{HandlerId, Key};
use crate::leader_followers::DispatchId;
use crate::queue::{ItemKind, Mail};
use crate::table::NoSlot;
use crate::timer::{Time, TimerId};
use crate::{Expired, core, queue, table};

pub use close_reason::CloseReason;
pub use held::HeldRegistrations;

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

    /// Calls [`handle_wakeup`](EventHandler::handle_wakeup) in a thread of the reactor. Further wake-ups
    /// before that call are merged into one. A wake-up takes no room of
    /// [`max_notices`](crate::Options::max_notices), so it never fails for lack of room: the work itself
    /// waits elsewhere, in a queue that its owner bounds.
    ///
    /// False if the handler was removed.
    pub fn wake_handler(&self, id: HandlerId) -> bool {
        self.core().send(id.0, Mail::Wakeup)
    }

    /// Runs `job` in a thread of the reactor. A panic in it is caught and logged. If the reactor is closed
    /// first, the job is dropped.
    ///
    /// Queued jobs and notices come before the next look at the handles. Those that are queued meanwhile come after it,
    /// so that jobs which queue others do not keep the handles waiting.
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
        self.core().leadership.check_conditions();
        self.core().raise();
    }

    /// Makes every [`run`](crate::Reactor::run) return; see [`Reactor::stop`](crate::Reactor::stop).
    pub fn stop(&self) {
        self.core().leadership.stop();
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
            .schedule(id.0, at, interval, argument)
            .map_err(|full| io::Error::new(io::ErrorKind::QuotaExceeded, full))
    }

    /// Cancels a timer: [`handle_timeout`](EventHandler::handle_timeout) is not called for it any more, also if it is
    /// due already and another handler is called first. False if its last call has begun or it was cancelled.
    pub fn cancel(&self, timer: TimerId) -> bool {
        self.core().with_timers(|timers| timers.cancel(timer)).is_some()
    }

    /// Sets a new time and interval of a timer, before which its handler is not called. False if its last call has
    /// begun or it was cancelled.
    pub fn reschedule(&self, timer: TimerId, delay: Duration, interval: Option<Duration>) -> bool {
        let at = self.now() + delay;
        self.core().reschedule(timer, at, interval)
    }

    /// The present time of the reactor's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.core().clock.now()
    }

    /// The handlers that are registered, suspended ones included.
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

    /// Whether no handler is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The mechanism that waits for the handles.
    #[must_use]
    pub fn backend(&self) -> crate::Backend {
        self.core().demux.backend()
    }

    /// Whether the handler is registered still.
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

/// The registry of the reactor that calls a handler, and the handler's identifier.
pub struct Context<'a> {
    registry: &'a Registry,
    id: HandlerId,
    dispatch_id: DispatchId,
}

impl<'a> Context<'a> {
    #[inline]
    pub(crate) fn new(registry: &'a Registry, id: HandlerId, dispatch_id: DispatchId) -> Self {
        Self { registry, id, dispatch_id }
    }

    /// The handler that is being called.
    #[must_use]
    pub fn id(&self) -> HandlerId {
        self.id
    }

    /// Closes this handler when the present call has returned.
    pub fn close(&self) {
        self.registry.remove(self.id);
    }

    /// Sets the events that this handler wants from now on; as [`Registry::set_interest`], taking effect when
    /// the present call has returned.
    pub fn set_interest(&self, interest: Interest) {
        // It fails only for a handler that is being closed, where it has no effect.
        let _ = self.registry.set_interest(self.id, interest);
    }

    /// Schedules a timer for this handler, as [`Registry::schedule`].
    ///
    /// # Errors
    /// As [`Registry::schedule`].
    pub fn schedule(&self, delay: Duration, interval: Option<Duration>, argument: u64) -> io::Result<TimerId> {
        self.registry.schedule(self.id, delay, interval, argument)
    }

    /// Whether the event is one of several that the reactor has found together.
    #[must_use]
    pub fn is_one_of_several(&self) -> bool {
        self.dispatch_id == DispatchId::NONE
    }

    /// Lets another waiting thread lead from now on: to be called before long work, so that other handlers do
    /// not wait until the reactor notices by itself.
    pub fn promote(&self) {
        self.registry.core().leadership.promote(self.dispatch_id);
    }
}

impl Deref for Context<'_> {
    type Target = Registry;
    fn deref(&self) -> &Registry {
        self.registry
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Serves the events of one handle, of timers, of signals and of notices (paper 002, section 2.4).
///
/// A handler is owned by its reactor from [`register`](crate::Registry::register) on. At most one thread is
/// inside at any time, so that its methods take `&mut self` and need no locks. It must not block: waiting is
/// the reactor's task. (If it has to, [`Context::promote`] lets another thread take over first.)
///
/// An error or a panic of a method closes the handler: its handle is deregistered,
/// [`handle_close`](Self::handle_close) gets the reason, and the handler is dropped. The reactor and its
/// other handlers continue. Two errors close nothing, because they mean that there was nothing to do:
/// [`io::ErrorKind::WouldBlock`] and [`io::ErrorKind::Interrupted`].
///
/// The provided methods for events fail, so that unhandled events are noticed instead of spinning.
///
/// When one wait reports several kinds of events for a handle, output is dispatched first, then exception,
/// then input: so room is made before more arrives, and urgent data precedes the octets that follow it.
pub trait EventHandler: Send + 'static {
    /// The endpoint to wait on; `None` for a handler of timers, signals and notices alone.
    ///
    /// Its handle stays open and the same while it is registered. To exchange it, call
    /// [`set_interest`](crate::Registry::set_interest) right after: that calls this method again.
    fn pollable(&self) -> Option<&dyn Pollable>;

    /// Called once, before any other method, in a thread of the reactor.
    ///
    /// # Errors
    /// Any error closes the handler.
    fn handle_open(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Ok(())
    }

    /// There are octets to receive, a connection to accept, or the end of the stream.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Err(unhandled("input"))
    }

    /// There is room to send, or an attempt to connect has ended.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_output(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Err(unhandled("output"))
    }

    /// Out-of-band data has arrived.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_exception(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Err(unhandled("exceptions"))
    }

    /// A timer of this handler has expired.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_timeout(&mut self, cx: &Context<'_>, timer: Expired) -> io::Result<()> {
        let _ = (cx, timer);
        Err(unhandled("timers"))
    }

    /// A signal has arrived that this handler was [registered for](crate::Registry::on_signal). Runs like any
    /// other method, not in the restricted context of a signal handler. Signals of one kind in quick
    /// succession may be merged into one.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    #[cfg(unix)]
    fn handle_signal(&mut self, cx: &Context<'_>, signal: crate::Signal) -> io::Result<()> {
        let _ = (cx, signal);
        Err(unhandled("signals"))
    }

    /// [`notify`](crate::Registry::notify) was called for this handler.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_notice(&mut self, cx: &Context<'_>, notice: u64) -> io::Result<()> {
        let _ = (cx, notice);
        Err(unhandled("notices"))
    }

    /// [`wake_handler`](crate::Registry::wake_handler) was called for this handler, at least once since this
    /// method was last called.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_wakeup(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Err(unhandled("wake-ups"))
    }

    /// The last call, after which the handler is dropped. Its handle is deregistered, and its identifier is
    /// stale.
    ///
    /// Called even if the handler was closed before [`handle_open`](Self::handle_open).
    fn handle_close(&mut self, cx: &Context<'_>, reason: CloseReason) {
        let _ = (cx, reason);
    }
}

fn unhandled(event: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("the handler does not handle {event}"))
}
