//! Flows inside of TLS: certificates, tokens, and peers that stop in the handshake.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use spandrel::net::transport::{Address, Protocol as _, SocketSettings};
use spandrel::services::av_streams::stream_ctrl;
use spandrel::ssliop::{ClientVerification, Ssliop, pem};
use spandrel_avstreams::{AvError, AvLimits, Carrier, DeviceDefinition, FlowDefinition};
use spandrel_test_support::certificates::Authority;

use crate::hostile::{Victim, listening, quick, sending_from};
use crate::support::{Client, PATIENCE, Party, eventually, frame, sink, source, tls};

const SPEC: &str = r"video\in\\SFP:1.0\TLS";

/// TLS without a certificate, which trusts the authority.
fn without_certificate(authority: &Authority) -> Ssliop {
    Ssliop::ring().trust(pem::authorities(authority.pem().as_bytes()).unwrap())
}

/// Binds a sender to a receiver by TLS, and sends a frame. Returns the reason of the failure.
fn bind(sender: Ssliop, receiver: Ssliop) -> Result<(), String> {
    let limits = AvLimits { connect: Duration::from_secs(2), ..AvLimits::default() };
    let (client, [sender, receiver]) = (Client::new(), [sender, receiver].map(|tls| Party::with_tls(limits, tls)));
    let (own, sending) = sender.device(&client, &[source("video", 10, 1_000)]);
    let (flow, frames) = sink("video");
    let (_, receiving) = receiver.device(&client, &[flow]);
    let control = client.control(&sender);
    match control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[SPEC.to_owned()]) {
        Ok(_) => {
            control.start(&[]).unwrap();
            assert_eq!(frames.recv_timeout(PATIENCE).unwrap().data, frame(1, 1_000));
            Ok(())
        }
        Err(stream_ctrl::BindDevsError::StreamOpFailed(failed)) => {
            assert_eq!(sender.streams().statistics(&own, "video").first().map_or(0, |counts| counts.frames), 0);
            Err(failed.reason)
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_certificate_of_a_receiver_is_verified_by_authority_and_address() {
    let (authority, other) = (Authority::new("Studio"), Authority::new("Elsewhere"));
    bind(without_certificate(&authority), tls(&authority, "127.0.0.1")).unwrap();
    let reason = bind(without_certificate(&authority), tls(&other, "127.0.0.1")).unwrap_err();
    assert!(reason.contains("authority") && reason.contains("UnknownIssuer"), "{reason}");
    let reason = bind(without_certificate(&authority), tls(&authority, "other.example")).unwrap_err();
    assert!(reason.contains("127.0.0.1") && reason.contains("other.example"), "{reason}");
}

#[test]
fn a_receiver_that_requires_certificates_refuses_senders_without_one() {
    let authority = Authority::new("Studio");
    let strict = || tls(&authority, "127.0.0.1").verify_clients(ClientVerification::Required);
    bind(tls(&authority, "camera"), strict()).unwrap();
    let reason = bind(without_certificate(&authority), strict()).unwrap_err();
    assert!(reason.contains("requires a certificate of this client"), "{reason}");
    let stranger = tls(&Authority::new("Elsewhere"), "camera");
    let stranger = stranger.trust(pem::authorities(authority.pem().as_bytes()).unwrap());
    let reason = bind(stranger, strict()).unwrap_err();
    assert!(reason.contains("does not trust the authority of this client's certificate"), "{reason}");
}

#[test]
fn another_token_is_refused_with_the_reason_inside_of_tls() {
    let authority = Authority::new("Studio");
    let victim = Victim::at(Party::secure(&authority), |flow| flow);
    let address = listening(&victim.end_point, SPEC);
    let wrong = format!(r"video\out\\SFP:1.0\TLS={};token={}", address.data, "ab".repeat(32));
    let (_client, party, own, answer) = sending_from(Party::secure(&authority), |flow| flow, &wrong);
    let error = format!("{:?}", answer.unwrap_err());
    assert!(error.contains("the receiver has refused the token of the flow"), "{error}");
    assert_eq!(party.streams().statistics(&own, "video")[0].frames, 0);
    assert_eq!(victim.counts().refused, 1);
    // The sender with the token is admitted after it.
    let right = format!(r"video\out\\SFP:1.0\{address}");
    let (_client, _party, _own, answer) = sending_from(Party::secure(&authority), |flow| flow, &right);
    answer.unwrap().start(&[]).unwrap();
    assert_eq!(victim.frames.recv_timeout(PATIENCE).unwrap().data, frame(1, 60_000));
}

/// The first record of a handshake, without its end.
const CLIENT_HELLO_BEGUN: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

#[test]
fn connections_that_stop_in_the_handshake_are_bounded_in_number_and_time() {
    let authority = Authority::new("Studio");
    let limits = AvLimits { connect: Duration::from_secs(60), unknown_connections: 4, ..AvLimits::default() };
    let victim = Victim::at(Party::with_tls(limits, tls(&authority, "127.0.0.1")), |flow| flow);
    let address = listening(&victim.end_point, SPEC);
    let silent: Vec<TcpStream> = (0..10)
        .map(|number| {
            let mut stream = TcpStream::connect(address.data).unwrap();
            // Some begin the handshake, some say nothing.
            stream
                .write_all(&CLIENT_HELLO_BEGUN[..if number % 2 == 0 { CLIENT_HELLO_BEGUN.len() } else { 0 }])
                .unwrap();
            stream
        })
        .collect();
    eventually("all but four are refused", || victim.counts().refused == 6);
    let is_closed = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        !matches!(stream.read(&mut [0; 64]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    eventually("six are closed", || silent.iter().filter(|stream| is_closed(stream)).count() == 6);
    // One that speaks something else is refused at once.
    let mut other = TcpStream::connect(address.data).unwrap();
    other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    eventually("it is refused, and makes no room", || victim.counts().refused == 8);
    // The sender is admitted beside them.
    let right = format!(r"video\out\\SFP:1.0\{address}");
    let (_client, _party, _own, answer) = sending_from(Party::secure(&authority), |flow| flow, &right);
    answer.unwrap().start(&[]).unwrap();
    assert_eq!(victim.frames.recv_timeout(PATIENCE).unwrap().data, frame(1, 60_000));
    drop(silent);

    // Without a sender the flow ends within its time, with the reason of the last refusal.
    let victim = Victim::at(Party::with_tls(quick(), tls(&authority, "127.0.0.1")), |flow| flow);
    let address = listening(&victim.end_point, SPEC);
    let mut silent = TcpStream::connect(address.data).unwrap();
    silent.write_all(CLIENT_HELLO_BEGUN).unwrap();
    let mut other = TcpStream::connect(address.data).unwrap();
    other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    eventually("the flow ends", || victim.end().is_some());
    let end = victim.end().unwrap();
    assert!(end.starts_with("no sender has connected within 700ms; the last connection was refused: "), "{end}");
    assert!(end.contains("does not use TLS") || end.contains("imed out"), "{end}");
}

#[test]
fn a_receiver_that_stops_in_the_handshake_fails_the_connection_in_time() {
    let authority = Authority::new("Studio");
    for has_begun in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let spec = format!(r"video\out\\\TLS={};token={}", listener.local_addr().unwrap(), "cd".repeat(32));
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            if has_begun {
                // The header of a ServerHello that does not come.
                stream.write_all(b"\x16\x03\x03\x00\x7a\x02\x00").unwrap();
            }
            // Until the sender gives up.
            _ = stream.read_to_end(&mut Vec::new());
        });
        let begin = Instant::now();
        let party = Party::with_tls(quick(), tls(&authority, "127.0.0.1"));
        let (_client, party, _own, answer) = sending_from(party, |flow| flow, &spec);
        let error = format!("{:?}", answer.unwrap_err());
        assert!(error.contains("has not completed the handshake of TLS within 700ms"), "{error}");
        assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
        assert_eq!(party.streams().counts().1, 0);
        peer.join().unwrap();
    }
}

/// The octets that were sent through it in both directions, in clear or not.
struct Tap {
    address: std::net::SocketAddr,
    octets: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    fn start(to: std::net::SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, octets) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<u8>>>::default());
        let copy = Arc::clone(&octets);
        std::thread::spawn(move || {
            let (sender, _) = listener.accept().unwrap();
            let receiver = TcpStream::connect(to).unwrap();
            let forward = |mut from: TcpStream, mut to: TcpStream, octets: Arc<Mutex<Vec<u8>>>| {
                std::thread::spawn(move || {
                    let mut buffer = [0; 4_096];
                    while let Ok(length @ 1..) = from.read(&mut buffer) {
                        octets.lock().unwrap().extend_from_slice(&buffer[..length]);
                        if to.write_all(&buffer[..length]).is_err() {
                            return;
                        }
                    }
                    _ = to.shutdown(std::net::Shutdown::Write);
                })
            };
            forward(receiver.try_clone().unwrap(), sender.try_clone().unwrap(), Arc::clone(&copy));
            forward(sender, receiver, copy);
        });
        Self { address, octets }
    }
}

