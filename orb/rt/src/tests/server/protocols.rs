//! Server protocol policies: the profiles of references, the choices of clients, and the sockets of lanes.

mod lanes;
mod network_priorities;

use spandrel_giop::{datagram::DatagramAddress, local_address::LocalAddress};
use spandrel_ipc::{inet, unix};
use spandrel_orb::OrbBuilder;
use spandrel_server::{current_peer_address, with_current_stream};

use super::*;
use crate::RtClient;
use crate::policies::ServerProtocolPolicy;
use crate::protocols::{
    DATAGRAMS, IIOP, Protocol, SHARED_MEMORY, TcpProtocolProperties, TransportProperties, UNIX_DOMAIN,
    UnixDomainProtocolProperties,
};

/// The options of the socket by which a request came: the sizes of both queues; for TCP also keep-alive, no delay, and the
/// bypassing of routes.
type Options = (usize, usize, Option<(bool, bool, bool)>);

/// A servant that records the protocol of each request, and the options of its socket.
#[derive(Default)]
struct Probe(Mutex<Vec<(String, Option<Options>)>>);

impl Probe {
    fn record(&self) {
        let tcp = |stream: &inet::Stream| {
            let flags = (stream.keep_alive().unwrap(), stream.no_delay().unwrap(), stream.dont_route().unwrap());
            (stream.send_queue().unwrap(), stream.recv_queue().unwrap(), Some(flags))
        };
        let unix = |stream: &unix::Stream| (stream.send_queue().unwrap(), stream.recv_queue().unwrap(), None);
        let options = with_current_stream(tcp).or_else(|| with_current_stream(unix));
        let scheme = current_peer_address().map_or_else(String::new, |address| address.scheme().to_owned());
        self.0.lock().unwrap().push((scheme, options));
    }

    fn take_schemes(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().map(|(scheme, _)| scheme).collect()
    }

    fn take_options(&self) -> Options {
        let [(_, Some(options))] = std::mem::take(&mut *self.0.lock().unwrap())[..] else { panic!("one request") };
        options
    }
}

impl Servant for Probe {
    fn repository_id(&self) -> &str {
        "IDL:Probe:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        self.record();
        true
    }

    fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.implicit(self)
    }
}

fn policy(protocols: &[(u32, Option<TransportProperties>)]) -> Policy {
    let protocol = |(protocol_type, transport): &(u32, Option<TransportProperties>)| Protocol {
        protocol_type: *protocol_type,
        transport: transport.clone(),
    };
    ServerProtocolPolicy::new(protocols.iter().map(protocol).collect()).unwrap().into()
}

fn numbers(numbers: &[u32]) -> Policy {
    policy(&numbers.iter().map(|number| (*number, None)).collect::<Vec<_>>())
}

/// A server with a pool that has the lanes 10 and 100.
struct ProtocolServer {
    orb: Orb,
    rt_orb: RtServerOrb,
    pool: u32,
    probe: Arc<Probe>,
    directory: tempfile::TempDir,
}

impl ProtocolServer {
    /// Listens by these protocols.
    fn listening(schemes: &[&str]) -> Self {
        Self::with(Orb::builder(), schemes)
    }

    fn with(mut builder: OrbBuilder, schemes: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for scheme in schemes {
            let path = directory.path().join(scheme);
            let at = if ["iiop", "diop"].contains(scheme) { "127.0.0.1:0" } else { path.to_str().unwrap() };
            builder = builder.listen(Endpoint::of(*scheme, at));
        }
        let orb = builder.build().unwrap();
        Poa::root(&orb).unwrap();
        let rt_orb = RtServerOrb::new(Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping)));
        let pool = rt_orb.create(PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)])).unwrap();
        Self { orb, rt_orb, pool, probe: Arc::default(), directory }
    }

    /// An adapter of the priority 10.
    fn adapter(&self, name: &str, others: &[Policy]) -> Result<Poa, PoaError> {
        let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(10) };
        let policies = [&[model.into(), ThreadpoolPolicy(self.pool).into()], others].concat();
        Poa::root(&self.orb)
            .unwrap()
            .child(name)
            .user_ids()
            .persistent()
            .multiple_ids()
            .real_time(&self.rt_orb, policies)?
            .create()
    }

    fn object(&self, name: &str, others: &[Policy]) -> ObjectRef {
        let adapter = self.adapter(name, others).unwrap();
        adapter.activate_object_with_id(&"probe".into(), Arc::<Probe>::clone(&self.probe) as _).unwrap();
        let object = adapter.id_to_reference(&"probe".into()).unwrap();
        assert_eq!(adapter.reference_to_id(&object).unwrap(), "probe".into());
        object
    }
}

