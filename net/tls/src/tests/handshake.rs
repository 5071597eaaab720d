//! Handshakes: trust, time, and failures.

use crate::tests::support;

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Instant;

use rustls::{AlertDescription, CertificateError, Error, ProtocolVersion, Side};
use spandrel_ipc::{Connecting, Family, Interest, inet, wait_ready};
use spandrel_sync::Arc;
use spandrel_test_support::{pattern, wait_until};
use spandrel_tls::{ClientOptions, ServerOptions, Stream, Tls, pem, tls_error};
use support::*;

/// Both sides over one TCP connection, after each has tried its handshake.
fn handshake_pair(
    server: ServerOptions,
    client: ClientOptions,
) -> (TcpStream, TcpStream, io::Result<()>, io::Result<()>) {
    let family = Tls::new(inet::Inet::default())
        .server(server.build().unwrap())
        .client(client.build().unwrap(), name())
        .handshake_timeout(TEST_TIMEOUT);
    handshake_pair_in(&family)
}

fn handshake_pair_in(family: &Tls) -> (TcpStream, TcpStream, io::Result<()>, io::Result<()>) {
    let (client, server) = plain_pair();
    let (client, server) = (family.join(client).unwrap(), family.serve(server).unwrap());
    let (joined, served) = thread::scope(|scope| {
        let joining = scope.spawn(|| client.handshake());
        let served = server.handshake();
        (joining.join().unwrap(), served)
    });
    (client, server, joined, served)
}

#[track_caller]
fn tls_error_of(error: io::Error) -> Error {
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error:?}");
    tls_error(&error).expect("a TLS error").clone()
}

fn identity_of(authority: &Authority, name: &str) -> impl FnOnce(ClientOptions) -> ClientOptions + use<> {
    let identity = authority.issue(name);
    move |options| {
        let chain = pem::certificates(identity.chain.as_bytes()).unwrap();
        options.identity(chain, pem::private_key(identity.key.as_bytes()).unwrap())
    }
}

fn trusted() -> rustls::RootCertStore {
    pem::authorities(authority().pem().as_bytes()).unwrap()
}

