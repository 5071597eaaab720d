//! Servers that break the protocol: each call ends within its timeout with a suitable exception, and the
//! client continues.

use std::time::{Duration, Instant};

use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_hostile::attacked::Target;
use spandrel_hostile::malicious_server::{self, Behaviour, reply, send};

/// The timeout of each call.
const LIMIT: Duration = Duration::from_millis(1500);
/// The additional time allowed on a loaded machine.
const LEEWAY: Duration = Duration::from_secs(10);

fn call(behaviour: Behaviour) -> SystemException {
    let orb = Orb::builder().request_timeout(Some(LIMIT)).build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&malicious_server::serve(behaviour).unwrap()).unwrap());
    let start = Instant::now();
    let exception = target.echo(&[1, 2, 3]).unwrap_err();
    malicious_server::check_elapsed(start, LIMIT + LEEWAY).unwrap();
    orb.shutdown().unwrap();
    exception
}

#[test]
fn unrequested_replies_are_dropped() {
    let exception =
        call(|stream, id| (1..1000).try_for_each(|other| send(stream, &reply(id.wrapping_add(other), 0, &[0; 4]))));
    assert_eq!(exception.kind(), SystemExceptionKind::Timeout, "{exception}");
}

#[test]
fn a_duplicate_reply_is_dropped() {
    let orb = Orb::builder().request_timeout(Some(LIMIT)).build().unwrap();
    let behaviour: Behaviour = |stream, id| {
        let reply_octets = reply(id, 0, &[0; 8]);
        send(stream, &[reply_octets.clone(), reply_octets].concat())?;
        let next = malicious_server::read_request(stream)?;
        send(stream, &reply(next, 0, &[0; 8]))
    };
    let target = Target::unchecked_narrow(&orb.string_to_object(&malicious_server::serve(behaviour).unwrap()).unwrap());
    assert!(target.echo(&[1]).unwrap().is_empty());
    assert!(target.echo(&[2]).unwrap().is_empty());
    orb.shutdown().unwrap();
}

#[test]
fn invalid_replies_end_the_call_with_an_exception() {
    let behaviours: [Behaviour; 8] = [
        // A message type that only clients may send.
        |stream, _| send(stream, &zero_message(0)),
        // A LocateReply to a Request.
        |stream, _| send(stream, &zero_message(4)),
        // Another protocol.
        |stream, _| send(stream, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        // An undefined reply status.
        |stream, id| send(stream, &reply(id, 77, &[])),
        // Exceptions whose repository id is malformed or truncated.
        |stream, id| send(stream, &reply(id, 2, &[0xff; 8])),
        |stream, id| send(stream, &reply(id, 1, &[0, 0, 0, 200, b'x'])),
        // Results longer than the message.
        |stream, id| send(stream, &reply(id, 0, &[0xff; 8])),
        // A message size of 4 GiB.
        |stream, _| send(stream, &[&b"GIOP\x01\x02\x01\x01\xff\xff\xff\xff"[..], &[0; 100]].concat()),
    ];
    for (number, behaviour) in behaviours.into_iter().enumerate() {
        let exception = call(behaviour);
        let kinds = [SystemExceptionKind::CommFailure, SystemExceptionKind::Marshal, SystemExceptionKind::Unknown];
        let kinds = [&kinds[..], &[SystemExceptionKind::ImpLimit, SystemExceptionKind::Timeout]].concat();
        assert!(kinds.contains(&exception.kind()), "{number}: {exception}");
        assert_ne!(
            exception.completed(),
            CompletionStatus::No,
            "{number}: {exception}: the server may have executed the request"
        );
    }
}

/// A message of this type with a body of zeros.
fn zero_message(message_type: u8) -> Vec<u8> {
    let mut octets = reply(0, 0, &[0; 16]);
    octets[7] = message_type;
    octets
}

#[test]
fn a_partial_reply_ends_the_call_at_its_timeout() {
    let exception = call(|stream, id| send(stream, &reply(id, 0, &[0; 400])[..100]));
    assert_eq!(exception.kind(), SystemExceptionKind::Timeout, "{exception}");
    assert_eq!(exception.completed(), CompletionStatus::Maybe);
    let closed_in_reply = call(|stream, id| {
        send(stream, &reply(id, 0, &[0; 400])[..100])?;
        stream.shutdown(std::net::Shutdown::Both)
    });
    assert_eq!(
        (closed_in_reply.kind(), closed_in_reply.completed()),
        (SystemExceptionKind::CommFailure, CompletionStatus::Maybe),
        "{closed_in_reply}"
    );
}

#[test]
fn endless_forwarding_to_itself_ends() {
    let exception = call(|stream, mut id| {
        let port = stream.local_addr()?.port();
        loop {
            let ior = malicious_server::reference(port).map_err(std::io::Error::other)?;
            let octets: Vec<u8> = ior.as_bytes()[4..]
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect();
            // The encapsulation after its byte order octet, aligned as in a body.
            let body = [&octets[4..]].concat();
            send(stream, &reply(id, 3, &body))?;
            id = malicious_server::read_request(stream)?;
        }
    });
    assert!(
        matches!(
            exception.kind(),
            SystemExceptionKind::Transient | SystemExceptionKind::Timeout | SystemExceptionKind::Marshal
        ),
        "{exception}"
    );
}

#[test]
fn repeated_close_connection_ends_the_call() {
    let exception = call(|stream, _| send(stream, b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00"));
    assert_eq!(
        (exception.kind(), exception.completed()),
        (SystemExceptionKind::Transient, CompletionStatus::No),
        "{exception}"
    );
}
