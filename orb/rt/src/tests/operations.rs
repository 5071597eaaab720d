//! Each operation of the local interfaces of the static part: none answers NO_IMPLEMENT.
//!
//! The IDL is that of `RTCORBA` and `RTPortableServer` in Real-time CORBA 1.2 (formal/05-01-04), with its sections by title.
//! Extensions are TAO's. An attribute has the operations `_get_…` and `_set_…`. A local object that needs no state of its
//! ORB is a value here: its destruction is a drop, and `copy` a clone.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use spandrel_orb::{Orb, Policy};
use spandrel_poa::{Poa, Servant};
use spandrel_sync::Arc;

use crate::policies::{
    ClientProtocolPolicy, PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy,
    PrivateConnectionPolicy, ServerProtocolPolicy, ThreadpoolPolicy,
};
use crate::protocols::{self, Protocol, SharedMemoryProtocolProperties, UnixDomainProtocolProperties};
use crate::{
    LaneSettings, LinearMapping, Priority, PriorityMapping, PriorityTransform, RtClient, RtPoa, RtPoaBuilder,
    RtServerOrb, Scheduling, SchedulingClass,
};

/// The section of the standard, the interface, and its operations in the order of the IDL.
const IDL: &[(&str, &str, &[&str])] = &[
    (
        "Real-time ORB",
        "RTORB",
        &[
            "create_mutex",
            "destroy_mutex",
            "create_tcp_protocol_properties",
            "create_threadpool",
            "create_threadpool_with_lanes",
            "destroy_threadpool",
            "create_priority_model_policy",
            "create_threadpool_policy",
            "create_priority_banded_connection_policy",
            "create_server_protocol_policy",
            "create_client_protocol_policy",
            "create_private_connection_policy",
        ],
    ),
    (
        "Real-time POA",
        "RTPortableServer::POA",
        &[
            "create_reference_with_priority",
            "create_reference_with_id_and_priority",
            "activate_object_with_priority",
            "activate_object_with_id_and_priority",
        ],
    ),
    ("CORBA Priority Mappings", "PriorityMapping", &["to_native", "to_CORBA"]),
    ("Real-time Current", "Current", &["_get_the_priority", "_set_the_priority"]),
    ("Real-time CORBA Priority Models", "PriorityModelPolicy", &["_get_priority_model", "_get_server_priority"]),
    ("Priority Transforms", "PriorityTransform", &["inbound", "outbound"]),
    ("Mutex Interface", "Mutex", &["lock", "unlock", "try_lock"]),
    ("Threadpools", "ThreadpoolPolicy", &["_get_threadpool"]),
    ("Implicit and Explicit Binding", "CORBA::Object", &["_validate_connection", "_get_policy"]),
    ("Priority Banded Connections", "PriorityBandedConnectionPolicy", &["_get_priority_bands"]),
    ("Private Connection Policy", "PrivateConnectionPolicy", &["_get_policy_type", "copy", "destroy"]),
    ("Protocol Configuration", "ServerProtocolPolicy", &["_get_protocols"]),
    ("Protocol Configuration", "ClientProtocolPolicy", &["_get_protocols"]),
    (
        "Protocol Configuration",
        "TCPProtocolProperties",
        &[
            "_get_send_buffer_size",
            "_set_send_buffer_size",
            "_get_recv_buffer_size",
            "_set_recv_buffer_size",
            "_get_keep_alive",
            "_set_keep_alive",
            "_get_dont_route",
            "_set_dont_route",
            "_get_no_delay",
            "_set_no_delay",
            "_get_enable_network_priority",
            "_set_enable_network_priority",
        ],
    ),
    ("extension", "RTORB", &["create_named_mutex", "open_named_mutex"]),
    ("extension", "PriorityMappingManager", &["_set_mapping"]),
    ("extension", "PriorityTransformManager", &["_set_transform"]),
    ("extension", "NetworkPriorityMappingManager", &["_set_mapping"]),
    ("extension", "UnixDomainProtocolProperties", &["_get_send_buffer_size", "_get_recv_buffer_size"]),
    (
        "extension",
        "SharedMemoryProtocolProperties",
        &["_get_preallocate_buffer_size", "_get_mmap_filename", "_get_mmap_lockname"],
    ),
];

