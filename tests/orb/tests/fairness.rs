//! A client with one call at a time beside one that sends hundreds of requests at once.

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use spandrel::{
    Orb, Poa,
    cdr::{ByteOrder, GiopVersion},
    options::{Concurrency, QueueOverflow},
    types::IiopProfile,
};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};
use spandrel_orb_tests::{
    probe::Target,
    support::{TEST_TIMEOUT, in_background, servant, wait_until},
};

/// The time that a request of the client with many takes.
const UPCALL: Duration = Duration::from_millis(20);

/// How many of the `requests` with this response have run when five calls of another client have ended.
fn run_before_five_calls(
    strategy: Concurrency,
    overflow: QueueOverflow,
    response: ResponseFlags,
    requests: u32,
) -> u32 {
    let (runs, is_over) = <(Arc<AtomicU32>, Arc<AtomicBool>)>::default();
    let orb = Orb::builder().concurrency(strategy).queue_overflow(overflow).build().unwrap();
    let (counted, ends) = (Arc::clone(&runs), Arc::clone(&is_over));
    let object = Poa::root(&orb).unwrap().activate(servant(move |operation, call| {
        if operation == "hold" {
            if !ends.load(Ordering::SeqCst) {
                thread::sleep(UPCALL);
            }
            counted.fetch_add(1, Ordering::SeqCst);
        }
        if call.is_response_expected() { call.reply(|_| Ok(())) } else { Ok(call.finish_oneway()) }
    }));
    let object = object.unwrap();
    let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
    let wire = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
    let template = RequestTemplate::new(wire, &profile.object_key);
    let many: Vec<u8> = (0..requests)
        .flat_map(|id| {
            let mut out = Encoder::new(wire);
            template.begin(&mut out, id, response, "hold", &[]).end(&mut out).unwrap();
            out.to_vec()
        })
        .collect();
    let mut stream = std::net::TcpStream::connect((profile.host.as_ref(), profile.port)).unwrap();
    stream.write_all(&many).unwrap();
    wait_until("the first of the requests", || runs.load(Ordering::SeqCst) > 0);
    let target: Target =
        Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap().unchecked_narrow();
    let calls = in_background(move || (0..5).for_each(|_| target.ping().unwrap()));
    calls.recv_timeout(TEST_TIMEOUT).unwrap();
    let before = runs.load(Ordering::SeqCst);
    is_over.store(true, Ordering::SeqCst);
    drop(stream);
    orb.shutdown().unwrap();
    before
}

#[test]
fn one_thread_serves_a_turn_of_each_connection() {
    for threads in [None, Some(1)] {
        let strategy = threads.map_or(Concurrency::Reactive, |_| Concurrency::LeaderFollowers { threads });
        let before = run_before_five_calls(strategy, QueueOverflow::Wait, ResponseFlags::TWO_WAY, 300);
        assert!(before < 100, "{before} of 300 requests ran first, in {strategy}");
    }
}

#[test]
fn one_ways_that_cannot_begin_stop_no_other_connection() {
    for overflow in [QueueOverflow::Wait, QueueOverflow::Refuse] {
        let strategy = Concurrency::ThreadPool { threads: 8, queue: 64 };
        let before = run_before_five_calls(strategy, overflow, ResponseFlags::NONE, 1_000);
        assert!(before < 300, "{before} of 1,000 one-ways ran first, with {overflow:?}");
    }
}
