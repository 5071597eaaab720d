//! Models of the ring under the weak memory of Rust's atomics, every interleaving of a few steps:
//! `RUSTFLAGS="--cfg loom" cargo test -p spandrel-ipc --release --lib weak::`.
//!
//! The octets are relaxed atomics here, so that a premature read or overwrite shows as a wrong value. The
//! system's sleep is a mutex and a condition variable, with the semantics of futex(2).

use std::io::{IoSlice, IoSliceMut};

use loom::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::ring::{self, Consumer, Producer, RingMemory, Step, WAITING, Wakeups, Word, word};

const CAPACITY: u32 = 2;
/// More than the ring holds, so that slots are reused.
const LAST: u8 = 3;

word!(AtomicU32);

struct Shared {
    tail: AtomicU32,
    head: AtomicU32,
    octets: [AtomicU8; CAPACITY as usize],
    sleepers: [(Mutex<()>, Condvar); 2],
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            tail: AtomicU32::new(0),
            head: AtomicU32::new(0),
            octets: [AtomicU8::new(0), AtomicU8::new(0)],
            sleepers: [(Mutex::new(()), Condvar::new()), (Mutex::new(()), Condvar::new())],
        })
    }

    /// Sleeps on a word with the value `seen` when no transfer was possible, as [`half`](super::super::half)
    /// does.
    fn sleep(&self, word: &AtomicU32, which: usize, seen: u32) {
        let announced = word.set(WAITING) | WAITING;
        if !ring::is_unchanged(announced, seen) {
            return;
        }
        let (lock, woken) = &self.sleepers[which];
        let guard = lock.lock().unwrap();
        if word.value() == announced {
            drop(woken.wait(guard).unwrap());
        }
    }

    fn wake(&self, which: usize, wakeups: Wakeups) {
        if wakeups.wake {
            let (lock, woken) = &self.sleepers[which];
            let _guard = lock.lock().unwrap();
            woken.notify_all();
        }
    }
}

const TAIL: usize = 0;
const HEAD: usize = 1;

impl RingMemory for Shared {
    type Word = AtomicU32;

    fn capacity(&self) -> u32 {
        CAPACITY
    }
    fn tail(&self) -> &AtomicU32 {
        &self.tail
    }
    fn head(&self) -> &AtomicU32 {
        &self.head
    }
    fn write(&self, at: u32, data: &[u8]) {
        for (cell, octet) in self.octets[at as usize..].iter().zip(data) {
            cell.store(*octet, Ordering::Relaxed);
        }
    }
    fn read(&self, at: u32, buffer: &mut [u8]) {
        for (cell, octet) in self.octets[at as usize..].iter().zip(buffer) {
            *octet = cell.load(Ordering::Relaxed);
        }
    }
}

/// Sends the octets from 1 to [`LAST`], then the end; `blocked` runs when there is no space.
fn produce(shared: &Shared, blocked: impl Fn(u32)) {
    let mut producer = Producer::default();
    let mut next = 1;
    while next <= LAST {
        match producer.push(shared, &[IoSlice::new(&[next])]).unwrap() {
            Step::Done(n, wakeups) => {
                next += n as u8;
                shared.wake(TAIL, wakeups);
            }
            Step::Blocked(seen) => blocked(seen),
            Step::Ended => panic!("the ring was not ended"),
        }
    }
    let wakeups = producer.end(shared);
    shared.wake(TAIL, wakeups);
}

/// Receives until the end, and checks the octets.
fn consume(shared: &Shared, blocked: impl Fn(u32)) {
    let mut consumer = Consumer::default();
    let mut next = 1;
    loop {
        let mut octet = [0];
        match consumer.pop(shared, &mut [IoSliceMut::new(&mut octet)]).unwrap() {
            Step::Done(_, wakeups) => {
                assert_eq!(octet, [next]);
                next += 1;
                shared.wake(HEAD, wakeups);
            }
            Step::Blocked(seen) => blocked(seen),
            Step::Ended => break assert_eq!(next, LAST + 1),
        }
    }
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn octets_are_complete_when_their_position_is_visible() {
    check(3, || {
        let shared = Shared::new();
        let others = Arc::clone(&shared);
        let thread = thread::spawn(move || produce(&others, |_| thread::yield_now()));
        consume(&shared, |_| thread::yield_now());
        thread.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost() {
    check(3, || {
        let shared = Shared::new();
        let others = Arc::clone(&shared);
        let thread = thread::spawn(move || produce(&others, |seen| others.sleep(&others.head, HEAD, seen)));
        consume(&shared, |seen| shared.sleep(&shared.tail, TAIL, seen));
        thread.join().unwrap();
    });
}
