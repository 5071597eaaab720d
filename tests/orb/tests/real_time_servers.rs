//! Real-time CORBA between a client and a server of this ORB: nested calls, priorities in replies, threads.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use spandrel::{
    CompletionStatus, Endpoint, Orb, Poa, SystemException, SystemExceptionKind,
    interception::{ClientRequestInfo, ClientRequestInterceptor, Interceptor},
    policy::{Policy, PolicyErrorCode},
    rt::{
        ExecutionTimes, LaneSettings, LinearMapping, OverrunAction, PoolSettings, Priority, PriorityTransform,
        ReplyPriorities, RtClient, RtCurrent, RtPoaBuilder, RtPolicyFactory, RtServerOrb, Scheduling, SchedulingClass,
        contexts::{self, RT_CORBA_PRIORITY},
        policies::{
            ClientProtocolPolicy, PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy,
            PrivateConnectionPolicy, ServerProtocolPolicy, ThreadpoolPolicy,
        },
        protocol_list,
        protocols::{self, Protocol},
    },
    server::Servant,
    types::{Any, TypeCode},
};
use spandrel_cdr::{ByteOrder, Decoder, GiopVersion, Wire};
use spandrel_giop::ServiceContexts;
use spandrel_orb_tests::{
    probe::Target,
    support::{kind_and_completion, servant},
};

/// Threads keep their native priorities: these tests need no rights.
fn scheduling() -> Scheduling {
    Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping))
}

/// A server with one object, which lanes of the priorities 0 and 1,000 serve.
struct LaneServer {
    orb: Orb,
    reference: String,
    rt_orb: RtServerOrb,
}

impl LaneServer {
    fn start(model: PriorityModel, servant: impl Servant + 'static) -> Self {
        let builder = Orb::builder().server_request_interceptor(ReplyPriorities).unwrap();
        let orb = builder.listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let rt_orb = RtServerOrb::new(scheduling());
        let lane = |priority| LaneSettings {
            priority: Priority::new(priority).unwrap(),
            static_threads: 1,
            dynamic_threads: 0,
        };
        let lanes = PoolSettings::with_lanes(vec![lane(0), lane(1_000)]);
        let pool = rt_orb.create(PoolSettings { buffering: Some((16, 1 << 20)), ..lanes }).unwrap();
        let model = PriorityModelPolicy { model, server_priority: Priority::MIN };
        let policies: [Policy; 2] = [model.into(), ThreadpoolPolicy(pool).into()];
        let root = Poa::root(&orb).unwrap();
        let adapter = root.child("lanes").real_time(&rt_orb, policies).unwrap().create().unwrap();
        let id = adapter.activate_object(Arc::new(servant)).unwrap();
        let reference = adapter.id_to_reference(&id).unwrap().to_string();
        Self { orb, reference, rt_orb }
    }
}

impl Drop for LaneServer {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}

/// Returns the priority of the thread that runs the servant.
fn own_priority() -> impl Servant {
    servant(|_, call| {
        let priority = RtCurrent::new(scheduling()).the_priority()?;
        call.reply(|out| {
            out.i32(priority.get().into());
            Ok(())
        })
    })
}

/// Adds 1 to priorities that go out, up to 1,500.
struct Raised;

impl PriorityTransform for Raised {
    fn inbound(&self, priority: Priority, _: &[u8]) -> Option<Priority> {
        Some(priority)
    }

    fn outbound(&self, priority: Priority, id: &[u8]) -> Option<Priority> {
        assert!(!id.is_empty(), "the id of the calling servant's object");
        (priority.get() < 1_500).then(|| Priority::new(priority.get() + 1).unwrap())
    }
}

#[test]
fn the_outbound_transform_changes_the_priority_of_calls_of_servants_alone() {
    let inner = LaneServer::start(PriorityModel::ClientPropagated, own_priority());
    let client = RtClient::new(&scheduling()).priority_transform(Arc::new(Raised));
    let client = Orb::builder().binding_policies(client).build().unwrap();
    let target: Target = client.string_to_object(&inner.reference).unwrap().unchecked_narrow();
    let nested = target.clone();
    let intermediary = servant(move |_, call| {
        let sum = nested.add(0, 0)?;
        assert_eq!(i32::from(RtCurrent::new(scheduling()).the_priority()?.get()) + 1, sum, "the thread keeps its own");
        call.reply(|out| {
            out.i32(sum);
            Ok(())
        })
    });
    let intermediary = LaneServer::start(PriorityModel::ClientPropagated, intermediary);
    let outer: Target = client.string_to_object(&intermediary.reference).unwrap().unchecked_narrow();
    let current = RtCurrent::new(scheduling());
    current.set_the_priority(1_200).unwrap();
    assert_eq!(target.add(0, 0), Ok(1_200), "a call outside a servant");
    assert_eq!(outer.add(0, 0), Ok(1_201), "a call that a servant makes");
    current.set_the_priority(1_500).unwrap();
    let refused = outer.add(0, 0).unwrap_err();
    assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::Unknown, CompletionStatus::No), "{refused}");
}

