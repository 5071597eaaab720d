//! Peers of flows that do not keep to the protocol: bounded, refused, counted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use spandrel::services::av_streams::{FDev, QoS, StreamEndPoint, StreamEndPointB, stream_end_point};
use spandrel_avstreams::{AvLimits, Carrier, FlowAddress, FlowDefinition, FlowEntry, FlowStatistics};

use crate::support::{Client, PATIENCE, Party, eventually, sink, source};

pub(crate) fn quick() -> AvLimits {
    let short = Duration::from_millis(700);
    AvLimits { connect: short, idle: short, ..AvLimits::default() }
}

/// The address at which a receiver waits for its sender.
pub(crate) fn listening(end_point: &StreamEndPointB, spec: &str) -> FlowAddress {
    let mut spec = vec![spec.to_owned()];
    assert!(end_point.request_connection(None, false, &mut Vec::new(), &mut spec).unwrap());
    FlowEntry::parse_reverse(&spec[0]).unwrap().address.unwrap()
}

/// The datagram by which a sender shows the token of an address.
fn show(socket: &UdpSocket, address: &FlowAddress) {
    let token = address.token.as_ref().unwrap();
    socket.send_to(&[b"SPTK", &token.0[..]].concat(), address.data).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = [0; 16];
    let (length, _) = socket.recv_from(&mut answer).unwrap();
    assert_eq!(&answer[..length], b"SPOK");
}

/// A receiver of one flow, with its counts.
pub(crate) struct Victim {
    client: Client,
    pub(crate) party: Party,
    own: spandrel::ObjectRef,
    pub(crate) end_point: StreamEndPointB,
    pub(crate) frames: std::sync::mpsc::Receiver<spandrel_avstreams::ReceivedFrame>,
}

impl Victim {
    fn new(limits: AvLimits, edit: impl FnOnce(FlowDefinition) -> FlowDefinition) -> Self {
        Self::at(Party::with(limits), edit)
    }

    pub(crate) fn at(party: Party, edit: impl FnOnce(FlowDefinition) -> FlowDefinition) -> Self {
        let client = Client::new();
        let (flow, frames) = sink("video");
        let (own, device) = party.device(&client, &[edit(flow)]);
        let (end_point, _, _) = device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
        Self { client, party, own, end_point: end_point.unwrap(), frames }
    }

    pub(crate) fn counts(&self) -> FlowStatistics {
        self.party.streams().statistics(&self.own, "video")[0]
    }

    pub(crate) fn end(&self) -> Option<String> {
        self.party.streams().ends(&self.own, "video")[0].clone()
    }
}

fn udp() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

/// A packet of RTP.
fn rtp(sequence: u16, source: u32, data: &[u8]) -> Vec<u8> {
    let header = [0x80, 0x80 | 96, (sequence >> 8) as u8, sequence as u8, 0, 0, 0, 1];
    [&header[..], &source.to_be_bytes(), data].concat()
}

#[test]
fn connections_without_end_do_not_extend_the_time_for_the_sender() {
    let victim = Victim::new(quick(), |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\\TCP");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    // Refused from the end of the flow on.
                    drop(TcpStream::connect(address.data));
                }
            });
        }
        let wait = || eventually("the flow ends", || victim.end().is_some());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        outcome.unwrap();
    });
    assert!(victim.end().unwrap().starts_with("no sender has connected within"), "{:?}", victim.end());
}

