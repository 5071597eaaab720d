//! What is to be dispatched besides what the demultiplexer shows: notices and jobs from other threads, and what has to wait until
//! a busy handler is free.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;

use spandrel_ipc::Interest;
use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicUsize, Ordering};

use crate::table::Key;
use crate::{Expired, Registry};

/// One thing to dispatch.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) key: Key,
    pub(crate) what: What,
}

/// What to dispatch.
pub(crate) enum What {
    /// The handle showed this.
    Shown(Interest),
    /// As above, and the slot was claimed already.
    Claimed(Interest),
    /// The handler is ready for this, whatever its handle shows.
    Ready(Interest),
    /// A new handler is to be opened.
    Open,
    Timeout(Expired),
    #[cfg(unix)]
    Signal(crate::Signal),
    Notice(u64),
    Job(Job),
}

/// Something to run in a thread of the reactor.
pub(crate) type Job = Box<dyn FnOnce(&Registry) + Send>;

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, argument): (_, &dyn fmt::Debug) = match self {
            Self::Shown(ready) => ("Shown", ready),
            Self::Claimed(ready) => ("Claimed", ready),
            Self::Ready(ready) => ("Ready", ready),
            Self::Open => return f.write_str("Open"),
            Self::Timeout(timer) => ("Timeout", timer),
            #[cfg(unix)]
            Self::Signal(signal) => ("Signal", signal),
            Self::Notice(notice) => ("Notice", notice),
            Self::Job(_) => return f.write_str("Job"),
        };
        f.debug_tuple(name).field(argument).finish()
    }
}

/// Notices and jobs, in order, of which there is a limited number under way.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Length of `items`, to be looked at without the lock.
    len: AtomicUsize,
    /// Notices and jobs that were accepted and not yet dispatched, wherever they are.
    under_way: AtomicUsize,
    limit: usize,
    items: Mutex<VecDeque<Item>>,
    /// What came for handlers while they were busy.
    parked: Mutex<HashMap<Key, VecDeque<What>>>,
}

impl Queue {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            len: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            limit,
            items: Mutex::new(VecDeque::new()),
            parked: Mutex::new(HashMap::new()),
        }
    }

    /// Accepts a notice or a job, unless there are too many.
    pub(crate) fn accept(&self, item: Item) -> io::Result<()> {
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            let text = format!("{} notices and jobs are under way already", self.limit);
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        self.push(item);
        Ok(())
    }

    /// Takes what is not limited, because there is at most one for each of something else.
    pub(crate) fn push(&self, item: Item) {
        let mut items = self.items.lock();
        items.push_back(item);
        self.len.store(items.len(), Ordering::SeqCst);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::SeqCst) == 0
    }

    /// Moves up to `most` items over.
    pub(crate) fn take(&self, most: usize, into: &mut Vec<Item>) {
        if self.is_empty() {
            return;
        }
        let mut items = self.items.lock();
        let most = most.min(items.len());
        into.extend(items.drain(..most));
        self.len.store(items.len(), Ordering::SeqCst);
    }

    /// A notice or a job was dispatched, or is moot.
    pub(crate) fn done(&self, what: &What) {
        if matches!(what, What::Notice(_) | What::Job(_)) {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Puts something by for a handler, if it is busy: `note` tells, and leaves a note with who has claimed it.
    pub(crate) fn park<R>(&self, key: Key, what: What, note: impl FnOnce() -> Result<(), R>) -> Result<(), (What, R)> {
        let mut parked = self.parked.lock();
        match note() {
            Ok(()) => {
                let mail = parked.entry(key).or_default();
                if let Some(what) = merge(mail, what) {
                    mail.push_back(what);
                }
                Ok(())
            }
            Err(claimed) => Err((what, claimed)),
        }
    }

    /// Takes the note back, under the lock, and puts what was parked before everything else.
    pub(crate) fn unpark(&self, key: Key, take_note: impl FnOnce()) {
        let mut parked = self.parked.lock();
        take_note();
        let Some(mail) = parked.remove(&key) else { return };
        let mut items = self.items.lock();
        for what in mail.into_iter().rev() {
            items.push_front(Item { key, what });
        }
        self.len.store(items.len(), Ordering::SeqCst);
    }

    /// Drops what was parked for a handler that is closed.
    pub(crate) fn forget(&self, key: Key) {
        let mail = self.parked.lock().remove(&key);
        mail.iter().flatten().for_each(|what| self.done(what));
    }

    /// Drops everything.
    pub(crate) fn clear(&self) {
        let items = std::mem::take(&mut *self.items.lock());
        self.len.store(0, Ordering::SeqCst);
        items.iter().for_each(|item| self.done(&item.what));
    }
}

/// Counts what is there already, so that a handler that is busy for long is not buried by its own interval timers and signals.
fn merge(mail: &mut VecDeque<What>, what: What) -> Option<What> {
    for there in mail.iter_mut() {
        match (there, &what) {
            (What::Timeout(there), What::Timeout(new)) if there.id == new.id => {
                there.missed += 1 + new.missed;
                return None;
            }
            #[cfg(unix)]
            (What::Signal(there), What::Signal(new)) if there == new => return None,
            _ => {}
        }
    }
    Some(what)
}