#[test]
fn neither_token_nor_frames_are_in_clear() {
    let authority = Authority::new("Studio");
    for carrier in [Carrier::Tcp, Carrier::Tls] {
        let victim = Victim::at(Party::secure(&authority), |flow| flow);
        let address = listening(&victim.end_point, &format!(r"video\in\\SFP:1.0\{carrier}"));
        let tap = Tap::start(address.data);
        let token = address.token.as_ref().unwrap().0;
        let spec = format!(
            r"video\out\\SFP:1.0\{}",
            address.to_string().replace(&address.data.to_string(), &tap.address.to_string())
        );
        let (_client, _party, _own, answer) = sending_from(Party::secure(&authority), |flow| flow, &spec);
        answer.unwrap().start(&[]).unwrap();
        let sent = frame(1, 60_000);
        assert_eq!(victim.frames.recv_timeout(PATIENCE).unwrap().data, sent);
        let octets = tap.octets.lock().unwrap().clone();
        let contains = |part: &[u8]| octets.windows(part.len()).any(|window| window == part);
        let is_clear = carrier == Carrier::Tcp;
        assert_eq!((contains(&token), contains(&sent[..64]), contains(b"=STA")), (is_clear, is_clear, is_clear));
    }
}

#[test]
fn a_client_of_tls_alone_sends_a_flow() {
    // As the documentation has it for foreign senders: the token, the confirmation, the octets.
    let authority = Authority::new("Studio");
    let victim = Victim::at(Party::secure(&authority), |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\\TLS");
    let at = Address::at_port("ssliop", "127.0.0.1", address.data.port());
    let stream = without_certificate(&authority).connect(&at, Some(PATIENCE), &SocketSettings::default()).unwrap();
    stream.send_n(&address.token.as_ref().unwrap().0).unwrap();
    let mut answer = [0; 4];
    stream.recv_n_within(&mut answer, PATIENCE).unwrap();
    assert_eq!(&answer, b"SPOK");
    stream.send_n(b"octets").unwrap();
    assert_eq!(victim.frames.recv_timeout(PATIENCE).unwrap().data, b"octets");
    stream.close_writer().unwrap();
    eventually("the flow ends", || victim.end().is_some());
    assert_eq!(victim.end().unwrap(), "the sender has closed the connection");
}

#[test]
fn a_connection_that_is_cut_is_no_end_of_the_flow() {
    let authority = Authority::new("Studio");
    let victim = Victim::at(Party::secure(&authority), |flow| flow);
    let address = listening(&victim.end_point, r"video\in\\\TLS");
    let at = Address::at_port("ssliop", "127.0.0.1", address.data.port());
    let stream = without_certificate(&authority).connect(&at, Some(PATIENCE), &SocketSettings::default()).unwrap();
    stream.send_n(&address.token.as_ref().unwrap().0).unwrap();
    stream.recv_n_within(&mut [0; 4], PATIENCE).unwrap();
    stream.inner().shutdown(std::net::Shutdown::Both).unwrap();
    eventually("the flow ends", || victim.end().is_some());
    assert_ne!(victim.end().unwrap(), "the sender has closed the connection");
}

#[test]
fn a_flow_by_tls_alone_needs_a_certificate() {
    let by_tls = |flow: FlowDefinition| DeviceDefinition {
        flows: vec![FlowDefinition { carriers: vec![Carrier::Tls], ..flow }],
        ..DeviceDefinition::default()
    };
    let refused = |party: &Party, flow| match party.streams().add_device(by_tls(flow)) {
        Err(AvError::Tls { flow, reason }) => {
            assert_eq!(flow, "video");
            reason
        }
        other => panic!("{other:?}"),
    };
    let party = Party::new();
    assert!(refused(&party, source("video", 1, 10)).contains("AvOptions::tls"));
    assert!(refused(&party, sink("video").0).contains("AvOptions::tls"));
    // A sender needs authorities alone.
    let party = Party::with_tls(AvLimits::default(), without_certificate(&Authority::new("Studio")));
    party.streams().add_device(by_tls(source("video", 1, 10))).unwrap();
    let reason = refused(&party, sink("video").0);
    assert!(reason.contains("this ORB has no certificate"), "{reason}");
    // With other carriers, TLS is not among those that the device offers.
    let client = Client::new();
    let (_, device) = party.device(&client, &[sink("video").0]);
    let carriers: Vec<String> = device.get_property_value("video_availableProtocols").unwrap().extract().unwrap();
    assert_eq!(carriers, ["RTP/UDP", "UDP", "TCP"]);
}
