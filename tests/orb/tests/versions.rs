//! Differences between GIOP versions, and the closing of connections in each (CORBA 3.3 Part 2, 9.4 and 9.5).

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use spandrel::{
    CompletionStatus, Orb, SystemException, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    types::{IiopProfile, Located},
};
use spandrel_cdr::{Encoder, Limits, TaggedComponent, Wire};
use spandrel_giop::{
    LocateReplyHeader, LocateStatus, Message, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestTemplate,
    ResponseFlags, bare_message, locate_request,
};
use spandrel_message::MessageBlock;
use spandrel_orb_tests::{
    Server,
    probe::Target,
    scripted::{ReceivedRequest, ior_at, scripted},
    support::{TEST_TIMEOUT, block_on, fake_server, kind_and_completion, read_message},
    wiretap::Wiretap,
};

const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

fn key(server: &Server) -> Vec<u8> {
    IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap().object_key
}

fn request(server: &Server, version: GiopVersion, operation: &str) -> Vec<u8> {
    let wire = Wire::new(ByteOrder::Big, version);
    let mut out = Encoder::new(wire);
    let template = RequestTemplate::new(wire, &key(server));
    let body = template.begin(&mut out, 5, ResponseFlags::TWO_WAY, operation, &[]);
    body.end(&mut out).unwrap();
    out.to_vec()
}

fn header(message: &[u8]) -> MessageHeader {
    MessageHeader::parse(message.first_chunk().unwrap()).unwrap()
}

fn message(octets: &[u8]) -> Message {
    Message::whole(MessageBlock::from(octets)).unwrap()
}

