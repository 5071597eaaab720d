//! The open connections of one acceptor or connector: counted, drained and closed together.

use std::fmt;
use std::net::Shutdown;
use std::time::Duration;

use slab::Slab;
use spandrel_ipc::{Interest, Transfer};
use spandrel_sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Condition, Mutex, Weak};

use crate::{HandlerId, Registry};

/// An open connection. Its methods are called without any lock, since they may close a handler, which then
/// removes itself.
pub(crate) trait Member: Send + Sync {
    /// Lets it finish.
    fn drain(&self);
    /// Closes it now.
    fn cut(&self);
    /// Makes a handler in a reactor look at [`OpenConnections::checks`].
    fn check(&self) {}
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

/// A stream served by a reactor.
pub(crate) struct ReactorConnection<S> {
    pub(crate) stream: Weak<S>,
    pub(crate) registry: Registry,
    pub(crate) id: HandlerId,
}

impl<S: Transfer> Member for ReactorConnection<S> {
    fn drain(&self) {
        shut(&self.stream, Shutdown::Read);
        // Where the handle does not show the end of the input (shared memory), the stream has to be checked
        // again.
        self.registry.resume(self.id);
        if cfg!(windows) {
            self.registry.mark_ready(self.id, Interest::INPUT);
        }
    }

    fn cut(&self) {
        shut(&self.stream, Shutdown::Both);
        // The handler may be waiting for nothing.
        self.registry.remove(self.id);
    }

    fn check(&self) {
        self.registry.wake_handler(self.id);
    }
}

fn shut<S: Transfer>(stream: &Weak<S>, how: Shutdown) {
    if let Some(stream) = stream.upgrade() {
        // Fails on a stream that has already ended.
        let _ = stream.shutdown(how);
    }
}

/// All open connections; none in the place of one that has no thread or handler yet.
type Members = Slab<Option<Arc<dyn Member>>>;

fn all(members: &Members) -> Vec<Arc<dyn Member>> {
    members.iter().filter_map(|(_, member)| member.clone()).collect()
}

/// Connections are admitted.
const ADMITTING: u8 = 0;
const DRAINING: u8 = 1;
/// The time limit has passed for all connections that are still open, also for those whose members are set later.
const CUT: u8 = 2;

/// The open connections of an acceptor or connector: counted, and ended together.
#[derive(Default)]
pub(crate) struct OpenConnections {
    members: Mutex<Members>,
    /// The length of `members`, and one of the states above: changed under the lock, and read without it.
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
        self.insert(None)
    }

    /// Adds a connection; none once draining has begun.
    #[cfg(target_os = "linux")]
    pub(crate) fn add(self: &Arc<Self>, member: Arc<dyn Member>) -> Option<ConnectionEntry> {
        self.insert(Some(member))
    }

    fn insert(self: &Arc<Self>, member: Option<Arc<dyn Member>>) -> Option<ConnectionEntry> {
        let mut members = self.members.lock();
        if self.is_draining() {
            return None;
        }
        let number = members.insert(member);
        self.len.store(members.len(), Ordering::Release);
        Some(ConnectionEntry { open_connections: Arc::clone(self), number, on_remove: None })
    }

    /// Sets how the connection of `entry` is ended from now on.
    pub(crate) fn set(&self, entry: &ConnectionEntry, member: impl Member + 'static) {
        let member: Arc<dyn Member> = Arc::new(member);
        let mut members = self.members.lock();
        let state = self.state.load(Ordering::Relaxed);
        let late = (state != ADMITTING).then(|| Arc::clone(&member));
        let before = members[entry.number].replace(member);
        drop(members);
        drop(before);
        match late {
            Some(member) if state == CUT => member.cut(),
            Some(member) => member.drain(),
            None => {}
        }
    }

    /// Begins the next check of all connections that handlers of a reactor serve.
    pub(crate) fn check(&self) {
        self.checks.fetch_add(1, Ordering::SeqCst);
        let all = all(&self.members.lock());
        all.iter().for_each(|member| member.check());
    }

    /// The number of checks begun.
    #[inline]
    pub(crate) fn checks(&self) -> u64 {
        self.checks.load(Ordering::SeqCst)
    }

    /// Admits no more connections, and lets all open ones finish: ends their input, so that each receives the octets
    /// that have arrived, and then the end.
    pub(crate) fn begin_drain(&self) {
        let members = self.members.lock();
        self.state.fetch_max(DRAINING, Ordering::SeqCst);
        let all = all(&members);
        drop(members);
        all.iter().for_each(|member| member.drain());
    }

    /// Waits until there is no open connection; false after `timeout`. Admits further connections.
    pub(crate) fn wait_empty(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        let mut members = self.members.lock();
        while !members.is_empty() {
            let left = timeout.saturating_sub(Instant::now().saturating_duration_since(start));
            if left.is_zero() {
                return false;
            }
            self.removed.wait_for(&mut members, left);
        }
        true
    }

    /// As [`begin_drain`](Self::begin_drain), and waits until all have ended; after `timeout` closes the
    /// rest. Returns the number of connections closed so.
    pub(crate) fn drain(&self, timeout: Duration) -> usize {
        self.begin_drain();
        let _ = self.wait_empty(timeout);
        let members = self.members.lock();
        self.state.store(CUT, Ordering::SeqCst);
        let (rest, count) = (all(&members), members.len());
        drop(members);
        rest.iter().for_each(|member| member.cut());
        count
    }
}

/// The entry of an open connection in its [`OpenConnections`]. Dropping it removes the entry.
pub(crate) struct ConnectionEntry {
    open_connections: Arc<OpenConnections>,
    /// The key of the member, which is another's once this one is removed.
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
        let OpenConnections { members, len, removed, .. } = &*self.open_connections;
        let mut members = members.lock();
        let member = members.try_remove(self.number);
        len.store(members.len(), Ordering::Release);
        drop(members);
        removed.notify_all();
        drop(member);
        if let Some(call) = self.on_remove.take() {
            call();
        }
    }
}
