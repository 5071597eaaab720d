//! Message blocks: sharing of memory, and chains.

use crate::{ALIGNMENT, MessageBlock};
use bytes::Bytes;
use proptest::prelude::*;

fn config() -> ProptestConfig {
    ProptestConfig { cases: if cfg!(miri) { 8 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() }
}

/// Whether `part` lies within the memory of `whole`.
fn shares(whole: &[u8], part: &[u8]) -> bool {
    whole.as_ptr_range().contains(&part.as_ptr())
}

fn chain(parts: &[&[u8]]) -> MessageBlock {
    let mut parts = parts.iter().map(|part| MessageBlock::from(*part));
    let mut head = parts.next().unwrap_or_default();
    parts.for_each(|part| head.append(part));
    head
}

#[test]
fn a_block_starts_aligned_and_its_slices_share_it() {
    let block = MessageBlock::from(b"0123456789");
    assert_eq!(block.as_ptr().addr() % ALIGNMENT, 0);
    for (slice, expected) in [
        (block.slice(2..4), "23"),
        (block.slice(..=1), "01"),
        (block.slice(8..), "89"),
        (block.slice(..), "0123456789"),
    ] {
        assert_eq!(&*slice, expected.as_bytes());
        assert!(shares(&block, &slice));
    }
    assert!(block.slice(10..).is_empty());
    assert_eq!(&*block.slice(1..5).slice(1..3), b"23");
}

#[test]
fn splitting_copies_no_octet() {
    let mut tail = MessageBlock::from(b"head and tail");
    let whole = tail.clone();
    let head = tail.split_to(5);
    let end = tail.split_off(4);
    tail.advance(1);
    assert_eq!((&*head, &*tail, &*end), (&b"head "[..], &b"nd "[..], &b"tail"[..]));
    assert!([&head, &tail, &end].into_iter().all(|part| shares(&whole, part)));
}

#[test]
fn a_slice_outside_of_the_range_panics() {
    let block = MessageBlock::from(b"four").slice(1..3); // there is more memory on both sides
    for wrong in [0..3, 3..3, 0..usize::MAX] {
        assert!(std::panic::catch_unwind(|| block.slice(wrong.clone())).is_err(), "{wrong:?}");
    }
    assert!(std::panic::catch_unwind(|| block.slice(..=usize::MAX)).is_err());
    assert!(std::panic::catch_unwind(|| block.clone().split_to(3)).is_err());
    assert!(std::panic::catch_unwind(|| block.clone().split_off(3)).is_err());
    assert!(std::panic::catch_unwind(|| block.clone().advance(3)).is_err());
    assert_eq!(&*block, b"ou");
}

#[test]
fn headroom_takes_headers_without_a_move() {
    let mut block = MessageBlock::with_headroom(16, b"body");
    let body = block.as_ptr();
    assert_eq!((body.addr() % ALIGNMENT, block.headroom()), (0, 16));
    block.prepend(b"inner ");
    block.prepend(b"outer ");
    assert_eq!(&*block, b"outer inner body");
    assert_eq!((block[12..].as_ptr(), block.headroom()), (body, 4));

    block.prepend(b"longer than four ");
    assert_eq!(&*block, b"longer than four outer inner body");
    assert_ne!(block[29..].as_ptr(), body);
}

#[test]
fn shared_memory_is_not_written_by_prepending() {
    let mut block = MessageBlock::with_headroom(16, b"body");
    block.prepend(b"old ");
    let other = block.clone();
    block.advance(4);
    assert_eq!(block.headroom(), 0);
    block.prepend(b"new ");
    assert_eq!((&*block, &*other), (&b"new body"[..], &b"old body"[..]));

    drop(other);
    let headroom = MessageBlock::with_headroom(8, b"");
    assert_eq!(headroom.headroom(), 8);
    let _shared = headroom.clone();
    assert_eq!(headroom.headroom(), 0);
}

#[test]
fn a_chain_is_walked_in_order() {
    let mut whole = chain(&[b"one ", b"", b"two "]);
    whole.append(chain(&[b"three ", b"four"]));
    assert_eq!((whole.len(), whole.total_len(), whole.links().count()), (4, 18, 5));
    assert_eq!(whole.links().flat_map(|link| link.to_vec()).collect::<Vec<_>>(), b"one two three four");
    assert_eq!(whole.next().and_then(MessageBlock::next).map(|link| link.to_vec()), Some(b"two ".to_vec()));
    assert_eq!(format!("{whole:?}"), "MessageBlock { len: 4, total_len: 18, links: 5 }");

    whole.prepend(b"zero ");
    assert_eq!(whole.total_len(), 23, "prepending keeps the chain");
    let head = whole.split_to(5);
    assert_eq!((head.total_len(), whole.total_len()), (5, 18), "what is cut off the front leaves the chain");
    let tail = whole.split_off(2);
    assert_eq!((whole.total_len(), tail.total_len()), (2, 16), "what is cut off the end takes the chain");
    assert_eq!(tail.slice(..).total_len(), 2);

    let mut tail = tail;
    let rest = tail.take_next().unwrap();
    assert_eq!((tail.total_len(), rest.total_len()), (2, 14));
    assert!(tail.take_next().is_none());
}

#[test]
fn a_chain_of_any_length_is_cloned_and_dropped_without_recursion() {
    let links = if cfg!(miri) { 200 } else { 500_000 };
    let octet = MessageBlock::from(b"x");
    let mut whole = MessageBlock::default();
    for _ in 0..links {
        let rest = std::mem::replace(&mut whole, octet.clone());
        whole.append(rest); // one step each, as the chain grows at its front
    }
    let copy = whole.clone();
    assert_eq!(copy.total_len(), links);
    assert!(whole == copy);
    drop(whole);
    assert_eq!(copy.links().count(), links + 1);
}

#[test]
fn bytes_share_a_block_and_copy_a_chain() {
    let block = MessageBlock::from(b"shared").slice(1..5);
    let bytes = Bytes::from(block.clone());
    assert_eq!((&bytes[..], bytes.as_ptr()), (&b"hare"[..], block.as_ptr()));
    assert_eq!(Bytes::from(chain(&[b"two ", b"links"])), "two links");

    let back = MessageBlock::from(bytes.slice(1..));
    assert_eq!(&*back, b"are");
    assert_eq!(back.as_ptr().addr() % ALIGNMENT, 0);
}

#[test]
fn blocks_move_to_other_threads() {
    let block = MessageBlock::from(b"here and there");
    let part = block.slice(9..);
    let sum = std::thread::spawn(move || part.iter().map(|&b| u32::from(b)).sum::<u32>()).join().unwrap();
    assert_eq!(sum, b"there".iter().map(|&b| u32::from(b)).sum());
    assert_eq!(&*block, b"here and there");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn equality_ignores_splits(octets: Vec<u8>, cuts: [prop::sample::Index; 3], at: prop::sample::Index) {
        let mut cuts = cuts.map(|cut| cut.index(octets.len() + 1));
        cuts.sort_unstable();
        let [a, b, c] = cuts;
        let cut = chain(&[&octets[..a], &octets[a..b], &octets[b..c], &octets[c..]]);
        let whole = MessageBlock::from(&octets[..]);
        prop_assert_eq!(&cut, &whole);
        prop_assert_eq!(&Bytes::from(cut.clone())[..], &octets[..]);
        if !octets.is_empty() {
            let mut other = octets.clone();
            other[at.index(octets.len())] ^= 1;
            prop_assert_ne!(&cut, &MessageBlock::from(&other[..]));
            prop_assert_ne!(cut, whole.slice(1..));
        }
    }
}

#[test]
fn a_copy_uses_memory_that_suffices_and_that_nothing_else_shares() {
    let first = MessageBlock::copied_into(None, &[1; 100]);
    let memory = first.as_ptr();
    let shared = first.clone();
    let second = MessageBlock::copied_into(Some(first), &[2; 10]);
    assert_ne!(second.as_ptr(), memory, "the clone is unchanged");
    assert_eq!((&*shared, &*second), (&[1; 100][..], &[2; 10][..]));
    let third = MessageBlock::copied_into(Some(shared), &[3; 500]);
    assert_eq!((third.as_ptr(), &*third), (memory, &[3; 500][..]), "sizes are rounded");
    let longer = MessageBlock::copied_into(Some(third), &[4; 600]);
    assert_eq!(&*longer, &[4; 600][..]);
}
