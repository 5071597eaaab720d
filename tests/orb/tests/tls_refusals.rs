//! TLS connections that fail: both sides report the reason at once.

use crate::certificates;
use spandrel_test_support::alone;

use std::{
    fmt::Debug,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use certificates::{Authority, WithIdentity, authority, chain, client, plain, server, serving, trusting};
use rustls::AlertDescription;
use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemException, SystemExceptionKind,
    cdr::GiopVersion,
    diagnostics::statistics::{self, Level},
    options::Concurrency,
    ssliop::{ClientVerification, Ssliop},
    types::{IiopProfile, Ior},
};
use spandrel_cdr::TaggedComponent;
use spandrel_giop::component::{Component, SslSecTrans};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, block_on, kind_and_completion, wait_until},
};
use spandrel_test_support::certificates::date_time_ymd;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, Registry, layer::Context, prelude::*};

/// The trace events of this process.
#[derive(Clone, Default)]
struct EventLog(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for EventLog {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                self.0 = format!("{} {}={value:?}", self.0, field.name());
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
}

impl EventLog {
    fn installed() -> &'static Self {
        static EVENT_LOG: OnceLock<EventLog> = OnceLock::new();
        EVENT_LOG.get_or_init(|| {
            let events = Self::default();
            tracing::subscriber::set_global_default(Registry::default().with(events.clone())).unwrap();
            events
        })
    }

    /// Waits for an event whose line contains all of these parts.
    fn await_line(&self, parts: &[&str]) {
        let has = || self.0.lock().unwrap().iter().any(|line| parts.iter().all(|part| line.contains(part)));
        wait_until(&format!("{parts:?}"), has);
    }
}

/// The exceptions of a synchronous and of an asynchronous call.
fn refusals(builder: impl Fn() -> OrbBuilder, ior: &Ior) -> [SystemException; 2] {
    let target = || Target::unchecked_narrow(&builder().build().unwrap().reference(ior.clone()));
    [target().ping().unwrap_err(), block_on(target().ping_async()).unwrap_err()]
}

/// The reference with this plain IIOP port and these components instead of its own.
fn with_components(ior: &Ior, port: u16, components: Vec<TaggedComponent>) -> Ior {
    let profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    let profiles = vec![IiopProfile { port, components, ..profile }.encode().unwrap()];
    Ior { type_id: ior.type_id.clone(), profiles }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The server's TLS port.
fn secure_port(server: &Server) -> u16 {
    server.orb.published().unwrap().addresses[0].host_and_port().unwrap().1
}

/// An expired certificate for this host.
fn expired(host: &str) -> certificates::Identity {
    authority().issue_with(&[host], |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    })
}

#[test]
fn both_sides_report_why_a_client_certificate_is_refused() {
    alone(|| {
        let events = EventLog::installed();
        let strict = trusting(authority())
            .identity_of(&authority().issue("127.0.0.1"))
            .verify_clients(ClientVerification::Required);
        let server = Server::with(serving(strict));
        type Presented = fn(Ssliop) -> Ssliop;
        let cases: [(Presented, [&str; 2], [&str; 2]); 3] = [
            (
                |ssliop| ssliop,
                ["CertificateRequired", "-ORBSSLCertificate and -ORBSSLKey"],
                ["peer sent no certificates", "-ORBSSLVerify"],
            ),
            (
                |ssliop| ssliop.identity_of(&Authority::new("another").issue("x.example")),
                ["UnknownCA", "-ORBSSLCA at the server"],
                ["UnknownIssuer", "-ORBSSLCA"],
            ),
            (
                |ssliop| ssliop.identity_of(&expired("x.example")),
                ["CertificateExpired", "-ORBSSLCertificate"],
                ["certificate expired", "certificate expired"],
            ),
        ];
        for (presented, alert, reason) in cases {
            let builder = || Orb::builder().protocol(presented(trusting(authority())));
            for refused in refusals(builder, server.object.ior()) {
                // In TLS 1.3 the client's handshake ends before the server has verified the certificate. The alert
                // may arrive before the request is written: then no profile was usable, as if connecting had
                // failed. Otherwise the server may have acted on the request.
                let not_written = (SystemExceptionKind::Transient, CompletionStatus::No);
                let in_doubt = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);
                assert!([not_written, in_doubt].contains(&kind_and_completion(&refused)), "{}", chain(&refused));
                assert!(alert.iter().all(|part| chain(&refused).contains(part)), "{}", chain(&refused));
            }
            events.await_line(&["rejected in the handshake", reason[0], reason[1]]);
        }
    });
}