#[test]
fn a_silent_peer_delays_neither_the_acceptor_nor_others() {
    let family = tcp();
    let acceptor = family.open(&inet::Addr::loopback(0)).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let silent = inet::Connector::connect(&addr).unwrap();
    let (stuck, _) = acceptor.accept().unwrap();
    thread::scope(|scope| {
        let stuck = scope.spawn(move || stuck.recv(&mut [0; 1]));
        for _ in 0..3 {
            let client = scope.spawn(|| {
                let client = family.connect(&addr, Some(TEST_TIMEOUT)).unwrap();
                client.send_n(b"x").unwrap();
            });
            let (server, _) = acceptor.accept().unwrap();
            server.recv_n(&mut [0; 1]).unwrap();
            client.join().unwrap();
        }
        drop(silent);
        assert_eq!(stuck.join().unwrap().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    });
}

#[test]
fn a_handshake_timeout_fails_every_transfer() {
    let (_silent, server) = plain_pair();
    let server = tcp().handshake_timeout(TEST_TIMEOUT).serve(server).unwrap();
    assert!(server.handshake_time_left().unwrap() <= TEST_TIMEOUT);
    assert_eq!(server.try_recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(server.try_send(b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(server.is_handshaking());

    let family = tcp().handshake_timeout(SHORT);
    let start = Instant::now();
    let (_silent, server) = plain_pair();
    let server = family.serve(server).unwrap();
    assert_eq!(server.recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= SHORT, "it has waited {:?}", start.elapsed());
    assert_eq!(server.try_recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(server.send(b"x").unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(server.handshake().unwrap_err().kind(), ErrorKind::TimedOut);
    let both = Interest::INPUT | Interest::OUTPUT;
    assert_eq!(wait_ready(&server, both, Some(TEST_TIMEOUT)).unwrap(), both, "the next transfer reports it");
}

#[test]
fn connecting_to_a_silent_peer_times_out() {
    let silent = inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap();
    let addr = silent.local_addr().unwrap();
    let impatient = tcp().handshake_timeout(SHORT);
    assert_eq!(impatient.connect(&addr, None).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(impatient.start(&addr).unwrap().complete(None).unwrap_err().kind(), ErrorKind::TimedOut);
    let patient = tcp();
    assert_eq!(patient.connect(&addr, Some(SHORT)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(patient.start(&addr).unwrap().complete(Some(SHORT)).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(silent);
    assert_eq!(patient.connect(&addr, None).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let refused = patient.start(&addr).and_then(|connecting| connecting.complete(Some(TEST_TIMEOUT)));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_timeout_during_the_handshake_can_be_retried() {
    let family = tcp();
    let (client, server) = plain_pair();
    let (client, server) = (family.join(client).unwrap(), family.serve(server).unwrap());
    assert_eq!(client.handshake_within(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(client.send_within(b"x", SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    client.set_recv_timeout(Some(SHORT)).unwrap();
    assert!(spandrel_ipc::is_timeout(&client.recv(&mut [0; 1]).unwrap_err()));
    assert!(client.is_handshaking());
    thread::scope(|scope| {
        scope.spawn(|| server.recv_n(&mut [0; 1]).unwrap());
        client.send_n(b"x").unwrap();
    });
}

#[test]
fn a_peer_without_tls_gets_an_alert() {
    let (peer, server) = plain_pair();
    let server = tcp().serve(server).unwrap();
    peer.send_n(b"GET / HTTP/1.1\r\nHost: server.test\r\n\r\n").unwrap();
    assert!(matches!(tls_error_of(server.recv(&mut [0; 1]).unwrap_err()), Error::InvalidMessage(_)));
    tls_error_of(server.send(b"x").unwrap_err());
    let mut alert = [0; 7];
    peer.recv_n(&mut alert).unwrap();
    assert_eq!(alert[0], 21, "a record of the kind `alert` (RFC 8446, 5.1)");

    let (client, peer) = plain_pair();
    let client = tcp().join(client).unwrap();
    peer.send_n(b"220 mail.example ESMTP\r\n").unwrap();
    assert!(matches!(tls_error_of(client.handshake().unwrap_err()), Error::InvalidMessage(_)));
    assert!(matches!(tls_error_of(client.try_handshake().unwrap_err()), Error::InvalidMessage(_)));
}

#[test]
fn a_peer_that_closes_during_the_handshake_is_noticed() {
    for hello in [0, 1, 50] {
        let (peer, server) = plain_pair();
        let server = tcp().serve(server).unwrap();
        peer.send_n(&[22, 3, 1, 1, 0].repeat(10)[..hello]).unwrap();
        drop(peer);
        assert_eq!(wait_ready(&server, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
        let kind = server.send(b"x").unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::InvalidData), "{kind:?} after {hello} octets");
        assert_eq!(server.recv(&mut [0; 1]).unwrap_err().kind(), kind);
    }
}

#[test]
fn a_server_with_another_name_is_refused() {
    let server = server_options_of(&authority().issue("other.test"));
    let (_client, _server, joined, served) = handshake_pair(server, client_options());
    let wrong = tls_error_of(joined.unwrap_err());
    assert!(matches!(&wrong, Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })), "{wrong:?}");
    assert!(matches!(tls_error_of(served.unwrap_err()), Error::AlertReceived(_)), "the server gets an alert");
}

#[test]
fn a_server_of_a_foreign_authority_is_refused() {
    let server = server_options_of(&Authority::new("a stranger").issue(NAME));
    let (client, _server, joined, served) = handshake_pair(server, client_options());
    assert_eq!(tls_error_of(joined.unwrap_err()), Error::InvalidCertificate(CertificateError::UnknownIssuer));
    assert_eq!(tls_error_of(served.unwrap_err()), Error::AlertReceived(AlertDescription::UnknownCA));
    assert_eq!(client.peer_certificates(), None);
}

#[test]
fn mutual_authentication_verifies_both_sides() {
    let identity = identity_of(authority(), "client.test");
    let (client, server, joined, served) =
        handshake_pair(server_options().require_clients(trusted()), identity(client_options()));
    joined.unwrap();
    served.unwrap();
    let of_client = server.peer_certificates().unwrap();
    let of_server = client.peer_certificates().unwrap();
    assert_eq!((of_client.len(), of_server.len()), (1, 1));
    assert_ne!(of_client, of_server);
    client.send_n(b"x").unwrap();
    server.recv_n(&mut [0; 1]).unwrap();
}

#[test]
fn an_unknown_client_is_refused() {
    // In TLS 1.3 the client finishes before the server has decided; it gets the alert with its first
    // transfer.
    let (client, _server, joined, served) =
        handshake_pair(server_options().require_clients(trusted()), client_options());
    joined.unwrap();
    assert_eq!(tls_error_of(served.unwrap_err()), Error::NoCertificatesPresented);
    let reported = tls_error_of(client.recv(&mut [0; 1]).unwrap_err());
    assert_eq!(reported, Error::AlertReceived(AlertDescription::CertificateRequired));

    let stranger = identity_of(&Authority::new("a stranger"), "client.test");
    let (client, _server, joined, served) =
        handshake_pair(server_options().require_clients(trusted()), stranger(client_options()));
    joined.unwrap();
    assert_eq!(tls_error_of(served.unwrap_err()), Error::InvalidCertificate(CertificateError::UnknownIssuer));
    assert!(matches!(tls_error_of(client.recv(&mut [0; 1]).unwrap_err()), Error::AlertReceived(_)));
}

/// The same text in a failed handshake and, with TLS 1.3, in the client's first transfer after its own handshake.
#[test]
fn errors_have_the_explanation_of_the_family() {
    fn explain(side: Side, error: &Error) -> Option<&'static str> {
        match (side, error) {
            (Side::Client, Error::AlertReceived(AlertDescription::CertificateRequired)) => Some("send a certificate"),
            (Side::Server, Error::NoCertificatesPresented) => Some("certificates are required"),
            _ => None,
        }
    }
    let family = Tls::new(inet::Inet::default())
        .server(server_options().require_clients(trusted()).build().unwrap())
        .client(client_options().build().unwrap(), name())
        .explain_errors(explain);
    let (client, server, joined, served) = handshake_pair_in(&family);
    joined.unwrap();
    for (error, text) in [
        (served.unwrap_err(), "certificates are required: peer sent no certificates"),
        (server.send(b"x").unwrap_err(), "certificates are required: peer sent no certificates"),
        (client.recv(&mut [0; 1]).unwrap_err(), "send a certificate: received fatal alert: CertificateRequired"),
        (client.send(b"x").unwrap_err(), "send a certificate: received fatal alert: CertificateRequired"),
    ] {
        assert_eq!(error.to_string(), text);
        tls_error_of(error);
    }
}

#[test]
fn a_revoked_certificate_is_refused() {
    let list = pem::revocation_lists(authority().revoke("revoked.test").as_bytes()).unwrap();
    for (client, is_refused) in [("client.test", false), ("revoked.test", true)] {
        let identity = identity_of(authority(), client);
        let server = server_options().require_clients(trusted()).revoked(list.clone());
        let (_client, _server, _joined, served) = handshake_pair(server, identity(client_options()));
        let refusal = served.err().map(tls_error_of);
        assert_eq!(refusal, is_refused.then_some(Error::InvalidCertificate(CertificateError::Revoked)));
    }
    let list = pem::revocation_lists(authority().revoke(NAME).as_bytes()).unwrap();
    let (_client, _server, joined, _served) = handshake_pair(server_options(), client_options().revoked(list));
    assert_eq!(tls_error_of(joined.unwrap_err()), Error::InvalidCertificate(CertificateError::Revoked));
}

#[test]
fn with_tls_1_2_an_unknown_client_is_refused_during_the_handshake() {
    let family = Tls::new(inet::Inet::default())
        .server(server_options().allow_tls12().require_clients(trusted()).build().unwrap())
        .client(only_tls12(), name());
    let (_client, _server, joined, served) = handshake_pair_in(&family);
    assert_eq!(tls_error_of(served.unwrap_err()), Error::NoCertificatesPresented);
    assert!(matches!(tls_error_of(joined.unwrap_err()), Error::AlertReceived(_)));
}

#[test]
fn a_server_may_request_an_optional_certificate() {
    let identity = identity_of(authority(), "client.test");
    for (client, is_known) in [(client_options(), false), (identity(client_options()), true)] {
        let (_client, server, joined, served) = handshake_pair(server_options().request_clients(trusted()), client);
        joined.unwrap();
        served.unwrap();
        assert_eq!(server.peer_certificates().is_some(), is_known);
    }
}

fn only_tls12() -> Arc<rustls::ClientConfig> {
    let config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(trusted())
        .with_no_client_auth();
    Arc::new(config)
}

#[test]
fn the_newest_version_is_used_and_an_older_one_only_if_allowed() {
    let (client, server, joined, served) =
        handshake_pair(server_options().allow_tls12(), client_options().allow_tls12());
    joined.and(served).unwrap();
    for side in [&client, &server] {
        assert_eq!(side.protocol_version(), Some(ProtocolVersion::TLSv1_3));
        assert!(side.cipher_suite().is_some());
    }

    let family = |options: ServerOptions| {
        Tls::new(inet::Inet::default()).server(options.build().unwrap()).client(only_tls12(), name())
    };
    let (client, server, joined, served) = handshake_pair_in(&family(server_options().allow_tls12()));
    joined.and(served).unwrap();
    assert_eq!(client.protocol_version(), Some(ProtocolVersion::TLSv1_2));
    let data = pattern(300_000);
    let mut received = vec![0; data.len()];
    thread::scope(|scope| {
        scope.spawn(|| server.recv_n(&mut received).unwrap());
        client.send_n(&data).unwrap();
    });
    assert!(received == data);
    client.close_writer().unwrap();
    assert_eq!(server.recv(&mut [0; 1]).unwrap(), 0);

    let (_client, _server, joined, served) = handshake_pair_in(&family(server_options()));
    assert!(matches!(tls_error_of(served.unwrap_err()), Error::PeerIncompatible(_)));
    assert_eq!(tls_error_of(joined.unwrap_err()), Error::AlertReceived(AlertDescription::ProtocolVersion));
}

#[test]
fn the_application_protocol_is_negotiated_and_the_server_name_sent() {
    let (client, server, joined, served) =
        handshake_pair(server_options().protocols(["giop", "old"]), client_options().protocols(["old", "giop"]));
    joined.and(served).unwrap();
    assert_eq!(client.alpn_protocol().as_deref(), Some(&b"giop"[..]));
    assert_eq!(server.alpn_protocol(), client.alpn_protocol());
    assert_eq!(server.server_name().as_deref(), Some(NAME));
    assert_eq!(client.server_name(), None);

    let (client, _server, joined, served) =
        handshake_pair(server_options().protocols(["giop"]), client_options().protocols(["http/1.1"]));
    assert_eq!(tls_error_of(served.unwrap_err()), Error::NoApplicationProtocol);
    assert_eq!(tls_error_of(joined.unwrap_err()), Error::AlertReceived(AlertDescription::NoApplicationProtocol));
    assert_eq!(client.alpn_protocol(), None);
}

#[test]
fn a_handshake_in_single_octets_completes() {
    let family = tcp();
    let (client, to_client) = plain_pair();
    let (server, to_server) = plain_pair();
    let (client, server) = (family.join(client).unwrap(), family.serve(server).unwrap());
    // Passes on the octets that have arrived, one by one.
    let hand_on = |from: &inet::Stream, to: &inet::Stream, side: &TcpStream| {
        let mut octets = [0; 4096];
        let count = from.try_recv(&mut octets).unwrap_or(0);
        for octet in &octets[..count] {
            to.send_n(&[*octet]).unwrap();
            wait_ready(side.inner(), Interest::INPUT, Some(TEST_TIMEOUT)).unwrap();
            assert!(side.try_handshake().is_ok() || side.is_handshaking());
        }
        count
    };
    let mut forwarded = 0;
    wait_until("the handshake", || {
        let _ = (client.try_handshake(), server.try_handshake());
        forwarded += hand_on(&to_client, &to_server, &server);
        forwarded += hand_on(&to_server, &to_client, &client);
        !client.is_handshaking() && !server.is_handshaking()
    });
    assert!(forwarded > 500, "{forwarded} octets make no handshake");
    client.send_n(b"x").unwrap();
    wait_until("the octet", || {
        hand_on(&to_client, &to_server, &server);
        server.try_recv(&mut [0; 1]).is_ok()
    });
}

#[test]
fn the_first_transfers_perform_the_handshake() {
    for _ in 0..20 {
        let family = tcp();
        let (client, server) = plain_pair();
        let (client, server) = (family.join(client).unwrap(), family.serve(server).unwrap());
        thread::scope(|scope| {
            for side in [&client, &server] {
                scope.spawn(move || side.send_n(b"first").unwrap());
                scope.spawn(move || {
                    let mut octets = [0; 5];
                    side.recv_n(&mut octets).unwrap();
                    assert_eq!(&octets, b"first");
                });
                scope.spawn(move || side.handshake().unwrap());
                scope.spawn(move || side.send_n_within(b"", TEST_TIMEOUT).unwrap());
                scope.spawn(move || side.handshake_within(TEST_TIMEOUT).unwrap());
            }
        });
        assert!(!client.has_unsent() && !server.has_unsent());
    }
}

#[test]
fn a_close_before_the_handshake_takes_effect_after_it() {
    let family = tcp();
    let (client, server) = plain_pair();
    let (client, server) = (family.join(client).unwrap(), family.serve(server).unwrap());
    server.close_writer().unwrap();
    assert_eq!(server.inner().send_n(&[]).map_err(|error| error.kind()), Ok(()), "the underlying stream is still open");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut octets = [0; 3];
            server.recv_n(&mut octets).unwrap();
            assert_eq!(server.send(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        });
        assert_eq!(client.recv(&mut [0; 1]).unwrap(), 0);
        client.send_n(b"bye").unwrap();
    });
}

#[test]
fn an_unconfigured_endpoint_cannot_be_opened() {
    let unconfigured = Tls::new(inet::Inet::default());
    let addr = inet::Addr::loopback(0);
    assert_eq!(unconfigured.open(&addr).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(unconfigured.connect(&addr, None).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(unconfigured.start(&addr).unwrap_err().kind(), ErrorKind::InvalidInput);
    let (one, other) = plain_pair();
    assert_eq!(unconfigured.serve(one).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(unconfigured.join(other).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn debug_output_shows_the_state() {
    let (client, _server) = pair();
    let text = format!("{client:?}");
    assert!(text.contains("is_handshaking: false") && text.contains("TLSv1_3"), "{text}");
    fn is_shared<T: Send + Sync + 'static>(_: &T) {}
    is_shared::<Stream>(&client);
}
