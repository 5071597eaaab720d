//! Fragmented messages over real sockets (CORBA 3.3 Part 2, 9.4.9).

use std::{io::Write, net::TcpStream, sync::mpsc};

use spandrel::{
    Orb,
    cdr::{ByteOrder, GiopVersion},
    types::ior_to_string,
};
use spandrel_cdr::{Encoder, Limits, Wire};
use spandrel_giop::{
    CancelRequest, Fragments, HEADER_LEN, Message, MessageHeader, MessageType, ReplyHeader, RequestTemplate,
    ResponseFlags,
};
use spandrel_message::MessageBlock;
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, block_on, fake_server, is_ready, read_message},
    wiretap::{Wiretap, at_port},
};

const LIMIT: usize = 512;

fn header(message: &[u8]) -> MessageHeader {
    MessageHeader::parse(message.first_chunk().unwrap()).unwrap()
}

/// Counts Fragment messages and other messages; asserts that none exceeds the limit.
#[track_caller]
fn count_fragments(messages: &[Vec<u8>], limit: usize) -> (usize, usize) {
    assert!(messages.iter().all(|message| message.len() <= limit), "{:?}", messages.iter().map(Vec::len).max());
    let of_type =
        |is_fragment| move |message: &&Vec<u8>| (header(message).message_type == MessageType::Fragment) == is_fragment;
    (messages.iter().filter(of_type(true)).count(), messages.iter().filter(of_type(false)).count())
}

#[track_caller]
fn call_and_check(target: &Target) {
    let octets: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8).collect();
    let text = "A long text of many words. ".repeat(200);
    assert_eq!(target.echo_octets(&octets).unwrap(), octets);
    assert_eq!(target.echo(&text).unwrap(), text);
    assert_eq!(target.add(1, 2).unwrap(), 3);
    let reply = target.echo_octets_async(&octets);
    assert_eq!(block_on(reply).unwrap(), octets);
}

#[test]
fn long_requests_and_replies_are_fragmented() {
    for version in [GiopVersion::V1_1, GiopVersion::V1_2] {
        for (near, far) in [(ByteOrder::Big, ByteOrder::Little), (ByteOrder::Little, ByteOrder::Big)] {
            let server = Server::with(Orb::builder().byte_order(far).fragment_size(Some(LIMIT)));
            let tap = Wiretap::before(&server);
            let orb = Orb::builder().giop_version(version).byte_order(near).fragment_size(Some(LIMIT)).build().unwrap();
            let target = Target::narrow(&orb.string_to_object(&tap.ior()).unwrap()).unwrap();
            call_and_check(&target);
            for messages in [tap.take_requests(), tap.take_replies()] {
                let (fragments, others) = count_fragments(&messages, LIMIT);
                assert!(fragments > 80 && others < 10, "{version:?}: {fragments} fragments, {others} messages");
            }
            let numbers: Vec<f64> = (0..3000).map(f64::from).collect();
            assert_eq!(target.echo_doubles(&numbers).unwrap(), numbers);
            // GIOP 1.1 does not fragment sequences of doubles.
            let (fragments, _) =
                count_fragments(&tap.take_requests(), if version == GiopVersion::V1_1 { 30_000 } else { LIMIT });
            assert_eq!(fragments > 0, version == GiopVersion::V1_2);
        }
    }
}

#[test]
fn the_fragment_size_can_be_set_for_one_peer() {
    let servers = [Server::start(), Server::start()];
    let taps = servers.each_ref().map(Wiretap::before);
    let mut args = ["-ORBFragmentSize", "off", "-ORBFragmentSize"].map(str::to_owned).to_vec();
    args.push(format!("127.0.0.1:{}=256", taps[1].port()));
    let orb = Orb::builder().take_args(&mut args).unwrap().build().unwrap();
    for (tap, is_cut) in taps.iter().zip([false, true]) {
        let target = Target::narrow(&orb.string_to_object(&tap.ior()).unwrap()).unwrap();
        assert_eq!(target.echo_octets(&[7; 5000]).unwrap(), [7; 5000]);
        let (fragments, _) = count_fragments(&tap.take_requests(), if is_cut { 256 } else { 6000 });
        assert_eq!(fragments > 0, is_cut);
    }
}

