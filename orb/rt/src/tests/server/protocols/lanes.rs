//! Lanes with several protocols: their references, their one queue, and the choices of clients.

use super::*;
use crate::WhenFull;

/// The host and port of a reference's first profile.
fn tcp_address(object: &ObjectRef) -> (String, u16) {
    let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
    (profile.host, profile.port)
}

/// The path in a reference's component of this protocol.
fn path(object: &ObjectRef, scheme: &str) -> String {
    let profiles = object.ior().profiles.iter().map(|profile| IiopProfile::decode(profile).unwrap().unwrap());
    let mut addresses = profiles.flat_map(|profile| profile.components).filter_map(|component| {
        LocalAddress::decode(&component).unwrap().filter(|local| local.scheme == scheme).map(|local| local.address)
    });
    addresses.next().unwrap_or_else(|| panic!("no {scheme} in {object}"))
}

#[test]
fn a_lane_has_an_address_by_each_protocol_of_the_orb() {
    let server = ProtocolServer::listening(&["uds", "iiop", "shm", "diop"]);
    let of_orb = server.orb.listen().unwrap()[0].1;
    server.rt_orb.listen_for_lanes(&server.orb, server.pool).unwrap();
    server.rt_orb.listen_for_lanes(&server.orb, server.pool).expect("lanes with an endpoint keep it");
    let rt_client = client();
    let adapter = server.adapter("every protocol", &[]).unwrap();
    adapter.activate_object_with_id(&"probe".into(), Arc::<Probe>::clone(&server.probe) as _).unwrap();
    let low = adapter.id_to_reference(&"probe".into()).unwrap();
    let high = adapter.create_reference_with_id_and_priority(&"high".into(), "IDL:Probe:1.0", 100).unwrap();
    for (object, number) in [(&low, 10), (&high, 100)] {
        assert_eq!(profiles(object), [(true, vec!["uds".to_owned(), "shm".to_owned()])]);
        assert_ne!(tcp_address(object).1, of_orb);
        for scheme in ["uds", "shm"] {
            let expected = format!("{}.{}.{number}", server.directory.path().join(scheme).display(), server.pool);
            assert_eq!(path(object, scheme), expected);
        }
    }
    assert_ne!(tcp_address(&low).1, tcp_address(&high).1);

    // Every listed protocol is in the reference, in the order of the policy, and each one reaches the lane.
    let cases: [(&[u32], &[Profile<'_>], &str); 4] = [
        (&[IIOP, UNIX_DOMAIN, SHARED_MEMORY], &[(true, &[]), (false, &["uds"]), (false, &["shm"])], "iiop"),
        (&[SHARED_MEMORY, UNIX_DOMAIN, IIOP], &[(true, &["uds", "shm"])], "shm"),
        (&[UNIX_DOMAIN, IIOP], &[(true, &["uds"])], "uds"),
        (&[UNIX_DOMAIN, SHARED_MEMORY], &[(false, &["uds"]), (false, &["shm"])], "uds"),
    ];
    let begun = || server.rt_orb.threadpool(server.pool).unwrap().statistics()[0].begun;
    for (at, (protocols, expected, chosen)) in cases.into_iter().enumerate() {
        let object = server.object(&format!("adapter {at}"), &[numbers(protocols)]);
        expect_profiles(&object, expected, protocols);
        if protocols.contains(&IIOP) {
            assert_eq!(tcp_address(&object).1, tcp_address(&low).1, "{protocols:x?}");
        }
        let before = begun();
        call(&rt_client, &object);
        assert_eq!(server.probe.take_schemes(), [chosen], "{protocols:x?}");
        assert_eq!(begun(), before + 1);
        object.is_a("inside").unwrap();
        assert_eq!(server.probe.take_schemes(), [""], "{protocols:x?}");
    }
    rt_client.shutdown().unwrap();
}

#[test]
fn the_protocols_of_a_lane_share_its_queue_and_its_range() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket").to_str().unwrap().to_owned();
    let memory = directory.path().join("memory").to_str().unwrap().to_owned();
    let listening = [Endpoint::new("127.0.0.1", 0), Endpoint::of("uds", &socket), Endpoint::of("shm", &memory)];
    let orb = listening.into_iter().fold(Orb::builder(), OrbBuilder::listen).build().unwrap();
    let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]);
    let settings = PoolSettings { buffering: Some((2, 1 << 20)), when_full: WhenFull::Refuse, ..lanes };
    let server = Server::on(orb, directory, settings, PriorityModel::ServerDeclared, 10);
    server.rt_orb.listen_for_lanes(&server.orb, server.pool).unwrap();
    let object = server.poa.id_to_reference(&"sensor".into()).unwrap();
    let (host, port) = tcp_address(&object);
    let mut by_tcp = Client::new(&object, TcpStream::connect((host.as_str(), port)).unwrap());
    let connect = |object| std::os::unix::net::UnixStream::connect(path(object, "uds")).unwrap();
    let mut by_unix = Client::new(&object, connect(&object));
    let by_memory = Orb::builder().build().unwrap();
    let shared = by_memory.string_to_object(&object.to_string()).unwrap();

    let held = by_tcp.send("hold", "held", None);
    server.until_begun(1);
    let buffered = by_unix.send("note", "by the socket", None);
    server.until_buffered(1);
    let called = in_background(move || shared.is_a("by memory"));
    server.until_buffered(2);
    // The buffer of the lane is full for all of them.
    for client in [&mut by_tcp, &mut by_unix] {
        client.send("note", "refused", None);
        assert_eq!(client.refusal().1, SystemExceptionKind::Transient);
    }
    server.sensor.open();
    assert_eq!((by_tcp.replies(1), by_unix.replies(1)), (vec![held], vec![buffered]));
    assert_eq!(called.recv_timeout(LONG).unwrap(), Ok(true));
    assert!(server.sensor.begun.lock().unwrap().iter().all(|begun| begun.thread == "rt-lane-0"));

    // Another lane's objects are refused at each address.
    let high = server.poa.create_reference_with_id_and_priority(&"brake".into(), "IDL:Sensor:1.0", 100).unwrap();
    let mut refused =
        [Client::new(&high, TcpStream::connect((host.as_str(), port)).unwrap()), Client::new(&high, connect(&object))];
    for client in &mut refused {
        client.send("note", "of another lane", None);
        assert_eq!(client.refusal().1, SystemExceptionKind::InvPolicy);
    }
    by_memory.shutdown().unwrap();
    server.orb.shutdown().unwrap();
    assert!(std::os::unix::net::UnixStream::connect(path(&object, "uds")).is_err(), "no endpoint is open");
}

