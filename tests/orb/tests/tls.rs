//! Calls over TLS: who is believed, who is not, and what goes wrong is told in words.

use crate::certificates;

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use certificates::{As, Authority, Identity, authority, chain, client, plain, server, serving, trusting};
#[cfg(target_os = "linux")]
use spandrel::transport::KeepAlive;
use spandrel::{
    Concurrency, Endpoint, IiopProfile, Interface, Orb, SystemException, SystemExceptionKind,
    ssliop::{ClientVerification, Plain},
    statistics::Event,
};
use spandrel_orb_tests::{Server, probe::Target, support::comes};

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
fn a_client_that_listens_nowhere_is_called_back_over_its_own_connection() {
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
fn calls_of_all_sizes_go_over_tls() {
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
        assert_eq!(profile(&target).port, 0, "nothing but TLS is offered");
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
fn tls_goes_first_where_a_reference_offers_both() {
    let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
    let server = Server::with(serving(ssliop).listen("iiop://127.0.0.1:0".parse().unwrap()));
    let target = server.client_with(client());
    assert_ne!(profile(&target).port, 0, "one profile offers both");
    assert_eq!(Interface::as_object(&target).ior().profiles.len(), 1);
    target.ping().unwrap();
    // Whoever has no TLS is served too.
    server.client_with(Orb::builder()).ping().unwrap();
    // And who has it does not fall back on what anybody can read, merely because the server cannot be believed.
    let stranger = server.client_with(Orb::builder().protocol(trusting(&Authority::new("another"))));
    let refused = refusal(&stranger);
    assert!(chain(&refused).contains("UnknownIssuer"), "{}", chain(&refused));
    let careless = trusting(&Authority::new("another")).plain(Plain::Fallback);
    server.client_with(Orb::builder().protocol(careless)).ping().unwrap();
}

#[test]
fn who_insists_on_tls_reaches_no_server_without_it() {
    let server = Server::start();
    server.client_with(client()).ping().unwrap();
    let refused = server.client_with(Orb::builder().protocol(plain().plain(Plain::Never))).ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::InvObjref, "{refused}");
}

#[test]
fn a_server_of_another_authority_is_not_believed() {
    let server = server();
    let stranger = server.client_with(Orb::builder().protocol(trusting(&Authority::new("another"))));
    let refused = refusal(&stranger);
    assert!(chain(&refused).contains("UnknownIssuer"), "{}", chain(&refused));
}

#[test]
fn a_server_with_another_name_is_not_believed_unless_names_do_not_matter() {
    let ssliop = plain().identity_of(&authority().issue("bank.example"));
    let server = Server::with(serving(ssliop));
    let refused = refusal(&server.client_with(client()));
    assert!(chain(&refused).contains("not valid for name"), "{}", chain(&refused));
    let careless = trusting(authority()).any_server_name();
    server.client_with(Orb::builder().protocol(careless)).ping().unwrap();
    let stranger = trusting(&Authority::new("another")).any_server_name();
    refusal(&server.client_with(Orb::builder().protocol(stranger)));
}

#[test]
fn a_server_can_insist_on_knowing_its_clients() {
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
        comes("that it was refused", || refused() > before);
    }
}

#[test]
fn all_addresses_that_are_published_are_told_with_one_port() {
    let listening = |at: &str| {
        let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
        Orb::builder().protocol(ssliop).listen(at.parse().unwrap())
    };
    // Nobody listens at the first.
    let server = Server::with(listening("ssliop://127.0.0.1:0/publish=127.0.0.2,127.0.0.1"));
    let profiles = &server.object.ior().profiles;
    let said = profiles.iter().map(|profile| IiopProfile::decode(profile).unwrap().unwrap());
    assert_eq!(
        said.map(|IiopProfile { host, port, .. }| (host, port)).collect::<Vec<_>>(),
        [("127.0.0.2".to_owned(), 0), ("127.0.0.1".to_owned(), 0)]
    );
    server.client_with(client()).ping().unwrap();
    let differing = listening("ssliop://127.0.0.1:0/publish=127.0.0.1:4001,127.0.0.1:4002").build().unwrap();
    let refused = differing.listen().unwrap_err();
    assert!(chain(&refused).contains("need the same"), "{}", chain(&refused));
}

/// As the system tells of the accepted side of a connection: a keep-alive timer runs there, or none.
#[cfg(target_os = "linux")]
#[test]
fn how_peers_are_probed_is_told_to_accepted_connections_too() {
    for (keep_alive, expected) in [(KeepAlive::Off, "00"), (KeepAlive::after(Duration::from_secs(30)), "02")] {
        let identity = authority().issue("127.0.0.1");
        let server = Server::with(serving(trusting(authority()).identity_of(&identity)).keep_alive(keep_alive));
        let target = server.client_with(client());
        target.ping().unwrap();
        let place = server.orb.published().unwrap().addresses[0].clone();
        let (_, port) = place.host_and_port().unwrap();
        let at = format!("0100007F:{port:04X}");
        let timer = || {
            let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
            let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let row = table.lines().map(fields).find(|row| row[1] == at && row[3] == "01");
            row.map(|row| row[5][..2].to_owned())
        };
        comes("the timer", || timer().as_deref() == Some(expected));
    }
}

#[test]
fn plain_clients_and_plain_servers_are_told_apart() {
    let server = server();
    let refused = server.client_with(Orb::builder()).ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::InvObjref, "{refused}");
    // A plain message at the port where TLS is spoken ends that connection, and nothing else.
    let target = server.client_with(client());
    let place = server.orb.published().unwrap().addresses[0].clone();
    let (host, port) = place.host_and_port().unwrap();
    let mut stream = TcpStream::connect((host, port)).unwrap();
    stream.write_all(b"GIOP\x01\x02\x01\x03\x00\x00\x00\x00").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut rest = Vec::new();
    // An alert, and the end.
    _ = stream.read_to_end(&mut rest);
    target.ping().unwrap();
}

#[test]
fn options_name_files() {
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
    for (option, value, words) in [
        ("-ORBSSLKey", "/nowhere/at/all", "/nowhere/at/all"),
        ("-ORBSSLCA", &key, "no certificate in it"),
        ("-ORBSSLVerify", "perhaps", "expected none, request or require"),
        ("-ORBSSLVersion", "1.1", "expected 1.3"),
    ] {
        let error = Orb::builder().protocol(plain()).option(option, value).unwrap_err();
        let reason = std::error::Error::source(&error).unwrap().to_string();
        assert!(reason.contains(words), "{error}: {reason}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let without = serving(plain()).build().unwrap().listen().unwrap_err();
    assert!(chain(&without).contains("-ORBSSLCertificate"), "{}", chain(&without));
    let server = server();
    let trusts_nobody = server.client_with(Orb::builder().protocol(plain()));
    let refused = refusal(&trusts_nobody);
    assert!(chain(&refused).contains("-ORBSSLCA"), "{}", chain(&refused));
}
