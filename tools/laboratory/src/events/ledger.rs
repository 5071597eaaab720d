//! The events that consumers have received, beside those that were pushed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use anyhow::ensure;
use spandrel_measure::histogram::Histogram;

/// The octets of an event.
pub(super) const OCTETS: usize = 64;
/// The octets behind the number and the time of an event.
const FILLING: [u8; OCTETS - 16] = [0xa5; OCTETS - 16];
/// The longest latency that is recorded, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;
/// The bits of an event's number below that of its supplier.
const SUPPLIER_SHIFT: u32 = 40;

/// An event as octets: its number, the time of its push, and filling.
pub(super) type Event = [u8; OCTETS];

/// The number of an event: those of one supplier follow one another.
fn number(supplier: usize, nth: u64) -> u64 {
    ((supplier as u64) << SUPPLIER_SHIFT) | nth
}

/// A value of a number that looks random (SplitMix64), so that sums of them differ unless the numbers are the same.
fn mixed(number: u64) -> u64 {
    let value = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The events that one consumer has received.
#[derive(Clone, Default)]
struct Tally {
    count: u64,
    /// The sum of the mixed numbers.
    sum: u64,
    /// The next number of each supplier in order.
    next: Vec<u64>,
    disordered: u64,
    invalid: u64,
}

/// The events that consumers have received, beside those that were pushed. One thread waits for deliveries: that which
/// has made the ledger.
pub(super) struct Ledger {
    epoch: Instant,
    tallies: Vec<Mutex<Tally>>,
    pushed: AtomicU64,
    pushed_sum: AtomicU64,
    delivered: AtomicU64,
    /// The deliveries for which the waiter waits.
    awaited: AtomicU64,
    waiter: Thread,
    records_times: AtomicBool,
    times: Mutex<Histogram>,
    /// The calls of consumers, of which one may deliver several events.
    calls: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    pub(super) fn new(suppliers: usize, consumers: usize) -> Self {
        let tally = Tally { next: (0..suppliers).map(|supplier| number(supplier, 0)).collect(), ..Tally::default() };
        Self {
            epoch: Instant::now(),
            tallies: (0..consumers).map(|_| Mutex::new(tally.clone())).collect(),
            pushed: AtomicU64::new(0),
            pushed_sum: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            awaited: AtomicU64::new(u64::MAX),
            waiter: thread::current(),
            records_times: AtomicBool::new(false),
            times: Mutex::new(Histogram::new(LONGEST)),
            calls: AtomicU64::new(0),
        }
    }

    pub(super) fn consumers(&self) -> usize {
        self.tallies.len()
    }

    /// The next event of a supplier, whose push begins now. It counts as pushed.
    pub(super) fn event(&self, supplier: usize, nth: u64) -> Event {
        let number = number(supplier, nth);
        self.pushed.fetch_add(1, Ordering::SeqCst);
        self.pushed_sum.fetch_add(mixed(number), Ordering::SeqCst);
        let mut event = [0; OCTETS];
        event[..8].copy_from_slice(&number.to_be_bytes());
        event[16..].copy_from_slice(&FILLING);
        let time = self.epoch.elapsed().as_nanos() as u64;
        event[8..16].copy_from_slice(&time.to_be_bytes());
        event
    }

    /// Counts a call of a consumer.
    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Records an event of a consumer.
    pub(super) fn receive(&self, consumer: usize, octets: &[u8]) {
        let arrival = self.epoch.elapsed().as_nanos() as u64;
        let field =
            |at: usize| octets.get(at..at + 8).and_then(|field| Some(u64::from_be_bytes(field.try_into().ok()?)));
        let is_whole = octets.len() == OCTETS && octets[16..] == FILLING;
        let header = field(0).zip(field(8)).filter(|_| is_whole);
        {
            let mut tally = lock(&self.tallies[consumer]);
            tally.count += 1;
            match header.map(|(number, _)| (number, (number >> SUPPLIER_SHIFT) as usize)) {
                Some((number, supplier)) if supplier < tally.next.len() => {
                    tally.sum = tally.sum.wrapping_add(mixed(number));
                    tally.disordered += u64::from(tally.next[supplier] != number);
                    tally.next[supplier] = number + 1;
                }
                _ => tally.invalid += 1,
            }
        }
        if let Some((_, pushed)) = header.filter(|_| self.records_times.load(Ordering::Relaxed)) {
            lock(&self.times).record(arrival.saturating_sub(pushed));
        }
        let delivered = self.delivered.fetch_add(1, Ordering::SeqCst) + 1;
        if delivered >= self.awaited.load(Ordering::SeqCst) {
            self.waiter.unpark();
        }
    }

    /// Whether latencies are recorded from now on.
    pub(super) fn record_times(&self, is_on: bool) {
        self.records_times.store(is_on, Ordering::SeqCst);
    }

    /// The recorded latencies in nanoseconds.
    pub(super) fn times(&self) -> MutexGuard<'_, Histogram> {
        lock(&self.times)
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::SeqCst)
    }

    /// Waits until each consumer has received what was pushed so far.
    pub(super) fn wait(&self, limit: Duration) -> anyhow::Result<()> {
        let expected = self.pushed.load(Ordering::SeqCst) * self.tallies.len() as u64;
        let deadline = Instant::now() + limit;
        self.awaited.store(expected, Ordering::SeqCst);
        while self.delivered() < expected {
            let rest = deadline.saturating_duration_since(Instant::now());
            ensure!(!rest.is_zero(), "{} of {expected} events were delivered within {limit:?}", self.delivered());
            thread::park_timeout(rest);
        }
        self.awaited.store(u64::MAX, Ordering::SeqCst);
        Ok(())
    }

    /// Checks that each consumer has received each event once, with its octets. Returns the events that came out of their
    /// order.
    pub(super) fn verify(&self) -> anyhow::Result<u64> {
        let (pushed, sum) = (self.pushed.load(Ordering::SeqCst), self.pushed_sum.load(Ordering::SeqCst));
        let mut disordered = 0;
        for (nth, tally) in self.tallies.iter().enumerate() {
            let tally = lock(tally);
            ensure!(tally.invalid == 0, "consumer {nth} received {} events with other octets", tally.invalid);
            ensure!(tally.count == pushed, "consumer {nth} received {} of {pushed} events", tally.count);
            ensure!(tally.sum == sum, "consumer {nth} received some events twice and others not at all");
            disordered += tally.disordered;
        }
        Ok(disordered)
    }
}