/// The operations that were called, by interface and name.
#[derive(Default)]
struct Called(BTreeSet<(&'static str, &'static str)>);

impl Called {
    /// Records an operation whose outcome has no exception.
    fn record<T>(&mut self, interface: &'static str, operation: &'static str, outcome: T) -> T {
        assert!(self.0.insert((interface, operation)), "{interface}::{operation} is called once");
        outcome
    }

    /// Records an operation, and returns its results.
    fn succeed<T, E: fmt::Display>(
        &mut self,
        interface: &'static str,
        operation: &'static str,
        outcome: Result<T, E>,
    ) -> T {
        self.record(interface, operation, outcome)
            .unwrap_or_else(|exception| panic!("{interface}::{operation}: {exception}"))
    }

    /// Records an operation without results.
    fn run(&mut self, interface: &'static str, operation: &'static str, call: impl FnOnce()) {
        call();
        assert!(self.0.insert((interface, operation)), "{interface}::{operation} is called once");
    }
}

struct Plain;

impl Servant for Plain {
    fn repository_id(&self) -> &str {
        "IDL:Plain:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }
}

/// Doubles the priorities of arriving requests, and halves those of calls.
struct Doubling;

impl PriorityTransform for Doubling {
    fn inbound(&self, priority: Priority, _: &[u8]) -> Option<Priority> {
        Priority::new(priority.get().checked_mul(2)?).ok()
    }

    fn outbound(&self, priority: Priority, _: &[u8]) -> Option<Priority> {
        Priority::new(priority.get() / 2).ok()
    }
}

#[derive(Debug)]
struct NoNetworkPriority;

impl crate::NetworkPriorityMapping for NoNetworkPriority {
    fn to_network(&self, _: Priority) -> Option<u8> {
        Some(0)
    }
}

fn priority(number: i16) -> Priority {
    Priority::new(number).unwrap()
}

#[test]
fn each_operation_of_the_local_interfaces_is_implemented() {
    let mut called = Called::default();
    // A mapping is installed with the scheduling that all objects of the ORB have.
    let scheduling = Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping));
    called.run("PriorityMappingManager", "_set_mapping", || ());
    let orb = Orb::builder().binding_policies(RtClient::new(&scheduling)).build().unwrap();
    let rt_orb = RtServerOrb::for_orb(&orb, scheduling);
    let network = Arc::new(NoNetworkPriority);
    called.run("NetworkPriorityMappingManager", "_set_mapping", || rt_orb.set_network_priorities(Some(network)));

    call_mutexes(&rt_orb, &mut called);
    call_priorities(&rt_orb, &mut called);
    call_protocols(&rt_orb, &mut called);
    call_adapters(&orb, &rt_orb, &mut called);
    let private = Policy::from(called.record("RTORB", "create_private_connection_policy", PrivateConnectionPolicy));
    assert_eq!(called.record("PrivateConnectionPolicy", "_get_policy_type", private.policy_type()), 44);
    let copy = called.record("PrivateConnectionPolicy", "copy", private.clone());
    called.run("PrivateConnectionPolicy", "destroy", || drop(private));
    assert_eq!(copy.value(), Some(&PrivateConnectionPolicy));

    let of_interface = |(_, interface, operations): &(&'static str, &'static str, &'static [&'static str])| {
        operations.iter().map(|operation| (*interface, *operation)).collect::<Vec<_>>()
    };
    let declared: Vec<_> = IDL.iter().flat_map(of_interface).collect();
    assert_eq!(called.0, declared.iter().copied().collect::<BTreeSet<_>>(), "those of the IDL");
    assert_eq!(called.0.len(), declared.len(), "the IDL names each once");
    orb.shutdown().unwrap();
}

