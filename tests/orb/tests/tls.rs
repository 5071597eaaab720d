//! Calls over TLS: certificate verification, mixed plain and TLS endpoints, and errors with their reasons.

use crate::certificates;

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use certificates::{Authority, Identity, WithIdentity, authority, chain, client, plain, server, serving, trusting};
#[cfg(target_os = "linux")]
use spandrel::net::transport::KeepAlive;
use spandrel::{
    Endpoint, Orb, SystemException, SystemExceptionKind,
    diagnostics::statistics::Event,
    options::Concurrency,
    ssliop::{ClientVerification, Plain},
    types::{IiopProfile, Interface},
};
use spandrel_giop::component::Component;
use spandrel_orb_tests::{Server, listen, probe::Target, support::wait_until};

fn refusal(target: &Target) -> SystemException {
    let refused = target.ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
    refused
}

fn profile(target: &Target) -> IiopProfile {
    let profiles = &Interface::as_object(target).ior().profiles;
    IiopProfile::decode(&profiles[0]).unwrap().unwrap()
}

#[test]
fn a_callback_uses_the_clients_tls_connection() {
    let identity = authority().issue("127.0.0.1");
    let server = Server::with(serving(trusting(authority()).identity_of(&identity)).bidirectional(true));
    let client = Server::with(client().bidirectional(true).listen(Endpoint::nowhere()));
    let there = Target::narrow(&client.orb.string_to_object(&server.ior()).unwrap()).unwrap();
    let own = Target::narrow(&client.orb.string_to_object(&client.ior()).unwrap()).unwrap();
    there.call_back(Some(&own)).unwrap();
    let back = Target::unchecked_narrow(&server.orb.string_to_object(&client.ior()).unwrap());
    let text = "x".repeat(200_000);
    assert_eq!(back.echo(&text).unwrap(), text);
}

#[test]
fn calls_of_all_sizes_work_over_tls_with_every_strategy() {
    let strategies = [
        Concurrency::ThreadPerConnection { limit: 64 },
        Concurrency::LeaderFollowers { threads: None },
        Concurrency::ThreadPool { threads: 2, queue: 16 },
        Concurrency::Reactive,
    ];
    for builder in strategies.map(|strategy| Orb::builder().concurrency(strategy)) {
        let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
        let server = Server::with(builder.protocol(ssliop).listen("ssliop://127.0.0.1:0".parse().unwrap()));
        let target = server.client_with(client());
        assert_eq!(profile(&target).port, 0, "only TLS is offered");
        target.ping().unwrap();
        for len in [0, 1, 16_000, 17_000, 1_000_000] {
            let octets: Vec<u8> = (0..len).map(|i: u32| (i % 251) as u8).collect();
            assert_eq!(target.echo_octets(&octets).unwrap(), octets);
        }
        for _ in 0..100 {
            target.note(&[7; 3000]).unwrap();
        }
        assert_eq!(target.count().unwrap(), 100);
    }
}

#[test]
fn tls_is_preferred_where_a_reference_offers_both() {
    let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
    let server = Server::with(serving(ssliop).listen("iiop://127.0.0.1:0".parse().unwrap()));
    let target = server.client_with(client());
    assert_ne!(profile(&target).port, 0, "one profile offers both");
    assert_eq!(Interface::as_object(&target).ior().profiles.len(), 1);
    target.ping().unwrap();
    // Clients without TLS use the plain endpoint.
    server.client_with(Orb::builder()).ping().unwrap();
    // A client with TLS does not fall back to plain IIOP because verification failed.
    let untrusting = server.client_with(Orb::builder().protocol(trusting(&Authority::new("another"))));
    let refused = refusal(&untrusting);
    assert!(chain(&refused).contains("UnknownIssuer"), "{}", chain(&refused));
    let lenient = trusting(&Authority::new("another")).plain(Plain::Fallback);
    server.client_with(Orb::builder().protocol(lenient)).ping().unwrap();
}

