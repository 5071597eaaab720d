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
    /// How many have come back.
    turn: u64,
}

#[derive(Debug)]
struct Idle<S> {
    stream: S,
    since: Instant,
    /// In which order they came back, also within one tick of the clock.
    turn: u64,
}

impl<F: Family> ConnectionCache<F> {
    /// An empty cache.
    #[must_use]
    pub fn new(family: F, limits: CacheLimits) -> Self {
        Self { family, shelves: Arc::new(Mutex::new(Shelves { idle: HashMap::new(), count: 0, turn: 0 })), limits }
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

    /// Streams are closed after the lock has been let go, here and below: that may take time.
    fn take(&self, addr: &F::Addr) -> Option<F::Stream> {
        let idle = self.shelves.lock().most_recent(addr)?;
        let is_fresh = Instant::now().saturating_duration_since(idle.since) < self.limits.age;
        is_fresh.then_some(idle.stream)
    }

    fn give_back(&self, addr: &F::Addr, stream: F::Stream) {
        let mut shelves = self.shelves.lock();
        let mut closed = shelves.stale(self.limits.age);
        shelves.put(addr, stream);
        while shelves.idle.get(addr).is_some_and(|shelf| shelf.len() > self.limits.idle_per_addr) {
            closed.extend(shelves.least_recent_of(addr));
        }
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

    fn put(&mut self, addr: &F::Addr, stream: F::Stream) {
        self.turn += 1;
        self.count += 1;
        let idle = Idle { stream, since: Instant::now(), turn: self.turn };
        self.idle.entry(addr.clone()).or_default().push(idle);
    }

    /// Takes out the one that was used most recently for this address.
    fn most_recent(&mut self, addr: &F::Addr) -> Option<Idle<F::Stream>> {
        self.take_from(addr, Vec::pop)
    }

    /// Takes out the one that was used least recently for this address.
    fn least_recent_of(&mut self, addr: &F::Addr) -> Option<Idle<F::Stream>> {
        self.take_from(addr, |shelf| (!shelf.is_empty()).then(|| shelf.remove(0)))
    }

    /// Takes out the one that was used least recently of all.
    fn least_recent(&mut self) -> Option<Idle<F::Stream>> {
        let turn = |shelf: &Vec<Idle<F::Stream>>| shelf.first().map(|idle| idle.turn);
        let (addr, _) = self.idle.iter().min_by_key(|(_, shelf)| turn(shelf))?;
        let addr = addr.clone();
        self.least_recent_of(&addr)
    }

    /// No shelf stays empty.
    fn take_from(
        &mut self,
        addr: &F::Addr,
        take: impl FnOnce(&mut Vec<Idle<F::Stream>>) -> Option<Idle<F::Stream>>,
    ) -> Option<Idle<F::Stream>> {
        let shelf = self.idle.get_mut(addr)?;
        let idle = take(shelf);
        if shelf.is_empty() {
            self.idle.remove(addr);
        }
        self.count -= usize::from(idle.is_some());
        idle
    }
}

/// A connection lent from a [`ConnectionCache`]. Dropped, it goes back there for the next; so drop it only between messages, and
/// [discard](Self::discard) one that is in any other state: after an error, say, or the late answer to one question would be taken for that to
/// the next. (Dropped by a panic, it is closed.)
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

    /// The cache as a list of what is idle, the least recently used first.
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
        Addr::path(format!("/nobody/listens/{number}")).unwrap()
    }

    proptest! {
        /// Each connection is known by its far end: it echoes if it was kept, and has the end to receive if it was closed.
        #[test]
        fn it_keeps_what_a_simple_list_keeps(
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
                let shelves = cache.shelves.lock();
                prop_assert_eq!(shelves.count, model.0.len());
                prop_assert_eq!(shelves.idle.values().map(Vec::len).sum::<usize>(), model.0.len());
                prop_assert!(shelves.idle.values().all(|shelf| !shelf.is_empty()));
            }
            for (number, far) in ends.iter().enumerate() {
                let is_kept = model.0.iter().any(|idle| idle.1 == number as u64);
                let is_open = far.try_recv(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
                prop_assert_eq!(is_open, is_kept, "connection {}", number);
            }
        }
    }

    #[test]
    fn its_counts_are_right_whoever_uses_it_at_once() {
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
        let shelves = cache.shelves.lock();
        assert_eq!(shelves.count, shelves.idle.values().map(Vec::len).sum::<usize>());
        assert!(shelves.count <= 5 && shelves.idle.values().all(|shelf| (1..=2).contains(&shelf.len())));
    }

    #[test]
    fn what_a_panic_leaves_is_not_used_again() {
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