fn call_mutexes(rt_orb: &RtServerOrb, called: &mut Called) {
    let mutex = called.record("RTORB", "create_mutex", rt_orb.create_mutex());
    let guard = called.record("Mutex", "lock", mutex.lock());
    assert!(called.record("Mutex", "try_lock", mutex.try_lock(Duration::ZERO)).is_none());
    called.run("Mutex", "unlock", || drop(guard));
    assert!(mutex.try_lock(Duration::ZERO).is_some());
    called.run("RTORB", "destroy_mutex", || drop(mutex));
    let (named, is_new) = called.succeed("RTORB", "create_named_mutex", rt_orb.create_named_mutex("valve"));
    assert!(is_new && called.succeed("RTORB", "open_named_mutex", rt_orb.open_named_mutex("valve")).is_same(&named));
}

fn call_priorities(rt_orb: &RtServerOrb, called: &mut Called) {
    let native = called.record("PriorityMapping", "to_native", LinearMapping.to_native(Priority::MAX, &(1..=99)));
    let corba = called.record("PriorityMapping", "to_CORBA", LinearMapping.to_corba(99, &(1..=99)));
    assert_eq!((native, corba), (Some(99), Some(Priority::MAX)));
    let thread = || {
        let current = rt_orb.current();
        called.succeed("Current", "_set_the_priority", current.set_the_priority(7));
        called.succeed("Current", "_get_the_priority", current.the_priority())
    };
    let present = std::thread::scope(|scope| scope.spawn(thread).join().unwrap());
    assert_eq!(present, priority(7));
    let inbound = called.record("PriorityTransform", "inbound", Doubling.inbound(priority(4), b"id"));
    let outbound = called.record("PriorityTransform", "outbound", Doubling.outbound(priority(4), b"id"));
    assert_eq!((inbound, outbound), (Some(priority(8)), Some(priority(2))));
    let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(5) };
    let policy = Policy::from(called.record("RTORB", "create_priority_model_policy", model));
    let model: &PriorityModelPolicy = policy.value().unwrap();
    let of_model = called.record("PriorityModelPolicy", "_get_priority_model", model.model);
    let declared = called.record("PriorityModelPolicy", "_get_server_priority", model.server_priority);
    assert_eq!((of_model, declared), (PriorityModel::ServerDeclared, priority(5)));
    let band = PriorityBand::new(0, 9).unwrap();
    let bands = PriorityBandedConnectionPolicy::new(vec![band]);
    let bands = called.succeed("RTORB", "create_priority_banded_connection_policy", bands);
    let bands = called.record("PriorityBandedConnectionPolicy", "_get_priority_bands", bands.bands().to_vec());
    assert_eq!(bands, [band]);
}

fn call_protocols(rt_orb: &RtServerOrb, called: &mut Called) {
    const TCP: &str = "TCPProtocolProperties";
    let tcp = rt_orb.create_tcp_protocol_properties(1_000, 2_000, false, true, false, true);
    let mut tcp = called.succeed("RTORB", "create_tcp_protocol_properties", tcp);
    assert_eq!(called.record(TCP, "_get_send_buffer_size", tcp.send_buffer_size()), 1_000);
    assert_eq!(called.record(TCP, "_get_recv_buffer_size", tcp.recv_buffer_size()), 2_000);
    called.succeed(TCP, "_set_send_buffer_size", tcp.set_buffer_sizes(3_000, 2_000));
    called.succeed(TCP, "_set_recv_buffer_size", tcp.set_buffer_sizes(3_000, 4_000));
    assert_eq!((tcp.send_buffer_size(), tcp.recv_buffer_size()), (3_000, 4_000));
    for (get, set, value, before) in [
        ("_get_keep_alive", "_set_keep_alive", &mut tcp.keep_alive, false),
        ("_get_dont_route", "_set_dont_route", &mut tcp.dont_route, true),
        ("_get_no_delay", "_set_no_delay", &mut tcp.no_delay, false),
        ("_get_enable_network_priority", "_set_enable_network_priority", &mut tcp.enable_network_priority, true),
    ] {
        assert_eq!(called.record(TCP, get, *value), before);
        *value = called.record(TCP, set, !before);
    }
    let protocol = Protocol { protocol_type: protocols::IIOP, transport: None };
    let policy = ServerProtocolPolicy::new(vec![protocol.clone()]);
    let policy = called.succeed("RTORB", "create_server_protocol_policy", policy);
    assert_eq!(
        called.record("ServerProtocolPolicy", "_get_protocols", policy.protocols().to_vec()),
        vec![protocol.clone()]
    );
    let policy = ClientProtocolPolicy::new(vec![protocol.clone()]);
    let policy = called.succeed("RTORB", "create_client_protocol_policy", policy);
    assert_eq!(called.record("ClientProtocolPolicy", "_get_protocols", policy.protocols().to_vec()), vec![protocol]);
    let unix = UnixDomainProtocolProperties::new(5, 6).unwrap();
    assert_eq!(called.record("UnixDomainProtocolProperties", "_get_send_buffer_size", unix.send_buffer_size()), 5);
    assert_eq!(called.record("UnixDomainProtocolProperties", "_get_recv_buffer_size", unix.recv_buffer_size()), 6);
    const SHARED: &str = "SharedMemoryProtocolProperties";
    let shared = SharedMemoryProtocolProperties::new(7, "file", "lock").unwrap();
    assert_eq!(called.record(SHARED, "_get_preallocate_buffer_size", shared.preallocate_buffer_size()), 7);
    assert_eq!(called.record(SHARED, "_get_mmap_filename", shared.mmap_filename), "file");
    assert_eq!(called.record(SHARED, "_get_mmap_lockname", shared.mmap_lockname), "lock");
}

