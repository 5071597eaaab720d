//! The open connections of one acceptor or connector: counted, drained and closed together.

use std::net::Shutdown;
use std::time::Duration;
use std::{fmt, mem};

use slab::Slab;
use spandrel_ipc::Transfer;
use spandrel_sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Condition, Mutex, Weak};

use crate::{HandlerId, Registry};

/// An open connection that no reactor serves. Its methods are called without any lock, since they may close a handler,
/// which then removes itself.
pub(crate) trait Member: Send + Sync {
    /// Ends the input, so that the member finishes its work.
    fn drain(&self);
    /// Closes the connection without waiting for output.
    fn cut(&self);
}

/// A stream served by a thread: draining ends its input, so that its handler receives the octets that have
/// arrived and then the end.
impl<S: Transfer> Member for Weak<S> {
    fn drain(&self) {
        shut(self, Shutdown::Read);
    }

    fn cut(&self) {
        shut(self, Shutdown::Both);
    }
}

fn shut<S: Transfer>(stream: &Weak<S>, how: Shutdown) {
    if let Some(stream) = stream.upgrade() {
        // Fails on a stream that has already ended.
        let _ = stream.shutdown(how);
    }
}

/// How an open connection is ended.
#[derive(Clone)]
enum Ending {
    /// It has no thread or handler yet.
    Unset,
    /// By its handler in a reactor, which is woken to look at the state and the checks of [`OpenConnections`].
    Handler(Registry, HandlerId),
    Member(Arc<dyn Member>),
}

impl Ending {
    fn drain(&self) {
        match self {
            Self::Unset => {}
            Self::Handler(..) => self.wake(),
            Self::Member(member) => member.drain(),
        }
    }

    fn cut(&self) {
        match self {
            Self::Unset => {}
            Self::Handler(registry, id) => _ = registry.remove(*id),
            Self::Member(member) => member.cut(),
        }
    }

    /// Wakes the handler of a reactor.
    fn wake(&self) {
        if let Self::Handler(registry, id) = self {
            registry.wake_handler(*id);
        }
    }
}

fn all(endings: &Slab<Ending>) -> Vec<Ending> {
    endings.iter().map(|(_, ending)| ending.clone()).collect()
}

/// New connections are admitted.
const ADMITTING: u8 = 0;
const DRAINING: u8 = 1;
/// The time limit has passed for all connections that are still open, also for those whose endings are set later.
const CUT: u8 = 2;

/// The open connections of an acceptor or connector: counted, and ended together.
#[derive(Default)]
pub(crate) struct OpenConnections {
    endings: Mutex<Slab<Ending>>,
    /// The length of `endings`, and one of the states above: changed under the lock, and read without it.
    len: AtomicUsize,
    state: AtomicU8,
    /// A connection was removed.
    removed: Condition,
    /// The interval of checks, which the threads of connections keep themselves.
    check_interval: Option<Duration>,
    /// The number of calls of [`check`](Self::check).
    checks: AtomicU64,
}