/// A record with this fatal alert, as it is sent before any encryption (RFC 8446, 5.1 and 6).
fn alert_record(alert: AlertDescription) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, alert.into()]
}

#[test]
fn each_alert_of_a_server_names_the_option() {
    alone(|| {
        for (alert, words) in [
            (
                AlertDescription::CertificateRequired,
                "requires a certificate of this client (-ORBSSLCertificate and -ORBSSLKey)",
            ),
            (
                AlertDescription::UnknownCA,
                "does not trust the authority of this client's certificate (-ORBSSLCertificate",
            ),
            (
                AlertDescription::BadCertificate,
                "rejects the certificate of this client, or requires one (-ORBSSLCertificate",
            ),
            (AlertDescription::CertificateUnknown, "rejects the certificate of this client"),
            (
                AlertDescription::CertificateExpired,
                "has expired, or is not valid yet by the server's clock (-ORBSSLCertificate)",
            ),
            (AlertDescription::CertificateRevoked, "the certificate of this client is revoked (-ORBSSLCertificate)"),
            (AlertDescription::AccessDenied, "denies access to the holder of this certificate (-ORBSSLCertificate)"),
            (
                AlertDescription::HandshakeFailure,
                "or requires a certificate of this client (-ORBSSLVersion; -ORBSSLCertificate",
            ),
            (AlertDescription::ProtocolVersion, "no version of TLS in common (`-ORBSSLVersion 1.2`"),
            (AlertDescription::NoApplicationProtocol, "an application protocol (ALPN), which no ORB offers"),
            (AlertDescription::UnrecognisedName, "no certificate for the host in the reference (-ORBPublish"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    stream.read_exact(&mut [0; 5]).unwrap();
                    stream.write_all(&alert_record(alert)).unwrap();
                    _ = stream.read_to_end(&mut Vec::new());
                }
            });
            let offer = SslSecTrans { supports: SslSecTrans::PROTECTED, requires: SslSecTrans::PROTECTED, port };
            let ior =
                with_components(Server::start().object.ior(), 0, vec![Component::SslSecTrans(offer).encode().unwrap()]);
            for refused in refusals(client, &ior) {
                let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
                assert_eq!(kind_and_completion(&refused), expected, "{refused}");
                let text = chain(&refused);
                assert!(text.contains(words) && text.contains(&format!("{alert:?}")), "{text}");
            }
        }
    });
}

#[test]
fn each_alert_of_a_client_names_the_option_in_the_log() {
    alone(|| {
        let events = EventLog::installed();
        for (alert, words) in [
            (
                AlertDescription::UnknownCA,
                "does not trust the authority of this server's certificate (-ORBSSLCertificate",
            ),
            (
                AlertDescription::BadCertificate,
                "rejects the certificate of this server (-ORBSSLCertificate): its subject",
            ),
            (AlertDescription::CertificateUnknown, "rejects the certificate of this server (-ORBSSLCertificate)"),
            (AlertDescription::CertificateExpired, "the certificate of this server has expired"),
            (AlertDescription::CertificateRevoked, "the certificate of this server is revoked (-ORBSSLCertificate)"),
            (AlertDescription::HandshakeFailure, "accepts none of the algorithms of this server (-ORBSSLVersion)"),
            (AlertDescription::ProtocolVersion, "no version of TLS in common (`-ORBSSLVersion 1.2`"),
        ] {
            let server = server();
            let mut client = TcpStream::connect(("127.0.0.1", secure_port(&server))).unwrap();
            client.write_all(&alert_record(alert)).unwrap();
            events.await_line(&["rejected in the handshake", words, &format!("{alert:?}")]);
        }
    });
}

