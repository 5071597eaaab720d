//! What differs between the versions of GIOP, and how a connection ends in each (CORBA 3.3 Part 2, 9.4 and 9.5).

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
    ByteOrder, CompletionStatus, GiopVersion, IiopProfile, Located, Orb, SystemException, SystemExceptionKind,
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
    scripted::{Heard, ior_at, scripted},
    support::{PATIENCE, block_on, kind_and_completion, pretend, read_message},
    wiretap::Wiretap,
};

const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
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

/// What the server says to these octets, until it closes.
fn last_words(server: &Server, octets: &[u8]) -> Vec<u8> {
    let mut stream = connect(server);
    stream.write_all(octets).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    said
}

#[test]
fn a_message_that_is_not_known_is_refused_in_the_version_that_the_standard_says() {
    let server = Server::start();
    let (v1_0, v1_1, v1_2) = ([1, 0], [1, 1], [1, 2]);
    for (hostile, version) in [
        // A minor or major version that is unknown: in the highest one that we speak (9.4.1).
        (&b"GIOP\x01\x03\x00\x00\x00\x00\x00\x00"[..], v1_2),
        (b"GIOP\x01\xff\x01\x00\x00\x00\x00\x00", v1_2),
        (b"GIOP\x02\x00\x00\x00\x00\x00\x00\x00", v1_2),
        // A type that the version does not have: in that version.
        (b"GIOP\x01\x00\x00\x07\x00\x00\x00\x00", v1_0),
        (b"GIOP\x01\x01\x00\x08\x00\x00\x00\x00", v1_1),
        (b"GIOP\x01\x02\x00\xff\x00\x00\x00\x00", v1_2),
        // What only servers may say.
        (b"GIOP\x01\x01\x00\x01\x00\x00\x00\x00", v1_1),
        (b"GIOP\x01\x02\x00\x04\x00\x00\x00\x00", v1_2),
        // A byte order that is none, where it is a boolean.
        (b"GIOP\x01\x00\x02\x00\x00\x00\x00\x00", v1_0),
    ] {
        let said = last_words(&server, hostile);
        assert_eq!(
            (said.len(), &said[..4], &said[4..6], said[7]),
            (12, &b"GIOP"[..], &version[..], 6),
            "{hostile:02x?}"
        );
    }
    let said = last_words(&server, b"POST / HTTP/1.1\r\n\r\n");
    assert_eq!((said.len(), said[7]), (12, 6));
}

#[test]
fn a_client_may_close_in_an_orderly_way_since_1_2_only() {
    let server = Server::start();
    for version in VERSIONS {
        let close = bare_message(version, ByteOrder::Little, MessageType::CloseConnection);
        let said = last_words(&server, &close);
        match version {
            GiopVersion::V1_2 => assert!(said.is_empty()),
            _ => assert_eq!((said[5], said[7]), (version.minor, 6), "MessageError in GIOP {version}"),
        }
        // After a request, which is answered all the same.
        let said = last_words(&server, &[&request(&server, version, "ping")[..], &close].concat());
        assert_eq!((said[5], said[7]), (version.minor, 1));
    }
}

