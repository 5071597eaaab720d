//! The open connections of a server whose threads wait for one connection each: counted, ended together, and limited in
//! the time that they wait for input.
//!
//! The kernel's own limit of a receive (`SO_RCVTIMEO`) would start a timer of the kernel in each. Here a thread that
//! receives writes a number, and one thread compares the numbers of all connections in intervals.

use std::net::Shutdown;
use std::time::Duration;

use spandrel_ipc::inet::Stream;
use spandrel_sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use spandrel_sync::time::{Deadline, Instant};
use spandrel_sync::{Arc, Condition, Mutex};

/// The part of a time limit after which connections are compared: a client has up to this part more.
const PART: u32 = 8;

/// A connection's waits for input.
#[derive(Debug, Default)]
pub(crate) struct InputWaits {
    /// The number of the last wait, also of connections that had the same place before.
    last: AtomicU32,
    /// The number of the present wait; zero while there is none.
    present: AtomicU32,
    is_late: AtomicBool,
}

impl InputWaits {
    /// Calls a function that waits for input.
    #[inline]
    pub(crate) fn during<R>(&self, receive: impl FnOnce() -> R) -> R {
        let number = self.last.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.last.store(number, Ordering::Relaxed);
        self.present.store(number, Ordering::Relaxed);
        let received = receive();
        self.present.store(0, Ordering::Relaxed);
        received
    }

    /// Whether the connection's input was ended because a wait has exceeded its time.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Acquire)
    }
}

/// A stream and its owner's value, as the thread that serves it and the table share them.
#[derive(Debug)]
pub(crate) struct OpenStream<T> {
    /// The index in the table.
    place: usize,
    /// None while the allocation waits for the next connection.
    content: Option<(Stream, T)>,
    pub(crate) waits: InputWaits,
}

impl<T> OpenStream<T> {
    /// The stream, and the value with which it was added.
    pub(crate) fn content(&self) -> (&Stream, &T) {
        let (stream, value) = self.content.as_ref().expect("it is open");
        (stream, value)
    }
}

#[derive(Debug)]
struct Table<T> {
    open: Vec<Option<Arc<OpenStream<T>>>>,
    /// Allocations of ended connections. So a thread that serves one connection neither allocates nor frees.
    spare: Vec<Arc<OpenStream<T>>>,
    is_draining: bool,
    is_cut: bool,
}

impl<T> Table<T> {
    fn len(&self) -> usize {
        self.open.len() - self.spare.len()
    }

    /// Calls a function with all entries. The lock is held meanwhile, so that no stream is closed by its end.
    fn each(&self, call: impl FnMut(&OpenStream<T>)) {
        self.open.iter().flatten().map(|entry| &**entry).for_each(call);
    }
}

/// The table of open connections.
#[derive(Debug)]
pub(crate) struct OpenStreams<T> {
    table: Mutex<Table<T>>,
    /// The number of open connections without an entry.
    others: AtomicUsize,
    /// The number of threads that wait for the end of a connection.
    waiting: AtomicUsize,
    /// A connection has ended.
    ended: Condition,
    /// All connections are cut.
    cut: Condition,
}

impl<T> Default for OpenStreams<T> {
    fn default() -> Self {
        let (open, spare) = (Vec::new(), Vec::new());
        let table = Mutex::new(Table { open, spare, is_draining: false, is_cut: false });
        let (others, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { table, others, waiting, ended: Condition::new(), cut: Condition::new() }
    }
}

impl<T> OpenStreams<T> {
    /// The number of open connections.
    pub(crate) fn len(&self) -> usize {
        self.len_with(&self.table.lock())
    }

    fn len_with(&self, table: &Table<T>) -> usize {
        table.len() + self.others.load(Ordering::SeqCst)
    }

