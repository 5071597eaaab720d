//! Registration of handlers, and the events for which they wait.

use std::io;

use spandrel_ipc::Interest;

use super::{CloseReason, EventHandler, Item, Registry, Slot, no_slot, stale};
use crate::key::{HandlerId, Key};
use crate::queue::ItemKind;
use crate::state::{Claim, SUSPENDED, Word};
use crate::table::Owned;
use crate::{Trigger, current};

impl Registry {
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
        let is_held = self.holds_registrations();
        let word = Word::new(key.generation(), interest, trigger, decodes);
        let word = if is_held { word.with(SUSPENDED) } else { word };
        let mut arming = slot.arming.lock();
        let mut body = slot.handler.lock_claimed(); // no other thread knows it
        *body = Some(Owned(handler));
        // Claimed, so that a leader that gets an event for it now does not take it for a removed one.
        slot.state.store(word);
        let armed = self.arm(&mut arming, &body, key, word);
        drop(arming);
        if let Err(error) = armed {
            let handler = body.take();
            drop(body);
            core.table.give_back(key, slot);
            drop(handler);
            return Err(error);
        }
        if is_held {
            Self::hold(HandlerId(key));
        }
        if current::is(core) {
            self.open_claimed(slot, body, key);
        } else {
            drop(body);
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
}