/// Records the priority in each reply.
#[derive(Clone, Default)]
struct ReplyLog(Arc<Mutex<Vec<Option<i16>>>>);

impl ReplyLog {
    fn record(&self, info: &ClientRequestInfo<'_>) {
        let contexts: Vec<_> = info.reply_service_context(RT_CORBA_PRIORITY).into_iter().collect();
        let priority = contexts::find_priority(&ServiceContexts::from(&contexts[..])).unwrap();
        self.0.lock().unwrap().push(priority.map(Priority::get));
    }
}

impl Interceptor for ReplyLog {}

impl ClientRequestInterceptor for ReplyLog {
    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        self.record(info);
        Ok(())
    }

    fn receive_exception(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), spandrel::interception::Interruption> {
        self.record(info);
        Ok(())
    }
}

#[test]
fn replies_of_client_propagated_objects_carry_the_priority() {
    let log = ReplyLog::default();
    let builder = Orb::builder().binding_policies(RtClient::new(&scheduling()));
    let client = builder.client_request_interceptor(log.clone()).unwrap().build().unwrap();
    RtCurrent::new(scheduling()).set_the_priority(1_234).unwrap();
    let failing = || servant(|_, _| Err(SystemException::no_permission(0, CompletionStatus::No)));
    let servers = [
        LaneServer::start(PriorityModel::ClientPropagated, own_priority()),
        LaneServer::start(PriorityModel::ClientPropagated, failing()),
        LaneServer::start(PriorityModel::ServerDeclared, own_priority()),
    ];
    for server in &servers {
        let target: Target = client.string_to_object(&server.reference).unwrap().unchecked_narrow();
        let _outcome = target.add(0, 0);
    }
    assert_eq!(*log.0.lock().unwrap(), [Some(1_234), Some(1_234), None]);
}

/// The bands 0 to 9 and `low` to `high`, as IDL has them.
fn bands_as_any(low: i16, high: i16) -> Any {
    let priority = TypeCode::alias("IDL:omg.org/RTCORBA/Priority:1.0", "Priority", &TypeCode::SHORT).unwrap();
    let members = [("low", priority.clone()), ("high", priority)];
    let band = TypeCode::structure("IDL:omg.org/RTCORBA/PriorityBand:1.0", "PriorityBand", &members).unwrap();
    let list = TypeCode::sequence(&band, 0).unwrap();
    let bands = TypeCode::alias("IDL:omg.org/RTCORBA/PriorityBands:1.0", "PriorityBands", &list).unwrap();
    let octets = [&[0, 0, 0, 2, 0, 0, 0, 9][..], &low.to_be_bytes(), &high.to_be_bytes()].concat();
    any_of(&bands, &octets)
}

#[test]
fn policies_are_created_from_values_of_the_standards_types() {
    let orb = Orb::builder().build().unwrap();
    for policy_type in RtPolicyFactory::TYPES {
        orb.register_policy_factory(policy_type, Arc::new(RtPolicyFactory)).unwrap();
    }
    let pool = orb.create_policy(41, &Any::new(7_u32).unwrap()).unwrap();
    assert_eq!(pool.value(), Some(&ThreadpoolPolicy(7)));
    let private = orb.create_policy(44, &Any::new(false).unwrap()).unwrap();
    assert_eq!(private.value(), Some(&PrivateConnectionPolicy));
    let banded = orb.create_policy(45, &bands_as_any(10, 99)).unwrap();
    let bands = [(0, 9), (10, 99)].map(|(low, high)| PriorityBand::new(low, high).unwrap());
    assert_eq!(banded.value(), Some(&PriorityBandedConnectionPolicy::new(bands.to_vec()).unwrap()));
    let reason = |policy_type, value: &Any| orb.create_policy(policy_type, value).unwrap_err().reason;
    assert_eq!(reason(45, &bands_as_any(9, 99)), PolicyErrorCode::BadPolicyValue, "they overlap");
    assert_eq!(reason(45, &bands_as_any(-1, -1)), PolicyErrorCode::BadPolicyValue);
    assert_eq!(reason(45, &Any::new(7_i16).unwrap()), PolicyErrorCode::BadPolicyType);
    assert_eq!(reason(41, &Any::new(7_i16).unwrap()), PolicyErrorCode::BadPolicyType);
    assert_eq!(reason(40, &Any::new(7_i16).unwrap()), PolicyErrorCode::BadPolicyType);

    for model in [PriorityModel::ClientPropagated, PriorityModel::ServerDeclared] {
        let policy = PriorityModelPolicy { model, server_priority: Priority::new(20_000).unwrap() };
        assert_eq!(orb.create_policy(40, &Any::new(policy).unwrap()).unwrap().value(), Some(&policy));
    }
    let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: Priority::MIN };
    let negative = any_of(Any::new(model).unwrap().type_code(), &[0, 0, 0, 1, 0xff, 0xff]);
    assert_eq!(reason(40, &negative), PolicyErrorCode::BadPolicyValue);

    let list = protocol_list(&[protocols::UNIX_DOMAIN, protocols::IIOP]).unwrap();
    let expected =
        [protocols::UNIX_DOMAIN, protocols::IIOP].map(|protocol_type| Protocol { protocol_type, transport: None });
    let server = ServerProtocolPolicy::new(expected.to_vec()).unwrap();
    assert_eq!(orb.create_policy(42, &list).unwrap().value(), Some(&server));
    let client = ClientProtocolPolicy::new(expected.to_vec()).unwrap();
    assert_eq!(orb.create_policy(43, &list).unwrap().value(), Some(&client));
    for policy_type in [42, 43] {
        assert_eq!(reason(policy_type, &Any::new(0_u32).unwrap()), PolicyErrorCode::BadPolicyType);
        assert_eq!(reason(policy_type, &protocol_list(&[]).unwrap()), PolicyErrorCode::BadPolicyValue);
        assert_eq!(reason(policy_type, &protocol_list(&[0, 0]).unwrap()), PolicyErrorCode::BadPolicyValue, "one twice");
    }
}

