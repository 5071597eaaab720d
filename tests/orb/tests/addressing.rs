//! Endpoints of servers, the addresses in their references, and the addresses that clients try, in order.

#[cfg(unix)]
use std::time::{Duration, Instant};
use std::{error::Error, net::TcpListener};

#[cfg(unix)]
use spandrel::diagnostics::statistics::Event;
use spandrel::{
    Endpoint, ObjectRef, Orb, OrbBuilder, SystemExceptionKind,
    types::{IiopProfile, Ior},
};
use spandrel_cdr::{TaggedComponent, TaggedProfile};
use spandrel_giop::component::Component;
use spandrel_orb_tests::{
    Server, listen,
    probe::Target,
    support::{ReservedPort, TEST_TIMEOUT, wait_until},
};

fn profiles(object: &ObjectRef) -> Vec<IiopProfile> {
    object.ior().profiles.iter().map(|profile| IiopProfile::decode(profile).unwrap().unwrap()).collect()
}

fn addresses(object: &ObjectRef) -> Vec<(String, u16)> {
    profiles(object).into_iter().map(|profile| (profile.host, profile.port)).collect()
}

fn alternates(profile: &IiopProfile) -> Vec<(String, u16)> {
    let read = |component: &TaggedComponent| match Component::decode(component).unwrap() {
        Some(Component::AlternateIiopAddress { host, port }) => Some((host, port)),
        _ => None,
    };
    profile.components.iter().filter_map(read).collect()
}

fn server_at(endpoint: &str) -> Server {
    Server::with(Orb::builder().listen(endpoint.parse().unwrap()))
}

fn target(orb: &Orb, server: &Server, profiles: Vec<TaggedProfile>) -> Target {
    Target::unchecked_narrow(&orb.reference(Ior { profiles, ..server.object.ior().clone() }))
}

fn profile_at(server: &Server, host: &str, port: u16) -> IiopProfile {
    IiopProfile { host: host.into(), port, ..profiles(&server.object).remove(0) }
}

fn listen_error(orb: &Orb) -> String {
    listen(orb).unwrap_err().source().expect("the error has a cause").to_string()
}

#[test]
fn published_addresses_replace_the_endpoints_own_in_references() {
    let reserved = ReservedPort::reserve();
    let free = reserved.port;
    let server = server_at(&format!("iiop://127.0.0.1:{free}/publish=nat.example:9999,127.0.0.1:{free}"));
    assert_eq!(addresses(&server.object), [("nat.example".to_owned(), 9999), ("127.0.0.1".to_owned(), free)]);
    assert_eq!(alternates(&profiles(&server.object)[0]), [("127.0.0.1".to_owned(), free)]);
    // The server recognises published addresses as its own.
    assert_eq!(Target::narrow(&server.object).unwrap().add(1, 2).unwrap(), 3);
}

#[test]
fn orb_publish_applies_to_all_endpoints() {
    let mut args = ["x", "-ORBPublish", "outside.example:77", "-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    let server = Server::with(Orb::builder().take_args(&mut args).unwrap());
    assert_eq!(addresses(&server.object), [("outside.example".to_owned(), 77)]);
}

#[test]
fn an_endpoint_with_a_published_address_listens_on_all_interfaces() {
    let server = server_at("iiop:///publish=127.0.0.2");
    assert_eq!(addresses(&server.object)[0].0, "127.0.0.2");
    assert_eq!(server.client().add(1, 2).unwrap(), 3, "at an address other than 127.0.0.1");
}

#[test]
fn ports_of_a_portspan_are_tried_in_turn() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let first = taken.local_addr().unwrap().port().min(65_000);
    let server = server_at(&format!("iiop://127.0.0.1:{first}/portspan=50"));
    let chosen = server.port();
    assert!(chosen > first && chosen < first + 50, "{chosen} of {first}");
    assert_eq!(server.client().add(1, 2).unwrap(), 3);
    let orb = Orb::builder().listen(format!("giop:tcp:127.0.0.1:{chosen}-{chosen}").parse().unwrap()).build().unwrap();
    let error = listen_error(&orb);
    assert!(error.contains(&chosen.to_string()) && error.contains("portspan"), "{error}");
}

#[test]
fn listen_errors_name_the_address_and_a_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let one = listen_error(&Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap());
    assert!(one.contains(&format!("127.0.0.1:{port}")) && one.contains("choose another port"), "{one}");
    let foreign = listen_error(&Orb::builder().listen(Endpoint::new("192.0.2.1", 0)).build().unwrap());
    assert!(foreign.contains("192.0.2.1") && foreign.contains("publish=HOST:PORT"), "{foreign}");
    let unknown = listen_error(&Orb::builder().listen("iiop://:0/prt=3".parse().unwrap()).build().unwrap());
    assert!(unknown.contains("`prt`") && unknown.contains("portspan"), "{unknown}");
}

