//! The receive buffer against a model: a plain vector of the octets not yet taken.

use std::collections::VecDeque;

use crate::{ALIGNMENT, MessageBlock, ReceiveBuffer};
use proptest::prelude::*;
use proptest::sample::Index;

fn config() -> ProptestConfig {
    ProptestConfig { cases: if cfg!(miri) { 12 } else { 1024 }, failure_persistence: None, ..ProptestConfig::default() }
}

/// The operations of a reader.
#[derive(Clone, Debug)]
enum Step {
    /// Receives as many octets as fit, up to this many, into room for at least `min`.
    Receive { min: usize, most: usize },
    /// Takes that much of the filled octets as a message, and keeps it.
    Take(Index),
    /// Drops that much of the filled octets.
    Consume(Index),
    /// Announces a message that much longer (or, if negative, shorter) than the filled octets, and receives
    /// it whole.
    Message { more: isize, pieces: usize },
    /// Drops the message at this index.
    Forget(Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..300_usize, 0..400_usize).prop_map(|(min, most)| Step::Receive { min, most }),
        3 => any::<Index>().prop_map(Step::Take),
        1 => any::<Index>().prop_map(Step::Consume),
        2 => (-50..700_isize, 1..4_usize).prop_map(|(more, pieces)| Step::Message { more, pieces }),
        3 => any::<Index>().prop_map(Step::Forget),
    ]
}

/// A reader whose peer sends consecutive numbers, so that every octet differs from its neighbours.
struct Reader {
    buffer: ReceiveBuffer,
    model: VecDeque<u8>,
    sent: u32,
    taken: Vec<(MessageBlock, Vec<u8>)>,
}

impl Reader {
    fn new(capacity: usize) -> Self {
        Self { buffer: ReceiveBuffer::new(capacity), model: VecDeque::new(), sent: 0, taken: Vec::new() }
    }

    fn receive(&mut self, min: usize, most: usize) {
        let room = self.buffer.spare(min);
        assert!(room.len() >= min.max(1), "room for {} octets, {min} requested", room.len());
        let n = most.min(room.len());
        for octet in &mut room[..n] {
            self.sent += 1;
            *octet = (self.sent ^ (self.sent >> 8)) as u8;
            self.model.push_back(*octet);
        }
        self.buffer.commit(n);
    }

    fn take(&mut self, n: usize) {
        let expected: Vec<_> = self.model.drain(..n).collect();
        self.taken.push((self.buffer.take(n), expected));
    }

    /// Reads a large message: it lies aligned and contiguous, whatever came before.
    fn message(&mut self, total: usize, pieces: usize) {
        assert!(self.buffer.reserve_message(total), "there is no limit");
        let start = self.buffer.filled().as_ptr();
        assert_eq!(start.addr() % ALIGNMENT, 0);
        while self.model.len() < total {
            let missing = total - self.model.len();
            self.receive(missing, missing.div_ceil(pieces));
            assert_eq!(self.buffer.filled().as_ptr(), start, "the message moved while it was received");
        }
        self.take(total);
        assert_eq!(self.taken.last().unwrap().0.as_ptr(), start);
    }

    fn run(&mut self, step: &Step) {
        let filled = self.model.len();
        match step {
            Step::Receive { min, most } => self.receive(*min, *most),
            Step::Take(n) => self.take(n.index(filled + 1)),
            Step::Consume(n) => {
                let n = n.index(filled + 1);
                self.buffer.consume(n);
                self.model.drain(..n);
            }
            Step::Message { more, pieces } => self.message(filled.saturating_add_signed(*more), *pieces),
            Step::Forget(n) if !self.taken.is_empty() => drop(self.taken.swap_remove(n.index(self.taken.len()))),
            Step::Forget(_) => {}
        }
    }

    fn check(&mut self) {
        assert_eq!(self.buffer.filled(), self.model.make_contiguous());
        for (message, expected) in &self.taken {
            assert_eq!(&**message, &expected[..], "a message changed after it was taken");
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn it_agrees_with_a_vector(capacity in 0..600_usize, steps in prop::collection::vec(step(), 1..60)) {
        let mut reader = Reader::new(capacity);
        for step in &steps {
            reader.run(step);
            reader.check();
        }
    }
}

#[test]
fn room_extends_to_the_end_of_the_block() {
    let mut buffer = ReceiveBuffer::new(100);
    assert_eq!(buffer.capacity(), 0, "no read yet");
    assert_eq!(buffer.spare(1).len(), 112, "whole chunks");
    buffer.commit(40);
    assert_eq!(buffer.spare(1).len(), 72);
    buffer.consume(40);
    assert_eq!(buffer.spare(1).len(), 112, "an empty buffer starts again at its front");
    buffer.commit(112);
    buffer.consume(12);
    assert_eq!(buffer.spare(0).len(), 12, "there is always room for one octet");
}

#[test]
fn a_message_outlives_the_buffer() {
    let mut buffer = ReceiveBuffer::new(64);
    buffer.spare(4)[..4].copy_from_slice(b"last");
    buffer.commit(4);
    let last = buffer.take(4);
    drop(buffer);
    assert_eq!(&*last, b"last");
}

#[test]
fn taking_more_than_filled_panics() {
    let refused = |work: fn(&mut ReceiveBuffer)| {
        let mut buffer = ReceiveBuffer::new(64);
        buffer.spare(8)[..8].copy_from_slice(b"8 octets");
        buffer.commit(8);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut buffer))).is_err()
    };
    assert!(refused(|buffer| buffer.commit(57)));
    assert!(refused(|buffer| buffer.consume(9)));
    assert!(refused(|buffer| drop(buffer.take(9))));
    assert!(refused(|buffer| assert_ne!(buffer.spare(usize::MAX).len(), 0)));
    assert!(!refused(|buffer| buffer.commit(56)));
}

#[test]
fn messages_are_released_by_other_threads_while_the_next_are_received() {
    let (send, receive) = std::sync::mpsc::sync_channel::<MessageBlock>(4);
    let rounds = if cfg!(miri) { 40 } else { 20_000_u32 };
    let worker = std::thread::spawn(move || {
        let mut expected = 0..;
        for message in receive {
            let number = expected.next().unwrap_or(0_u32);
            assert!(message.iter().all(|&octet| octet == number as u8), "message {number} was overwritten");
        }
        expected.next()
    });
    let mut buffer = ReceiveBuffer::new(256);
    for number in 0..rounds {
        let total = 1 + number as usize % 300;
        assert!(buffer.reserve_message(total), "there is no limit");
        buffer.spare(total)[..total].fill(number as u8);
        buffer.commit(total);
        send.send(buffer.take(total)).unwrap();
    }
    drop(send);
    assert_eq!(worker.join().unwrap(), Some(rounds));
}
