//! Time-outs of calls: what they bound, and how long they may be.

use std::{
    io::{Read, Write},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use spandrel::{CompletionStatus, Orb, SystemExceptionKind};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{ReplyStatus, begin_reply};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{PATIENCE, in_background, kind_and_completion, pretend, read_message},
};

fn url(port: u16) -> String {
    format!("corbaloc:iiop:1.2@127.0.0.1:{port}/nobody")
}

fn target_with(orb: &Orb, url: &str) -> Target {
    Target::unchecked_narrow(&orb.string_to_object(url).unwrap())
}

fn impatient(target: &Target, timeout: Duration) -> Target {
    Target::unchecked_narrow(&target.as_object().with_timeout(Some(timeout)))
}

#[test]
fn waiting_for_ones_turn_to_write_is_bounded_by_the_time_out() {
    let (begun, begin) = mpsc::channel();
    let port = pretend(move |_, mut stream| {
        // The large request has begun; no more of it is read.
        stream.read_exact(&mut [0; 64]).unwrap();
        let _ = begun.send(());
        std::mem::forget(stream);
    });
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let target = target_with(&orb, &url(port));
    let large = target.clone();
    let _stuck = in_background(move || large.note(&vec![7; 32 << 20]));
    begin.recv_timeout(PATIENCE).unwrap();
    let quick = impatient(&target, Duration::from_millis(300));
    let outcome = in_background(move || quick.ping());
    let outcome = outcome.recv_timeout(PATIENCE).expect("a time-out is honoured behind a stuck writer");
    assert_eq!(kind_and_completion(&outcome.unwrap_err()), (SystemExceptionKind::Timeout, CompletionStatus::No));
}

#[test]
fn a_peer_that_reads_in_drops_does_not_stretch_the_time_out() {
    let port = pretend(|_, mut stream| {
        thread::spawn(move || {
            // The pace of a slow peer, not a synchronisation.
            let mut room = vec![0; 256 << 10];
            while stream.read(&mut room).is_ok_and(|count| count > 0) {
                thread::sleep(Duration::from_millis(100));
            }
        });
    });
    let orb = Orb::builder().socket_queues(Some(32 << 10), None).build().unwrap();
    let target = impatient(&target_with(&orb, &url(port)), Duration::from_millis(500));
    let before = Instant::now();
    let call = in_background(move || target.note(&vec![7; 32 << 20]));
    let outcome = call.recv_timeout(PATIENCE).expect("the call ends");
    let error = outcome.expect_err("32 MiB do not pass in half a second at this pace");
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No));
    // All of it would take more than twelve seconds.
    assert!(before.elapsed() < Duration::from_secs(10), "{:?} instead of 0.5 s", before.elapsed());
}

#[test]
fn forwarding_does_not_begin_the_time_out_anew() {
    // Forwarded at three quarters of its time; if that began anew it would end so much later.
    let (span, forwarded) = (Duration::from_secs(2), Duration::from_millis(1500));
    let (closing, silent) = (Server::start(), pretend(|_, stream| std::mem::forget(stream)));
    let profile = spandrel_orb_tests::support::iiop_alone(&closing.object.ior().profiles[0]);
    let elsewhere = {
        let mut ior = closing.object.ior().clone();
        ior.profiles = vec![spandrel::IiopProfile { port: silent, ..profile }.encode().unwrap()];
        ior
    };
    let forwarder = pretend(move |_, mut stream| {
        let request = read_message(&mut stream).unwrap();
        let id = u32::from_ne_bytes(request[12..16].try_into().unwrap());
        // As slow as a busy server: most of the client's time.
        thread::sleep(forwarded);
        let mut out = Encoder::new(Wire::default());
        let body = begin_reply(&mut out, id, ReplyStatus::LocationForward, &[]);
        spandrel_cdr::Encode::encode(&elsewhere, &mut out).unwrap();
        body.end(&mut out).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        std::mem::forget(stream);
    });
    let target = impatient(&target_with(&Orb::builder().build().unwrap(), &url(forwarder)), span);
    let before = Instant::now();
    let error = target.ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Timeout);
    assert!(before.elapsed() < span + forwarded, "{:?} instead of {span:?}", before.elapsed());
}

#[test]
fn time_outs_of_any_length_are_taken() {
    let server = Server::start();
    let target = impatient(&server.client(), Duration::MAX);
    let called = in_background(move || target.ping());
    called.recv_timeout(PATIENCE).expect("no panic").unwrap();
}

#[test]
fn a_time_out_of_nothing_is_a_time_out() {
    let server = Server::start();
    let target = server.client();
    target.ping().unwrap();
    let error = impatient(&target, Duration::ZERO).ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No), "{error}");
}
