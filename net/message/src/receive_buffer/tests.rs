//! Cases in which the buffer must not allocate: only unit tests can count its blocks.

use super::*;
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
            buffer.reserve_message(total);
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
fn large_and_small_messages_in_turn_allocate_nothing() {
    for pieces in [1, 3, 50] {
        let mut buffer = ReceiveBuffer::new(NORMAL);
        let round = || {
            drop(receive(&mut buffer, 20 * NORMAL, pieces));
            (0..10).for_each(|_| drop(receive(&mut buffer, 50, 1)));
        };
        assert_eq!(allocated_by(20, round), 0, "in {pieces} pieces");
    }
}

#[test]
fn large_messages_that_live_while_the_next_is_read_use_two_blocks_in_turn() {
    let mut buffer = ReceiveBuffer::new(NORMAL);
    let mut last = (receive(&mut buffer, 10 * NORMAL, 9), receive(&mut buffer, 10 * NORMAL, 9));
    assert_eq!(allocated_by(50, || last.1 = receive(&mut buffer, 10 * NORMAL, 9)), 0);
    drop(last);
}

#[test]
fn after_large_messages_the_buffer_returns_to_its_normal_capacity() {
    let mut buffer = ReceiveBuffer::new(NORMAL);
    drop(receive(&mut buffer, 10 * NORMAL, 2));
    assert!(buffer.capacity() >= 10 * NORMAL);
    for _ in 0..=MAX_QUIET_EMPTIES {
        drop(receive(&mut buffer, 50, 1));
    }
    assert_eq!(buffer.capacity(), NORMAL);
    assert!(
        buffer.spare_block.as_ref().is_none_or(|spare_block| spare_block.capacity() <= NORMAL),
        "a large block is kept"
    );
    let work = || drop(receive(&mut buffer, 3000, 2));
    assert_eq!(allocated_by(50, work), 0);
}

#[test]
fn a_very_large_block_serves_one_message() {
    let mut buffer = ReceiveBuffer::new(NORMAL);
    drop(receive(&mut buffer, 3 * MAX_REUSED_OCTETS, 5));
    drop(receive(&mut buffer, 50, 1));
    assert!(buffer.capacity() <= MAX_REUSED_OCTETS);
    assert!(buffer.spare_block.as_ref().is_none_or(|spare_block| spare_block.capacity() <= MAX_REUSED_OCTETS));
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
fn large_messages_that_arrive_whole_keep_the_large_block() {
    let mut buffer = ReceiveBuffer::new(NORMAL);
    drop(receive(&mut buffer, 10 * NORMAL, 2));
    let before = allocated();
    for _ in 0..3 * MAX_QUIET_EMPTIES {
        // One read brings all of it, so no length is announced before.
        assert!(buffer.spare(1).len() >= 10 * NORMAL);
        buffer.commit(10 * NORMAL);
        drop(buffer.take(10 * NORMAL));
    }
    assert_eq!(allocated(), before);
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
            buffer.reserve_message(total);
        }
        assert_eq!(receive(&mut buffer, total, 3)[..], vec![total as u8; total]);
    }
}
