//! Cases in which the buffer must not allocate: only unit tests can count its blocks.

use spandrel_sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::*;
use crate::MemoryAccount;
use crate::block::counter::allocated;

const NORMAL: usize = 4096;

/// Receives a message of `total` octets in `pieces`, announced once its first piece is there.
fn receive(buffer: &mut ReceiveBuffer, total: usize, pieces: usize) -> MessageBlock {
    while buffer.filled().len() < total {
        let missing = total - buffer.filled().len();
        let room = buffer.spare(1);
        let n = total.div_ceil(pieces).min(missing).min(room.len());
        room[..n].fill(total as u8);
        buffer.commit(n);
        if total >= 1024 {
            assert!(buffer.reserve_message(total), "there is no limit");
        }
    }
    buffer.take(total)
}

/// The number of blocks that `work` allocates from its second round on.
fn allocated_by(rounds: usize, mut work: impl FnMut()) -> usize {
    work();
    let before = allocated();
    (1..rounds).for_each(|_| work());
    allocated() - before
}

#[test]
fn one_message_after_the_other_uses_one_block() {
    let mut buffer = ReceiveBuffer::new(NORMAL);
    let at = receive(&mut buffer, 1, 1).as_ptr();
    let before = allocated();
    for total in (1..NORMAL).step_by(7) {
        let message = receive(&mut buffer, total, 2);
        assert_eq!(message.as_ptr(), at);
    }
    assert_eq!(allocated(), before);
}

#[test]
fn a_message_that_lives_while_the_next_is_read_uses_two_blocks_in_turn() {
    let mut buffer = ReceiveBuffer::new(NORMAL);
    let mut last = receive(&mut buffer, 100, 1);
    assert_eq!(allocated_by(100, || last = receive(&mut buffer, 100, 1)), 0);
    assert_eq!(last.len(), 100);
}

#[test]
fn after_a_long_message_the_buffer_has_a_normal_block_at_most() {
    for pieces in [1, 3, 50] {
        let mut buffer = ReceiveBuffer::new(NORMAL);
        let long = receive(&mut buffer, 10 * NORMAL, pieces);
        assert_eq!(buffer.capacity(), 0, "the message has taken its block");
        drop(receive(&mut buffer, 50, 1));
        assert_eq!(buffer.capacity(), NORMAL);
        assert!(buffer.spare_block.as_ref().is_none_or(|spare_block| spare_block.capacity() <= NORMAL));
        assert_eq!(long[..], vec![(10 * NORMAL) as u8; 10 * NORMAL]);
    }
}

#[test]
fn short_messages_between_long_ones_use_one_block() {
    let mut buffer = ReceiveBuffer::new(NORMAL);
    drop(receive(&mut buffer, 50, 1));
    let round = || {
        drop(receive(&mut buffer, 10 * NORMAL, 3));
        (0..10).for_each(|_| drop(receive(&mut buffer, 50, 1)));
    };
    assert_eq!(allocated_by(20, round), 19, "only the block of each long message");
}

#[test]
fn messages_that_arrive_together_are_taken_from_one_block() {
    let mut buffer = ReceiveBuffer::new(NORMAL);
    let before = allocated();
    buffer.spare(1)[..300].fill(1);
    buffer.commit(300);
    let messages: Vec<_> = (0..3).map(|_| buffer.take(100)).collect();
    assert_eq!(messages[0].as_ptr_range().end, messages[1].as_ptr());
    assert_eq!(messages[1].as_ptr_range().end, messages[2].as_ptr());
    assert_eq!(allocated(), before + 1);
}

#[test]
fn idle_buffers_share_the_memory_of_busy_ones() {
    let (mut one, mut other) = (ReceiveBuffer::new(NORMAL), ReceiveBuffer::new(NORMAL));
    assert_eq!(other.capacity(), 0);
    assert!(other.take_memory().is_none(), "it has none yet");
    let rounds = allocated_by(10, || {
        for _ in 0..2 {
            drop(receive(&mut one, 100, 1));
            let memory = one.take_memory().expect("nothing is unread");
            assert!(other.use_memory(memory).is_none());
            std::mem::swap(&mut one, &mut other);
        }
    });
    assert_eq!(rounds, 0);
    let message = receive(&mut one, 100, 1);
    assert!(one.take_memory().is_none(), "a message refers to it");
    drop(message);
    one.spare(1)[0] = 7;
    one.commit(1);
    assert!(one.take_memory().is_none(), "an octet is unread");
    assert!(one.take_memory_discarding().is_some(), "and is discarded");
}

