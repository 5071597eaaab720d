//! Peers that break the protocol, stop, or use tokens that are not theirs: refused, counted, and over in time.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use spandrel_bulk::{
    BulkClient, BulkError, BulkLimits, OfferedTo,
    bulk::{FailedError, FailureCode, Offer},
    wire::{
        ANSWER_OCTETS, Answer, End, ErrorCode, FrameHeader, FrameKind, GREETING_OCTETS, Greeting, HEADER_OCTETS, Role,
        Token, WireError, decode_error, error_frame,
    },
};
use spandrel_ipc::inet;
use spandrel_test_support::{TEST_TIMEOUT, eventually, in_background, pattern, within_time};

use crate::{
    parties::{Parties, address_in, loopback, parties, parties_with, short_limits},
    transfers::Shared,
};

fn impatient() -> Parties {
    parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).limits(short_limits()))
}

/// A connection that has sent these octets.
fn connected(offer: &Offer, octets: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address_in(offer)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    _ = stream.write_all(octets);
    stream
}

fn greeting(offer: &Offer, role: Role, offset: u64) -> Vec<u8> {
    Greeting { role, takes_files: false, reuses: false, token: Token(offer.secret), offset }.encode().to_vec()
}

/// The answer, and the octets behind it up to the end.
fn answer(stream: &mut TcpStream) -> (Answer, Vec<u8>) {
    let mut octets = [0; ANSWER_OCTETS];
    stream.read_exact(&mut octets).unwrap();
    let mut rest = Vec::new();
    _ = stream.read_to_end(&mut rest);
    (Answer::decode(&octets).unwrap(), rest)
}

/// The code with which a connection was refused.
fn refusal(stream: &mut TcpStream) -> ErrorCode {
    let (answer, frame) = answer(stream);
    assert_eq!(answer.status, 1);
    error_in(&frame)
}

fn error_in(frame: &[u8]) -> ErrorCode {
    let header = FrameHeader::decode(frame[..HEADER_OCTETS].try_into().unwrap()).unwrap();
    assert_eq!(header.kind(), FrameKind::Error);
    ErrorCode::from_number(decode_error(&frame[HEADER_OCTETS..]).0).unwrap()
}

fn data(octets: &[u8]) -> Vec<u8> {
    let header = FrameHeader::new(FrameKind::Data, octets.len().try_into().unwrap()).unwrap();
    [&header.encode()[..], octets].concat()
}

fn end(length: u64, checksum: Option<u32>) -> Vec<u8> {
    let end = End { length, checksum }.encode();
    [&FrameHeader::new(FrameKind::End, 16).unwrap().encode()[..], &end].concat()
}

#[test]
fn a_token_opens_one_connection_for_its_peer_and_its_role() {
    let parties = parties();
    let refused = |count| assert_eq!(parties.bulk.statistics().refused_tokens, count);
    let (offer, _) = parties.download(vec![7; 100]);

    let mut guessed = offer.clone();
    guessed.secret[31] ^= 1;
    assert_eq!(refusal(&mut connected(&guessed, &greeting(&guessed, Role::Receives, 0))), ErrorCode::Token);
    refused(1);
    assert_eq!(refusal(&mut connected(&offer, &greeting(&offer, Role::Sends, 0))), ErrorCode::Token);
    refused(2);

    // Attempts that were refused leave the token to its owner, for one connection.
    let mut first = connected(&offer, &greeting(&offer, Role::Receives, 0));
    let mut octets = [0; ANSWER_OCTETS];
    first.read_exact(&mut octets).unwrap();
    assert_eq!(Answer::decode(&octets), Ok(Answer { status: 0, offset: 0, length: 100 }));
    assert_eq!(refusal(&mut connected(&offer, &greeting(&offer, Role::Receives, 0))), ErrorCode::Token);
    refused(3);

    // A renewed token replaces the one before it.
    let old = offer.control.as_ref().unwrap().renew().unwrap();
    let new = offer.control.as_ref().unwrap().renew().unwrap();
    let with = |secret| Offer { secret, ..offer.clone() };
    assert_eq!(refusal(&mut connected(&offer, &greeting(&with(old.secret), Role::Receives, 0))), ErrorCode::Token);
    refused(4);
    let mut received = Vec::new();
    BulkClient::default().calls(false).receive(&with(new.secret), &mut received).unwrap();
    assert_eq!(received, [7; 100]);
}

