//! Connections over TLS that do not come to be: each side is told why, in words, and at once.

use crate::certificates;
use spandrel_test_support::alone;

use std::{
    fmt::Debug,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use certificates::{As, Authority, authority, chain, client, plain, server, serving, trusting};
use spandrel::{
    CompletionStatus, Concurrency, GiopVersion, IiopProfile, Ior, Orb, OrbBuilder, SystemException,
    SystemExceptionKind,
    ssliop::{ClientVerification, Ssliop},
    statistics::{self, Level},
};
use spandrel_cdr::TaggedComponent;
use spandrel_giop::component::{Component, SslSecTrans};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{PATIENCE, block_on, comes, kind_and_completion},
};
use spandrel_test_support::certificates::date_time_ymd;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, Registry, layer::Context, prelude::*};

/// All that the servers of this process have said.
#[derive(Clone, Default)]
struct Words(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Words {
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

impl Words {
    fn heard() -> &'static Self {
        static WORDS: OnceLock<Words> = OnceLock::new();
        WORDS.get_or_init(|| {
            let words = Self::default();
            tracing::subscriber::set_global_default(Registry::default().with(words.clone())).unwrap();
            words
        })
    }

    /// One line has all of these parts.
    fn come(&self, parts: &[&str]) {
        let has = || self.0.lock().unwrap().iter().any(|line| parts.iter().all(|part| line.contains(part)));
        comes(&format!("{parts:?}"), has);
    }
}

/// Both kinds of call.
fn refusals(builder: impl Fn() -> OrbBuilder, ior: &Ior) -> [SystemException; 2] {
    let target = || Target::unchecked_narrow(&builder().build().unwrap().reference(ior.clone()));
    [target().ping().unwrap_err(), block_on(target().ping_async()).unwrap_err()]
}

/// The reference as if the server were reached by plain IIOP at this port, and otherwise as these components say.
fn at(ior: &Ior, port: u16, components: Vec<TaggedComponent>) -> Ior {
    let profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    let profiles = vec![IiopProfile { port, components, ..profile }.encode().unwrap()];
    Ior { type_id: ior.type_id.clone(), profiles }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The port where TLS is spoken.
fn secure_port(server: &Server) -> u16 {
    server.orb.published().unwrap().addresses[0].host_and_port().unwrap().1
}

/// A certificate for this host whose time is over.
fn expired(host: &str) -> certificates::Identity {
    authority().issue_with(&[host], |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    })
}

#[test]
fn a_client_that_is_refused_and_its_server_both_know_why() {
    alone(|| {
        let words = Words::heard();
        let strict = trusting(authority())
            .identity_of(&authority().issue("127.0.0.1"))
            .verify_clients(ClientVerification::Required);
        let server = Server::with(serving(strict));
        type Shown = fn(Ssliop) -> Ssliop;
        let cases: [(Shown, &str, &str); 3] = [
            (|ssliop| ssliop, "CertificateRequired", "peer sent no certificates"),
            (|ssliop| ssliop.identity_of(&Authority::new("another").issue("x.example")), "UnknownCA", "UnknownIssuer"),
            (|ssliop| ssliop.identity_of(&expired("x.example")), "CertificateExpired", "certificate expired"),
        ];
        for (shown, alert, reason) in cases {
            let builder = || Orb::builder().protocol(shown(trusting(authority())));
            for refused in refusals(builder, server.object.ior()) {
                // In TLS 1.3 the client's handshake has ended before the server has looked; the request is on its way by then.
                assert_eq!(refused.kind(), SystemExceptionKind::CommFailure, "{refused}");
                assert_ne!(refused.completed(), CompletionStatus::Yes, "{refused}");
                assert!(chain(&refused).contains(alert), "{}", chain(&refused));
            }
            words.come(&["turned away in the handshake", reason]);
        }
    });
}

#[test]
fn a_server_whose_time_is_over_is_not_believed() {
    alone(|| {
        let server = Server::with(serving(plain().identity_of(&expired("127.0.0.1"))));
        for careless in [false, true] {
            let trusting = || if careless { trusting(authority()).any_server_name() } else { trusting(authority()) };
            for refused in refusals(|| Orb::builder().protocol(trusting()), server.object.ior()) {
                let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
                assert_eq!(kind_and_completion(&refused), expected, "{refused}");
                assert!(chain(&refused).contains("certificate expired"), "{}", chain(&refused));
            }
        }
    });
}

#[test]
fn a_client_that_does_not_go_on_with_its_handshake_is_cut_off_in_every_strategy() {
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
            // Nothing else would end it.
            let builder = serving(ssliop).server_idle_timeout(None).message_timeout(None).send_timeout(None);
            let server = Server::with(builder.concurrency(strategy));
            let begun = Instant::now();
            let clients = [&b""[..], b"\x16\x03\x01\x02\x00\x01"].map(|begin| {
                let mut client = TcpStream::connect(("127.0.0.1", secure_port(&server))).unwrap();
                client.set_read_timeout(Some(PATIENCE)).unwrap();
                client.write_all(begin).unwrap();
                client
            });
            for mut client in clients {
                let ended = client.read_to_end(&mut Vec::new());
                assert!(!ended.is_err_and(|error| is_timeout(&error)), "{strategy}: it is waited for without end");
                assert!(begun.elapsed() >= HANDSHAKE, "{strategy}: it had no time");
            }
            comes("the end of both connections", || server.orb.statistics().level(Level::ServerConnections) == 0);
            assert_eq!(server.orb.statistics().count(statistics::Event::RefusedForSecurity), 2, "{strategy}");
            server.client_with(client()).ping().unwrap();
        }
    });
}