/// Sends octets, closes the sending side, and returns all that the server sent until it closed.
fn send_and_read_answer(server: &Server, octets: &[u8]) -> Vec<u8> {
    let mut stream = connect(server);
    stream.write_all(octets).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn message_error_has_the_version_that_the_standard_requires() {
    let server = Server::start();
    let (v1_0, v1_1, v1_2) = ([1, 0], [1, 1], [1, 2]);
    for (malformed, version) in [
        // An unknown version is answered in the highest version of this ORB (9.4.1).
        (&b"GIOP\x01\x03\x00\x00\x00\x00\x00\x00"[..], v1_2),
        (b"GIOP\x01\xff\x01\x00\x00\x00\x00\x00", v1_2),
        (b"GIOP\x02\x00\x00\x00\x00\x00\x00\x00", v1_2),
        // A message type that the version does not have is answered in that version.
        (b"GIOP\x01\x00\x00\x07\x00\x00\x00\x00", v1_0),
        (b"GIOP\x01\x01\x00\x08\x00\x00\x00\x00", v1_1),
        (b"GIOP\x01\x02\x00\xff\x00\x00\x00\x00", v1_2),
        // Message types that only servers may send.
        (b"GIOP\x01\x01\x00\x01\x00\x00\x00\x00", v1_1),
        (b"GIOP\x01\x02\x00\x04\x00\x00\x00\x00", v1_2),
        // An invalid byte order where it is a boolean.
        (b"GIOP\x01\x00\x02\x00\x00\x00\x00\x00", v1_0),
    ] {
        let answer = send_and_read_answer(&server, malformed);
        assert_eq!(
            (answer.len(), &answer[..4], &answer[4..6], answer[7]),
            (12, &b"GIOP"[..], &version[..], 6),
            "{malformed:02x?}"
        );
    }
    let answer = send_and_read_answer(&server, b"POST / HTTP/1.1\r\n\r\n");
    assert_eq!((answer.len(), answer[7]), (12, 6));
}

#[test]
fn a_client_may_send_close_connection_as_of_giop_1_2() {
    let server = Server::start();
    for version in VERSIONS {
        let close = bare_message(version, ByteOrder::Little, MessageType::CloseConnection);
        let answer = send_and_read_answer(&server, &close);
        match version {
            GiopVersion::V1_2 => assert!(answer.is_empty()),
            _ => assert_eq!((answer[5], answer[7]), (version.minor, 6), "MessageError in GIOP {version}"),
        }
        // The request before CloseConnection is answered.
        let answer = send_and_read_answer(&server, &[&request(&server, version, "ping")[..], &close].concat());
        assert_eq!((answer[5], answer[7]), (version.minor, 1));
    }
}

#[test]
fn every_message_is_answered_in_its_own_version() {
    let server = Server::start();
    let mut stream = connect(&server);
    // Messages of several versions are mixed on one connection.
    for version in VERSIONS.into_iter().chain(VERSIONS.into_iter().rev()) {
        stream.write_all(&request(&server, version, "ping")).unwrap();
        let reply = message(&read_message(&mut stream).unwrap());
        assert_eq!(reply.header.version, version);
        let header = ReplyHeader::decode(&mut reply.decoder(Limits::default())).unwrap();
        assert_eq!((header.request_id, header.status), (5, ReplyStatus::NoException));
        let mut out = Encoder::new(Wire::new(ByteOrder::Little, version));
        locate_request(&mut out, 6, &key(&server)).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        let reply = message(&read_message(&mut stream).unwrap());
        assert_eq!(reply.header.version, version);
        let header = LocateReplyHeader::decode(&mut reply.decoder(Limits::default())).unwrap();
        assert_eq!((header.request_id, header.status), (6, LocateStatus::ObjectHere));
    }
}

#[test]
fn locate_requests_are_answered_for_every_key() {
    let server = Server::start();
    let other = Server::start();
    server.orb.set_object_key_alias("Alias", &other.object).unwrap();
    for version in VERSIONS {
        let orb = Orb::builder().giop_version(version).build().unwrap();
        let at = |key: &str| orb.reference(ior_at(server.port(), version, key));
        assert_eq!(orb.reference(server.object.ior().clone()).locate().unwrap(), Located::Here);
        assert_eq!(at("Alias").locate().unwrap(), Located::Forward(other.object.ior().clone()));
        for unknown in ["", "unknown", "\u{1}\u{2}\u{3}", "Alia", &"x".repeat(100_000)] {
            assert_eq!(at(unknown).locate().unwrap(), Located::Unknown, "GIOP {version}");
        }
        assert_eq!(Target::unchecked_narrow(&at("Alias")).add(1, 2).unwrap(), 3);
    }
}

/// Some clients write the response flags of GIOP 1.2, or other octets, in place of the boolean.
#[test]
fn every_nonzero_response_flag_expects_a_response_in_giop_1_0_and_1_1() {
    let server = Server::start();
    for version in [GiopVersion::V1_0, GiopVersion::V1_1] {
        for flag in [1, 3, 0x80, 0xff] {
            let mut octets = request(&server, version, "ping");
            octets[20] = flag;
            let answer = send_and_read_answer(&server, &octets);
            assert_eq!((answer[5], answer[7]), (version.minor, 1), "flag {flag} in GIOP {version}");
        }
        let mut octets = request(&server, version, "ping");
        octets[20] = 0;
        assert!(send_and_read_answer(&server, &octets).is_empty());
    }
}

/// The field `requesting_principal` is deprecated and ignored.
#[test]
fn a_requesting_principal_is_ignored() {
    let server = Server::start();
    for version in [GiopVersion::V1_0, GiopVersion::V1_1] {
        let mut octets = request(&server, version, "ping");
        // The principal is the last field of the header, an empty sequence.
        let len = octets.len();
        octets[len - 4..].copy_from_slice(&5_u32.to_be_bytes());
        octets.extend(*b"moi\xff\0");
        let size = u32::try_from(octets.len() - 12).unwrap();
        octets[8..12].copy_from_slice(&size.to_be_bytes());
        assert_eq!(send_and_read_answer(&server, &octets)[7], 1);
    }
}

#[test]
fn both_spellings_of_non_existent_are_answered() {
    let server = Server::start();
    for version in VERSIONS {
        for operation in ["_non_existent", "_not_existent"] {
            let answer = message(&send_and_read_answer(&server, &request(&server, version, operation)));
            let mut input = answer.decoder(Limits::default());
            assert_eq!(ReplyHeader::decode(&mut input).unwrap().status, ReplyStatus::NoException);
            assert_eq!(input.bool(), Ok(false), "GIOP {version} {operation}");
        }
    }
}

#[test]
fn a_giop_1_0_or_1_1_server_is_asked_with_not_existent() {
    for version in VERSIONS {
        let (port, answer) = scripted(|request| {
            Some(match &*request.operation {
                "_not_existent" => request.reply(ReplyStatus::NoException, |out| out.bool(true)),
                _ => request.reply(ReplyStatus::SystemException, |out| {
                    SystemException::bad_operation(0, CompletionStatus::No).encode(out).unwrap();
                }),
            })
        });
        let object = Orb::builder().build().unwrap().reference(ior_at(port, version, "key"));
        match version {
            GiopVersion::V1_2 => {
                assert_eq!(object.non_existent().unwrap_err().kind(), SystemExceptionKind::BadOperation)
            }
            _ => assert!(object.non_existent().unwrap()),
        }
        assert_eq!(answer.lock().unwrap()[0].operation, "_non_existent");
    }
}

/// A GIOP 1.0 profile ends with the object key.
#[test]
fn giop_1_0_profiles_have_no_components() {
    let server = Server::start();
    let mut profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    assert!(!profile.components.is_empty());
    profile.components.push(TaggedComponent { tag: 0x1234, data: vec![1, 2, 3] });
    profile.version = GiopVersion::V1_0;
    let tagged = profile.encode().unwrap();
    let read = IiopProfile::decode(&tagged).unwrap().unwrap();
    assert_eq!((read.components, &read.object_key), (Vec::new(), &profile.object_key));
    let ior = spandrel::types::Ior { type_id: String::new(), profiles: vec![tagged] };
    let target: Target = Orb::builder().build().unwrap().reference(ior).unchecked_narrow();
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(target.echo("latin: \u{e9}").unwrap(), "latin: \u{e9}");
}

/// Both sides use the highest version that both support.
#[test]
fn the_lower_version_of_client_and_profile_is_used() {
    let server = Server::start();
    for (own, published, spoken) in
        [(0, 2, 0), (1, 2, 1), (2, 2, 2), (2, 1, 1), (2, 0, 0), (0, 0, 0), (1, 0, 0), (2, 9, 2)]
    {
        let tap = Wiretap::before(&server);
        let mut profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
        profile.port = tap.port();
        profile.version = GiopVersion { major: 1, minor: published };
        let ior = spandrel::types::Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] };
        let orb = Orb::builder().giop_version(GiopVersion { major: 1, minor: own }).build().unwrap();
        let target = Target::unchecked_narrow(&orb.reference(ior));
        assert_eq!(target.add(1, 2).unwrap(), 3);
        let answer = [tap.take_requests(), tap.take_replies()].concat();
        assert!(answer.iter().all(|message| header(message).version.minor == spoken), "{own} and {published}");
    }
}