#[test]
fn a_token_of_another_host_is_refused() {
    let parties = impatient();
    let party = OfferedTo::Host([203, 0, 113, 5].into());
    let (offer, _) = parties.bulk.offer_source(vec![1], &party).unwrap();
    assert_eq!(refusal(&mut connected(&offer, &greeting(&offer, Role::Receives, 0))), ErrorCode::Token);
    assert_eq!(parties.bulk.statistics().refused_tokens, 1);
    // So are calls on its stream end.
    let control = parties.taking.string_to_object(&offer.control.unwrap().to_string()).unwrap();
    let control: spandrel_bulk::bulk::StreamEnd = control.narrow().unwrap();
    for error in [
        control.renew().unwrap_err(),
        control.read(0, 1).unwrap_err(),
        control.finish(1, 0).unwrap_err(),
        control.dial(&Default::default(), &[0; 32]).unwrap_err(),
    ] {
        let FailedError::Failed(failed) = error else { panic!("{error:?}") };
        assert_eq!(failed.code, FailureCode::ForeignCaller);
    }
    control.cancel("not mine").unwrap();
    assert!(!control.state().unwrap().is_complete);
    let anyone = parties.bulk.offer_source(vec![1], &OfferedTo::Anyone).unwrap().0;
    assert_eq!(answer(&mut connected(&anyone, &greeting(&anyone, Role::Receives, 1))).0.status, 0);
}