#[test]
fn a_plain_client_at_a_port_of_tls_is_told_so() {
    alone(|| {
        let words = Words::heard();
        let server = server();
        let ior = at(server.object.ior(), secure_port(&server), vec![]);
        for refused in refusals(Orb::builder, &ior) {
            assert_eq!(refused.kind(), SystemExceptionKind::CommFailure, "{refused}");
            assert!(chain(&refused).contains("the peer speaks TLS"), "{}", chain(&refused));
        }
        words.come(&["turned away in the handshake", "InvalidContentType"]);
        server.client_with(client()).ping().unwrap();
    });
}

#[test]
fn a_client_with_tls_at_a_plain_port_is_told_so() {
    alone(|| {
        let words = Words::heard();
        let server = Server::start();
        let port = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap().port;
        let says = SslSecTrans { supports: SslSecTrans::PROTECTED, requires: SslSecTrans::PROTECTED, port };
        let ior = at(server.object.ior(), 0, vec![Component::SslSecTrans(says).encode().unwrap()]);
        for refused in refusals(client, &ior) {
            let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
            assert_eq!(kind_and_completion(&refused), expected, "{refused}");
            assert!(chain(&refused).contains("the server does not support TLS"), "{}", chain(&refused));
        }
        words.come(&["refused a message", "the peer speaks TLS"]);
        server.client().ping().unwrap();
    });
}

/// Ends with less than a header, as others do.
#[test]
fn whatever_else_answers_is_said_to_be_no_giop() {
    alone(|| {
        for said in [&b"220 hi\r\n"[..], b"GIOP\x01\x02", b"no"] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    spandrel_orb_tests::support::read_message(&mut stream).unwrap();
                    stream.write_all(said).unwrap();
                }
            });
            let ior = at(Server::start().object.ior(), port, vec![]);
            for refused in refusals(Orb::builder, &ior) {
                let is_other = said.len() >= 4 && !said.starts_with(b"GIOP");
                assert_eq!(chain(&refused).contains("expected `GIOP`"), is_other, "{}", chain(&refused));
                assert!(is_other || chain(&refused).contains("inside a message"), "{}", chain(&refused));
            }
        }
    });
}

#[test]
fn all_versions_of_the_protocol_go_over_tls_and_over_ipv6() {
    alone(|| {
        let hosts = if TcpListener::bind("[::1]:0").is_ok() { &["127.0.0.1", "::1"][..] } else { &["127.0.0.1"] };
        for host in hosts {
            let ssliop = trusting(authority()).identity_of(&authority().issue(host));
            let at = if host.contains(':') { format!("ssliop://[{host}]:0") } else { format!("ssliop://{host}:0") };
            let server = Server::with(Orb::builder().protocol(ssliop).listen(at.parse().unwrap()));
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

/// Files are read when options are taken, so that an ORB made later shows what is in them by then, and one that runs goes on as it was.
#[test]
fn a_renewed_certificate_is_shown_by_an_orb_that_is_made_after_it() {
    alone(|| {
        let folder = tempfile::tempdir().unwrap();
        let [chain_file, key_file] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
        let put = |identity: &certificates::Identity| {
            std::fs::write(&chain_file, &identity.chain).unwrap();
            std::fs::write(&key_file, &identity.key).unwrap();
        };
        let made = || {
            let options = [("-ORBSSLCertificate", &chain_file), ("-ORBSSLKey", &key_file)];
            options.into_iter().fold(serving(plain()), |builder, (option, path)| {
                builder.option(option, path.to_str().unwrap()).unwrap()
            })
        };
        put(&expired("127.0.0.1"));
        let before = Server::with(made());
        before.client_with(client()).ping().unwrap_err();
        put(&authority().issue("127.0.0.1"));
        let after = Server::with(made());
        after.client_with(client()).ping().unwrap();
        let still = before.client_with(client()).ping().unwrap_err();
        assert!(chain(&still).contains("certificate expired"), "{}", chain(&still));
    });
}