#[test]
fn every_version_is_answered_in_itself() {
    let server = Server::start();
    let mut stream = connect(&server);
    // Also when they come mixed over one connection.
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
fn where_an_object_is_can_be_asked_of_every_key() {
    let server = Server::start();
    let other = Server::start();
    server.orb.set_object_key_alias("Alias", &other.object).unwrap();
    for version in VERSIONS {
        let orb = Orb::builder().giop_version(version).build().unwrap();
        let at = |key: &str| orb.reference(ior_at(server.port(), version, key));
        assert_eq!(orb.reference(server.object.ior().clone()).locate().unwrap(), Located::Here);
        assert_eq!(at("Alias").locate().unwrap(), Located::Forward(other.object.ior().clone()));
        for nobody in ["", "nobody", "\u{1}\u{2}\u{3}", "Alia", &"x".repeat(100_000)] {
            assert_eq!(at(nobody).locate().unwrap(), Located::Unknown, "GIOP {version}");
        }
        assert_eq!(Target::unchecked_narrow(&at("Alias")).add(1, 2).unwrap(), 3);
    }
}

/// Some clients write the response flags of GIOP 1.2, or other octets, where a boolean belongs.
#[test]
fn what_is_not_zero_expects_a_response() {
    let server = Server::start();
    for version in [GiopVersion::V1_0, GiopVersion::V1_1] {
        for flag in [1, 3, 0x80, 0xff] {
            let mut octets = request(&server, version, "ping");
            octets[20] = flag;
            let said = last_words(&server, &octets);
            assert_eq!((said[5], said[7]), (version.minor, 1), "flag {flag} in GIOP {version}");
        }
        let mut octets = request(&server, version, "ping");
        octets[20] = 0;
        assert!(last_words(&server, &octets).is_empty());
    }
}

/// A principal was somebody's name once; whatever it is, nobody reads it.
#[test]
fn a_requesting_principal_is_passed_over() {
    let server = Server::start();
    for version in [GiopVersion::V1_0, GiopVersion::V1_1] {
        let mut octets = request(&server, version, "ping");
        // It is the last thing, an empty sequence.
        let len = octets.len();
        octets[len - 4..].copy_from_slice(&5_u32.to_be_bytes());
        octets.extend(*b"moi\xff\0");
        let size = u32::try_from(octets.len() - 12).unwrap();
        octets[8..12].copy_from_slice(&size.to_be_bytes());
        assert_eq!(last_words(&server, &octets)[7], 1);
    }
}

#[test]
fn both_spellings_of_non_existent_are_answered() {
    let server = Server::start();
    for version in VERSIONS {
        for operation in ["_non_existent", "_not_existent"] {
            let said = message(&last_words(&server, &request(&server, version, operation)));
            let mut input = said.decoder(Limits::default());
            assert_eq!(ReplyHeader::decode(&mut input).unwrap().status, ReplyStatus::NoException);
            assert_eq!(input.bool(), Ok(false), "GIOP {version} {operation}");
        }
    }
}

#[test]
fn an_old_server_is_asked_in_its_own_spelling() {
    for version in VERSIONS {
        let (port, said) = scripted(|heard| {
            Some(match &*heard.operation {
                "_not_existent" => heard.reply(ReplyStatus::NoException, |out| out.bool(true)),
                _ => heard.reply(ReplyStatus::SystemException, |out| {
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
        assert_eq!(said.lock().unwrap()[0].operation, "_non_existent");
    }
}

/// Such a profile ends with the key: what a newer server would offer in components is not there.
#[test]
fn profiles_of_1_0_have_no_components() {
    let server = Server::start();
    let mut profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    assert!(!profile.components.is_empty());
    profile.components.push(TaggedComponent { tag: 0x1234, data: vec![1, 2, 3] });
    profile.version = GiopVersion::V1_0;
    let tagged = profile.encode().unwrap();
    let read = IiopProfile::decode(&tagged).unwrap().unwrap();
    assert_eq!((read.components, &read.object_key), (Vec::new(), &profile.object_key));
    let ior = spandrel::Ior { type_id: String::new(), profiles: vec![tagged] };
    let target: Target = Orb::builder().build().unwrap().reference(ior).unchecked_narrow();
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(target.echo("latin: \u{e9}").unwrap(), "latin: \u{e9}");
}

/// The highest version that both speak is spoken, whoever speaks more.
#[test]
fn versions_meet_at_the_lower_one() {
    let server = Server::start();
    for (own, published, spoken) in
        [(0, 2, 0), (1, 2, 1), (2, 2, 2), (2, 1, 1), (2, 0, 0), (0, 0, 0), (1, 0, 0), (2, 9, 2)]
    {
        let tap = Wiretap::before(&server);
        let mut profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
        profile.port = tap.port();
        profile.version = GiopVersion { major: 1, minor: published };
        let ior = spandrel::Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] };
        let orb = Orb::builder().giop_version(GiopVersion { major: 1, minor: own }).build().unwrap();
        let target = Target::unchecked_narrow(&orb.reference(ior));
        assert_eq!(target.add(1, 2).unwrap(), 3);
        let said = [tap.take_requests(), tap.take_replies()].concat();
        assert!(said.iter().all(|message| header(message).version.minor == spoken), "{own} and {published}");
    }
}

/// Answers what comes, but says CloseConnection instead to each `nth` message.
fn closing(nth: usize) -> (u16, Arc<AtomicUsize>) {
    let (count, closed) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let noted = Arc::clone(&closed);
    let (port, _) = scripted(move |heard| {
        let Wire { version, order, .. } = Wire::new(heard.message.header.order, heard.message.header.version);
        if count.fetch_add(1, Ordering::SeqCst) % nth == nth - 1 {
            noted.fetch_add(1, Ordering::SeqCst);
            return Some(bare_message(version, order, MessageType::CloseConnection).to_vec());
        }
        Some(answer(heard))
    });
    (port, closed)
}

fn answer(heard: &Heard) -> Vec<u8> {
    match heard.operation.is_empty() {
        true => heard.located(LocateStatus::ObjectHere, |_| {}),
        false => heard.reply(ReplyStatus::NoException, |out| out.i32(3)),
    }
}

#[test]
fn a_request_that_met_an_orderly_close_is_sent_again_in_every_version() {
    for version in VERSIONS {
        let (port, closed) = closing(3);
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
fn a_server_that_only_closes_is_not_asked_for_ever() {
    for version in VERSIONS {
        let (port, closed) = closing(1);
        let target: Target = Orb::builder().build().unwrap().reference(ior_at(port, version, "key")).unchecked_narrow();
        for error in [target.ping().unwrap_err(), block_on(target.ping_async()).unwrap_err()] {
            assert_eq!(error.completed(), CompletionStatus::No, "{error}");
        }
        assert!(closed.load(Ordering::SeqCst) <= 4);
    }
}

#[test]
fn a_client_says_that_it_cannot_understand_and_goes() {
    for (hostile, version) in [
        (&b"GIOP\x01\x03\x00\x01\x00\x00\x00\x00"[..], Some(2)),
        (b"GIOP\x01\x01\x00\x08\x00\x00\x00\x00", Some(1)),
        (b"GIOP\x01\x00\x00\x07\x00\x00\x00\x00", Some(0)),
        (b"GIOP\x01\x02\x00\x00\x00\x00\x00\x00", Some(2)),
        (b"GIOP\x01\x01\x00\x01\x00\x00\x00\x00", Some(1)),
        (b"What is GIOP?\n", None),
    ] {
        let (told, heard) = mpsc::channel();
        let port = pretend(move |_, mut stream| {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            read_message(&mut stream).unwrap();
            stream.write_all(hostile).unwrap();
            told.send(read_message(&mut stream).map(|said| header(&said)).ok()).unwrap();
        });
        let target: Target =
            Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        let error = target.ping().unwrap_err();
        let expected = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);
        assert_eq!(kind_and_completion(&error), expected, "{error}");
        let said = heard.recv_timeout(PATIENCE).unwrap();
        // What was not read keeps the last word from arriving.
        let Some(version) = version else { continue };
        let said = said.expect("a last word");
        assert_eq!((said.message_type, said.version.minor), (MessageType::MessageError, version), "{hostile:02x?}");
    }
}

#[test]
fn a_client_that_is_told_message_error_says_so() {
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