#[test]
fn connections_without_a_greeting_end_in_time() {
    let parties = impatient();
    let (offer, _) = parties.download(vec![7; 100]);
    let whole = greeting(&offer, Role::Receives, 0);
    let begun = Instant::now();
    let mut silent: Vec<_> = (0..GREETING_OCTETS).map(|count| connected(&offer, &whole[..count])).collect();
    for stream in &mut silent {
        let end = stream.read_to_end(&mut Vec::new());
        assert!(end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    }
    assert!(begun.elapsed() < TEST_TIMEOUT);
    let count = GREETING_OCTETS as u64;
    eventually(|| parties.bulk.statistics().bad_greetings == count);

    let other = b"GET / HTTP/1.1\r\nHost: bank.example\r\nAccept: text/html, text/plain\r\n\r\n";
    assert_eq!(refusal(&mut connected(&offer, other)), ErrorCode::Protocol);
    let mut version = whole.clone();
    version[8] = 9;
    assert_eq!(refusal(&mut connected(&offer, &version)), ErrorCode::Protocol);
    eventually(|| parties.bulk.statistics().bad_greetings == count + 2);
    // The offer is untouched.
    BulkClient::default().calls(false).receive(&offer, &mut Vec::new()).unwrap();
}

#[test]
fn a_peer_that_stops_anywhere_ends_with_the_reason() {
    let parties = impatient();
    // It does not receive.
    let (offer, transfer) = parties.download(vec![7; 64 << 20]);
    let stream = connected(&offer, &greeting(&offer, Role::Receives, 0));
    let error = transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err();
    assert!(matches!(*error, BulkError::TimedOut { action: "sending", .. }), "{error:?}");
    drop(stream);

    // It sends nothing, a part of a header, a part of the data, or no end.
    for octets in [&[][..], &data(b"1234")[..5], &data(b"1234")[..10], &data(b"1234"), &end(0, None)[..20]] {
        let (offer, transfer) = parties.upload(Shared::default());
        let mut stream = connected(&offer, &[&greeting(&offer, Role::Sends, 0), octets].concat());
        let error = transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err();
        assert!(matches!(*error, BulkError::TimedOut { action: "receiving", .. }), "{error:?}");
        assert_eq!(error_in(&answer(&mut stream).1), ErrorCode::TimeOut, "the peer is told");
    }

    // It confirms nothing.
    let (offer, transfer) = parties.download(vec![7; 10]);
    let stream = connected(&offer, &greeting(&offer, Role::Receives, 0));
    let error = transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err();
    assert!(matches!(*error, BulkError::TimedOut { .. }), "{error:?}");
    drop(stream);

    // It is dead: the transfer can be resumed until it expires.
    let (offer, transfer) = parties.upload(Shared::default());
    let stream = connected(&offer, &[greeting(&offer, Role::Sends, 0), data(b"1234")].concat());
    stream.shutdown(Shutdown::Write).unwrap();
    eventually(|| transfer.octets() == 4);
    let ticket = offer.control.as_ref().unwrap().renew().unwrap();
    assert_eq!(ticket.offset, 4);
    assert!(transfer.wait(Duration::ZERO).is_none());
}

#[test]
fn a_sender_that_breaks_the_protocol_is_told_and_nothing_is_stored() {
    let parties = parties();
    let cases: [(&[&[u8]], ErrorCode); 8] = [
        (&[&data(b"1234"), &end(4, Some(7))], ErrorCode::Corrupt),
        (&[&data(b"1234"), &end(5, None)], ErrorCode::Corrupt),
        (&[&[9, 0, 0, 0, 0, 0, 0, 1]], ErrorCode::Protocol),
        (&[&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]], ErrorCode::Protocol),
        (&[&[1, 0, 0, 0, 0, 0, 0, 0]], ErrorCode::Protocol),
        (&[&[3, 0, 0, 0, 0, 0, 0, 16], &[0; 16]], ErrorCode::Protocol),
        (&[&[6, 0, 0, 0, 0, 0, 0, 8], &[0; 8]], ErrorCode::Protocol),
        (&[&[2, 0, 0, 0, 0, 0, 0, 16], &[0; 8], &[3; 8]], ErrorCode::Protocol),
    ];
    for (frames, code) in cases {
        let sink = Shared::default();
        let (offer, transfer) = parties.upload(sink.clone());
        let octets = [&[&greeting(&offer, Role::Sends, 0)[..]], frames].concat().concat();
        let mut stream = connected(&offer, &octets);
        assert_eq!(error_in(&answer(&mut stream).1), code, "{frames:?}");
        assert!(transfer.wait(TEST_TIMEOUT).unwrap().is_err());
        assert!(sink.whole().is_none());
    }

    let limits = BulkLimits { upload: 6, ..BulkLimits::default() };
    let parties = parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).limits(limits));
    let (offer, transfer) = parties.upload(Shared::default());
    let octets = [greeting(&offer, Role::Sends, 0), data(b"1234"), data(b"567")].concat();
    assert_eq!(error_in(&answer(&mut connected(&offer, &octets)).1), ErrorCode::TooLong);
    let error = transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err();
    assert!(matches!(*error, BulkError::Wire(WireError::TooLong { limit: 6 })), "{error:?}");
}

#[test]
fn a_receiver_that_breaks_the_protocol_ends_its_transfer() {
    let parties = parties();
    for octets in [&data(b"1")[..], &end(10, None), b"\0\0\0\0\0\0\0\0", &error_frame(ErrorCode::Storage, "disk full")]
    {
        let (offer, transfer) = parties.download(vec![7; 64 << 20]);
        let mut stream = connected(&offer, &greeting(&offer, Role::Receives, 0));
        stream.write_all(octets).unwrap();
        let error = transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err();
        assert!(matches!(*error, BulkError::Wire(_) | BulkError::GaveUp { code: 6, .. }), "{error:?}");
        drop(stream);
    }
    let (offer, transfer) = parties.download(vec![7; 10]);
    assert_eq!(refusal(&mut connected(&offer, &greeting(&offer, Role::Receives, 11))), ErrorCode::Offset);
    assert!(transfer.wait(Duration::ZERO).is_none());
}