/// Each peer with TLS 1.2 alone, beside one with TLS 1.3 alone, and a server with TLS 1.2 that requires a certificate.
#[test]
fn with_tls_1_2_alerts_name_the_option() {
    alone(|| {
        let events = EventLog::installed();
        let strict = server_with_tls12_alone(true);
        let relaxed = server_with_tls12_alone(false);
        let both = || Orb::builder().protocol(trusting(authority()).allow_tls12());
        for (port, client, words) in [
            (strict, &both as &dyn Fn() -> OrbBuilder, "requires a certificate of this client"),
            (relaxed, &client, "`-ORBSSLVersion 1.2` permits TLS 1.2, too"),
        ] {
            let offer = SslSecTrans { supports: SslSecTrans::PROTECTED, requires: SslSecTrans::PROTECTED, port };
            let ior =
                with_components(Server::start().object.ior(), 0, vec![Component::SslSecTrans(offer).encode().unwrap()]);
            for refused in refusals(client, &ior) {
                let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
                assert_eq!(kind_and_completion(&refused), expected, "{refused}");
                assert!(chain(&refused).contains(words), "{}", chain(&refused));
            }
        }

        let server = server();
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .with_root_certificates(spandrel::ssliop::pem::authorities(authority().pem().as_bytes()).unwrap())
            .with_no_client_auth();
        let mut session = rustls::ClientConnection::new(config.into(), "127.0.0.1".try_into().unwrap()).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", secure_port(&server))).unwrap();
        session.complete_io(&mut stream).unwrap_err();
        events
            .await_line(&["rejected in the handshake", "the client and this server have no version of TLS in common"]);
    });
}

/// The port of a server with TLS 1.2 alone, for handshakes.
fn server_with_tls12_alone(requires_certificates: bool) -> u16 {
    let identity = authority().issue("127.0.0.1");
    let chain = spandrel::ssliop::pem::certificates(identity.chain.as_bytes()).unwrap();
    let key = spandrel::ssliop::pem::private_key(identity.key.as_bytes()).unwrap();
    let trusted = spandrel::ssliop::pem::authorities(authority().pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(trusted.into(), Arc::clone(&provider));
    let builder = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap();
    let builder = match requires_certificates {
        true => builder.with_client_cert_verifier(verifier.build().unwrap()),
        false => builder.with_no_client_auth(),
    };
    let config = Arc::new(builder.with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            _ = session.complete_io(&mut stream.unwrap());
        }
    });
    port
}

#[test]
fn an_expired_server_certificate_is_refused() {
    alone(|| {
        let server = Server::with(serving(plain().identity_of(&expired("127.0.0.1"))));
        for any_name in [false, true] {
            let trusting = || if any_name { trusting(authority()).any_server_name() } else { trusting(authority()) };
            for refused in refusals(|| Orb::builder().protocol(trusting()), server.object.ior()) {
                let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
                assert_eq!(kind_and_completion(&refused), expected, "{refused}");
                assert!(chain(&refused).contains("certificate expired"), "{}", chain(&refused));
            }
        }
    });
}

