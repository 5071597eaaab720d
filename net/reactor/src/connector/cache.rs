//! A cache of idle connections for reuse.

use std::collections::HashMap;
use std::io;
use std::ops::Deref;
use std::time::Duration;

use spandrel_ipc::{Family, Interest, wait_ready};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Mutex};

/// Limits on the idle connections of a [`ConnectionCache`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CacheLimits {
    /// Idle connections in all. Default 256. Beyond, the least recently used is closed.
    pub idle: usize,
    /// Idle connections to one address. Default 8.
    pub idle_per_addr: usize,
    /// The time for which a connection is kept idle. Default 60 s.
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

/// Makes connections, and reuses connections that are no longer in use for their address (the papers'
/// connection caching). Idle ones are purged by least recent use. Clones share one cache.
#[derive(Clone, Debug)]
pub struct ConnectionCache<F: Family> {
    family: F,
    idle_connections: Arc<Mutex<IdleConnections<F>>>,
    limits: CacheLimits,
}

#[derive(Debug)]
struct IdleConnections<F: Family> {
    /// Per address, the most recently used last.
    idle: HashMap<F::Addr, Vec<Idle<F::Stream>>>,
    count: usize,
    /// The number of connections returned so far.
    sequence: u64,
}

#[derive(Debug)]
struct Idle<S> {
    stream: S,
    since: Instant,
    /// Their order of return, also within one tick of the clock.
    sequence: u64,
}

impl<F: Family> ConnectionCache<F> {
    /// An empty cache.
    #[must_use]
    pub fn new(family: F, limits: CacheLimits) -> Self {
        Self {
            family,
            idle_connections: Arc::new(Mutex::new(IdleConnections { idle: HashMap::new(), count: 0, sequence: 0 })),
            limits,
        }
    }

    /// A connection to `addr`: the most recently used idle one that is still open, otherwise a new one, made
    /// within `timeout`.
    ///
    /// # Errors
    /// The errors of [`Family::connect`].
    pub fn connect(&self, addr: &F::Addr, timeout: Option<Duration>) -> io::Result<Cached<F>> {
        while let Some(stream) = self.take(addr) {
            // An idle peer has nothing to send: any input is the end, or an error.
            if wait_ready(&stream, Interest::INPUT, Some(Duration::ZERO)).is_ok_and(Interest::is_none) {
                return Ok(self.lend(addr, stream));
            }
        }
        Ok(self.lend(addr, self.family.connect(addr, timeout)?))
    }

    /// The number of idle connections.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.idle_connections.lock().count
    }

    /// Closes the connections that have been idle for too long. Called also whenever a connection is
    /// returned.
    pub fn purge(&self) {
        let stale = self.idle_connections.lock().stale(self.limits.age);
        drop(stale);
    }

    fn lend(&self, addr: &F::Addr, stream: F::Stream) -> Cached<F> {
        Cached { stream: Some(stream), addr: addr.clone(), cache: self.clone() }
    }

    /// Streams are closed after the lock has been released, here and below, since closing may take time.
    fn take(&self, addr: &F::Addr) -> Option<F::Stream> {
        let idle = self.idle_connections.lock().most_recent(addr)?;
        let is_fresh = Instant::now().saturating_duration_since(idle.since) < self.limits.age;
        is_fresh.then_some(idle.stream)
    }

    fn give_back(&self, addr: &F::Addr, stream: F::Stream) {
        let mut idle_connections = self.idle_connections.lock();
        let mut closed = idle_connections.stale(self.limits.age);
        idle_connections.put(addr, stream);
        while idle_connections.idle.get(addr).is_some_and(|list| list.len() > self.limits.idle_per_addr) {
            closed.extend(idle_connections.least_recent_of(addr));
        }
        while idle_connections.count > self.limits.idle {
            closed.extend(idle_connections.least_recent());
        }
        drop(idle_connections);
        drop(closed);
    }
}

impl<F: Family> IdleConnections<F> {
    /// Removes the connections that have been idle for that long.
    fn stale(&mut self, age: Duration) -> Vec<Idle<F::Stream>> {
        let now = Instant::now();
        let mut stale = Vec::new();
        self.idle.retain(|_, list| {
            let fresh = list.partition_point(|idle| now.saturating_duration_since(idle.since) >= age);
            stale.extend(list.drain(..fresh));
            !list.is_empty()
        });
        self.count -= stale.len();
        stale
    }

    fn put(&mut self, addr: &F::Addr, stream: F::Stream) {
        self.sequence += 1;
        self.count += 1;
        let idle = Idle { stream, since: Instant::now(), sequence: self.sequence };
        self.idle.entry(addr.clone()).or_default().push(idle);
    }

    /// Removes the most recently used connection to this address.
    fn most_recent(&mut self, addr: &F::Addr) -> Option<Idle<F::Stream>> {
        self.take_from(addr, Vec::pop)
    }

    /// Removes the least recently used connection to this address.
    fn least_recent_of(&mut self, addr: &F::Addr) -> Option<Idle<F::Stream>> {
        self.take_from(addr, |list| (!list.is_empty()).then(|| list.remove(0)))
    }

    /// Removes the least recently used connection of all.
    fn least_recent(&mut self) -> Option<Idle<F::Stream>> {
        let sequence = |list: &Vec<Idle<F::Stream>>| list.first().map(|idle| idle.sequence);
        let (addr, _) = self.idle.iter().min_by_key(|(_, list)| sequence(list))?;
        let addr = addr.clone();
        self.least_recent_of(&addr)
    }