impl fmt::Debug for OpenConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenConnections").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl OpenConnections {
    /// The number of open connections.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether there is no open connection.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether draining has begun.
    pub(crate) fn is_draining(&self) -> bool {
        self.state.load(Ordering::SeqCst) != ADMITTING
    }

    /// Whether the time limit of draining has passed.
    pub(crate) fn is_cut(&self) -> bool {
        self.state.load(Ordering::SeqCst) == CUT
    }

    /// Without connections, to be [checked](Self::check) each interval.
    pub(crate) fn with_checks(interval: Option<Duration>) -> Self {
        Self { check_interval: interval, ..Self::default() }
    }

    pub(crate) fn check_interval(&self) -> Option<Duration> {
        self.check_interval
    }

    /// Adds a connection that has no thread or handler yet; none once draining has begun.
    pub(crate) fn admit(self: &Arc<Self>) -> Option<ConnectionEntry> {
        self.insert(Ending::Unset)
    }

    /// Adds a connection; none once draining has begun.
    #[cfg(target_os = "linux")]
    pub(crate) fn add(self: &Arc<Self>, member: Arc<dyn Member>) -> Option<ConnectionEntry> {
        self.insert(Ending::Member(member))
    }

    fn insert(self: &Arc<Self>, ending: Ending) -> Option<ConnectionEntry> {
        let mut endings = self.endings.lock();
        if self.is_draining() {
            return None;
        }
        let number = endings.insert(ending);
        self.len.store(endings.len(), Ordering::Release);
        Some(ConnectionEntry { open_connections: Arc::clone(self), number, on_remove: None })
    }

    /// Sets how the connection of `entry` is ended from now on.
    pub(crate) fn set(&self, entry: &ConnectionEntry, member: impl Member + 'static) {
        self.set_ending(entry, Ending::Member(Arc::new(member)));
    }

    /// A handler of a reactor serves the connection of `entry` from now on. It is woken for each check and when draining
    /// begins.
    pub(crate) fn set_handler(&self, entry: &ConnectionEntry, registry: &Registry, id: HandlerId) {
        self.set_ending(entry, Ending::Handler(registry.clone(), id));
    }

    fn set_ending(&self, entry: &ConnectionEntry, ending: Ending) {
        let mut endings = self.endings.lock();
        let state = self.state.load(Ordering::Relaxed);
        let late = (state != ADMITTING).then(|| ending.clone());
        let before = mem::replace(&mut endings[entry.number], ending);
        drop(endings);
        drop(before);
        match late {
            Some(ending) if state == CUT => ending.cut(),
            Some(ending) => ending.drain(),
            None => {}
        }
    }

    /// Begins the next check of all connections that handlers of a reactor serve.
    pub(crate) fn check(&self) {
        self.checks.fetch_add(1, Ordering::SeqCst);
        let all = all(&self.endings.lock());
        all.iter().for_each(Ending::wake);
    }

    /// The number of checks begun.
    #[inline]
    pub(crate) fn checks(&self) -> u64 {
        self.checks.load(Ordering::SeqCst)
    }

    /// Admits no more connections, and lets all open ones finish: ends their input, so that each receives the octets
    /// that have arrived, and then the end.
    pub(crate) fn begin_drain(&self) {
        let endings = self.endings.lock();
        self.state.fetch_max(DRAINING, Ordering::SeqCst);
        let all = all(&endings);
        drop(endings);
        all.iter().for_each(Ending::drain);
    }

    /// Waits until there is no open connection; false after `timeout`. Admits further connections.
    pub(crate) fn wait_empty(&self, timeout: Duration) -> bool {
        let deadline = Deadline::after(timeout);
        let mut endings = self.endings.lock();
        while !endings.is_empty() {
            if deadline.is_over() {
                return false;
            }
            self.removed.wait_until(&mut endings, deadline);
        }
        true
    }

    /// As [`begin_drain`](Self::begin_drain), and waits until all have ended; after `timeout` closes the
    /// rest. Returns the number of connections closed so.
    pub(crate) fn drain(&self, timeout: Duration) -> usize {
        self.begin_drain();
        let _ = self.wait_empty(timeout);
        let endings = self.endings.lock();
        self.state.store(CUT, Ordering::SeqCst);
        let (rest, count) = (all(&endings), endings.len());
        drop(endings);
        rest.iter().for_each(Ending::cut);
        count
    }
}

/// The entry of an open connection in its [`OpenConnections`]. Dropping it removes the entry.
pub(crate) struct ConnectionEntry {
    open_connections: Arc<OpenConnections>,
    /// The key of the ending, which is another's once this one is removed.
    number: usize,
    on_remove: Option<Box<dyn FnOnce() + Send>>,
}

impl ConnectionEntry {
    pub(crate) fn open_connections(&self) -> &Arc<OpenConnections> {
        &self.open_connections
    }

    /// Calls `call` when the entry is removed.
    pub(crate) fn on_remove(&mut self, call: impl FnOnce() + Send + 'static) {
        self.on_remove = Some(Box::new(call));
    }

    /// Removes the entry without a call.
    #[cfg(target_os = "linux")]
    pub(crate) fn remove_silently(&mut self) {
        self.on_remove = None;
    }
}

impl fmt::Debug for ConnectionEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectionEntry").field(&self.number).finish()
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        let OpenConnections { endings, len, removed, .. } = &*self.open_connections;
        let mut endings = endings.lock();
        let ending = endings.try_remove(self.number);
        len.store(endings.len(), Ordering::Release);
        drop(endings);
        removed.notify_all();
        drop(ending);
        if let Some(call) = self.on_remove.take() {
            call();
        }
    }
}
