//! Writes and reads the headers of small requests and replies, for measurements from outside.
//!
//! `headers [write|cached|read|answer|outcome] [ROUNDS]` prints the nanoseconds of each. `+index` after the
//! first three adds a context with the operation's index. Under `valgrind --tool=callgrind`, two runs that
//! differ in `ROUNDS` give the instructions of each.

use std::{env, hint::black_box, time::Instant};

use spandrel_cdr::{Encoder, Limits, Wire};
use spandrel_giop::{
    Assembler, MessageHeader, ReplyHeader, ReplyStatus, RequestHeader, RequestTemplate, ResponseFlags, ServiceContext,
    begin_reply, ids,
};
use spandrel_message::MessageBlock;

/// Reads twelve octets, then the rest of the message that they announce.
fn receive(assembler: &mut Assembler, octets: &MessageBlock, read: impl FnOnce(&mut spandrel_cdr::Decoder<'_>)) {
    let header = MessageHeader::parse(octets.first_chunk().expect("a header")).expect("a valid header");
    let message = assembler.accept(header, octets.clone()).expect("a valid message").expect("a whole message");
    read(&mut message.decoder(Limits::default()));
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let what = arguments.first().map_or("write", String::as_str);
    let rounds: u32 = arguments.get(1).map_or(1_000_000, |rounds| rounds.parse().expect("a number of rounds"));
    let wire = Wire::default();
    let template = RequestTemplate::new(wire, b"twenty-four octets of it");
    // The context with the operation's index.
    let index = ServiceContext { id: ids::CONTEXT_OPERATION_INDEX, data: vec![0; 4] };
    let contexts = if what.ends_with("+index") { vec![index] } else { Vec::new() };
    let write = |scratch, id| {
        let mut out = Encoder::reusing(scratch, wire);
        let begun = template.begin(&mut out, id, ResponseFlags::TWO_WAY, black_box("operation"), &contexts);
        begun.end(&mut out).expect("a short message");
        black_box(out.contiguous());
        out
    };
    let complete = template.complete("operation", &contexts).expect("a plain name");
    let cached = |scratch, id| {
        let mut out = Encoder::reusing(scratch, wire);
        complete.begin(&mut out, id, ResponseFlags::TWO_WAY).end(&mut out).expect("a short message");
        black_box(out.contiguous());
        out
    };
    let answer = |scratch, id| {
        let mut out = Encoder::reusing(scratch, wire);
        begin_reply(&mut out, id, ReplyStatus::NoException, &[]).end(&mut out).expect("a short message");
        black_box(out.contiguous());
        out
    };
    let request = MessageBlock::from(write(Vec::new(), 1).to_vec().as_slice());
    let reply = MessageBlock::from(answer(Vec::new(), 1).to_vec().as_slice());
    let mut assembler = Assembler::new(1 << 20, 16);
    let mut scratch = Vec::new();
    let what = what.trim_end_matches("+index");
    let begun = Instant::now();
    for id in 0..rounds {
        match what {
            "write" => scratch = write(scratch, id).into_scratch(),
            "cached" => scratch = cached(scratch, id).into_scratch(),
            "answer" => scratch = answer(scratch, id).into_scratch(),
            "read" => receive(&mut assembler, &request, |input| {
                let header = RequestHeader::decode(input).expect("a header that was encoded here");
                if !header.service_contexts.is_empty() {
                    black_box(header.service_contexts.find(ids::CONTEXT_OPERATION_INDEX));
                }
                black_box(header);
            }),
            _ => receive(&mut assembler, &reply, |input| {
                black_box(ReplyHeader::decode(input).expect("a header that was encoded here"));
            }),
        }
    }
    println!("{:.1} ns for each", begun.elapsed().as_secs_f64() * 1e9 / f64::from(rounds));
}