impl Drop for ProtocolServer {
    fn drop(&mut self) {
        let _ = self.orb.shutdown();
    }
}

/// Of each profile: whether it has a port, and the protocols of its components.
fn profiles(object: &ObjectRef) -> Vec<(bool, Vec<String>)> {
    let profile = |profile| {
        let profile = IiopProfile::decode(profile).unwrap().unwrap();
        let scheme = |component| {
            let local = LocalAddress::decode(component).unwrap().map(|local| local.scheme);
            local.or_else(|| DatagramAddress::decode(component).map(|_| "diop".to_owned()))
        };
        (profile.port != 0, profile.components.iter().filter_map(scheme).collect())
    };
    object.ior().profiles.iter().map(profile).collect()
}

/// Whether a profile has a port, and the protocols of its components.
type Profile<'p> = (bool, &'p [&'p str]);

/// Checks the profiles of a reference of an adapter whose policy lists these protocols.
#[track_caller]
fn expect_profiles(object: &ObjectRef, expected: &[Profile<'_>], protocols: &[u32]) {
    let owned = |(has_port, schemes): &Profile<'_>| {
        let schemes: Vec<String> = schemes.iter().map(|scheme| (*scheme).to_owned()).collect();
        (*has_port, schemes)
    };
    let expected: Vec<_> = expected.iter().map(owned).collect();
    assert_eq!(profiles(object), expected, "{protocols:x?}");
}

/// A client that obeys policies in references, and keeps the order of their profiles.
fn client() -> Orb {
    let scheduling = Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping));
    Orb::builder().binding_policies(RtClient::new(&scheduling)).build().unwrap()
}

fn call(client: &Orb, object: &ObjectRef) {
    assert!(client.string_to_object(&object.to_string()).unwrap().is_a("IDL:Other:1.0").unwrap());
}

