//! What is to be dispatched besides what the demultiplexer shows: jobs, and the mail of handlers.
//!
//! A handler's notices, timers and signals lie in its mailbox, in its slot. While there is mail, one item of the queue (or one
//! thread) says so; whoever claims the handler then takes the mail out in order. So order is kept whatever the number of threads.

use std::collections::VecDeque;
use std::io;

use spandrel_ipc::Interest;
use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicUsize, Ordering};

use crate::key::Key;
#[cfg(unix)]
use crate::signal::Signal;
use crate::timer::TimerId;

/// One thing to dispatch; `J` are jobs.
pub(crate) struct Item<J> {
    pub(crate) key: Key,
    pub(crate) what: What<J>,
}

/// What a handler is ready for though its handle does not show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// It said so itself, and is asked again: somebody may have been quicker.
    pub(crate) ready: Interest,
    /// Somebody else said so, or it was shown while it was busy: nobody will say it again.
    pub(crate) marked: Interest,
}

/// What to dispatch.
pub(crate) enum What<J> {
    /// The handle showed this.
    Shown(Interest),
    /// As above, and the slot was claimed already.
    Claimed(Interest),
    /// The handler is ready, whatever its handle shows.
    Ready(Listed),
    /// There is mail, or the handler is to be opened.
    Mail,
    /// Something to run in a thread of the reactor.
    Job(J),
}

/// Jobs, and tokens of mail, in order.
pub(crate) struct Queue<J> {
    /// Length of `items`, to be looked at without the lock.
    len: AtomicUsize,
    /// Notices and jobs that were accepted and not yet dispatched.
    under_way: AtomicUsize,
    limit: usize,
    items: Mutex<VecDeque<Item<J>>>,
}

impl<J> Queue<J> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { len: AtomicUsize::new(0), under_way: AtomicUsize::new(0), limit, items: Mutex::new(VecDeque::new()) }
    }

    /// Makes room for a notice or a job, unless there are too many.
    pub(crate) fn admit(&self) -> io::Result<()> {
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.dismiss(1);
            let text = format!("{} notices and jobs are under way already", self.limit);
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        Ok(())
    }

    /// So many notices or jobs were dispatched, or are moot.
    pub(crate) fn dismiss(&self, count: usize) {
        self.under_way.fetch_sub(count, Ordering::Relaxed);
    }

    /// Takes an admitted job; or a token of mail, of which there is one for each handler, apart from that for its opening.
    pub(crate) fn push(&self, item: Item<J>) {
        let mut items = self.items.lock();
        items.push_back(item);
        self.len.store(items.len(), Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::SeqCst) == 0
    }

    /// Moves up to `most` items over.
    pub(crate) fn take(&self, most: usize, into: &mut Vec<Item<J>>) {
        let mut items = self.items.lock();
        let most = most.min(items.len());
        into.extend(items.drain(..most));
        self.len.store(items.len(), Ordering::SeqCst);
    }

    /// Takes everything.
    pub(crate) fn drain(&self) -> VecDeque<Item<J>> {
        let mut items = self.items.lock();
        self.len.store(0, Ordering::SeqCst);
        std::mem::take(&mut items)
    }
}

/// A timer that has expired, as [`EventHandler::handle_timeout`](crate::EventHandler::handle_timeout) is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired {
    /// Which timer.
    pub id: TimerId,
    /// What it was scheduled with.
    pub argument: u64,
    /// How many more expiries of an interval timer this one stands for, because they could not be told in time.
    pub missed: u64,
}

/// One piece of a handler's mail.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mail {
    Timeout(Expired),
    #[cfg(unix)]
    Signal(Signal),
    Notice(u64),
}

/// A handler's mail, in order. Made when the first comes; boxed, because most handlers never get any.
#[derive(Debug, Default)]
#[allow(clippy::box_collection, reason = "a slot has room for one word")]
pub(crate) struct Mailbox(Option<Box<VecDeque<Mail>>>);

impl Mailbox {
    /// Whether it was empty, so that it takes a token.
    pub(crate) fn put(&mut self, mail: Mail) -> bool {
        let letters = self.0.get_or_insert_default();
        let was_empty = letters.is_empty();
        if was_empty || !merges(letters, &mail) {
            letters.push_back(mail);
        }
        was_empty
    }

    /// Moves as much over as there is room for, and says whether there is more.
    pub(crate) fn take(&mut self, room: &mut [Option<Mail>]) -> bool {
        let Some(letters) = self.0.as_mut() else { return false };
        for place in room {
            *place = letters.pop_front();
        }
        !letters.is_empty()
    }

    /// Empties it, and says how many notices there were.
    pub(crate) fn clear(&mut self) -> usize {
        let mail = self.0.take().unwrap_or_default();
        mail.iter().filter(|mail| matches!(mail, Mail::Notice(_))).count()
    }
}

/// Counts what is there already, so that a handler that is busy for long is not buried by its own interval timers and signals.
fn merges(there: &mut VecDeque<Mail>, mail: &Mail) -> bool {
    match mail {
        Mail::Notice(_) => false,
        Mail::Timeout(new) => there.iter_mut().any(|old| match old {
            Mail::Timeout(old) if old.id == new.id => {
                old.missed += 1 + new.missed;
                true
            }
            _ => false,
        }),
        #[cfg(unix)]
        Mail::Signal(new) => there.iter().any(|old| matches!(old, Mail::Signal(old) if old == new)),
    }
}