#[test]
fn a_corbaloc_names_an_address_of_tls() {
    let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
    let server = Server::with(Orb::builder().protocol(ssliop).listen("ssliop://127.0.0.1:0".parse().unwrap()));
    server.orb.set_object_key_alias("Target", &server.object).unwrap();
    let port = match server.object.ior().profiles.first().map(IiopProfile::decode) {
        Some(Ok(Some(profile))) => profile.components.iter().find_map(|component| match Component::decode(component) {
            Ok(Some(Component::SslSecTrans(tls))) => Some(tls.port),
            _ => None,
        }),
        _ => None,
    };
    for version in ["", "1.1@", "1.2@"] {
        let url = format!("corbaloc:ssliop:{version}127.0.0.1:{}/Target", port.unwrap());
        let orb = client().build().unwrap();
        Target::narrow(&orb.string_to_object(&url).unwrap()).unwrap().ping().unwrap();
        let only_tls = Orb::builder().protocol(trusting(authority()).plain(Plain::Never));
        let orb = only_tls.init_ref("Target", &url).build().unwrap();
        Target::narrow(&orb.resolve_initial_references("Target").unwrap()).unwrap().ping().unwrap();
        // Without TLS it has no usable address.
        let orb = Orb::builder().build().unwrap();
        let refused = Target::unchecked_narrow(&orb.string_to_object(&url).unwrap()).ping().unwrap_err();
        assert_eq!(refused.kind(), SystemExceptionKind::InvObjref, "{refused}");
    }
}

#[test]
fn a_client_that_requires_tls_refuses_plain_references() {
    let server = Server::start();
    server.client_with(client()).ping().unwrap();
    let refused = server.client_with(Orb::builder().protocol(plain().plain(Plain::Never))).ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::InvObjref, "{refused}");
}

#[test]
fn a_server_certificate_of_an_untrusted_authority_is_refused() {
    let server = server();
    let untrusting = server.client_with(Orb::builder().protocol(trusting(&Authority::new("another"))));
    let refused = refusal(&untrusting);
    assert!(chain(&refused).contains("UnknownIssuer"), "{}", chain(&refused));
}

#[test]
fn a_server_certificate_for_another_host_is_refused_unless_any_name_is_allowed() {
    let ssliop = plain().identity_of(&authority().issue("bank.example"));
    let server = Server::with(serving(ssliop));
    let refused = refusal(&server.client_with(client()));
    assert!(chain(&refused).contains("not valid for name"), "{}", chain(&refused));
    let lenient = trusting(authority()).any_server_name();
    server.client_with(Orb::builder().protocol(lenient)).ping().unwrap();
    let untrusting = trusting(&Authority::new("another")).any_server_name();
    refusal(&server.client_with(Orb::builder().protocol(untrusting)));
}

#[test]
fn a_server_can_require_client_certificates() {
    let ssliop =
        trusting(authority()).identity_of(&authority().issue("127.0.0.1")).verify_clients(ClientVerification::Required);
    let server = Server::with(serving(ssliop));
    let known = trusting(authority()).identity_of(&authority().issue("client.example"));
    server.client_with(Orb::builder().protocol(known)).ping().unwrap();
    let refused = || server.orb.statistics().count(Event::RefusedForSecurity);
    assert_eq!(refused(), 0);
    for unknown in [trusting(authority()), trusting(authority()).identity_of(&Authority::new("another").issue("x"))] {
        let before = refused();
        server.client_with(Orb::builder().protocol(unknown)).ping().unwrap_err();
        wait_until("the refusal", || refused() > before);
    }
}

#[test]
fn published_tls_addresses_share_one_port() {
    let listening = |at: &str| {
        let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
        Orb::builder().protocol(ssliop).listen(at.parse().unwrap())
    };
    // The first published address has no listener.
    let server = Server::with(listening("ssliop://127.0.0.1:0/publish=127.0.0.2,127.0.0.1"));
    let profiles = &server.object.ior().profiles;
    let published = profiles.iter().map(|profile| IiopProfile::decode(profile).unwrap().unwrap());
    assert_eq!(
        published.map(|IiopProfile { host, port, .. }| (host, port)).collect::<Vec<_>>(),
        [("127.0.0.2".to_owned(), 0), ("127.0.0.1".to_owned(), 0)]
    );
    server.client_with(client()).ping().unwrap();
    let differing = listening("ssliop://127.0.0.1:0/publish=127.0.0.1:4001,127.0.0.1:4002").build().unwrap();
    let refused = listen(&differing).unwrap_err();
    assert!(chain(&refused).contains("need the same"), "{}", chain(&refused));
}