#[test]
fn giop_1_0_messages_are_not_fragmented() {
    let server = Server::with(Orb::builder().fragment_size(Some(LIMIT)));
    let tap = Wiretap::before(&server);
    let orb = Orb::builder().giop_version(GiopVersion::V1_0).fragment_size(Some(LIMIT)).build().unwrap();
    call_and_check(&Target::narrow(&orb.string_to_object(&tap.ior()).unwrap()).unwrap());
    for messages in [tap.take_requests(), tap.take_replies()] {
        assert_eq!(count_fragments(&messages, 30_000).0, 0);
    }
}

#[test]
fn locate_requests_and_locate_replies_are_fragmented() {
    let server = Server::with(Orb::builder().fragment_size(Some(64)));
    let name = "an object key that is longer than a fragment may be, and a little more";
    server.orb.set_object_key_alias(name, &server.object).unwrap();
    let tap = Wiretap::before(&server);
    let orb = Orb::builder().fragment_size(Some(64)).build().unwrap();
    let url = format!("corbaloc::1.2@127.0.0.1:{}/{}", tap.port(), name.replace(' ', "%20"));
    let object = orb.string_to_object(&url).unwrap();
    assert!(matches!(object.locate().unwrap(), spandrel::types::Located::Forward(_)));
    for (messages, first) in
        [(tap.take_requests(), MessageType::LocateRequest), (tap.take_replies(), MessageType::LocateReply)]
    {
        assert_eq!(header(&messages[0]).message_type, first);
        assert!(count_fragments(&messages, 64).0 > 0);
    }
}

/// The fragments of a request that echoes these octets.
fn echo_request(server: &Server, request_id: u32, octets: &[u8]) -> Vec<Vec<u8>> {
    let profile = spandrel::types::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let wire = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
    let template = RequestTemplate::new(wire, &profile.object_key);
    let mut out = Encoder::new(wire);
    let body = template.begin(&mut out, request_id, ResponseFlags::TWO_WAY, "echo_octets", &[]);
    out.octet_sequence(octets).unwrap();
    body.end(&mut out).unwrap();
    let stream = Fragments::of(&out, 256).map_or_else(|| out.to_vec(), |fragments| fragments.to_vec(&out));
    let (mut rest, mut messages) = (&stream[..], Vec::new());
    while !rest.is_empty() {
        let (message, later) = rest.split_at(header(rest).total_len());
        messages.push(message.to_vec());
        rest = later;
    }
    messages
}

/// The request id of a reply, and the octets that it echoes.
fn read_echo(reply: &[u8]) -> (u32, Vec<u8>) {
    let message = Message::whole(MessageBlock::from(reply)).unwrap();
    let mut input = message.decoder(Limits::default());
    let header = ReplyHeader::decode(&mut input).unwrap();
    (header.request_id, input.octet_sequence().unwrap().to_vec())
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

#[test]
fn interleaved_fragments_of_several_requests_are_assembled() {
    let server = Server::start();
    let mut stream = connect(&server);
    let bodies: Vec<Vec<u8>> = (1..=5_u8).map(|id| vec![id; 400 * usize::from(id)]).collect();
    let mut requests: Vec<_> =
        bodies.iter().zip(1..).map(|(body, id)| echo_request(&server, id, body).into_iter()).collect();
    loop {
        let round: Vec<_> = requests.iter_mut().filter_map(Iterator::next).collect();
        if round.is_empty() {
            break;
        }
        stream.write_all(&round.concat()).unwrap();
    }
    for _ in 0..5 {
        let (id, octets) = read_echo(&read_message(&mut stream).unwrap());
        assert_eq!(octets, bodies[id as usize - 1]);
    }
}

/// A message cut into a first part and one fragment at this offset, also where no sender would cut it.
fn cut_at(whole: &[u8], at: usize) -> Vec<u8> {
    let begin = header(whole);
    let first = MessageHeader { more_fragments: true, size: u32::try_from(at - HEADER_LEN).unwrap(), ..begin };
    let id = if begin.version >= GiopVersion::V1_2 { &whole[HEADER_LEN..HEADER_LEN + 4] } else { &[] };
    let size = u32::try_from(whole.len() - at + id.len()).unwrap();
    let second = MessageHeader { message_type: MessageType::Fragment, size, ..begin };
    [&first.to_octets(), &whole[HEADER_LEN..at], &second.to_octets(), id, &whole[at..]].concat()
}

#[test]
fn a_request_fragmented_at_any_octet_is_answered() {
    let server = Server::start();
    let mut stream = connect(&server);
    let whole = echo_request(&server, 9, &[7; 50]).concat();
    for at in HEADER_LEN + 4..=whole.len() {
        stream.write_all(&cut_at(&whole, at)).unwrap();
        assert_eq!(read_echo(&read_message(&mut stream).unwrap()), (9, vec![7; 50]), "cut at {at}");
    }
    // In GIOP 1.1 only inside the octet sequence at the end, where no alignment is affected.
    let profile = spandrel::types::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_1);
    let mut out = Encoder::new(wire);
    let body =
        RequestTemplate::new(wire, &profile.object_key).begin(&mut out, 9, ResponseFlags::TWO_WAY, "echo_octets", &[]);
    out.octet_sequence(&[7; 50]).unwrap();
    body.end(&mut out).unwrap();
    let whole = out.to_vec();
    for at in whole.len() - 50..=whole.len() {
        stream.write_all(&cut_at(&whole, at)).unwrap();
        assert_eq!(read_echo(&read_message(&mut stream).unwrap()), (9, vec![7; 50]), "cut at {at}");
    }
}