#[test]
fn a_misspelt_option_of_tls_is_told_with_the_right_one() {
    let message = |builder: OrbBuilder, option| builder.option(option, "1").unwrap_err().to_string();
    for (given, meant) in [
        ("-ORBSSLCertificat", "-ORBSSLCertificate"),
        ("-ORBSSLkey", "-ORBSSLKey"),
        ("-ORBSSLCa", "-ORBSSLCA"),
        ("-ORBSSLRevoke", "-ORBSSLRevoked"),
        ("-ORBSSLReloads", "-ORBSSLReload"),
        ("-ORBSSLVerfy", "-ORBSSLVerify"),
        ("-ORBSSLVersions", "-ORBSSLVersion"),
        ("-ORBSSLPlane", "-ORBSSLPlain"),
        ("-ORBSSLVerifyNames", "-ORBSSLVerifyName"),
    ] {
        let expected = format!("`{given}` is not an ORB option: did you mean `{meant}`?");
        assert_eq!(message(client(), given), expected);
        assert!(message(Orb::builder(), given).contains("`OrbBuilder::protocol` with `Ssliop`"));
    }
}

#[test]
fn a_client_with_half_of_an_identity_names_the_other_half() {
    alone(|| {
        let server = server();
        let folder = tempfile::tempdir().unwrap();
        let identity = authority().issue("x.example");
        for (option, content, missing) in [
            ("-ORBSSLCertificate", &identity.chain, "a certificate without its private key (set the option -ORBSSLKey"),
            ("-ORBSSLKey", &identity.key, "a private key without its certificate (set the option -ORBSSLCertificate"),
        ] {
            let file = folder.path().join("half.pem");
            std::fs::write(&file, content).unwrap();
            let half = || client().option(option, file.to_str().unwrap()).unwrap();
            for refused in refusals(half, server.object.ior()) {
                assert!(chain(&refused).contains(missing), "{}", chain(&refused));
            }
        }
    });
}

#[test]
fn an_unfinished_handshake_times_out_with_every_concurrency_strategy() {
    alone(|| {
        const HANDSHAKE: Duration = Duration::from_millis(300);
        let strategies = [
            Concurrency::default(),
            Concurrency::LeaderFollowers { threads: None },
            Concurrency::LeaderFollowers { threads: Some(2) },
            Concurrency::Reactive,
            Concurrency::ThreadPool { threads: 2, queue: 8 },
        ];
        for strategy in strategies {
            let ssliop =
                trusting(authority()).identity_of(&authority().issue("127.0.0.1")).handshake_timeout(HANDSHAKE);
            // No other timeout applies.
            let builder = serving(ssliop).server_idle_timeout(None).message_timeout(None).send_timeout(None);
            let server = Server::with(builder.concurrency(strategy));
            let begun = Instant::now();
            let clients = [&b""[..], b"\x16\x03\x01\x02\x00\x01"].map(|begin| {
                let mut client = TcpStream::connect(("127.0.0.1", secure_port(&server))).unwrap();
                client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
                client.write_all(begin).unwrap();
                client
            });
            for mut client in clients {
                let ended = client.read_to_end(&mut Vec::new());
                assert!(!ended.is_err_and(|error| is_timeout(&error)), "{strategy}: the handshake has no time limit");
                assert!(begun.elapsed() >= HANDSHAKE, "{strategy}: closed before the time limit");
            }
            wait_until("the end of both connections", || server.orb.statistics().level(Level::ServerConnections) == 0);
            assert_eq!(server.orb.statistics().count(statistics::Event::RefusedForSecurity), 2, "{strategy}");
            server.client_with(client()).ping().unwrap();
        }
    });
}

#[test]
fn a_plain_client_at_a_tls_port_reports_that_the_peer_speaks_tls() {
    alone(|| {
        let events = EventLog::installed();
        let server = server();
        let ior = with_components(server.object.ior(), secure_port(&server), vec![]);
        for refused in refusals(Orb::builder, &ior) {
            assert_eq!(refused.kind(), SystemExceptionKind::CommFailure, "{refused}");
            assert!(chain(&refused).contains("the peer speaks TLS"), "{}", chain(&refused));
        }
        events.await_line(&["rejected in the handshake", "InvalidContentType"]);
        server.client_with(client()).ping().unwrap();
    });
}