#[test]
fn the_number_of_connections_is_bounded() {
    let limits = BulkLimits { connections: 2, idle: Duration::from_secs(600), ..BulkLimits::default() };
    let parties = parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).limits(limits));
    // Two downloads that nobody reads.
    let held: Vec<_> = (0..2)
        .map(|_| {
            let (offer, transfer) = parties.download(vec![7; 64 << 20]);
            let mut stream = connected(&offer, &greeting(&offer, Role::Receives, 0));
            stream.read_exact(&mut [0; ANSWER_OCTETS]).unwrap();
            (stream, transfer)
        })
        .collect();
    let (offer, _) = parties.download(vec![1]);
    let mut third = connected(&offer, &[]);
    let end = third.read(&mut [0]);
    assert!(matches!(&end, Ok(0)) || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    eventually(|| parties.bulk.statistics().refused_connections == 1);
    drop(held);
    // A client whose connection was closed has cancelled its offer.
    let offered = || parties.download(vec![1]).0;
    eventually(|| BulkClient::default().calls(false).resumptions(0).receive(&offered(), &mut Vec::new()).is_ok());
}

/// A party that holds connections with valid tokens, and reads none of them, leaves room for others.
#[test]
#[cfg(unix)]
fn the_connections_of_one_party_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (connections_per_party, idle) = (2, Duration::from_secs(600));
    let limits = BulkLimits { connections_per_party, idle, ..BulkLimits::default() };
    let socket = folder.path().join("bulk");
    let parties = parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).unix(&socket).limits(limits));
    let hold = || {
        let (offer, transfer) = parties.download(vec![7; 64 << 20]);
        let mut stream = connected(&offer, &greeting(&offer, Role::Receives, 0));
        stream.read_exact(&mut [0; ANSWER_OCTETS]).unwrap();
        (stream, transfer)
    };
    let mut held = vec![hold(), hold()];
    let (offer, _) = parties.download(vec![1]);
    assert_eq!(refusal(&mut connected(&offer, &greeting(&offer, Role::Receives, 0))), ErrorCode::Busy);
    assert_eq!(parties.bulk.statistics().refused_parties, 1);

    // Another party, a user of this machine, is not concerned.
    let taking = BulkClient::default().calls(false).resumptions(0).takes_files(false);
    let by = |scheme: &str| {
        let (offer, _) = parties.download(vec![1]);
        let at: Vec<String> = offer.at.iter().filter(|text| text.starts_with(scheme)).cloned().collect();
        Offer { at: at.try_into().unwrap(), ..offer }
    };
    taking.receive(&by("unix:"), &mut Vec::new()).unwrap();

    // The token is still good once a connection of its party has ended.
    let offer = by("tcp:");
    let error = taking.receive(&offer, &mut Vec::new()).unwrap_err();
    assert!(error.is_resumable() && error.to_string().contains("has 2 bulk connections already"), "{error}");
    drop(held.pop());
    eventually(|| taking.receive(&offer, &mut Vec::new()).is_ok());
}

#[test]
fn connections_without_a_greeting_keep_nobody_out() {
    let limits = BulkLimits { connections: 2, greeting: Duration::from_secs(600), ..BulkLimits::default() };
    let parties = parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).limits(limits));
    let (offer, _) = parties.download(vec![1]);
    let whole = greeting(&offer, Role::Receives, 0);
    let mut silent: Vec<_> = (0..10).map(|count| connected(&offer, &whole[..count])).collect();
    BulkClient::default().calls(false).resumptions(0).receive(&offer, &mut Vec::new()).unwrap();
    assert_eq!(parties.bulk.statistics().refused_connections, 9, "the oldest ones made room");
    let mut oldest = silent.remove(0);
    let end = oldest.read(&mut [0]);
    assert!(matches!(&end, Ok(0)) || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
}