/// The keep-alive timer of the accepted socket, as reported by the kernel.
#[cfg(target_os = "linux")]
#[test]
fn keep_alive_applies_to_accepted_tls_connections() {
    for (keep_alive, expected) in [(KeepAlive::Off, "00"), (KeepAlive::after(Duration::from_secs(30)), "02")] {
        let identity = authority().issue("127.0.0.1");
        let server = Server::with(serving(trusting(authority()).identity_of(&identity)).keep_alive(keep_alive));
        let target = server.client_with(client());
        target.ping().unwrap();
        let address = server.orb.published().unwrap().addresses[0].clone();
        let (_, port) = address.host_and_port().unwrap();
        let at = format!("0100007F:{port:04X}");
        let timer = || {
            let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
            let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let row = table.lines().map(fields).find(|row| row[1] == at && row[3] == "01");
            row.map(|row| row[5][..2].to_owned())
        };
        wait_until("the timer", || timer().as_deref() == Some(expected));
    }
}

#[test]
fn a_plain_client_is_refused_by_a_tls_server() {
    let server = server();
    let refused = server.client_with(Orb::builder()).ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::InvObjref, "{refused}");
    // A plain message at the TLS port ends only its own connection.
    let target = server.client_with(client());
    let address = server.orb.published().unwrap().addresses[0].clone();
    let (host, port) = address.host_and_port().unwrap();
    let mut stream = TcpStream::connect((host, port)).unwrap();
    stream.write_all(b"GIOP\x01\x02\x01\x03\x00\x00\x00\x00").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut rest = Vec::new();
    // The server sends an alert and closes.
    _ = stream.read_to_end(&mut rest);
    target.ping().unwrap();
}

#[test]
fn tls_options_name_certificate_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let Identity { chain: certificate, key } = authority().issue("127.0.0.1");
    let (certificate, key) = (file("certificate.pem", &certificate), file("key.pem", &key));
    let authorities = file("authority.pem", &authority().pem());
    let mut args =
        ["-ORBSSLCertificate", &certificate, "-ORBSSLKey", &key, "-ORBSSLCA", &authorities].map(str::to_owned).to_vec();
    args.extend(["-ORBSSLVerify", "require", "-ORBListenEndpoints", "giop:ssl:127.0.0.1:0"].map(str::to_owned));
    let builder = Orb::builder().protocol(plain()).take_args(&mut args).unwrap();
    let server = Server::with(builder);
    let mut args =
        ["-ORBSSLCertificate", &certificate, "-ORBSSLKey", &key, "-ORBSSLCA", &authorities].map(str::to_owned).to_vec();
    let target = server.client_with(Orb::builder().protocol(plain()).take_args(&mut args).unwrap());
    target.ping().unwrap();
    let absent = folder.path().join("absent.pem").to_str().unwrap().to_owned();
    // With the system's own text.
    let unreadable = format!("cannot read {absent}: {}", std::fs::read(&absent).unwrap_err());
    for (option, value, expected) in [
        ("-ORBSSLKey", &*absent, &*unreadable),
        ("-ORBSSLCA", &key, "` has no certificate"),
        ("-ORBSSLVerify", "perhaps", "expected none, request or require"),
        ("-ORBSSLVersion", "1.1", "expected 1.3"),
    ] {
        let error = Orb::builder().protocol(plain()).option(option, value).unwrap_err();
        let reason = std::error::Error::source(&error).unwrap().to_string();
        assert!(reason.contains(expected), "{error}: {reason}");
    }
    let other_key = file("other.pem", &authority().issue("127.0.0.1").key);
    for (options, expected) in [
        (&["-ORBSSLCertificate", &certificate][..], "a certificate without its private key (set the option -ORBSSLKey"),
        (&["-ORBSSLKey", &key], "a private key without its certificate (set the option -ORBSSLCertificate"),
        (&["-ORBSSLCertificate", &certificate, "-ORBSSLKey", &other_key], "inconsistent: keys may not be consistent"),
    ] {
        let mut args: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        args.extend(["-ORBListenEndpoints", "ssliop://127.0.0.1:0"].map(str::to_owned));
        let orb = Orb::builder().protocol(plain()).take_args(&mut args).unwrap().build().unwrap();
        let reason = chain(&listen(&orb).unwrap_err());
        assert!(reason.contains(expected), "{options:?}: {reason}");
    }
}

#[test]
fn missing_certificates_are_reported_with_their_option() {
    let without = listen(&serving(plain()).build().unwrap()).unwrap_err();
    assert!(chain(&without).contains("-ORBSSLCertificate"), "{}", chain(&without));
    let server = server();
    let without_authorities = server.client_with(Orb::builder().protocol(plain()));
    let refused = refusal(&without_authorities);
    assert!(chain(&refused).contains("-ORBSSLCA"), "{}", chain(&refused));
}
