//! Models of two sides of a ring, run under many interleavings: `cargo xtask models`, or
//! `RUSTFLAGS="--cfg shuttle" cargo test -p spandrel-ipc --lib models::`.
//!
//! The ring's octets and words are the checker's. Sleeping on a word is a condition variable with the
//! semantics of futex(2), and never ends by itself unless a model allows it: a lost wake-up is a deadlock,
//! which the checker reports.

use std::io::{IoSlice, IoSliceMut};
use std::ptr;
use std::time::Duration;

use spandrel_sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use spandrel_sync::models::{below, check, one_in};
use spandrel_sync::{Arc, Condition, Mutex, thread};

use super::adaptive_wait::AdaptiveWait;
use super::half::{End, Half, Host, StopReason, Wait};
use super::ring::{Consumer, Producer, RingMemory, Word, word};

const CAPACITY: u32 = 4;
const EXECUTIONS: usize = 4_000;
const FOR_EVER: Wait = Wait::For(None);

word!(AtomicU32);

/// The memory that both processes share.
#[derive(Default)]
struct Shared {
    tail: AtomicU32,
    head: AtomicU32,
    octets: [AtomicU8; CAPACITY as usize],
    /// The sleepers on `tail`, and on `head`.
    sleepers: [(Mutex<()>, Condition); 2],
    /// The number of unhandled rings of the consumer's and of the producer's doorbell.
    doorbells: [(Mutex<u32>, Condition); 2],
    is_peer_gone: AtomicBool,
    /// Whether sleeping may end by itself, as it does after each time slice.
    has_slices: bool,
}

impl Shared {
    fn sleepers_on(&self, word: &AtomicU32) -> &(Mutex<()>, Condition) {
        &self.sleepers[usize::from(!ptr::eq(word, &self.tail))]
    }

    /// Waits until the doorbell has rung, and clears it.
    fn await_doorbell(&self, side: usize) {
        let (count, rung) = &self.doorbells[side];
        let mut count = count.lock();
        rung.wait_while(&mut count, |count| *count == 0);
        *count = 0;
    }
}

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

/// The view of one side; `peer` is the side whose doorbell it rings.
struct Side<'a> {
    shared: &'a Shared,
    peer: usize,
}

const CONSUMER: usize = 0;
const PRODUCER: usize = 1;

impl<'a> Host for Side<'a> {
    type RingMemory = Shared;

    fn sleep(&self, word: &AtomicU32, expected: u32, _time: Duration) {
        if self.shared.has_slices {
            return thread::yield_now();
        }
        let (lock, woken) = self.shared.sleepers_on(word);
        let mut guard = lock.lock();
        if word.value() == expected {
            woken.wait(&mut guard);
        }
    }
    fn wake(&self, word: &AtomicU32) {
        let (lock, woken) = self.shared.sleepers_on(word);
        let _guard = lock.lock();
        woken.notify_all();
    }
    fn ring(&self) {
        let (count, rung) = &self.shared.doorbells[self.peer];
        *count.lock() += 1;
        rung.notify_all();
    }
    fn is_peer_gone(&self) -> bool {
        self.shared.is_peer_gone.load(Ordering::SeqCst)
    }
    fn is_peer_known_gone(&self) -> bool {
        false
    }
    fn is_peer_on_same_cpu(&self) -> bool {
        false
    }
}

fn half<E: End + Default>() -> Half<E> {
    Half::new(AdaptiveWait::new(Duration::ZERO))
}

/// Sends the octets from `first` to `last` in pieces of any size.
fn send_all(shared: &Shared, half: &Half<Producer>, first: u8, last: u8) -> Result<(), StopReason> {
    let side = Side { shared, peer: CONSUMER };
    let data: Vec<u8> = (first..=last).collect();
    let mut sent = 0;
    while sent < data.len() {
        let piece = &data[sent..=sent + below(data.len() - sent + 1).saturating_sub(1)];
        sent += half.send(&side, shared, &[IoSlice::new(piece)], FOR_EVER)?;
    }
    Ok(())
}

/// Receives in pieces of any size until the transfer stops.
fn recv_all(shared: &Shared, half: &Half<Consumer>) -> (Vec<u8>, StopReason) {
    let side = Side { shared, peer: PRODUCER };
    let mut received = Vec::new();
    loop {
        let mut buffer = [0; CAPACITY as usize];
        let len = 1 + below(CAPACITY as usize);
        match half.recv(&side, shared, &mut [IoSliceMut::new(&mut buffer[..len])], FOR_EVER) {
            Ok(n) => received.extend_from_slice(&buffer[..n]),
            Err(stop) => return (received, stop),
        }
    }
}

#[test]
fn all_octets_arrive_without_a_lost_wake_up() {
    check(EXECUTIONS, || {
        let shared = Arc::new(Shared::default());
        let others = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let producer = half();
            send_all(&others, &producer, 1, 7).unwrap();
            producer.shut(&Side { shared: &others, peer: CONSUMER }, &others);
        });
        let (received, stop) = recv_all(&shared, &half());
        assert_eq!(received, [1, 2, 3, 4, 5, 6, 7]);
        assert!(matches!(stop, StopReason::Ended));
        thread.join().unwrap();
    });
}