#[test]
fn a_request_cancelled_between_its_fragments_is_dropped() {
    let server = Server::start();
    let mut stream = connect(&server);
    // More cancelled requests than may be incomplete at once, so each must be dropped.
    for id in 1..100 {
        let parts = echo_request(&server, id, &[7; 2000]);
        let mut cancel = Encoder::new(Wire::new(ByteOrder::Little, GiopVersion::V1_2));
        (CancelRequest { request_id: id }).encode(&mut cancel).unwrap();
        let cut = parts.len() - 1 - id as usize % 3;
        stream.write_all(&[parts[..cut].concat(), cancel.to_vec()].concat()).unwrap();
    }
    stream.write_all(&echo_request(&server, 100, &[9; 2000]).concat()).unwrap();
    assert_eq!(read_echo(&read_message(&mut stream).unwrap()), (100, vec![9; 2000]));
}

#[test]
fn a_future_dropped_between_fragments_sends_cancel_request_instead_of_the_rest() {
    let server = Server::start();
    let (streams, accepted) = mpsc::channel();
    let port = fake_server(move |_, stream| streams.send(stream).unwrap());
    let orb = Orb::builder()
        .connections_per_peer(1)
        .fragment_size(Some(4096))
        .socket_queues(Some(4096), Some(4096))
        .build()
        .unwrap();
    let target: Target =
        orb.string_to_object(&ior_to_string(&at_port(server.object.ior(), port))).unwrap().unchecked_narrow();
    let ping = target.ping_async();
    let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    read_message(&mut stream).unwrap();
    // The first part is sent when this returns, and the rest cannot be sent while the server does not read.
    let mut call = target.echo_octets_async(&vec![7; 20 << 20]);
    let first = read_message(&mut stream).unwrap();
    assert!(header(&first).more_fragments && !is_ready(&mut call));
    drop(call);
    let after = std::iter::from_fn(|| Some(read_message(&mut stream).unwrap()));
    let (mut total, mut cancelled) = (first.len(), None);
    for message in after {
        let header = header(&message);
        if header.message_type == MessageType::CancelRequest {
            cancelled = Some(message[HEADER_LEN..].to_vec());
            break;
        }
        assert!(header.message_type == MessageType::Fragment && header.more_fragments, "{header} after {total}");
        total += message.len();
    }
    assert_eq!(cancelled.as_deref(), Some(&first[HEADER_LEN..HEADER_LEN + 4]), "the id of the request");
    assert!(total < 20 << 20, "the rest was not sent: {total}");
    // Other calls continue over the same connection.
    let further = target.ping_async();
    let request = read_message(&mut stream).unwrap();
    assert_eq!(header(&request).message_type, MessageType::Request);
    drop((ping, further));
}
