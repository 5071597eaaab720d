//! Servers that break the protocol: each call ends in time, in an exception that says why, and the client goes on.

use std::time::{Duration, Instant};

use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_hostile::attacked::Target;
use spandrel_hostile::rogue::{self, Deed, reply, say};

/// How long a call may take.
const LIMIT: Duration = Duration::from_millis(1500);
/// What a loaded machine adds.
const LEEWAY: Duration = Duration::from_secs(10);

fn call(deed: Deed) -> SystemException {
    let orb = Orb::builder().request_timeout(Some(LIMIT)).build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&rogue::serve(deed).unwrap()).unwrap());
    let begun = Instant::now();
    let exception = target.echo(&[1, 2, 3]).unwrap_err();
    rogue::in_time(begun, LIMIT + LEEWAY).unwrap();
    orb.shutdown(true).unwrap();
    exception
}

#[test]
fn replies_that_nobody_asked_for_are_dropped() {
    let late =
        call(|stream, id| (1..1000).try_for_each(|other| say(stream, &reply(id.wrapping_add(other), 0, &[0; 4]))));
    assert_eq!(late.kind(), SystemExceptionKind::Timeout, "{late}");
}

#[test]
fn a_reply_said_twice_is_taken_once() {
    let orb = Orb::builder().request_timeout(Some(LIMIT)).build().unwrap();
    let deed: Deed = |stream, id| {
        let answer = reply(id, 0, &[0; 8]);
        say(stream, &[answer.clone(), answer].concat())?;
        let next = rogue::read_request(stream)?;
        say(stream, &reply(next, 0, &[0; 8]))
    };
    let target = Target::unchecked_narrow(&orb.string_to_object(&rogue::serve(deed).unwrap()).unwrap());
    assert!(target.echo(&[1]).unwrap().is_empty());
    assert!(target.echo(&[2]).unwrap().is_empty());
    orb.shutdown(true).unwrap();
}

#[test]
fn answers_that_are_none_end_the_call_in_words() {
    let deeds: [Deed; 8] = [
        // What only clients may send.
        |stream, _| say(stream, &rogue_message(0)),
        // The answer to another kind of question.
        |stream, _| say(stream, &rogue_message(4)),
        // No protocol at all.
        |stream, _| say(stream, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        // A status that there is not.
        |stream, id| say(stream, &reply(id, 77, &[])),
        // An exception without a name, or with one that does not end.
        |stream, id| say(stream, &reply(id, 2, &[0xff; 8])),
        |stream, id| say(stream, &reply(id, 1, &[0, 0, 0, 200, b'x'])),
        // Results that are longer than the message.
        |stream, id| say(stream, &reply(id, 0, &[0xff; 8])),
        // Four gigabytes, announced.
        |stream, _| say(stream, &[&b"GIOP\x01\x02\x01\x01\xff\xff\xff\xff"[..], &[0; 100]].concat()),
    ];
    for (number, deed) in deeds.into_iter().enumerate() {
        let exception = call(deed);
        let kinds = [SystemExceptionKind::CommFailure, SystemExceptionKind::Marshal, SystemExceptionKind::Unknown];
        let kinds = [&kinds[..], &[SystemExceptionKind::ImpLimit, SystemExceptionKind::Timeout]].concat();
        assert!(kinds.contains(&exception.kind()), "{number}: {exception}");
        assert_ne!(exception.completed(), CompletionStatus::No, "{number}: {exception}: the server may have done it");
    }
}

/// A message of this type without sense.
fn rogue_message(message_type: u8) -> Vec<u8> {
    let mut octets = reply(0, 0, &[0; 16]);
    octets[7] = message_type;
    octets
}

#[test]
fn a_server_that_goes_silent_in_a_reply_is_left_in_time() {
    let late = call(|stream, id| say(stream, &reply(id, 0, &[0; 400])[..100]));
    assert_eq!(late.kind(), SystemExceptionKind::Timeout, "{late}");
    assert_eq!(late.completed(), CompletionStatus::Maybe);
    let cut = call(|stream, id| {
        say(stream, &reply(id, 0, &[0; 400])[..100])?;
        stream.shutdown(std::net::Shutdown::Both)
    });
    assert_eq!((cut.kind(), cut.completed()), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{cut}");
}

#[test]
fn forwarding_to_itself_for_ever_is_given_up() {
    let circle = call(|stream, mut id| {
        let port = stream.local_addr()?.port();
        loop {
            let ior = rogue::reference(port).map_err(std::io::Error::other)?;
            let octets: Vec<u8> = ior.as_bytes()[4..]
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect();
            // What an encapsulation says behind its order of octets, aligned as in a body.
            let body = [&octets[4..]].concat();
            say(stream, &reply(id, 3, &body))?;
            id = rogue::read_request(stream)?;
        }
    });
    assert!(
        matches!(
            circle.kind(),
            SystemExceptionKind::Transient | SystemExceptionKind::Timeout | SystemExceptionKind::Marshal
        ),
        "{circle}"
    );
}

#[test]
fn connections_closed_in_an_orderly_way_for_ever_are_given_up() {
    let closed = call(|stream, _| say(stream, b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00"));
    assert_eq!((closed.kind(), closed.completed()), (SystemExceptionKind::Transient, CompletionStatus::No), "{closed}");
}