#[test]
fn lanes_without_a_protocol_of_the_orb_are_refused() {
    let server = ProtocolServer::listening(&["diop"]);
    let refused = server.rt_orb.listen_for_lanes(&server.orb, server.pool).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::BadParam, "{refused}");
    let datagrams = [Endpoint::new("127.0.0.1", 0), Endpoint::of("diop", "127.0.0.1:0")];
    let refused = server.rt_orb.listen_for_lane(&server.orb, server.pool, priority(10), &datagrams).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::BadParam, "{refused}");
    let refused = server.rt_orb.listen_for_lanes(&server.orb, 77).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::BadParam, "{refused}");
    let without_lanes = server.rt_orb.create(one_thread()).unwrap();
    let refused = server.rt_orb.listen_for_lanes(&server.orb, without_lanes).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::BadParam, "{refused}");
}

#[test]
fn a_lane_publishes_the_hosts_of_the_orb_with_a_port_of_its_own() {
    let endpoint = Endpoint::new("127.0.0.1", 0).with("publish", "plant.example:4711,addr:4712");
    let orb = Orb::builder().listen(endpoint).build().unwrap();
    Poa::root(&orb).unwrap();
    let rt_orb = RtServerOrb::new(Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping)));
    let pool = rt_orb.create(PoolSettings::with_lanes(vec![lane(10, 1)])).unwrap();
    rt_orb.listen_for_lanes(&orb, pool).unwrap();
    let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(10) };
    let policies: [Policy; 2] = [model.into(), ThreadpoolPolicy(pool).into()];
    let adapter = Poa::root(&orb).unwrap().child("lane").real_time(&rt_orb, policies).unwrap().create().unwrap();
    let object = adapter.create_reference("IDL:Probe:1.0").unwrap();
    let addresses: Vec<_> = object
        .ior()
        .profiles
        .iter()
        .map(|profile| IiopProfile::decode(profile).unwrap().unwrap())
        .map(|profile| (profile.host, profile.port))
        .collect();
    let [(first, port), (second, second_port)] = &addresses[..] else { panic!("{addresses:?}") };
    assert_eq!((first.as_str(), second.as_str()), ("plant.example", "127.0.0.1"));
    assert!(port == second_port && ![0, 4711, 4712].contains(port), "{addresses:?}");
    orb.shutdown().unwrap();
}

#[test]
fn omniorb_follows_the_addresses_of_a_lane() {
    let server = ProtocolServer::listening(&["iiop", "uds", "shm"]);
    server.rt_orb.listen_for_lanes(&server.orb, server.pool).unwrap();
    for (name, protocols, scheme) in
        [("tcp first", &[IIOP, UNIX_DOMAIN, SHARED_MEMORY][..], "iiop"), ("unix first", &[UNIX_DOMAIN, IIOP], "uds")]
    {
        let object = server.object(name, &[numbers(protocols)]);
        let accepted = server.orb.statistics().count(Event::ConnectionAccepted);
        let mut command = Command::new("nameclt");
        command.env("ORBclientCallTimeOutPeriod", "30000").args(["-ior", &object.to_string(), "list"]);
        if let Err(error) = command.output() {
            assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "nameclt of omniORB: {error}");
            return eprintln!("absent: nameclt of omniORB");
        }
        assert_eq!(server.probe.take_schemes().first().map(String::as_str), Some(scheme), "{name}");
        assert!(server.orb.statistics().count(Event::ConnectionAccepted) > accepted);
        assert!(server.rt_orb.threadpool(server.pool).unwrap().statistics()[0].begun > 0, "{name}");
    }
}