#[test]
fn a_buffer_without_memory_allocates_it() {
    for total in [1, 100, 3 * NORMAL] {
        let mut buffer = ReceiveBuffer::new(NORMAL);
        if total > NORMAL {
            assert!(buffer.reserve_message(total), "there is no limit");
        }
        assert_eq!(receive(&mut buffer, total, 3)[..], vec![total as u8; total]);
    }
}

/// An account with a limit.
#[derive(Debug)]
struct Limit {
    used: AtomicUsize,
    limit: usize,
}

impl Limit {
    fn of(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit })
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl MemoryAccount for Limit {
    fn try_charge(&self, octets: usize) -> bool {
        let has_room = self.used() + octets <= self.limit;
        if has_room {
            self.charge(octets);
        }
        has_room
    }

    fn charge(&self, octets: usize) {
        self.used.fetch_add(octets, Ordering::Relaxed);
    }

    fn release(&self, octets: usize) {
        self.used.fetch_sub(octets, Ordering::Relaxed);
    }
}

#[test]
fn a_long_message_is_charged_until_its_last_part_is_dropped() {
    let account = Limit::of(25 * NORMAL);
    let mut buffer = ReceiveBuffer::new(NORMAL).with_account(Arc::<Limit>::clone(&account));
    drop(receive(&mut buffer, NORMAL, 2));
    assert_eq!(account.used(), 0, "normal blocks are not charged");
    let long = receive(&mut buffer, 10 * NORMAL, 3);
    assert!(long.is_charged());
    let part = long.slice(..1);
    let ended = receive(&mut buffer, 10 * NORMAL, 3);
    ended.end_charge();
    assert!(!ended.is_charged());
    assert_eq!(account.used(), 10 * NORMAL);
    drop(ended);
    drop(long);
    assert_eq!(account.used(), 10 * NORMAL);
    let second = receive(&mut buffer, 10 * NORMAL, 3);
    assert!(!buffer.reserve_message(10 * NORMAL), "two are held");
    drop(part);
    assert!(buffer.reserve_message(10 * NORMAL));
    buffer.release_reserved();
    drop(second);
    assert_eq!(account.used(), 0);
}

#[test]
fn a_growing_block_is_charged_once() {
    let account = Limit::of(16 * NORMAL);
    let mut buffer = ReceiveBuffer::new(NORMAL).with_account(Arc::<Limit>::clone(&account));
    for total in [2, 4, 8, 16].map(|blocks| blocks * NORMAL) {
        assert!(buffer.reserve_message(total));
        assert_eq!(account.used(), total);
        let missing = total - buffer.filled().len();
        buffer.spare(missing)[..missing].fill(7);
        buffer.commit(missing);
    }
    assert!(!buffer.reserve_message(17 * NORMAL));
    assert_eq!((account.used(), buffer.filled().len()), (16 * NORMAL, 16 * NORMAL), "nothing has changed");
    assert_ne!(buffer.spare(1).len(), 0, "room without a reservation exceeds the limit");
    assert!(account.used() > 16 * NORMAL);
    drop(buffer);
    assert_eq!(account.used(), 0);
}

#[test]
fn a_buffer_that_rests_holds_no_block_of_a_message() {
    let mut buffer = ReceiveBuffer::new(NORMAL);
    let message = receive(&mut buffer, 100, 1);
    assert!(buffer.take_memory().is_none(), "the message has it");
    assert_eq!(buffer.capacity(), 0);
    assert_ne!(message.headroom() + message.len(), 0, "it is the only holder");
    assert!(buffer.reserve_message(3 * NORMAL));
    assert!(buffer.take_memory_compacting(10).is_none(), "it is not normal");
    assert_eq!(buffer.capacity(), 0);
}