#[test]
fn datagrams_without_the_token_are_refused_and_counted() {
    let victim = Victim::new(AvLimits::default(), |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\\UDP");
    let (attacker, sender) = (udp(), udp());
    attacker.send_to(b"a frame", address.data).unwrap();
    attacker.send_to(&[b"SPTK", &[7; 32][..]].concat(), address.data).unwrap();
    attacker.send_to(b"SPTK", address.data).unwrap();
    eventually("three are refused", || victim.counts().refused == 3);
    show(&sender, &address);
    // The token was used: another party that knows it comes too late.
    let token = address.token.as_ref().unwrap();
    attacker.send_to(&[b"SPTK", &token.0[..]].concat(), address.data).unwrap();
    attacker.send_to(b"a frame", address.data).unwrap();
    eventually("five are refused", || victim.counts().refused == 5);
    sender.send_to(b"the frame", address.data).unwrap();
    assert_eq!(victim.frames.recv_timeout(PATIENCE).unwrap().data, b"the frame");
    assert!(victim.frames.try_recv().is_err());
}

#[test]
fn tcp_connections_without_the_token_are_closed_and_do_not_keep_others_out() {
    let limits = AvLimits { unknown_connections: 4, ..AvLimits::default() };
    let victim = Victim::new(limits, |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\\TCP");
    let mut wrong = TcpStream::connect(address.data).unwrap();
    wrong.write_all(&[9; 32]).unwrap();
    wrong.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(matches!(wrong.read(&mut [0; 1]), Ok(0) | Err(_)), "it is closed");
    eventually("it is counted", || victim.counts().refused == 1);
    // Connections that say nothing: beyond four, the oldest one makes room.
    let silent: Vec<TcpStream> = (0..10).map(|_| TcpStream::connect(address.data).unwrap()).collect();
    eventually("six of them are closed", || victim.counts().refused == 7);
    let mut sender = TcpStream::connect(address.data).unwrap();
    sender.write_all(&address.token.as_ref().unwrap().0).unwrap();
    sender.write_all(b"octets").unwrap();
    assert_eq!(victim.frames.recv_timeout(PATIENCE).unwrap().data, b"octets");
    drop(silent);
}

#[test]
fn random_octets_from_the_admitted_sender_are_counted() {
    for spec in [r"video\in\\RTP\RTP/UDP", r"video\in\\SFP:1.0\UDP"] {
        let victim = Victim::new(AvLimits::default(), |flow| flow);
        let address = listening(&victim.end_point, spec);
        let sender = udp();
        show(&sender, &address);
        let mut random = fastrand::Rng::with_seed(40);
        for _ in 0..300 {
            let mut octets: Vec<u8> = (0..random.usize(0..200)).map(|_| random.u8(..)).collect();
            if random.bool() && octets.len() > 5 {
                // Beginnings that pass the first check.
                let magic: &[u8] = [&b"=SFP"[..], b"FRAG", b"=STA", b"=CRE", &[0x80, 0x60, 0, 1]][random.usize(0..5)];
                octets[..4].copy_from_slice(magic);
            }
            sender.send_to(&octets, address.data).unwrap();
            // The control connection as well.
            sender.send_to(&octets, address.control()).unwrap();
        }
        eventually("they are counted", || victim.counts().malformed > 20);
        let counts = victim.counts();
        assert!(counts.octets < 300 * 200, "{counts:?}");
    }
}

#[test]
fn packets_of_another_source_or_far_away_are_refused_and_disorder_is_mended() {
    let victim = Victim::new(AvLimits::default(), |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\RTP\RTP/UDP");
    let sender = udp();
    show(&sender, &address);
    let send = |packet: &[u8]| sender.send_to(packet, address.data).unwrap();
    send(&rtp(65_535, 7, b"a"));
    send(&rtp(1, 7, b"c"));
    send(&rtp(0, 7, b"b"));
    send(&rtp(0, 7, b"b")); // late: it has been given to the sink
    send(&rtp(2, 8, b"x")); // another source
    send(&rtp(30_000, 7, b"x")); // far away
    send(&rtp(3, 7, b"e")); // after a loss
    let received: Vec<Vec<u8>> = (0..4).map(|_| victim.frames.recv_timeout(PATIENCE).unwrap().data).collect();
    assert_eq!(received, [b"a", b"b", b"c", b"e"]);
    let counts = victim.counts();
    assert_eq!((counts.lost, counts.reordered, counts.refused), (1, 1, 2), "{counts:?}");
    assert_eq!(counts.late + counts.duplicates, 1, "{counts:?}");
}

/// A compound packet of RTCP by which a source leaves, with this reason.
fn bye(source: u32, reason: &[u8]) -> Vec<u8> {
    let report = [&[0x80, 201, 0, 1][..], &source.to_be_bytes()].concat();
    let mut farewell = [&[0x81, 203, 0, 0][..], &source.to_be_bytes(), &[reason.len() as u8], reason].concat();
    farewell.resize(farewell.len().next_multiple_of(4), 0);
    farewell[3] = (farewell.len() / 4 - 1) as u8;
    [report, farewell].concat()
}

#[test]
fn the_farewell_of_another_source_does_not_end_a_flow() {
    let victim = Victim::new(AvLimits::default(), |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\RTP\RTP/UDP");
    let sender = udp();
    show(&sender, &address);
    sender.send_to(&rtp(1, 7, b"a"), address.data).unwrap();
    assert_eq!(victim.frames.recv_timeout(PATIENCE).unwrap().data, b"a");
    sender.send_to(&bye(8, b"no"), address.control()).unwrap();
    let begin = std::time::Instant::now();
    eventually("the time passes in which a farewell ends a flow", || {
        assert_eq!(victim.end(), None);
        begin.elapsed() > Duration::from_millis(500)
    });
    // Its own source ends it. The reason may go to a terminal.
    sender.send_to(&bye(7, b"later\x1b[2J"), address.control()).unwrap();
    eventually("the flow ends", || victim.end().is_some());
    assert_eq!(victim.end().unwrap(), "the sender has left: later?[2J");
}

#[test]
fn a_frame_beyond_the_limit_ends_or_is_dropped() {
    let limits = AvLimits { frame: 10_000, ..AvLimits::default() };
    let victim = Victim::new(limits, |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\SFP:1.0\TCP");
    let mut sender = TcpStream::connect(address.data).unwrap();
    sender.write_all(&address.token.as_ref().unwrap().0).unwrap();
    sender.write_all(b"=STA\x01\x00\x00").unwrap();
    let mut reply = [0; 5];
    sender.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"=STR\0");
    sender.write_all(b"=SFP\0\x02\0\0\x7f\xff\xff\xff").unwrap();
    eventually("the flow ends", || victim.end().is_some());
    assert!(victim.end().unwrap().contains("2147483647 octets is longer than allowed (10000)"));

    let victim = Victim::new(limits, |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\RTP\RTP/UDP");
    let sender = udp();
    show(&sender, &address);
    for sequence in 0..20 {
        let mut packet = rtp(sequence, 7, &[0; 1_000]);
        packet[1] = 96; // without the marker: one frame
        sender.send_to(&packet, address.data).unwrap();
    }
    eventually("it is refused", || victim.counts().refused == 1);
    assert_eq!(victim.counts().frames, 0);
}

#[test]
fn a_receiver_without_sender_and_a_silent_sender_end_with_the_reason() {
    let victim = Victim::new(quick(), |flow| flow);
    listening(&victim.end_point, r"video\in\\\UDP");
    eventually("it ends", || victim.end().is_some());
    assert!(victim.end().unwrap().contains("no sender has shown the token within 700ms"));

    let victim = Victim::new(quick(), |flow| flow);
    listening(&victim.end_point, r"video\in\\\TCP");
    eventually("it ends", || victim.end().is_some());
    assert!(victim.end().unwrap().contains("no sender has connected within 700ms"));

    let victim = Victim::new(quick(), |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\\UDP");
    show(&udp(), &address);
    victim.end_point.start(&[]).unwrap();
    eventually("it ends", || victim.end().is_some());
    assert!(victim.end().unwrap().contains("the sender is silent for 700ms"));
    assert_eq!(victim.party.streams().counts().1, 0);
    drop(victim.client);
}

/// A sender of our own that is told to send to an address of this test.
fn sending_to(limits: AvLimits, edit: impl FnOnce(FlowDefinition) -> FlowDefinition, spec: &str) -> SendingParty {
    sending_from(Party::with(limits), edit, spec)
}

/// A sender with its client, its device, and the outcome of the request.
type SendingParty =
    (Client, Party, spandrel::ObjectRef, Result<StreamEndPoint, stream_end_point::RequestConnectionError>);

/// As [`sending_to`], with a party of one's own.
pub(crate) fn sending_from(
    party: Party,
    edit: impl FnOnce(FlowDefinition) -> FlowDefinition,
    spec: &str,
) -> SendingParty {
    let client = Client::new();
    let (own, device) = party.device(&client, &[edit(source("video", u32::MAX, 60_000))]);
    let (end_point, _, _) = device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let end_point: StreamEndPoint = end_point.unwrap().unchecked_narrow();
    let answer = end_point.request_connection(None, false, &mut Vec::new(), &mut vec![spec.to_owned()]);
    (client, party, own, answer.map(|_| end_point))
}

#[test]
fn a_receiver_that_stops_reading_ends_the_flow_within_its_limit() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let spec = format!(r"video\out\\\TCP={}", listener.local_addr().unwrap());
    let unpaced = |flow| FlowDefinition { frame_rate: 0, carriers: vec![Carrier::Tcp], ..flow };
    let (_client, party, own, answer) = sending_to(quick(), unpaced, &spec);
    let (_receiver, _) = listener.accept().unwrap();
    answer.unwrap().start(&[]).unwrap();
    eventually("the flow ends", || party.streams().ends(&own, "video")[0].is_some());
    let reason = party.streams().ends(&own, "video")[0].clone().unwrap();
    assert!(reason.contains("the receiver has taken no octets for 700ms"), "{reason}");
}

#[test]
fn a_receiver_that_grants_no_credit_or_is_gone_ends_the_flow() {
    // It answers Start, and then nothing.
    let receiver = udp();
    let spec = format!(r"video\out\\SFP:1.0:credit=2\UDP={}", receiver.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        let (length, from) = receiver.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"=STA\x01\0\0");
        receiver.send_to(b"=STR\0", from).unwrap();
        receiver
    });
    let (_client, party, own, answer) = sending_to(quick(), |flow| flow, &spec);
    let receiver = answering.join().unwrap();
    answer.unwrap().start(&[]).unwrap();
    eventually("the flow ends", || party.streams().ends(&own, "video")[0].is_some());
    let reason = party.streams().ends(&own, "video")[0].clone().unwrap();
    assert!(reason.contains("the receiver has granted no credit for 700ms"), "{reason}");
    assert_eq!(party.streams().statistics(&own, "video")[0].frames, 2);
    drop(receiver);

    let receiver = udp();
    let spec = format!(r"video\out\\\UDP={}", receiver.local_addr().unwrap());
    let (_client, party, own, answer) = sending_to(quick(), |flow| flow, &spec);
    drop(receiver);
    answer.unwrap().start(&[]).unwrap();
    eventually("the flow ends", || party.streams().ends(&own, "video")[0].is_some());
    let reason = party.streams().ends(&own, "video")[0].clone().unwrap();
    assert!(reason.contains("the receiver is gone"), "{reason}");
}

/// The time for credit is that of a flow that is started.
#[test]
fn a_flow_that_is_stopped_needs_no_credit() {
    let receiver = udp();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let spec = format!(r"video\out\\SFP:1.0:credit=1\UDP={}", receiver.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (_, from) = receiver.recv_from(&mut [0; 2_048]).unwrap();
        receiver.send_to(b"=STR\0", from).unwrap();
        (receiver, from)
    });
    let (_client, party, own, answer) = sending_to(quick(), |flow| flow, &spec);
    let (receiver, from) = answering.join().unwrap();
    let frames = || party.streams().statistics(&own, "video")[0].frames;
    let end_point = answer.unwrap();
    end_point.start(&[]).unwrap();
    eventually("the frame for which there is credit", || frames() == 1);
    end_point.stop(&[]).unwrap();
    let goes_on = || party.streams().ends(&own, "video")[0].is_none();
    let begin = std::time::Instant::now();
    eventually("twice the time for credit passes", || {
        assert!(goes_on(), "{:?}", party.streams().ends(&own, "video"));
        begin.elapsed() > 2 * quick().idle
    });
    end_point.start(&[]).unwrap();
    receiver.send_to(b"=CRE\0\0\0\x01", from).unwrap();
    eventually("the next frame", || frames() == 2);
}

#[test]
fn nothing_is_sent_to_an_address_that_has_not_agreed() {
    // Another machine's address without a token: no flow goes there.
    let spec = r"video\out\\\UDP=192.0.2.1:5000";
    let (_client, party, own, answer) = sending_to(quick(), |flow| flow, spec);
    let stream_end_point::RequestConnectionError::StreamOpDenied(denied) = answer.unwrap_err() else { panic!() };
    assert!(denied.reason.contains("shows no token, and is not the party that calls"), "{}", denied.reason);
    assert_eq!(party.streams().statistics(&own, "video")[0].packets, 0);
    // With a token that the address does not confirm, only the token is sent, for a bounded time.
    let receiver = udp();
    let token = "ab".repeat(32);
    let spec = format!(r"video\out\\\UDP={};token={token}", receiver.local_addr().unwrap());
    let (_client, party, own, answer) = sending_to(quick(), |flow| flow, &spec);
    assert!(answer.unwrap_err().to_string().contains("StreamOpDenied") || party.streams().counts().1 == 0);
    receiver.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2_048];
    let mut datagrams = 0;
    while let Ok((length, _)) = receiver.recv_from(&mut buffer) {
        assert_eq!((length, &buffer[..4]), (36, &b"SPTK"[..]));
        datagrams += 1;
    }
    assert!((1..=50).contains(&datagrams), "{datagrams}");
    assert_eq!(party.streams().statistics(&own, "video")[0].packets, 0);
}

/// The datagrams that came to ports of this machine at which nothing listens.
#[cfg(target_os = "linux")]
fn unreceived_datagrams() -> u64 {
    let counts = std::fs::read_to_string("/proc/net/snmp").unwrap();
    let mut lines = counts.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let column = lines.next().unwrap().split(' ').position(|name| name == "NoPorts").unwrap();
    lines.next().unwrap().split(' ').nth(column).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_receiver_that_is_not_there_is_not_flooded() {
    let address = udp().local_addr().unwrap();
    let spec = format!(r"video\out\\\UDP={address};token={}", "0".repeat(64));
    let before = unreceived_datagrams();
    let (_client, _party, _own, answer) = sending_to(quick(), |flow| flow, &spec);
    let Err(stream_end_point::RequestConnectionError::StreamOpDenied(denied)) = answer else { panic!("{answer:?}") };
    assert!(denied.reason.contains("did not answer within 700ms"), "{}", denied.reason);
    // One in 20 ms, and those of other tests.
    let datagrams = unreceived_datagrams() - before;
    assert!(datagrams < 3_000, "{datagrams}");
}

/// A client that creates end points and uses none keeps others from none.
#[test]
fn end_points_without_control_and_connection_make_room_for_others() {
    let limits = AvLimits { objects: 5, absence: Duration::ZERO, ..AvLimits::default() };
    let (client, party) = (Client::new(), Party::with(limits));
    let (_, device) = party.device(&client, &[sink("video").0]);
    let create = || device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap().0.unwrap();
    let connected = create();
    listening(&connected, r"video\in\\\TCP");
    let first = create();
    let second = create();
    assert_eq!(party.streams().counts().0, 5);
    assert!(first.start(&[]).is_err());
    second.start(&[]).unwrap();
    connected.start(&[]).expect("it has a connection");

    let limits = AvLimits { objects: 3, ..limits };
    let party = Party::with(limits);
    let device = party.streams().add_flow_device(source("video", 1, 10)).unwrap();
    let device: FDev = client.at(&device).narrow().unwrap();
    let create = || device.create_producer(None, &mut QoS::default(), &mut String::new()).unwrap().0.unwrap();
    let producers = [(); 4].map(|()| create());
    assert!(producers[..2].iter().all(|producer| producer.start().is_err()));
    producers[3].start().unwrap();
}

#[test]
fn flows_objects_and_receivers_are_bounded() {
    let limits = AvLimits { flows: 1, objects: 6, ..AvLimits::default() };
    let (client, party) = (Client::new(), Party::with(limits));
    let (_, device) = party.device(&client, &[sink("a").0, sink("b").0]);
    let (end_point, _, _) = device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let end_point = end_point.unwrap();
    let mut spec = vec![r"a\in\\\UDP".to_owned(), r"b\in\\\UDP".to_owned()];
    let error = end_point.request_connection(None, false, &mut Vec::new(), &mut spec).unwrap_err();
    let stream_end_point::RequestConnectionError::StreamOpDenied(denied) = error else { panic!("{error}") };
    assert!(denied.reason.contains("there are 1 flows, as many as allowed"), "{}", denied.reason);
    eventually("none of the request is connected", || party.streams().counts().1 == 0);
    device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let error = device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap_err();
    assert!(error.to_string().contains("IMP_LIMIT"), "{error}");
    let _: SocketAddr = listening(&end_point, r"a\in\\\UDP").data;
}