#[test]
fn a_tls_client_at_a_plain_port_reports_that_the_peer_speaks_no_tls() {
    alone(|| {
        let events = EventLog::installed();
        let server = Server::start();
        let port = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap().port;
        let offer = SslSecTrans { supports: SslSecTrans::PROTECTED, requires: SslSecTrans::PROTECTED, port };
        let ior = with_components(server.object.ior(), 0, vec![Component::SslSecTrans(offer).encode().unwrap()]);
        for refused in refusals(client, &ior) {
            let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
            assert_eq!(kind_and_completion(&refused), expected, "{refused}");
            assert!(chain(&refused).contains("the server does not support TLS"), "{}", chain(&refused));
        }
        events.await_line(&["refused a message", "the peer speaks TLS"]);
        server.client().ping().unwrap();
    });
}

/// Answers shorter than a GIOP header end the connection inside a message.
#[test]
fn an_answer_of_another_protocol_is_reported_as_no_giop() {
    alone(|| {
        for answer in [&b"220 hi\r\n"[..], b"GIOP\x01\x02", b"no"] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    spandrel_orb_tests::support::read_message(&mut stream).unwrap();
                    stream.write_all(answer).unwrap();
                }
            });
            let ior = with_components(Server::start().object.ior(), port, vec![]);
            for refused in refusals(Orb::builder, &ior) {
                let is_other = answer.len() >= 4 && !answer.starts_with(b"GIOP");
                assert_eq!(chain(&refused).contains("expected `GIOP`"), is_other, "{}", chain(&refused));
                assert!(is_other || chain(&refused).contains("inside a message"), "{}", chain(&refused));
            }
        }
    });
}

#[test]
fn every_giop_version_works_over_tls_and_ipv6() {
    alone(|| {
        let hosts = if TcpListener::bind("[::1]:0").is_ok() { &["127.0.0.1", "::1"][..] } else { &["127.0.0.1"] };
        for host in hosts {
            let ssliop = trusting(authority()).identity_of(&authority().issue(host));
            let with_components =
                if host.contains(':') { format!("ssliop://[{host}]:0") } else { format!("ssliop://{host}:0") };
            let server = Server::with(Orb::builder().protocol(ssliop).listen(with_components.parse().unwrap()));
            for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
                let target = server.client_with(client().giop_version(version));
                let text = "x".repeat(100_000);
                assert_eq!(target.echo(&text).unwrap(), text, "GIOP {version} at {host}");
                assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3, "GIOP {version} at {host}");
            }
            let refused = server.client_with(Orb::builder().protocol(trusting(&Authority::new("another"))));
            assert!(chain(&refused.ping().unwrap_err()).contains("UnknownIssuer"));
        }
    });
}

/// Certificate files are read when the options are set: an ORB made later presents the new certificate, and a
/// running one keeps the old.
#[test]
fn an_orb_made_after_a_renewal_presents_the_renewed_certificate() {
    alone(|| {
        let folder = tempfile::tempdir().unwrap();
        let [chain_file, key_file] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
        let put = |identity: &certificates::Identity| {
            std::fs::write(&chain_file, &identity.chain).unwrap();
            std::fs::write(&key_file, &identity.key).unwrap();
        };
        let configured = || {
            let options = [("-ORBSSLCertificate", &chain_file), ("-ORBSSLKey", &key_file)];
            options.into_iter().fold(serving(plain()), |builder, (option, path)| {
                builder.option(option, path.to_str().unwrap()).unwrap()
            })
        };
        put(&expired("127.0.0.1"));
        let before = Server::with(configured());
        before.client_with(client()).ping().unwrap_err();
        put(&authority().issue("127.0.0.1"));
        let after = Server::with(configured());
        after.client_with(client()).ping().unwrap();
        let still = before.client_with(client()).ping().unwrap_err();
        assert!(chain(&still).contains("certificate expired"), "{}", chain(&still));
    });
}