/// A scripted server that answers each `nth` message with CloseConnection instead.
fn close_every_nth(nth: usize) -> (u16, Arc<AtomicUsize>) {
    let (count, closed) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&closed);
    let (port, _) = scripted(move |request| {
        let Wire { version, order, .. } = Wire::new(request.message.header.order, request.message.header.version);
        if count.fetch_add(1, Ordering::SeqCst) % nth == nth - 1 {
            counter.fetch_add(1, Ordering::SeqCst);
            return Some(bare_message(version, order, MessageType::CloseConnection).to_vec());
        }
        Some(reply_to(request))
    });
    (port, closed)
}

fn reply_to(request: &ReceivedRequest) -> Vec<u8> {
    match request.operation.is_empty() {
        true => request.located(LocateStatus::ObjectHere, |_| {}),
        false => request.reply(ReplyStatus::NoException, |out| out.i32(3)),
    }
}

#[test]
fn a_request_met_by_close_connection_is_resent_in_every_version() {
    for version in VERSIONS {
        let (port, closed) = close_every_nth(3);
        let object = Orb::builder().build().unwrap().reference(ior_at(port, version, "key"));
        let target = Target::unchecked_narrow(&object);
        for _ in 0..10 {
            assert_eq!(target.add(1, 2).unwrap(), 3, "GIOP {version}");
            assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3, "GIOP {version}");
            assert_eq!(object.locate().unwrap(), Located::Here);
        }
        assert!(closed.load(Ordering::SeqCst) >= 10);
    }
}

#[test]
fn resending_ends_if_every_connection_is_closed() {
    for version in VERSIONS {
        let (port, closed) = close_every_nth(1);
        let target: Target = Orb::builder().build().unwrap().reference(ior_at(port, version, "key")).unchecked_narrow();
        for error in [target.ping().unwrap_err(), block_on(target.ping_async()).unwrap_err()] {
            assert_eq!(error.completed(), CompletionStatus::No, "{error}");
        }
        assert!(closed.load(Ordering::SeqCst) <= 4);
    }
}

#[test]
fn a_client_answers_malformed_messages_with_message_error_and_closes() {
    for (malformed, version) in [
        (&b"GIOP\x01\x03\x00\x01\x00\x00\x00\x00"[..], Some(2)),
        (b"GIOP\x01\x01\x00\x08\x00\x00\x00\x00", Some(1)),
        (b"GIOP\x01\x00\x00\x07\x00\x00\x00\x00", Some(0)),
        (b"GIOP\x01\x02\x00\x00\x00\x00\x00\x00", Some(2)),
        (b"GIOP\x01\x01\x00\x01\x00\x00\x00\x00", Some(1)),
        (b"What is GIOP?\n", None),
    ] {
        let (send, received) = mpsc::channel();
        let port = fake_server(move |_, mut stream| {
            stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            read_message(&mut stream).unwrap();
            stream.write_all(malformed).unwrap();
            send.send(read_message(&mut stream).map(|answer| header(&answer)).ok()).unwrap();
        });
        let target: Target =
            Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        let error = target.ping().unwrap_err();
        let expected = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);
        assert_eq!(kind_and_completion(&error), expected, "{error}");
        let answer = received.recv_timeout(TEST_TIMEOUT).unwrap();
        // Unread octets cause a reset, which may discard the MessageError.
        let Some(version) = version else { continue };
        let answer = answer.expect("a MessageError");
        assert_eq!(
            (answer.message_type, answer.version.minor),
            (MessageType::MessageError, version),
            "{malformed:02x?}"
        );
    }
}

#[test]
fn a_received_message_error_is_reported_in_the_exception() {
    for version in VERSIONS {
        let (port, _) =
            scripted(move |_| Some(bare_message(version, ByteOrder::Big, MessageType::MessageError).to_vec()));
        let target: Target = Orb::builder().build().unwrap().reference(ior_at(port, version, "key")).unchecked_narrow();
        for error in [target.ping().unwrap_err(), block_on(target.ping_async()).unwrap_err()] {
            assert_eq!(error.kind(), SystemExceptionKind::CommFailure);
            assert!(error.to_string().contains("MessageError"), "{error}");
        }
    }
}