#[test]
fn all_endpoints_are_published() {
    let server = Server::with(
        Orb::builder()
            .listen(Endpoint::new("127.0.0.1", 0))
            .listen(Endpoint::new("127.0.0.2", 0))
            .listen(Endpoint::new("127.0.0.3", 0)),
    );
    let all = addresses(&server.object);
    let hosts: Vec<&str> = all.iter().map(|(host, _)| host.as_str()).collect();
    assert_eq!(hosts, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    assert_eq!(alternates(&profiles(&server.object)[0]), all[1..]);
    // Each address works alone, and as an alternate address behind an unreachable one.
    let client = Orb::builder().build().unwrap();
    for (host, port) in &all {
        let mut profile = profile_at(&server, host, *port);
        profile.components.clear();
        assert_eq!(target(&client, &server, vec![profile.encode().unwrap()]).add(1, 2).unwrap(), 3);
        let mut behind = profile_at(&server, "127.0.0.1", 1);
        behind.components = vec![Component::AlternateIiopAddress { host: host.clone(), port: *port }.encode().unwrap()];
        assert_eq!(target(&client, &server, vec![behind.encode().unwrap()]).add(1, 2).unwrap(), 3);
    }
}

#[test]
fn interfaces_are_selected_by_prefix_or_name() {
    let server = server_at("iiop://*:0/interface=127.0.0.0/8");
    assert_eq!(addresses(&server.object)[0].0, "127.0.0.1");
    assert!(addresses(&server.object).iter().all(|(host, _)| host.starts_with("127.")));
    assert_eq!(server.client().add(1, 2).unwrap(), 3);
    let named = server_at("iiop://0.0.0.0:0/interface=lo");
    assert_eq!(addresses(&named.object)[0].0, "127.0.0.1");
    let nowhere =
        listen_error(&Orb::builder().listen("iiop://*:0/interface=203.0.113.0/24".parse().unwrap()).build().unwrap());
    assert!(nowhere.contains("matches none of the addresses") && nowhere.contains("lo 127.0.0.1"), "{nowhere}");
}

#[test]
fn references_contain_no_link_local_addresses_or_zones() {
    let server = server_at("iiop://*:0");
    for (host, _) in addresses(&server.object) {
        assert!(!host.contains('%') && !host.starts_with("fe80"), "{host}");
    }
    assert_eq!(server.client().add(1, 2).unwrap(), 3);
}

#[test]
fn a_wildcard_endpoint_is_reached_over_ipv4_and_ipv6() {
    if TcpListener::bind("[::1]:0").is_err() {
        return; // This machine has no IPv6.
    }
    for everywhere in ["iiop://*:0", "iiop://[::]:0"] {
        let server = server_at(everywhere);
        let client = Orb::builder().build().unwrap();
        for host in ["::1", "127.0.0.1", "localhost"] {
            let profile = profile_at(&server, host, server.port());
            assert_eq!(
                target(&client, &server, vec![profile.encode().unwrap()]).add(1, 2).unwrap(),
                3,
                "{everywhere} {host}"
            );
        }
    }
    let server = server_at("iiop://[::1]:0");
    assert_eq!(addresses(&server.object)[0].0, "::1");
    assert_eq!(server.client().add(1, 2).unwrap(), 3);
}

fn with_rules(rules: &str) -> OrbBuilder {
    Orb::builder().client_transport_rule(rules).unwrap()
}

#[test]
fn client_transport_rules_restrict_addresses() {
    let server = server_at("iiop://127.0.0.1:0");
    assert_eq!(server.client_with(with_rules("127.0.0.0/8 iiop; * none")).add(1, 2).unwrap(), 3);
    assert_eq!(server.client_with(with_rules("localhost tcp")).add(1, 2).unwrap(), 3);
    for rules in ["* none", "10.0.0.0/8 iiop", "127.0.0.0/8 none; * iiop", "127.0.0.1 ssliop"] {
        let orb = with_rules(rules).build().unwrap();
        let refused = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap()).add(1, 2).unwrap_err();
        assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{rules}");
        assert!(refused.to_string().contains("-ORBClientTransportRule"), "{refused}");
    }
}

