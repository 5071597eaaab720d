//! Memory use of decoding: none on the usual path, and otherwise at most in proportion to the input.

use crate::tests::support;

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use spandrel_cdr::{Decoder, Encoder, Limits};
use spandrel_giop::{
    Assembler, HEADER_LEN, MessageHeader, ReplyHeader, ReplyStatus, RequestHeader, RequestTemplate, ResponseFlags,
    ServiceContext, begin_reply,
};
use spandrel_message::MessageBlock;
use spandrel_test_support::alone;
use stats_alloc::{Region, Stats};

use crate::tests::ALLOCATOR;

fn cost(run: impl FnOnce()) -> Stats {
    let region = Region::new(ALLOCATOR);
    run();
    region.change()
}

/// A request and its reply, from octets to octets, with buffers reused from one exchange to the next.
fn exchange(template: &RequestTemplate, scratch: &mut Vec<u8>, assembler: &mut Assembler, received: &MessageBlock) {
    let wire = template.wire();
    let mut out = Encoder::reusing(std::mem::take(scratch), wire);
    template.begin(&mut out, 7, ResponseFlags::TWO_WAY, "operation", &[]).end(&mut out).unwrap();
    *scratch = out.into_scratch();

    let header = MessageHeader::parse(received.first_chunk().unwrap()).unwrap();
    let message = assembler.accept(header, received.clone()).unwrap().unwrap();
    let mut input = message.decoder(Limits::default());
    let request = RequestHeader::decode(&mut input).unwrap();
    assert!(request.target.object_key().is_some() && request.service_contexts.find(1).is_some());

    let mut out = Encoder::reusing(std::mem::take(scratch), wire);
    begin_reply(&mut out, request.request_id, ReplyStatus::NoException, &[]).end(&mut out).unwrap();
    let reply = out.contiguous().unwrap();
    ReplyHeader::decode(&mut Decoder::new(reply, wire).at(HEADER_LEN)).unwrap();
    *scratch = out.into_scratch();
}

#[test]
fn decoding_allocates_nothing_or_in_proportion_to_its_input() {
    alone(|| {
        for wire in support::wires() {
            let template = RequestTemplate::new(wire, b"object key");
            let mut out = Encoder::new(wire);
            let contexts = [ServiceContext { id: 1, data: vec![2; 30] }];
            let begun = template.begin(&mut out, 7, ResponseFlags::TWO_WAY, "operation", &contexts);
            begun.end(&mut out).unwrap();
            let received = MessageBlock::from(out.to_vec().as_slice());
            let (mut scratch, mut assembler) = (Vec::new(), Assembler::new(1 << 16, 1));
            exchange(&template, &mut scratch, &mut assembler, &received);
            let cost = cost(|| exchange(&template, &mut scratch, &mut assembler, &received));
            assert_eq!((cost.allocations, cost.reallocations), (0, 0), "{wire:?}: {cost:?}");
        }

        let mut runner = TestRunner::new_with_rng(Config::default(), support::rng());
        // Small numbers are plausible lengths, so that decoding gets past the first few octets.
        let octet = prop_oneof![4 => Just(0_u8), 2 => 0..16_u8, 1 => any::<u8>()];
        let octets = prop::collection::vec(octet, 0..400);
        for _ in 0..if cfg!(miri) { 5 } else { 2000 } {
            let octets = octets.new_tree(&mut runner).unwrap().current();
            for wire in support::wires() {
                let cost = cost(|| support::read_everything(&Decoder::new(&octets, wire)));
                // Eight decodings, and the texts of their results.
                let limit = 4096 + 64 * octets.len();
                assert!(cost.bytes_allocated <= limit, "{wire:?}: {cost:?} for {octets:02x?}");
            }
        }
    });
}