#[test]
fn shutting_down_wakes_a_sleeping_consumer() {
    check(EXECUTIONS, || {
        let shared = Arc::new(Shared::default());
        let consumer = Arc::new(half::<Consumer>());
        let (others, same) = (Arc::clone(&shared), Arc::clone(&consumer));
        let thread = thread::spawn(move || recv_all(&others, &same));
        consumer.shut(&Side { shared: &shared, peer: PRODUCER }, &shared);
        assert!(matches!(thread.join().unwrap(), (received, StopReason::Ended) if received.is_empty()));
    });
}

#[test]
fn closing_the_consumer_wakes_a_sleeping_producer() {
    check(EXECUTIONS, || {
        let shared = Arc::new(Shared::default());
        let others = Arc::clone(&shared);
        let thread = thread::spawn(move || send_all(&others, &half(), 1, 20));
        let consumer = half::<Consumer>();
        let side = Side { shared: &shared, peer: PRODUCER };
        if one_in(2) {
            let _ = consumer.recv(&side, &shared, &mut [IoSliceMut::new(&mut [0; 2])], FOR_EVER);
        }
        consumer.shut(&side, &shared);
        assert!(matches!(thread.join().unwrap(), Err(StopReason::Ended)));
    });
}

#[test]
fn concurrent_sends_do_not_interleave() {
    check(EXECUTIONS, || {
        let shared = Arc::new(Shared::default());
        let producer = Arc::new(half::<Producer>());
        let threads: Vec<_> = (0..2)
            .map(|i| {
                let (shared, producer) = (Arc::clone(&shared), Arc::clone(&producer));
                thread::spawn(move || send_all(&shared, &producer, 1 + 10 * i, 4 + 10 * i).unwrap())
            })
            .collect();
        let (others, ends) = (Arc::clone(&shared), Arc::clone(&producer));
        let ender = thread::spawn(move || {
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            ends.shut(&Side { shared: &others, peer: CONSUMER }, &others);
        });
        let (received, _) = recv_all(&shared, &half());
        let of = |i: u8| received.iter().copied().filter(move |octet| octet / 10 == i);
        assert!(of(0).eq(1..=4) && of(1).eq(11..=14), "{received:?}");
        ender.join().unwrap();
    });
}

#[test]
fn octets_published_before_the_peers_death_are_received() {
    check(EXECUTIONS, || {
        let shared = Arc::new(Shared { has_slices: true, ..Shared::default() });
        let others = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            send_all(&others, &half(), 1, 3).unwrap();
            others.is_peer_gone.store(true, Ordering::SeqCst); // no end, no wake-up
        });
        let (received, stop) = recv_all(&shared, &half());
        assert_eq!(received, [1, 2, 3]);
        assert!(matches!(stop, StopReason::Gone));
        thread.join().unwrap();
    });
}

#[test]
fn a_polling_consumer_gets_all_octets() {
    check(EXECUTIONS, || {
        let shared = Arc::new(Shared::default());
        let others = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let producer = half();
            send_all(&others, &producer, 1, 7).unwrap();
            producer.shut(&Side { shared: &others, peer: CONSUMER }, &others);
        });
        let consumer = half::<Consumer>();
        let side = Side { shared: &shared, peer: PRODUCER };
        let mut received = Vec::new();
        loop {
            if !consumer.announce(&*shared) {
                shared.await_doorbell(CONSUMER);
            }
            let mut buffer = [0; 2];
            match consumer.recv(&side, &shared, &mut [IoSliceMut::new(&mut buffer)], Wait::No) {
                Ok(n) => received.extend_from_slice(&buffer[..n]),
                Err(StopReason::WouldBlock) => {}
                Err(stop) => break assert!(matches!(stop, StopReason::Ended)),
            }
        }
        assert_eq!(received, [1, 2, 3, 4, 5, 6, 7]);
        thread.join().unwrap();
    });
}

#[test]
fn a_polling_producer_is_notified_of_space() {
    check(EXECUTIONS, || {
        let shared = Arc::new(Shared::default());
        let others = Arc::clone(&shared);
        let thread = thread::spawn(move || recv_all(&others, &half()).0);
        let producer = half::<Producer>();
        let side = Side { shared: &shared, peer: CONSUMER };
        let data = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let mut sent = 0;
        while sent < data.len() {
            if !producer.announce(&*shared) {
                shared.await_doorbell(PRODUCER);
            }
            match producer.send(&side, &shared, &[IoSlice::new(&data[sent..])], Wait::No) {
                Ok(n) => sent += n,
                Err(stop) => assert!(matches!(stop, StopReason::WouldBlock)),
            }
        }
        producer.shut(&side, &shared);
        assert_eq!(thread.join().unwrap(), data);
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_checker_finds_a_publication_without_a_wake_up() {
    check(EXECUTIONS, || {
        let shared = Arc::new(Shared::default());
        let others = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            // The mistake that the words guard against: a publication that ignores the word that it replaces.
            let _ = Producer::default().push(&*others, &[IoSlice::new(&[1])]);
        });
        let side = Side { shared: &shared, peer: PRODUCER };
        let _ = half::<Consumer>().recv(&side, &shared, &mut [IoSliceMut::new(&mut [0])], FOR_EVER);
        thread.join().unwrap();
    });
}