    /// Removes empty lists, too.
    fn take_from(
        &mut self,
        addr: &F::Addr,
        take: impl FnOnce(&mut Vec<Idle<F::Stream>>) -> Option<Idle<F::Stream>>,
    ) -> Option<Idle<F::Stream>> {
        let list = self.idle.get_mut(addr)?;
        let idle = take(list);
        if list.is_empty() {
            self.idle.remove(addr);
        }
        self.count -= usize::from(idle.is_some());
        idle
    }
}

/// A connection borrowed from a [`ConnectionCache`]. Dropping it returns it for reuse, so drop it only
/// between messages. [Discard](Self::discard) it in any other state, for example after an error: otherwise a
/// late reply to one request would be taken for that to the next. (A connection dropped by a panic is
/// closed.)
#[derive(Debug)]
pub struct Cached<F: Family> {
    /// None only after it was returned or discarded.
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
        if let Some(stream) = self.stream.take()
            && !std::thread::panicking()
        {
            self.cache.give_back(&self.addr, stream);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests {
    use proptest::prelude::*;
    use spandrel_ipc::spipe::{self, Addr, Spipe};
    use spandrel_sync::thread;

    use super::*;

    /// A model of the cache: a list of idle connections, the least recently used first.
    #[derive(Default)]
    struct Model(Vec<(usize, u64)>);

    impl Model {
        fn give_back(&mut self, addr: usize, number: u64, limits: &CacheLimits) {
            self.0.push((addr, number));
            while self.0.iter().filter(|idle| idle.0 == addr).count() > limits.idle_per_addr {
                self.0.remove(self.0.iter().position(|idle| idle.0 == addr).unwrap());
            }
            let surplus = self.0.len().saturating_sub(limits.idle);
            self.0.drain(..surplus);
        }

        fn take(&mut self, addr: usize) -> Option<u64> {
            let at = self.0.iter().rposition(|idle| idle.0 == addr)?;
            Some(self.0.remove(at).1)
        }
    }

    fn addr(number: usize) -> Addr {
        Addr::path(format!("/no/listener/{number}")).unwrap()
    }

    proptest! {
        /// The far end identifies each connection: it echoes if the connection was kept, and gets the end if
        /// it was closed.
        #[test]
        fn the_cache_agrees_with_a_list(
            idle in 0usize..6,
            idle_per_addr in 0usize..4,
            steps in prop::collection::vec((0usize..3, any::<bool>()), 0..60),
        ) {
            let limits = CacheLimits::default().idle(idle).idle_per_addr(idle_per_addr);
            let cache = ConnectionCache::new(Spipe::default(), limits);
            let (mut model, mut ends) = (Model::default(), Vec::new());
            for (place, is_new) in steps {
                if is_new {
                    let (near, far) = spipe::pair().unwrap();
                    let number = ends.len() as u64;
                    far.send_n(&number.to_le_bytes()).unwrap();
                    ends.push(far);
                    drop(cache.lend(&addr(place), near));
                    model.give_back(place, number, &limits);
                } else {
                    let taken = cache.take(&addr(place)).map(|stream| {
                        let mut number = [0; 8];
                        stream.recv_n(&mut number).unwrap();
                        u64::from_le_bytes(number)
                    });
                    prop_assert_eq!(taken, model.take(place));
                }
                let idle_connections = cache.idle_connections.lock();
                prop_assert_eq!(idle_connections.count, model.0.len());
                prop_assert_eq!(idle_connections.idle.values().map(Vec::len).sum::<usize>(), model.0.len());
                prop_assert!(idle_connections.idle.values().all(|list| !list.is_empty()));
            }
            for (number, far) in ends.iter().enumerate() {
                let is_kept = model.0.iter().any(|idle| idle.1 == number as u64);
                let is_open = far.try_recv(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
                prop_assert_eq!(is_open, is_kept, "connection {}", number);
            }
        }
    }

    #[test]
    fn the_counts_are_right_under_concurrent_use() {
        let cache = ConnectionCache::new(Spipe::default(), CacheLimits::default().idle(5).idle_per_addr(2));
        thread::scope(|scope| {
            for seed in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    for step in 0..500 {
                        let addr = addr((seed + step) % 7);
                        let stream = cache.take(&addr).unwrap_or_else(|| spipe::pair().unwrap().0);
                        let lent = cache.lend(&addr, stream);
                        if step % 5 == 0 {
                            lent.discard();
                        }
                    }
                });
            }
        });
        let idle_connections = cache.idle_connections.lock();
        assert_eq!(idle_connections.count, idle_connections.idle.values().map(Vec::len).sum::<usize>());
        assert!(
            idle_connections.count <= 5 && idle_connections.idle.values().all(|list| (1..=2).contains(&list.len()))
        );
    }

    #[test]
    fn a_connection_dropped_by_a_panic_is_not_reused() {
        let cache = ConnectionCache::new(Spipe::default(), CacheLimits::default());
        let lent = cache.lend(&addr(0), spipe::pair().unwrap().0);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _lent = lent;
            panic!("in the middle of a message");
        }));
        assert!(panicked.is_err());
        assert_eq!(cache.idle(), 0);
    }
}
