//! Connections that are kept for the next who needs one.

use std::collections::HashMap;
use std::io;
use std::ops::Deref;
use std::time::Duration;

use spandrel_ipc::{Family, Interest, wait_ready};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Mutex};

/// How many idle connections a [`ConnectionCache`] keeps, and for how long.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CacheLimits {
    /// Idle connections in all. Default 256. Beyond, the least recently used is closed.
    pub idle: usize,
    /// Idle connections to one address. Default 8.
    pub idle_per_addr: usize,
    /// How long one is kept idle. Default 60 s.
    pub age: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { idle: 256, idle_per_addr: 8, age: Duration::from_secs(60) }
    }
}

impl CacheLimits {
    /// Sets [`idle`](Self::idle).
    #[must_use]
    pub fn idle(mut self, connections: usize) -> Self {
        self.idle = connections;
        self
    }

    /// Sets [`idle_per_addr`](Self::idle_per_addr).
    #[must_use]
    pub fn idle_per_addr(mut self, connections: usize) -> Self {
        self.idle_per_addr = connections;
        self
    }

    /// Sets [`age`](Self::age).
    #[must_use]
    pub fn age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }
}

/// Makes connections, and gives a connection that somebody has finished with to the next who asks for its address (the papers' connection
/// caching). Idle ones are purged by least recent use. Clones share one cache.
#[derive(Clone, Debug)]
pub struct ConnectionCache<F: Family> {
    family: F,
    shelves: Arc<Mutex<Shelves<F>>>,
    limits: CacheLimits,
}

#[derive(Debug)]
struct Shelves<F: Family> {
    /// Per address, the most recently used last.
    idle: HashMap<F::Addr, Vec<Idle<F::Stream>>>,
    count: usize,
}

#[derive(Debug)]
struct Idle<S> {
    stream: S,
    since: Instant,
}

impl<F: Family> ConnectionCache<F> {
    /// An empty cache.
    #[must_use]
    pub fn new(family: F, limits: CacheLimits) -> Self {
        Self { family, shelves: Arc::new(Mutex::new(Shelves { idle: HashMap::new(), count: 0 })), limits }
    }

    /// A connection to `addr`: the most recently used idle one that is still alive, otherwise a new one, made within `timeout`.
    ///
    /// # Errors
    /// Those of [`Family::connect`].
    pub fn connect(&self, addr: &F::Addr, timeout: Option<Duration>) -> io::Result<Cached<F>> {
        while let Some(stream) = self.take(addr) {
            // An idle peer has nothing to say: what can be received is the end, or nonsense.
            if wait_ready(&stream, Interest::INPUT, Some(Duration::ZERO)).is_ok_and(Interest::is_none) {
                return Ok(self.lend(addr, stream));
            }
        }
        Ok(self.lend(addr, self.family.connect(addr, timeout)?))
    }

    /// How many connections are idle.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.shelves.lock().count
    }

    /// Closes what has been idle for too long. Happens by itself whenever a connection comes back.
    pub fn purge(&self) {
        let stale = self.shelves.lock().stale(self.limits.age);
        drop(stale);
    }

    fn lend(&self, addr: &F::Addr, stream: F::Stream) -> Cached<F> {
        Cached { stream: Some(stream), addr: addr.clone(), cache: self.clone() }
    }

    fn take(&self, addr: &F::Addr) -> Option<F::Stream> {
        let mut shelves = self.shelves.lock();
        let shelf = shelves.idle.get_mut(addr)?;
        let idle = shelf.pop();
        if shelf.is_empty() {
            shelves.idle.remove(addr);
        }
        let idle = idle?;
        shelves.count -= 1;
        let is_fresh = Instant::now().saturating_duration_since(idle.since) < self.limits.age;
        is_fresh.then_some(idle.stream)
    }

    /// Streams are closed after the lock has been let go.
    fn give_back(&self, addr: &F::Addr, stream: F::Stream) {
        let mut shelves = self.shelves.lock();
        let mut closed = shelves.stale(self.limits.age);
        let shelf = shelves.idle.entry(addr.clone()).or_default();
        shelf.push(Idle { stream, since: Instant::now() });
        let surplus = (shelf.len() > self.limits.idle_per_addr).then(|| shelf.remove(0));
        shelves.count += 1;
        shelves.count -= usize::from(surplus.is_some());
        closed.extend(surplus);
        while shelves.count > self.limits.idle {
            closed.extend(shelves.least_recent());
        }
        drop(shelves);
        drop(closed);
    }
}

impl<F: Family> Shelves<F> {
    /// Takes out what has been idle for so long.
    fn stale(&mut self, age: Duration) -> Vec<Idle<F::Stream>> {
        let now = Instant::now();
        let mut stale = Vec::new();
        self.idle.retain(|_, shelf| {
            let fresh = shelf.partition_point(|idle| now.saturating_duration_since(idle.since) >= age);
            stale.extend(shelf.drain(..fresh));
            !shelf.is_empty()
        });
        self.count -= stale.len();
        stale
    }

    /// Takes out the one that was used least recently.
    fn least_recent(&mut self) -> Option<Idle<F::Stream>> {
        let (addr, _) = self.idle.iter().min_by_key(|(_, shelf)| shelf.first().map(|idle| idle.since))?;
        let addr = addr.clone();
        let shelf = self.idle.get_mut(&addr)?;
        let oldest = (!shelf.is_empty()).then(|| shelf.remove(0));
        if shelf.is_empty() {
            self.idle.remove(&addr);
        }
        self.count -= usize::from(oldest.is_some());
        oldest
    }
}

/// A connection lent from a [`ConnectionCache`]. Dropped, it goes back there for the next; so drop it only between messages, and
/// [discard](Self::discard) one that is in any other state.
#[derive(Debug)]
pub struct Cached<F: Family> {
    /// Taken only when it goes back or is discarded.
    stream: Option<F::Stream>,
    addr: F::Addr,
    cache: ConnectionCache<F>,
}

impl<F: Family> Cached<F> {
    /// Closes it.
    pub fn discard(mut self) {
        self.stream = None;
    }
}

impl<F: Family> Deref for Cached<F> {
    type Target = F::Stream;

    fn deref(&self) -> &F::Stream {
        self.stream.as_ref().expect("a connection is there until it is dropped")
    }
}

impl<F: Family> Drop for Cached<F> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.cache.give_back(&self.addr, stream);
        }
    }
}