#[test]
fn the_order_of_client_transport_rules_prefers_networks() {
    let (one, other) = (server_at("iiop://127.0.0.1:0"), server_at("iiop://127.0.0.2:0"));
    let profiles = || {
        let both = [&one, &other].map(|server| profile_at(server, &addresses(&server.object)[0].0, server.port()));
        both.map(|profile| profile.encode().unwrap()).to_vec()
    };
    let note = |builder: OrbBuilder| target(&builder.build().unwrap(), &one, profiles()).note(&[7]).unwrap();
    note(Orb::builder());
    wait_until("the note", || (one.probe.counted(), other.probe.counted()) == (1, 0));
    note(with_rules("127.0.0.2/32 iiop; 127.0.0.0/8 iiop"));
    wait_until("the note", || (one.probe.counted(), other.probe.counted()) == (1, 1));
    note(with_rules("127.0.0.1 none; 127.0.0.0/8 iiop"));
    wait_until("the note", || (one.probe.counted(), other.probe.counted()) == (1, 2));
}

#[test]
fn server_transport_rules_restrict_peers() {
    let rules = |rules: &str| Server::with(Orb::builder().server_transport_rule(rules).unwrap());
    let open = rules("localhost iiop; * none");
    assert_eq!(open.client().add(1, 2).unwrap(), 3);
    let closed = rules("10.0.0.0/8 iiop; * none");
    let orb = Orb::builder().build().unwrap();
    let refused = Target::unchecked_narrow(&orb.string_to_object(&closed.ior()).unwrap()).add(1, 2).unwrap_err();
    assert_eq!(refused.completed(), spandrel::CompletionStatus::No, "{refused}");
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
}

/// A listener with a full backlog: connections are neither accepted nor refused.
#[cfg(unix)]
struct FullBacklog {
    listener: std::os::fd::OwnedFd,
    _fillers: Vec<std::net::TcpStream>,
}

#[cfg(unix)]
impl FullBacklog {
    fn start() -> (Self, u16) {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&listener, &std::net::SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        listen(&listener, 0).unwrap();
        let port = std::net::SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap().port();
        let at = ([127, 0, 0, 1], port).into();
        let connect = || std::net::TcpStream::connect_timeout(&at, Duration::from_millis(100)).ok();
        let fillers = std::iter::from_fn(connect).take(16).collect();
        assert!(connect().is_none(), "the backlog is full");
        (Self { listener, _fillers: fillers }, port)
    }
}

#[test]
#[cfg(unix)]
fn an_unreachable_first_profile_delays_one_call_and_is_cached() {
    let server = server_at("iiop://127.0.0.1:0");
    let (dead, port) = FullBacklog::start();
    let orb = Orb::builder().build().unwrap();
    let profiles = || {
        vec![
            profile_at(&server, "127.0.0.1", port).encode().unwrap(),
            profile_at(&server, "127.0.0.1", server.port()).encode().unwrap(),
        ]
    };
    let begin = Instant::now();
    assert_eq!(target(&orb, &server, profiles()).add(1, 2).unwrap(), 3);
    assert!(begin.elapsed() < TEST_TIMEOUT / 2, "{:?}", begin.elapsed());
    // Another reference with this address does not try it again.
    let failed = || orb.statistics().count(Event::ConnectionFailed);
    let before = failed();
    assert_eq!(target(&orb, &server, profiles()).add(1, 2).unwrap(), 3);
    assert_eq!(failed(), before);
    // The same for asynchronous calls.
    let fresh = Orb::builder().build().unwrap();
    let begin = Instant::now();
    let call = target(&fresh, &server, profiles()).add_async(3, 4);
    assert_eq!(spandrel_orb_tests::support::block_on(call).unwrap(), 7);
    assert!(begin.elapsed() < TEST_TIMEOUT / 2, "{:?}", begin.elapsed());
    drop(dead.listener);
}

#[test]
#[cfg(unix)]
fn orb_transports_selects_and_orders_transports() {
    let server = Server::with(Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).listen(Endpoint::of("uds", "")));
    let call = |names: &[&str]| {
        let orb = Orb::builder().transports(names).build().unwrap();
        Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap()).add(1, 2)
    };
    for names in [&["iiop"][..], &["uds"], &["tcp", "unix"], &["shm", "iiop"]] {
        assert_eq!(call(names).unwrap(), 3, "{names:?}");
    }
    let refused = call(&["shm"]).unwrap_err().to_string();
    assert!(refused.contains("-ORBTransports") && refused.contains("uds://"), "{refused}");
    let unused = listen_error(&Orb::builder().transports(["uds"]).listen(Endpoint::new("", 0)).build().unwrap());
    assert!(unused.contains("unknown protocol `iiop`"), "{unused}");
}
