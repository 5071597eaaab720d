//! Timeouts of calls: the steps that they bound, and their range.

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
    support::{
        TEST_TIMEOUT, fake_server, in_background, kind_and_completion, read_message, read_some,
        retry_with_longer_timeout,
    },
};

fn url(port: u16) -> String {
    format!("corbaloc:iiop:1.2@127.0.0.1:{port}/nobody")
}

fn target_with(orb: &Orb, url: &str) -> Target {
    Target::unchecked_narrow(&orb.string_to_object(url).unwrap())
}

fn with_timeout(target: &Target, timeout: Duration) -> Target {
    Target::unchecked_narrow(&target.as_object().with_timeout(Some(timeout)))
}

#[test]
fn waiting_for_another_writer_is_bounded_by_the_timeout() {
    let (begun, begin) = mpsc::channel();
    let port = fake_server(move |_, mut stream| {
        // The large request has begun; the rest of it is not read.
        stream.read_exact(&mut [0; 64]).unwrap();
        let _ = begun.send(());
        std::mem::forget(stream);
    });
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let target = target_with(&orb, &url(port));
    let large = target.clone();
    let _stuck = in_background(move || large.note(&vec![7; 32 << 20]));
    begin.recv_timeout(TEST_TIMEOUT).unwrap();
    let quick = with_timeout(&target, Duration::from_millis(300));
    let outcome = in_background(move || quick.ping());
    let outcome = outcome.recv_timeout(TEST_TIMEOUT).expect("the timeout applies behind a blocked writer");
    assert_eq!(kind_and_completion(&outcome.unwrap_err()), (SystemExceptionKind::Timeout, CompletionStatus::No));
}

#[test]
fn a_slowly_reading_peer_does_not_extend_the_timeout() {
    let port = fake_server(|_, stream| {
        thread::spawn(move || {
            // The pace of a slow peer, not a synchronisation.
            let mut room = vec![0; 256 << 10];
            while read_some(&stream, &mut room).is_ok_and(|count| count > 0) {
                thread::sleep(Duration::from_millis(100));
            }
        });
    });
    let orb = Orb::builder().socket_queues(Some(32 << 10), None).build().unwrap();
    let target = with_timeout(&target_with(&orb, &url(port)), Duration::from_millis(500));
    let before = Instant::now();
    let call = in_background(move || target.note(&vec![7; 32 << 20]));
    let outcome = call.recv_timeout(TEST_TIMEOUT).expect("the call ends");
    let error = outcome.expect_err("32 MiB do not pass in half a second at this pace");
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No));
    // The whole request would take more than twelve seconds.
    assert!(before.elapsed() < Duration::from_secs(10), "{:?} instead of 0.5 s", before.elapsed());
}

#[test]
fn a_forwarding_does_not_restart_the_timeout() {
    let closing = Server::start();
    // A busy machine may delay the end of a call as much as a restarted timeout would.
    retry_with_longer_timeout(Duration::from_secs(2), |span| {
        // The forwarding comes after three quarters of the timeout; a restarted timeout would end that much later.
        let forwarded = span * 3 / 4;
        (time_of_forwarded_call(&closing, span, forwarded) < span + forwarded).then_some(())
    });
}

/// The time of a call with the timeout `span`, to a server that forwards it after the time `forwarded` to one that does not
/// answer.
fn time_of_forwarded_call(server: &Server, span: Duration, forwarded: Duration) -> Duration {
    let silent = fake_server(|_, stream| std::mem::forget(stream));
    let profile = spandrel_orb_tests::support::without_local_addresses(&server.object.ior().profiles[0]);
    let elsewhere = {
        let mut ior = server.object.ior().clone();
        ior.profiles = vec![spandrel::types::IiopProfile { port: silent, ..profile }.encode().unwrap()];
        ior
    };
    let forwarder = fake_server(move |_, mut stream| {
        let request = read_message(&mut stream).unwrap();
        let id = u32::from_ne_bytes(request[12..16].try_into().unwrap());
        // As slow as a busy server: most of the client's timeout.
        thread::sleep(forwarded);
        let mut out = Encoder::new(Wire::default());
        let body = begin_reply(&mut out, id, ReplyStatus::LocationForward, &[]);
        spandrel_cdr::Encode::encode(&elsewhere, &mut out).unwrap();
        body.end(&mut out).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        std::mem::forget(stream);
    });
    let target = with_timeout(&target_with(&Orb::builder().build().unwrap(), &url(forwarder)), span);
    let before = Instant::now();
    let error = target.ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Timeout);
    before.elapsed()
}

#[test]
fn the_longest_possible_timeout_is_accepted() {
    let server = Server::start();
    let target = with_timeout(&server.client(), Duration::MAX);
    let called = in_background(move || target.ping());
    called.recv_timeout(TEST_TIMEOUT).expect("no panic").unwrap();
}

#[test]
fn a_zero_timeout_expires_at_once() {
    let server = Server::start();
    let target = server.client();
    target.ping().unwrap();
    let error = with_timeout(&target, Duration::ZERO).ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No), "{error}");
}
