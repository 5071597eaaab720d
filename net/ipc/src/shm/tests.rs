//! The ring against a simple model, against false words, and between threads, over ordinary memory: also
//! under Miri.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::AtomicU32;
use std::thread;

use proptest::prelude::*;

use super::ring::{
    Consumer, Corrupt, END, FLAGS, POLLING, Producer, QUIT, RingMemory, Step, WAITING, WRAP, Wakeups, Word,
};
use crate::sys::shm::Memory;

/// A ring in ordinary memory: the words at 0 and 4, then the octets.
struct Plain {
    memory: Memory,
    capacity: u32,
}

const DATA: usize = 8;

impl Plain {
    /// Empty, with both positions at `start`.
    fn at(start: u32, capacity: u32) -> (Self, Producer, Consumer) {
        let plain = Self { memory: Memory::ordinary(DATA + capacity as usize), capacity };
        let _ = (plain.tail().replace(start << FLAGS), plain.head().replace(start << FLAGS));
        (plain, Producer::at(start), Consumer::at(start))
    }
}

impl RingMemory for Plain {
    type Word = AtomicU32;

    fn capacity(&self) -> u32 {
        self.capacity
    }
    fn tail(&self) -> &AtomicU32 {
        self.memory.word(0)
    }
    fn head(&self) -> &AtomicU32 {
        self.memory.word(4)
    }
    fn write(&self, at: u32, data: &[u8]) {
        self.memory.write(DATA + at as usize, data);
    }
    fn read(&self, at: u32, buffer: &mut [u8]) {
        self.memory.read(DATA + at as usize, buffer);
    }
}

/// Pushes the octets of one slice.
fn push(producer: &mut Producer, ring: &Plain, data: &[u8]) -> Result<Step, Corrupt> {
    producer.push(ring, &[IoSlice::new(data)])
}

/// Pops into one buffer.
fn pop(consumer: &mut Consumer, ring: &Plain, buffer: &mut [u8]) -> Result<Step, Corrupt> {
    consumer.pop(ring, &mut [IoSliceMut::new(buffer)])
}

#[derive(Clone, Debug)]
enum Action {
    Push(Vec<usize>),
    Pop(Vec<usize>),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let lens = || proptest::collection::vec(0..20_usize, 1..4);
    let action = prop_oneof![lens().prop_map(Action::Push), lens().prop_map(Action::Pop)];
    proptest::collection::vec(action, 0..60)
}

/// Any start, and often one at which positions wrap.
fn starts() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 0..WRAP, WRAP - 40..WRAP]
}

fn config(cases: u32) -> ProptestConfig {
    let cases = if cfg!(miri) { 8 } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn it_is_a_bounded_queue(start in starts(), log in 2..6_u32, actions in actions()) {
        let capacity = 1 << log;
        let (ring, mut producer, mut consumer) = Plain::at(start, capacity);
        let mut queue = VecDeque::<u8>::new();
        let mut next = 0_u8;
        for action in actions {
            match action {
                Action::Push(lens) if lens.iter().any(|len| *len > 0) => {
                    let data: Vec<Vec<u8>> = lens
                        .iter()
                        .map(|len| (0..*len).map(|_| { next = next.wrapping_add(1); next }).collect())
                        .collect();
                    let slices: Vec<_> = data.iter().map(|data| IoSlice::new(data)).collect();
                    let all: Vec<u8> = data.concat();
                    match producer.push(&ring, &slices).unwrap() {
                        Step::Done(n, wakeups) => {
                            prop_assert!(0 < n && n <= all.len());
                            prop_assert_eq!(wakeups, Wakeups::default());
                            queue.extend(&all[..n]);
                            next = next.wrapping_sub((all.len() - n) as u8);
                        }
                        Step::Blocked(_) => {
                            prop_assert_eq!(queue.len(), capacity as usize);
                            next = next.wrapping_sub(all.len() as u8);
                        }
                        Step::Ended => prop_assert!(false, "the ring was not ended"),
                    }
                    prop_assert!(queue.len() <= capacity as usize);
                }
                Action::Pop(lens) if lens.iter().any(|len| *len > 0) => {
                    let mut buffers: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; *len]).collect();
                    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
                    match consumer.pop(&ring, &mut slices).unwrap() {
                        Step::Done(n, _) => {
                            prop_assert!(n > 0);
                            let popped: Vec<u8> = buffers.concat();
                            prop_assert!(popped[..n].iter().eq(queue.drain(..n).collect::<Vec<u8>>().iter()));
                        }
                        Step::Blocked(_) => prop_assert!(queue.is_empty()),
                        Step::Ended => prop_assert!(false, "the ring was not ended"),
                    }
                }
                _ => {}
            }
        }
        let _ = producer.end(&ring);
        let mut rest = vec![0; 64];
        let mut popped = Vec::new();
        while let Step::Done(n, _) = pop(&mut consumer, &ring, &mut rest).unwrap() {
            popped.extend_from_slice(&rest[..n]);
        }
        prop_assert_eq!(popped, Vec::from(queue));
        prop_assert_eq!(pop(&mut consumer, &ring, &mut rest), Ok(Step::Ended));
    }

    #[test]
    fn false_words_are_detected_or_harmless(
        start in starts(),
        before in 0..16_usize,
        words in proptest::collection::vec((any::<u32>(), any::<u32>()), 1..20),
    ) {
        let (ring, mut producer, mut consumer) = Plain::at(start, 16);
        let mut buffer = [0; 64];
        if before > 0 {
            let _ = push(&mut producer, &ring, &buffer[..before]).unwrap();
        }
        for (tail, head) in words {
            let _ = ring.tail().replace(tail);
            match pop(&mut consumer, &ring, &mut buffer) {
                Ok(Step::Done(n, _)) => prop_assert!(n <= 16),
                Ok(_) => {}
                Err(Corrupt) => break,
            }
            let _ = ring.head().replace(head);
            match push(&mut producer, &ring, &buffer) {
                Ok(Step::Done(n, _)) => prop_assert!(n <= 16),
                Ok(_) => {}
                Err(Corrupt) => break,
            }
        }
    }
}

