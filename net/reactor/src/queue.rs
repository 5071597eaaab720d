//! Items to dispatch besides ready handles: jobs, and the mail of handlers.
//!
//! The notices, timers and signals of a handler are in the mailbox of its slot. While there is mail, one item
//! of the queue (or one thread) stands for it; the thread that claims the handler then takes the mail out in
//! order. So the order does not depend on the number of threads.
//!
//! The bounded queue of half-sync/half-async is in `leader_followers`.

use std::collections::VecDeque;
use std::io;

use spandrel_ipc::Interest;
use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicUsize, Ordering};

use crate::key::Key;
#[cfg(unix)]
use crate::signal::Signal;
use crate::timer::{Time, TimerId};

/// One thing to dispatch; `J` are jobs.
pub(crate) struct Item<J> {
    pub(crate) key: Key,
    pub(crate) kind: ItemKind<J>,
}

/// The events for which a handler is ready although its handle does not show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedReady {
    /// Reported by the endpoint, which is checked again: another thread may have consumed them.
    pub(crate) ready: Interest,
    /// Marked by other code, or reported while it was busy: they will not be reported again.
    pub(crate) marked: Interest,
}

/// The kind of an item.
pub(crate) enum ItemKind<J> {
    /// The handle is ready for these events.
    ReadyHandle(Interest),
    /// As above, and the slot is claimed already.
    Claimed(Interest),
    /// The handler is ready although its handle does not show it.
    Ready(ListedReady),
    /// There is mail, or the handler is to be opened.
    Mail,
    /// A job to run in a thread of the reactor.
    Job(J),
}

/// Jobs, and tokens of mail, in order.
pub(crate) struct Queue<J> {
    /// Length of `items`, readable without the lock.
    len: AtomicUsize,
    /// The number of notices and jobs that were accepted and not yet dispatched.
    under_way: AtomicUsize,
    limit: usize,
    items: Mutex<VecDeque<Item<J>>>,
}

impl<J> Queue<J> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { len: AtomicUsize::new(0), under_way: AtomicUsize::new(0), limit, items: Mutex::new(VecDeque::new()) }
    }

    /// Reserves room for a notice or a job, unless there are too many.
    pub(crate) fn admit(&self) -> io::Result<()> {
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.dismiss(1);
            let text = format!(
                "{} notices and jobs are pending, the limit of the reactor's options (max_notices)",
                self.limit
            );
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        Ok(())
    }

    /// Releases the room of notices or jobs that were dispatched or dropped.
    pub(crate) fn dismiss(&self, count: usize) {
        self.under_way.fetch_sub(count, Ordering::Relaxed);
    }

    /// Adds an admitted job; or the token for a handler's mail, of which there is at most one, besides that
    /// for its opening.
    pub(crate) fn push(&self, item: Item<J>) {
        let mut items = self.items.lock();
        items.push_back(item);
        self.len.store(items.len(), Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::SeqCst) == 0
    }

    /// Moves up to `max_events` items over.
    pub(crate) fn take(&self, max_events: usize, into: &mut Vec<Item<J>>) {
        let mut items = self.items.lock();
        let max_events = max_events.min(items.len());
        into.extend(items.drain(..max_events));
        self.len.store(items.len(), Ordering::SeqCst);
    }

    /// Takes all queued items, in order.
    pub(crate) fn drain(&self) -> VecDeque<Item<J>> {
        let mut items = self.items.lock();
        self.len.store(0, Ordering::SeqCst);
        std::mem::take(&mut items)
    }
}

/// An expired timer, the argument of [`EventHandler::handle_timeout`](crate::EventHandler::handle_timeout).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired {
    /// The timer that has expired.
    pub id: TimerId,
    /// The number with which it was scheduled, by which a handler can tell its timers apart.
    pub argument: u64,
    /// The number of further expiries of an interval timer that this call stands for, because they were not
    /// dispatched in time.
    pub missed: u64,
}

/// An expired timer whose handler is to be called, unless the timer is cancelled or gets another time before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueTimer {
    pub(crate) expired: Expired,
    /// The time for which it was scheduled.
    pub(crate) due: Time,
    /// The time that the timer has in the queue meanwhile; `None` if it has left the queue.
    pub(crate) armed: Option<Time>,
    /// Whether it expires no more.
    pub(crate) is_last: bool,
}

/// One piece of a handler's mail.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mail {
    Timeout(DueTimer),
    #[cfg(unix)]
    Signal(Signal),
    Notice(u64),
    /// The handler was woken.
    Wakeup,
}

/// A handler's mail, in order. Allocated on first use; boxed, because most handlers never get any.
#[derive(Debug, Default)]
#[allow(clippy::box_collection, reason = "a slot has room for one word")]
pub(crate) struct Mailbox(Option<Box<VecDeque<Mail>>>);

impl Mailbox {
    /// Adds mail; returns whether it was empty, so that it needs a token.
    pub(crate) fn put(&mut self, mail: Mail) -> bool {
        let letters = self.0.get_or_insert_default();
        let was_empty = letters.is_empty();
        if was_empty || !merges(letters, &mail) {
            letters.push_back(mail);
        }
        was_empty
    }

    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |letters| letters.len())
    }

    /// Takes the first piece of mail. Also returns how much is left; what is put into an empty mailbox needs a token
    /// of its own.
    pub(crate) fn take(&mut self) -> (Option<Mail>, usize) {
        (self.0.as_mut().and_then(|letters| letters.pop_front()), self.len())
    }

    /// Takes all letters, in order.
    pub(crate) fn drain(&mut self) -> VecDeque<Mail> {
        self.0.take().map_or_else(VecDeque::new, |letters| *letters)
    }
}

/// Merges with equal mail that is queued already, so that interval timers, signals and wake-ups do not fill
/// the mailbox of a busy handler.
fn merges(there: &mut VecDeque<Mail>, mail: &Mail) -> bool {
    match mail {
        Mail::Notice(_) => false,
        Mail::Timeout(new) => there.iter_mut().any(|old| match old {
            // An earlier expiry of a timer that was given another time is replaced.
            Mail::Timeout(old) if old.expired.id == new.expired.id => {
                let missed = if old.armed == Some(new.due) { 1 + old.expired.missed } else { 0 };
                *old = *new;
                old.expired.missed += missed;
                true
            }
            _ => false,
        }),
        #[cfg(unix)]
        Mail::Signal(new) => there.iter().any(|old| matches!(old, Mail::Signal(old) if old == new)),
        Mail::Wakeup => there.iter().any(|old| matches!(old, Mail::Wakeup)),
    }
}