#[test]
fn references_have_the_listed_protocols_in_the_order_of_the_policy() {
    let server = ProtocolServer::listening(&["uds", "iiop", "shm", "diop"]);
    let all = ["uds", "shm", "diop"].map(ToOwned::to_owned).to_vec();
    assert_eq!(profiles(&server.object("without", &[])), [(true, all)]);
    let rt_client = client();
    let by_cost = Orb::builder().build().unwrap();
    let by_choice = Orb::builder().transports(["iiop", "uds", "shm"]);
    let by_choice = by_choice
        .binding_policies(RtClient::new(&Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping))))
        .build()
        .unwrap();
    let cases: [(&[u32], &[Profile<'_>], [&str; 3]); 8] = [
        (&[IIOP], &[(true, &[])], ["iiop"; 3]),
        (&[UNIX_DOMAIN], &[(false, &["uds"])], ["uds"; 3]),
        (&[IIOP, UNIX_DOMAIN], &[(true, &[]), (false, &["uds"])], ["iiop", "uds", "iiop"]),
        (&[UNIX_DOMAIN, IIOP], &[(true, &["uds"])], ["uds", "uds", "iiop"]),
        (&[SHARED_MEMORY, UNIX_DOMAIN], &[(false, &["uds", "shm"])], ["shm", "shm", "uds"]),
        (&[UNIX_DOMAIN, SHARED_MEMORY], &[(false, &["uds"]), (false, &["shm"])], ["uds", "shm", "uds"]),
        (&[DATAGRAMS, IIOP], &[(true, &["diop"])], ["iiop"; 3]),
        (&[IIOP, DATAGRAMS, SHARED_MEMORY], &[(true, &["diop"]), (false, &["shm", "diop"])], ["iiop", "shm", "iiop"]),
    ];
    for (at, (protocols, expected, chosen)) in cases.into_iter().enumerate() {
        let object = server.object(&format!("adapter {at}"), &[numbers(protocols)]);
        expect_profiles(&object, expected, protocols);
        for (client, scheme) in [&rt_client, &by_cost, &by_choice].into_iter().zip(chosen) {
            call(client, &object);
            assert_eq!(server.probe.take_schemes(), [scheme], "{protocols:x?}");
        }
        // Callers in the same ORB need no protocol.
        object.is_a("inside").unwrap();
        assert_eq!(server.probe.take_schemes(), [""], "{protocols:x?}");
    }
    for client in [rt_client, by_cost, by_choice] {
        client.shutdown().unwrap();
    }
}

#[test]
fn a_protocol_without_an_endpoint_makes_the_policy_invalid() {
    let server = ProtocolServer::listening(&["iiop", "diop"]);
    let invalid = |policies: &[Policy]| match server.adapter("refused", policies) {
        Err(PoaError::InvalidPolicy { index, reason, .. }) => (index, reason),
        other => panic!("{other:?}"),
    };
    let unheard = "neither the ORB nor a lane listens by one of its protocols";
    for protocols in [&[UNIX_DOMAIN][..], &[IIOP, SHARED_MEMORY], &[4711, IIOP]] {
        assert_eq!(invalid(&[numbers(protocols)]), (2, unheard), "{protocols:x?}");
    }
    let one_ways = "datagrams serve one-ways alone: another protocol is required beside them";
    assert_eq!(invalid(&[numbers(&[DATAGRAMS])]), (2, one_ways));
    let twice = [numbers(&[IIOP]), policy(&[(IIOP, Some(TransportProperties::Tcp(TcpProtocolProperties::default())))])];
    assert_eq!(invalid(&twice).0, 3);

    // A lane listens by it: its objects have the address of the lane, and others none.
    let endpoint = Endpoint::of("uds", server.directory.path().join("lane").to_str().unwrap());
    server.rt_orb.listen_for_lane(&server.orb, server.pool, priority(10), std::slice::from_ref(&endpoint)).unwrap();
    let adapter = server.adapter("lane", &[numbers(&[UNIX_DOMAIN])]).unwrap();
    let low = adapter.create_reference_with_id_and_priority(&"low".into(), "IDL:Probe:1.0", 10).unwrap();
    assert_eq!(profiles(&low), [(false, vec!["uds".to_owned()])]);
    let refused = adapter.create_reference_with_id_and_priority(&"high".into(), "IDL:Probe:1.0", 100).unwrap_err();
    let PoaError::System(refused) = refused else { panic!("{refused:?}") };
    assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::InvPolicy, minor::POLICY_CONFLICT));
}

fn tcp(send: i32, recv: i32, flags: [bool; 3]) -> TransportProperties {
    let mut tcp = TcpProtocolProperties::default();
    tcp.set_buffer_sizes(send, recv).unwrap();
    [tcp.keep_alive, tcp.no_delay, tcp.dont_route] = flags;
    TransportProperties::Tcp(tcp)
}

#[test]
fn sockets_that_a_lane_accepts_have_the_properties_of_the_policy() {
    let server = ProtocolServer::listening(&["iiop", "uds"]);
    let client = client();
    let loopback = Endpoint::new("127.0.0.1", 0);
    server.rt_orb.listen_for_lane(&server.orb, server.pool, priority(10), &[loopback]).unwrap();
    call(&client, &server.object("without", &[]));
    let plain = server.probe.take_options();
    assert_eq!(plain.2, Some((true, true, false)));

    // The endpoint is open already; later connections have the properties. Linux reports twice the size of a queue.
    let properties = policy(&[(IIOP, Some(tcp(40_000, 50_000, [false, false, true]))), (UNIX_DOMAIN, None)]);
    let object = server.object("with", std::slice::from_ref(&properties));
    let second = self::client();
    call(&second, &object);
    let expected = (80_000, 100_000, Some((false, false, true)));
    assert_eq!(server.probe.take_options(), expected);
    assert_ne!((plain.0, plain.1), (expected.0, expected.1));
    // An adapter of the pool that has the same properties, or none.
    server.adapter("same", &[properties]).unwrap();
    server.adapter("none", &[numbers(&[IIOP])]).unwrap();
    let other = policy(&[(IIOP, Some(tcp(0, 0, [true; 3])))]);
    let Err(PoaError::InvalidPolicy { reason, .. }) = server.adapter("other", &[other]) else {
        panic!("it is refused")
    };
    assert_eq!(reason, "another adapter has given the endpoints of the thread pool other properties");

    // An endpoint that is opened after the adapter.
    let unix = UnixDomainProtocolProperties::new(30_000, 0).unwrap();
    let late = ProtocolServer::listening(&["iiop", "uds"]);
    let properties = policy(&[(UNIX_DOMAIN, Some(TransportProperties::UnixDomain(unix)))]);
    let adapter = late.adapter("late", &[properties]).unwrap();
    let endpoint = Endpoint::of("uds", late.directory.path().join("lane").to_str().unwrap());
    late.rt_orb.listen_for_lane(&late.orb, late.pool, priority(10), std::slice::from_ref(&endpoint)).unwrap();
    adapter.activate_object_with_id(&"probe".into(), Arc::<Probe>::clone(&late.probe) as _).unwrap();
    call(&second, &adapter.id_to_reference(&"probe".into()).unwrap());
    assert_eq!(late.probe.take_options().0, 60_000);
    [client, second].iter().for_each(|client| client.shutdown().unwrap());
}