/// The offer of a party that sends these octets to each connection and then stays silent.
fn offer_of(parties: &Parties, octets: Vec<u8>) -> Offer {
    let (offer, _) = parties.download(vec![7; 100]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = vec![format!("tcp://{}", listener.local_addr().unwrap())];
    thread::spawn(move || {
        let held: Vec<_> = listener.incoming().flatten().inspect(|mut stream| _ = stream.write_all(&octets)).collect();
        drop(held);
    });
    Offer { at: at.try_into().unwrap(), ..offer }
}

#[test]
fn an_offering_party_that_stops_or_lies_ends_the_call_in_time() {
    let parties = parties();
    let accepted = |offset, length| Answer { status: 0, offset, length }.encode().to_vec();
    let patient = BulkClient::default().calls(false).resumptions(0);
    let receive_by = |taking: BulkClient, octets: Vec<u8>| {
        let offer = offer_of(&parties, octets);
        let mut received = Vec::new();
        within_time(move || taking.receive(&offer, &mut received).unwrap_err())
    };
    let receive = |octets| receive_by(patient.clone(), octets);
    for octets in [vec![], accepted(0, 100)[..9].to_vec(), accepted(0, 100), [accepted(0, 100), data(b"12")].concat()] {
        let error = receive_by(patient.clone().idle_limit(Duration::from_millis(200)), octets);
        assert!(matches!(error, BulkError::TimedOut { .. }), "{error:?}");
    }
    let long = [accepted(0, 1000), data(&[7; 101])].concat();
    assert!(matches!(receive(long), BulkError::Wire(WireError::TooLong { limit: 100 })));
    assert!(matches!(receive(accepted(5, 100)), BulkError::Wire(WireError::Contradiction { .. })));
    assert!(matches!(receive(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), BulkError::Wire(WireError::Magic(_))));
    let wrong = [accepted(0, 100), data(&[7; 100]), end(100, Some(1))].concat();
    assert!(matches!(receive(wrong), BulkError::Checksum { sent: 1, .. }));
    // Less than the offer has said is no whole transfer, whatever its checksum.
    let short = [accepted(0, 100), data(&[7; 50]), end(50, Some(crc32fast::hash(&[7; 50])))].concat();
    let error = receive(short);
    let expected = WireError::Contradiction { what: "length", received: 50, expected: 100 };
    assert!(matches!(&error, BulkError::Wire(wire) if *wire == expected), "{error:?}");
    let refused = Answer { status: 3, offset: 0, length: 0 }.encode().to_vec();
    let escape = receive([refused, error_frame(ErrorCode::Busy, "later\x1b[2J")].concat());
    assert!(matches!(escape, BulkError::GaveUp { code: 4, .. }));
    assert!(!escape.to_string().contains('\x1b'), "{escape}");
}

/// Random octets, with and without a right beginning: nothing hangs, panics or is stored.
#[test]
fn floods_of_random_octets_end() {
    let parties = impatient();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..60 {
        let sink = Shared::default();
        let (offer, transfer) = parties.upload(sink.clone());
        let mut octets = if round % 3 == 0 { Vec::new() } else { greeting(&offer, Role::Sends, 0) };
        if round % 3 == 2 {
            octets.extend([(random() % 8) as u8, 0, 0, 0, 0, 0, 0, (random() % 20) as u8]);
        }
        octets.extend((0..100).flat_map(|_| random().to_be_bytes()));
        let stream = connected(&offer, &octets);
        _ = stream.shutdown(Shutdown::Write);
        let rest = in_background(move || std::io::copy(&mut &stream, &mut std::io::sink()));
        let end = rest.recv_timeout(TEST_TIMEOUT).unwrap();
        assert!(end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
        assert!(sink.whole().is_none(), "round {round}");
        transfer.cancel("the end of the round");
    }
    let sink = Shared::default();
    BulkClient::default().calls(false).send(&parties.upload(sink.clone()).0, &pattern(1000)).unwrap();
    assert!(sink.whole().unwrap() == pattern(1000));
    assert!(parties.bulk.offer_source(vec![1], &loopback()).is_ok());
}