/// A value of a type, from octets of the big-endian order.
fn any_of(type_code: &TypeCode, octets: &[u8]) -> Any {
    Any::read(type_code.clone(), &mut Decoder::new(octets, Wire::new(ByteOrder::Big, GiopVersion::V1_2))).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn threads_of_an_orb_have_the_native_priority_of_the_thread_that_builds_it() {
    use std::collections::BTreeSet;

    use spandrel::{
        net::sync::{Priority as ThreadPriority, set_current_priority},
        options::{Concurrency, WaitStrategy},
        policy::{ReferencePolicies, SyncScopePolicy},
    };
    use spandrel_orb_tests::{Server, support::block_on};
    use spandrel_test_support::threads::{check_listed, threads_of};

    const NICE: i8 = 5;
    let calls = |concurrency: Concurrency| {
        set_current_priority(ThreadPriority::Nice(NICE)).unwrap();
        let server = Server::with(Orb::builder().concurrency(concurrency));
        let client = Orb::builder().wait_strategy(WaitStrategy::OnWaker).build().unwrap();
        let target: Target = client.string_to_object(&server.ior()).unwrap().unchecked_narrow();
        assert_eq!(target.add(3, 4), Ok(7));
        assert_eq!(block_on(target.add_async(3, 4)), Ok(7));
        let buffered = target.with_sync_scope(SyncScopePolicy::None);
        // The first one after a pause is written at once, and others wait for the thread that writes them.
        (0..3).for_each(|_| buffered.note(&[7]).unwrap());
        let lanes = LaneServer::start(PriorityModel::ServerDeclared, own_priority());
        let times = ExecutionTimes::new(OverrunAction::Report).all_lanes(Duration::from_secs(3_600));
        let lane = LaneSettings { priority: Priority::MIN, static_threads: 1, dynamic_threads: 0 };
        let settings = PoolSettings { execution_times: Some(times), ..PoolSettings::with_lanes(vec![lane]) };
        let pool = lanes.rt_orb.create(settings).unwrap();
        lanes.rt_orb.listen_for_lane(&lanes.orb, pool, Priority::MIN, &[Endpoint::new("127.0.0.1", 0)]).unwrap();
        let threads = threads_of(std::process::id());
        client.shutdown().unwrap();
        drop((server, lanes));
        threads
    };
    /// The nice value of the thread for asynchronous calls of an ORB, whose first caller has another one.
    fn nice_of_async_thread() -> Vec<i64> {
        set_current_priority(ThreadPriority::Nice(NICE)).unwrap();
        let server = Server::start();
        let client = Orb::builder().binding_policies(RtClient::new(&scheduling())).build().unwrap();
        let target: Target = client.string_to_object(&server.ior()).unwrap().unchecked_narrow();
        set_current_priority(ThreadPriority::Nice(NICE + 1)).unwrap();
        assert_eq!(block_on(target.add_async(3, 4)), Ok(7));
        let threads = threads_of(std::process::id()).into_iter().filter(|thread| thread.name == "spandrel-async");
        threads.map(|thread| thread.nice).collect()
    }

    spandrel_test_support::alone(|| {
        let of_async = std::thread::spawn(nice_of_async_thread).join().unwrap();
        assert_eq!(of_async, [i64::from(NICE)], "of the thread that has built the ORB");
        let strategies = [
            Concurrency::Reactive,
            Concurrency::default(),
            Concurrency::ThreadPerConnection { limit: 8 },
            Concurrency::LeaderFollowers { threads: Some(2) },
            Concurrency::ThreadPool { threads: 2, queue: 8 },
        ];
        let mut names = BTreeSet::new();
        let of_tests: BTreeSet<u32> = threads_of(std::process::id()).iter().map(|thread| thread.id).collect();
        for strategy in strategies {
            let builder = std::thread::Builder::new().name("builder".to_owned());
            let mut threads = builder.spawn(move || calls(strategy)).unwrap().join().unwrap();
            threads.retain(|thread| !of_tests.contains(&thread.id) && thread.name != "builder");
            check_listed(&threads);
            for thread in threads {
                assert_eq!(thread.nice, i64::from(NICE), "{} with {strategy:?}", thread.name);
                let is_lane = thread.name.starts_with("rt-lane-");
                names.insert(if is_lane { "rt-lane-".to_owned() } else { thread.name });
            }
        }
        for expected in
            ["spandrel-async", "spandrel-maint", "spandrel-serve", "spandrel-worker", "rt-lane-", "rt-watch"]
        {
            assert!(names.contains(expected), "{expected} did not run: {names:?}");
        }
    });
}

/// The files with the locks that threads of lanes take, as docs/real-time.md lists them, and whether these inherit
/// priorities.
#[cfg(debug_assertions)]
const LOCKED_BY_LANES: [(&str, bool); 12] = [
    ("net/sync/src/mutex.rs", false),
    ("orb/core/src/call/cancellation/source.rs", false),
    ("orb/core/src/client/connection.rs", false),
    ("orb/core/src/client/peer.rs", false),
    ("orb/core/src/client/peer/lease.rs", false),
    ("orb/core/src/interception/server/flow.rs", false),
    ("orb/poa/src/objects/mod.rs", false),
    ("orb/rt/src/pool/mod.rs", true),
    ("orb/server/src/connection/link.rs", false),
    ("orb/server/src/connection/pending_requests.rs", false),
    ("orb/server/src/upcall/marshaled_reply.rs", false),
    ("orb/server/src/upcall/request_memory.rs", true),
];

/// The most processor time of a hold of a lock that does not inherit priorities, in a build without optimisation. A system
/// call that writes is a part of some.
#[cfg(debug_assertions)]
const LONGEST_HOLD: std::time::Duration = std::time::Duration::from_micros(500);

#[test]
#[cfg(debug_assertions)]
fn the_locks_that_a_lane_takes_are_listed() {
    use spandrel::net::sync::held;

    spandrel_test_support::alone(|| {
        let server = LaneServer::start(PriorityModel::ClientPropagated, own_priority());
        let client = Orb::builder().binding_policies(RtClient::new(&scheduling())).build().unwrap();
        let nested: Target = client.string_to_object(&server.reference).unwrap().unchecked_narrow();
        let intermediary = servant(move |_, call| {
            let sum = nested.add(0, 0)?;
            call.reply(|out| {
                out.i32(sum);
                Ok(())
            })
        });
        let intermediary = LaneServer::start(PriorityModel::ClientPropagated, intermediary);
        let target: Target = client.string_to_object(&intermediary.reference).unwrap().unchecked_narrow();
        RtCurrent::new(scheduling()).set_the_priority(1_234).unwrap();
        assert_eq!(target.add(0, 0), Ok(1_234));
        // The least of several rounds' longest holds: interrupts count as the time of the thread that they stop.
        let mut longest = std::collections::BTreeMap::new();
        for _ in 0..8 {
            held::record_locks("rt-lane-");
            (0..50).for_each(|_| assert_eq!(target.add(0, 0), Ok(1_234)));
            for (file, locks) in held::recorded_locks() {
                let listed = LOCKED_BY_LANES.iter().find(|(listed, _)| *listed == file);
                let Some((_, inherits)) = listed else {
                    panic!("a lane takes locks that docs/real-time.md does not list: {file}");
                };
                assert_eq!(locks.inherit_priorities, *inherits, "{file}");
                let least = longest.entry(file).or_insert(locks.longest_hold);
                *least = locks.longest_hold.min(*least);
            }
        }
        assert!(longest.contains_key("orb/rt/src/pool/mod.rs"), "{longest:?}");
        println!("longest holds: {longest:?}");
        assert!(longest.values().all(|hold| *hold <= LONGEST_HOLD), "{longest:?}");
    });
}