#[test]
fn an_orb_has_policies_for_its_adapters() {
    let server = ProtocolServer::listening(&["iiop", "uds"]);
    let manager = server.orb.policy_manager();
    manager
        .set_policy_overrides(&[numbers(&[UNIX_DOMAIN])], spandrel_orb::policy::SetOverrideType::AddOverride)
        .unwrap();
    assert_eq!(profiles(&server.object("default", &[])), [(false, vec!["uds".to_owned()])]);
    assert_eq!(profiles(&server.object("own", &[numbers(&[IIOP])])), [(true, vec![])]);
}

#[test]
fn omniorb_uses_the_protocols_of_a_reference() {
    let server = ProtocolServer::listening(&["iiop", "uds"]);
    for (name, protocols, scheme) in [
        ("tcp", &[IIOP][..], "iiop"),
        ("unix", &[UNIX_DOMAIN], "uds"),
        ("tcp first", &[IIOP, UNIX_DOMAIN], "iiop"),
        ("unix first", &[UNIX_DOMAIN, IIOP], "uds"),
    ] {
        let object = server.object(name, &[numbers(protocols)]);
        let mut command = Command::new("nameclt");
        command.env("ORBclientCallTimeOutPeriod", "30000").args(["-ior", &object.to_string(), "list"]);
        if let Err(error) = command.output() {
            assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "nameclt of omniORB: {error}");
            return eprintln!("absent: nameclt of omniORB");
        }
        assert_eq!(server.probe.take_schemes().first().map(String::as_str), Some(scheme), "{name}");
    }
}

/// A servant that sends the time for which reads of its request's socket poll the network card, and whether the process may
/// set it.
struct Polled(mpsc::Sender<(Duration, bool)>);

impl Servant for Polled {
    fn repository_id(&self) -> &str {
        "IDL:Probe:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        let look = |stream: &inet::Stream| {
            let time = stream.busy_poll().unwrap();
            (time, stream.set_busy_poll(time + Duration::from_micros(1)).is_ok())
        };
        with_current_stream(look).is_some_and(|polled| self.0.send(polled).is_ok())
    }

    fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.implicit(self)
    }
}

#[test]
fn reads_of_accepted_connections_poll_the_network_card() {
    const TIME: Duration = Duration::from_micros(37);
    let server = ProtocolServer::with(Orb::builder().busy_poll(Some(TIME)), &["iiop"]);
    let (send, polled) = mpsc::channel();
    let adapter = server.adapter("polled", &[]).unwrap();
    adapter.activate_object_with_id(&"polled".into(), Arc::new(Polled(send))).unwrap();
    let object = adapter.id_to_reference(&"polled".into()).unwrap();
    let client = client();
    call(&client, &object);
    let (time, is_permitted) = polled.recv_timeout(LONG).unwrap();
    if is_permitted {
        assert_eq!(time, TIME);
    } else {
        println!("not shown: SO_BUSY_POLL needs CAP_NET_ADMIN");
    }
    client.shutdown().unwrap();
}
