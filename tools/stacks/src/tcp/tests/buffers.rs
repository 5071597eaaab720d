//! The buffers against plain vectors.

use proptest::prelude::*;
use spandrel_message::MessageBlock;

use crate::tcp::buffers::{ReceiveBuffer, SendBuffer};

proptest! {
    #[test]
    fn parts_in_any_order_become_the_stream(
        parts in prop::collection::vec((0usize..200, 1usize..50), 1..60),
    ) {
        let stream: Vec<u8> = (0..250u8).collect();
        let (mut buffer, mut expected, mut known) = (ReceiveBuffer::default(), 0, [false; 250]);
        for (start, length) in parts {
            expected = buffer.insert(start as u64, MessageBlock::from(&stream[start..start + length]), expected);
            known[start..start + length].fill(true);
            let first_gap = known.iter().position(|known| !known).unwrap_or(250);
            prop_assert_eq!(expected, first_gap as u64);
            prop_assert_eq!(buffer.has_gap(), known[first_gap..].iter().any(|known| *known));
        }
        let mut taken = Vec::new();
        while let Some(block) = buffer.take() {
            taken.extend_from_slice(&block);
        }
        prop_assert_eq!(&taken[..], &stream[..expected as usize]);
        prop_assert_eq!(buffer.len(), 0);
    }

    #[test]
    fn a_slice_of_the_send_buffer_is_that_of_its_octets(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
        advance in 0usize..300,
        from in 0usize..300,
        octets in 0usize..300,
    ) {
        let mut buffer = SendBuffer::default();
        blocks.iter().for_each(|block| buffer.push(MessageBlock::from(&block[..])));
        buffer.advance(advance);
        let all = blocks.concat();
        let rest = &all[advance.min(all.len())..];
        prop_assert_eq!(buffer.len(), rest.len());
        let expected = &rest[from.min(rest.len())..rest.len().min(from + octets)];
        let slice: Vec<u8> = buffer.slice(from, octets).links().flat_map(|link| link.to_vec()).collect();
        prop_assert_eq!(&slice[..], expected);
    }
}