#[test]
fn a_position_beyond_the_capacity_is_corrupt() {
    let (ring, mut producer, mut consumer) = Plain::at(7, 16);
    let _ = ring.tail().replace((7 + 17) << FLAGS);
    assert_eq!(pop(&mut consumer, &ring, &mut [0; 64]), Err(Corrupt));
    let _ = ring.tail().replace(6 << FLAGS); // back
    assert_eq!(pop(&mut consumer, &ring, &mut [0; 64]), Err(Corrupt));

    for _ in 0..4 {
        assert!(matches!(push(&mut producer, &ring, &[1; 4]), Ok(Step::Done(4, _))));
    }
    let _ = ring.head().replace((7 + 17) << FLAGS); // more taken than was published
    assert_eq!(push(&mut producer, &ring, &[1]), Err(Corrupt));
}

#[test]
fn a_publication_clears_each_request_once() {
    let (ring, mut producer, mut consumer) = Plain::at(0, 16);
    ring.tail().set(WAITING);
    assert_eq!(push(&mut producer, &ring, b"a"), Ok(Step::Done(1, Wakeups { wake: true, ring: false })));
    assert_eq!(push(&mut producer, &ring, b"b"), Ok(Step::Done(1, Wakeups::default())));
    ring.tail().set(POLLING);
    assert_eq!(push(&mut producer, &ring, b"c"), Ok(Step::Done(1, Wakeups { wake: false, ring: true })));
    ring.head().set(WAITING | POLLING);
    assert_eq!(pop(&mut consumer, &ring, &mut [0; 1]), Ok(Step::Done(1, Wakeups { wake: true, ring: true })));
    assert_eq!(pop(&mut consumer, &ring, &mut [0; 1]), Ok(Step::Done(1, Wakeups::default())));
}

#[test]
fn a_waiting_producer_is_woken_once_half_is_free() {
    let (ring, mut producer, mut consumer) = Plain::at(WRAP - 3, 16);
    for _ in 0..4 {
        assert!(matches!(push(&mut producer, &ring, &[1; 4]), Ok(Step::Done(4, _))));
    }
    assert!(matches!(push(&mut producer, &ring, &[1]), Ok(Step::Blocked(_))));
    ring.head().set(WAITING);
    let mut calls = 0;
    for taken in 1..=16 {
        let Ok(Step::Done(1, wakeups)) = pop(&mut consumer, &ring, &mut [0]) else {
            panic!("there are {taken} octets")
        };
        calls += u32::from(wakeups.wake);
        assert_eq!(wakeups.wake, taken == 8);
    }
    assert_eq!(calls, 1);
}

#[test]
fn the_end_follows_the_last_octet_on_both_sides() {
    let (ring, mut producer, mut consumer) = Plain::at(0, 16);
    assert!(matches!(push(&mut producer, &ring, b"last"), Ok(Step::Done(4, _))));
    let _ = producer.end(&ring);
    assert_eq!(push(&mut producer, &ring, b"more"), Ok(Step::Ended));
    let mut buffer = [0; 16];
    assert!(matches!(pop(&mut consumer, &ring, &mut buffer), Ok(Step::Done(4, _))));
    assert_eq!(pop(&mut consumer, &ring, &mut buffer), Ok(Step::Ended));

    let (ring, mut producer, mut consumer) = Plain::at(0, 16);
    assert!(matches!(push(&mut producer, &ring, b"lost"), Ok(Step::Done(4, _))));
    let _ = consumer.end(&ring);
    assert_eq!(ring.tail().value() & QUIT, QUIT);
    assert_eq!(ring.head().value() & END, END);
    assert_eq!(push(&mut producer, &ring, b"more"), Ok(Step::Ended));
}

#[test]
fn octets_arrive_in_order_between_threads() {
    let octets = if cfg!(miri) { 300 } else { 300_000 };
    let (ring, mut producer, mut consumer) = Plain::at(WRAP - 100, 16);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while sent < octets {
                let data: Vec<u8> = (sent..octets.min(sent + 7)).map(|i| i as u8).collect();
                match push(&mut producer, &ring, &data).unwrap() {
                    Step::Done(n, _) => sent += n,
                    Step::Blocked(_) => thread::yield_now(),
                    Step::Ended => panic!("the ring was not ended"),
                }
            }
            let _ = producer.end(&ring);
        });
        let mut received = 0;
        loop {
            let mut buffer = [0; 5];
            match pop(&mut consumer, &ring, &mut buffer).unwrap() {
                Step::Done(n, _) => {
                    assert!(buffer[..n].iter().enumerate().all(|(i, octet)| *octet == (received + i) as u8));
                    received += n;
                }
                Step::Blocked(_) => thread::yield_now(),
                Step::Ended => break,
            }
        }
        assert_eq!(received, octets);
    });
}