    /// Adds a stream until [`remove`](Self::remove); none once draining has begun.
    pub(crate) fn add(&self, stream: Stream, value: T) -> Option<Arc<OpenStream<T>>> {
        let mut table = self.table.lock();
        if table.is_draining {
            return None;
        }
        let mut entry = table.spare.pop().unwrap_or_else(|| {
            table.open.push(None);
            let places = table.open.len();
            table.spare.reserve(places);
            Arc::new(OpenStream { place: places - 1, content: None, waits: InputWaits::default() })
        });
        let content = Arc::get_mut(&mut entry).expect("a spare allocation has one owner");
        content.content = Some((stream, value));
        content.waits.is_late.store(false, Ordering::Relaxed);
        let place = entry.place;
        table.open[place] = Some(Arc::clone(&entry));
        Some(entry)
    }

    /// Removes a stream, and returns it with its value.
    pub(crate) fn remove(&self, mut entry: Arc<OpenStream<T>>) -> Option<(Stream, T)> {
        let mut table = self.table.lock();
        table.open[entry.place] = None;
        let content = Arc::get_mut(&mut entry).and_then(|entry| entry.content.take());
        table.spare.push(entry);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.ended.notify_all();
        }
        content
    }

    /// Counts a connection without an entry until [`leave`](Self::leave).
    #[cfg(proactor)]
    pub(crate) fn enter(&self) {
        self.others.fetch_add(1, Ordering::SeqCst);
    }

    /// A counted connection has ended.
    #[cfg(proactor)]
    pub(crate) fn leave(&self) {
        self.others.fetch_sub(1, Ordering::SeqCst);
        // A thread that begins to wait afterwards finds the new number.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let _table = self.table.lock(); // a thread that has found the old one waits by now
            self.ended.notify_all();
        }
    }

    /// Waits until there are fewer connections than this; false after `timeout`.
    pub(crate) fn wait_below(&self, count: usize, timeout: Duration) -> bool {
        let mut table = self.table.lock();
        if self.len_with(&table) < count {
            return true;
        }
        let deadline = Deadline::after(timeout);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        while self.len_with(&table) >= count && !deadline.is_over() {
            self.ended.wait_until(&mut table, deadline);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.len_with(&table) < count
    }

    /// Whether draining has begun.
    #[cfg(proactor)]
    pub(crate) fn is_draining(&self) -> bool {
        self.table.lock().is_draining
    }

    /// Whether the time of draining has passed.
    #[cfg(proactor)]
    pub(crate) fn is_cut(&self) -> bool {
        self.table.lock().is_cut
    }

    /// Admits no more connections, ends the input of all, and waits until they have ended; after `timeout` cuts the
    /// rest. Returns the number of connections that were cut. `notify` is called after each of these two steps.
    pub(crate) fn drain(&self, timeout: Duration, notify: impl Fn()) -> usize {
        let mut table = self.table.lock();
        table.is_draining = true;
        table.each(|entry| shut(entry, Shutdown::Read));
        drop(table);
        notify();
        let _ = self.wait_below(1, timeout);
        let mut table = self.table.lock();
        table.is_cut = true;
        // The system resets those whose clients still send, so that they do not wait for room. Fails on ended streams.
        table.each(|entry| drop(entry.content().0.abort()));
        let cut = self.len_with(&table);
        self.cut.notify_all();
        drop(table);
        notify();
        cut
    }

    /// Until all connections are cut: ends the input of each that waits for longer than `limit`, and calls `tick` in
    /// intervals. A client that sends a part of a request has the time again.
    pub(crate) fn watch(&self, limit: Duration, tick: impl Fn()) {
        let mut ages: Vec<(u32, Instant)> = Vec::new();
        let mut table = self.table.lock();
        while !table.is_cut {
            self.cut.wait_for(&mut table, limit / PART);
            let now = Instant::now();
            ages.resize(table.open.len(), (0, now));
            table.each(|entry| {
                let present = entry.waits.present.load(Ordering::Relaxed);
                let (number, since) = &mut ages[entry.place];
                if *number != present {
                    (*number, *since) = (present, now);
                } else if present != 0 && now.saturating_duration_since(*since) >= limit {
                    entry.waits.is_late.store(true, Ordering::Release);
                    shut(entry, Shutdown::Read);
                }
            });
            drop(table);
            tick();
            table = self.table.lock();
        }
    }
}

/// Fails on a stream that has already ended.
fn shut<T>(entry: &OpenStream<T>, how: Shutdown) {
    let _ = entry.content().0.shutdown(how);
}