fn call_adapters(orb: &Orb, rt_orb: &RtServerOrb, called: &mut Called) {
    const POA: &str = "RTPortableServer::POA";
    let plain = rt_orb.create_threadpool(0, 1, 0, Priority::MIN, true, 4, 4_000);
    let plain = called.succeed("RTORB", "create_threadpool", plain);
    called.succeed("RTORB", "destroy_threadpool", rt_orb.destroy_threadpool(plain));
    let lane = |number| LaneSettings { priority: priority(number), static_threads: 1, dynamic_threads: 1 };
    let lanes = rt_orb.create_threadpool_with_lanes(0, vec![lane(10), lane(100)], true, true, 4, 4_000);
    let pool = called.succeed("RTORB", "create_threadpool_with_lanes", lanes);
    let policy = called.succeed("RTORB", "create_threadpool_policy", rt_orb.create_threadpool_policy(pool));
    assert_eq!(called.record("ThreadpoolPolicy", "_get_threadpool", policy.0), pool);

    let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(10) };
    let policies = [Policy::from(model), ThreadpoolPolicy(pool).into()];
    let root = Poa::root(orb).unwrap();
    let assigned = root.child("assigned").real_time(rt_orb, policies.clone()).unwrap().create().unwrap();
    let chosen = root.child("chosen").user_ids().real_time(rt_orb, policies).unwrap().create().unwrap();
    let servant = || -> Arc<dyn Servant> { Arc::new(Plain) };
    let reference = assigned.create_reference_with_priority("IDL:Plain:1.0", 100);
    called.succeed(POA, "create_reference_with_priority", reference);
    let id = assigned.activate_object_with_priority(servant(), 100);
    let id = called.succeed(POA, "activate_object_with_priority", id);
    let object = assigned.id_to_reference(&id).unwrap();
    let reference = chosen.create_reference_with_id_and_priority(&"a".into(), "IDL:Plain:1.0", 100);
    called.succeed(POA, "create_reference_with_id_and_priority", reference);
    let activated = chosen.activate_object_with_id_and_priority(&"b".into(), servant(), 100);
    called.succeed(POA, "activate_object_with_id_and_priority", activated);

    let (is_valid, conflicts) = called.succeed("CORBA::Object", "_validate_connection", object.validate_connection());
    assert!(is_valid && conflicts.is_empty());
    let policy = called.succeed("CORBA::Object", "_get_policy", object.policy(PriorityModelPolicy::POLICY_TYPE));
    let declared = PriorityModelPolicy { server_priority: priority(100), ..model };
    assert_eq!(policy.as_ref().and_then(Policy::value), Some(&declared));
    let transform = Some(Arc::new(Doubling) as Arc<dyn PriorityTransform>);
    called.run("PriorityTransformManager", "_set_transform", || rt_orb.set_priority_transform(transform));
    assert!(object.is_a("IDL:Plain:1.0").is_ok(), "the lane of 200 is that of 100");
}
