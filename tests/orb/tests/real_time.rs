//! Real-time CORBA on the client's side: policies in force, and the priority in requests.

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use spandrel::{
    CompletionStatus, ObjectRef, Orb, SystemException, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    interception::{Interceptor, Interruption, ServerRequestInfo, ServerRequestInterceptor},
    minor,
    net::{
        ipc::inet,
        transport::{Address, Protocol, SocketSettings, connect_inet},
    },
    policy::{
        BufferingConstraintPolicy, OverrideError, Policy, PolicyScope, PolicyValue, ReferencePolicies, SetOverrideType,
        SyncScopePolicy,
    },
    rt::{
        self, LinearMapping, NativePriority, NetworkPriorityMapping, Priority, PriorityMapping, RtClient, RtCurrent,
        Scheduling, SchedulingClass,
        contexts::{self, PropagatedPolicy},
        policies::{
            ClientProtocolPolicy, PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy,
            PrivateConnectionPolicy, ServerProtocolPolicy, ThreadpoolPolicy,
        },
        protocols::{TcpProtocolProperties, TransportProperties},
    },
    types::{IiopProfile, Ior},
};
use spandrel_giop::{LocateStatus, MessageType, ReplyStatus, ServiceContexts};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    scripted::{ReceivedLog, ReceivedRequest, ior_at, scripted, write_ior},
    support::{block_on, fake_server, kind_and_completion, read_message, wait_until},
};

const ADD: SetOverrideType = SetOverrideType::AddOverride;

/// Threads keep their native priorities: these tests need no rights.
pub(super) fn scheduling() -> Scheduling {
    Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping))
}

pub(super) fn client() -> Orb {
    Orb::builder().binding_policies(RtClient::new(&scheduling())).build().unwrap()
}

/// Runs `call` in a thread of its own, with this priority.
pub(super) fn at_priority<R: Send>(priority: i16, call: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            RtCurrent::new(scheduling()).set_the_priority(priority).unwrap();
            call()
        });
        thread.join().unwrap()
    })
}

pub(super) fn model(model: PriorityModel, server_priority: i16) -> PropagatedPolicy {
    PropagatedPolicy::PriorityModel(PriorityModelPolicy {
        model,
        server_priority: Priority::new(server_priority).unwrap(),
    })
}

pub(super) fn bands(ranges: &[(i16, i16)]) -> PriorityBandedConnectionPolicy {
    let bands = ranges.iter().map(|(low, high)| PriorityBand::new(*low, *high).unwrap());
    PriorityBandedConnectionPolicy::new(bands.collect()).unwrap()
}

/// A reference with these policies.
pub(super) fn with_policies(port: u16, policies: &[PropagatedPolicy]) -> Ior {
    let mut ior = ior_at(port, GiopVersion::V1_2, "key");
    let mut profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    profile.components.push(contexts::encode_policies(policies).unwrap());
    ior.profiles = vec![profile.encode().unwrap()];
    ior
}

/// Answers each request with 7; the object exists, and is here.
pub(super) fn answer(request: &ReceivedRequest) -> Option<Vec<u8>> {
    Some(match &*request.operation {
        "" => request.located(LocateStatus::ObjectHere, |_| {}),
        "_non_existent" => request.reply(ReplyStatus::NoException, |out| out.bool(false)),
        _ => request.reply(ReplyStatus::NoException, |out| out.i32(7)),
    })
}

/// The priority contexts of the received requests, in order: the octets of each, or `None`.
fn priorities(received: &ReceivedLog) -> Vec<Option<Vec<u8>>> {
    let priority = |request: &ReceivedRequest| {
        let context = request.contexts.iter().find(|(id, _)| *id == contexts::RT_CORBA_PRIORITY);
        context.map(|(_, data)| data.clone())
    };
    std::mem::take(&mut *received.lock().unwrap()).iter().map(priority).collect()
}

/// The octets of a priority: byte order, padding, short (`octet order | short priority` in an encapsulation).
fn octets(priority: i16) -> Option<Vec<u8>> {
    let [first, second] = priority.to_ne_bytes();
    Some(vec![u8::from(ByteOrder::NATIVE == ByteOrder::Little), 0, first, second])
}

pub(super) fn target(orb: &Orb, ior: &Ior) -> Target {
    Target::unchecked_narrow(&orb.reference(ior.clone()))
}

#[test]
fn client_propagated_calls_of_each_kind_carry_the_priority_of_their_thread() {
    let (port, received) = scripted(answer);
    let orb = client();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    at_priority(0x1234, || {
        assert_eq!(target.add(3, 4), Ok(7));
        assert_eq!(block_on(target.add_async(3, 4)), Ok(7));
    });
    at_priority(300, || target.add(3, 4).unwrap());
    assert_eq!(priorities(&received), [octets(0x1234), octets(0x1234), octets(300)]);
    // A request by datagram or collocation has the same encoding; a LocateRequest has no contexts.
    at_priority(300, || target.as_object().locate().unwrap());
    assert_eq!(priorities(&received), [None]);
}

#[test]
fn other_references_get_no_priority() {
    let (port, received) = scripted(answer);
    let orb = client();
    let references = [
        with_policies(port, &[model(PriorityModel::ServerDeclared, 5)]),
        with_policies(port, &[]),
        ior_at(port, GiopVersion::V1_2, "key"),
    ];
    at_priority(300, || references.iter().for_each(|ior| assert_eq!(target(&orb, ior).add(3, 4), Ok(7))));
    assert_eq!(priorities(&received), [None, None, None]);
}

#[test]
fn an_orb_without_the_part_ignores_the_policies() {
    let (port, received) = scripted(answer);
    let orb = Orb::builder().build().unwrap();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    at_priority(300, || target.add(3, 4).unwrap());
    assert_eq!(priorities(&received), [None]);
    assert!(target.as_object().exposed_policy(PriorityModelPolicy::POLICY_TYPE).unwrap().is_none());
}

#[test]
fn the_policies_of_the_place_that_an_object_is_forwarded_to_count() {
    let (there, received) = scripted(answer);
    let forwarded = with_policies(there, &[model(PriorityModel::ClientPropagated, 5)]);
    let (here, first) = scripted(move |request| Some(request.forward(ReplyStatus::LocationForward, &forwarded)));
    let orb = client();
    let target = target(&orb, &ior_at(here, GiopVersion::V1_2, "key"));
    at_priority(300, || {
        assert_eq!(target.add(3, 4), Ok(7));
        assert_eq!(block_on(target.add_async(3, 4)), Ok(7));
    });
    assert_eq!(priorities(&first), [None]);
    assert_eq!(priorities(&received), [octets(300), octets(300)]);
}

/// A mapping without any priority of CORBA for a native one.
#[derive(Debug)]
struct OneWay;

impl PriorityMapping for OneWay {
    fn to_native(&self, _: Priority, native: &RangeInclusive<NativePriority>) -> Option<NativePriority> {
        Some(*native.start())
    }

    fn to_corba(&self, _: NativePriority, _: &RangeInclusive<NativePriority>) -> Option<Priority> {
        None
    }
}

/// As in TAO (`RT_Invocation_Endpoint_Selectors.cpp`), the native priority is mapped, or else the call ends in
/// DATA_CONVERSION with the standard's minor code 2.
#[test]
fn a_thread_without_a_priority_has_the_one_that_its_native_priority_stands_for() {
    let (port, received) = scripted(answer);
    let ior = with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]);
    target(&client(), &ior).add(3, 4).unwrap();
    assert_eq!(priorities(&received), [octets(0)]);
    let scheduling = Scheduling::new(SchedulingClass::Unchanged, Arc::new(OneWay));
    let orb = Orb::builder().binding_policies(RtClient::new(&scheduling)).build().unwrap();
    let target = target(&orb, &ior);
    for exception in [target.add(3, 4).unwrap_err(), block_on(target.add_async(3, 4)).unwrap_err()] {
        let expected = (SystemExceptionKind::DataConversion, CompletionStatus::No);
        assert_eq!((kind_and_completion(&exception), exception.minor()), (expected, minor::PRIORITY_MAPPING));
    }
    assert!(priorities(&received).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn the_nice_value_implies_a_priority() {
    let scheduling = Scheduling::new(SchedulingClass::Other, Arc::new(LinearMapping));
    if scheduling.class() != SchedulingClass::Other {
        return println!("not shown: no rights for nice values");
    }
    std::thread::spawn(move || {
        let current = RtCurrent::new(scheduling.clone());
        current.set_the_priority(20_000).unwrap();
        let native = scheduling.to_native(Priority::new(20_000).unwrap()).unwrap();
        assert_eq!(scheduling.implied_priority(), scheduling.to_corba(native));
    })
    .join()
    .unwrap();
}

#[test]
fn malformed_policies_make_a_reference_unusable() {
    let mut ior = ior_at(1, GiopVersion::V1_2, "key");
    let mut profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    let mut component = contexts::encode_policies(&[model(PriorityModel::ClientPropagated, 5)]).unwrap();
    component.data.truncate(component.data.len() - 3);
    profile.components.push(component);
    ior.profiles = vec![profile.encode().unwrap()];
    let exception = target(&client(), &ior).add(3, 4).unwrap_err();
    assert_eq!(kind_and_completion(&exception), (SystemExceptionKind::InvObjref, CompletionStatus::No));
    assert!(exception.to_string().contains("the policies in the reference cannot be read"), "{exception}");
}

pub(super) fn types(policies: &[Policy]) -> Vec<u32> {
    policies.iter().map(Policy::policy_type).collect()
}

#[test]
fn policies_of_adapters_are_an_orbs_alone() {
    let orb = client();
    let object = orb.reference(ior_at(1, GiopVersion::V1_2, "key"));
    let iiop = rt::protocols::Protocol { protocol_type: 0, transport: None };
    let PropagatedPolicy::PriorityModel(model) = model(PriorityModel::ServerDeclared, 5) else { unreachable!() };
    let policies: [Policy; 3] =
        [model.into(), ThreadpoolPolicy(1).into(), ServerProtocolPolicy::new(vec![iiop]).unwrap().into()];
    for policy in &policies {
        let policy = std::slice::from_ref(policy);
        let refused = [
            object.set_policy_overrides(policy, ADD).map(drop),
            orb.policy_current().set_policy_overrides(policy, ADD),
        ];
        for refused in refused {
            let Err(OverrideError::System(exception)) = refused else { panic!("{policy:?}: {refused:?}") };
            assert_eq!(exception.kind(), SystemExceptionKind::NoPermission);
        }
    }
    orb.policy_manager().set_policy_overrides(&policies, ADD).unwrap();
    assert_eq!(types(&orb.policy_manager().policy_overrides(&[])), [40, 41, 42]);
    // They are defaults for adapters, not policies of calls.
    for policy in policies {
        assert!(object.policy(policy.policy_type()).unwrap().is_none(), "{policy:?}");
    }
}

#[test]
fn client_policies_have_three_levels() {
    let orb = client();
    let object = orb.reference(ior_at(1, GiopVersion::V1_2, "key"));
    let [of_orb, of_thread, of_object] = [0, 1, 2].map(|low| bands(&[(low, 9)]));
    let in_force = |object: &ObjectRef| {
        let policy = object.policy(PriorityBandedConnectionPolicy::POLICY_TYPE).unwrap();
        assert_eq!(
            policy.map(|policy| format!("{policy:?}")),
            object.client_policy(45).map(|policy| format!("{policy:?}"))
        );
        object.client_policy(45).and_then(|policy| policy.value::<PriorityBandedConnectionPolicy>().cloned())
    };
    assert_eq!(in_force(&object), None);
    orb.policy_manager().set_policy_overrides(&[of_orb.clone().into()], ADD).unwrap();
    assert_eq!(in_force(&object), Some(of_orb.clone()));
    orb.policy_current().set_policy_overrides(&[of_thread.clone().into()], ADD).unwrap();
    assert_eq!(in_force(&object), Some(of_thread));
    assert_eq!(in_force(&object.with_policy(of_object.clone()).unwrap()), Some(of_object));
    assert_eq!(std::thread::scope(|scope| scope.spawn(|| in_force(&object)).join().unwrap()), Some(of_orb));
    orb.policy_current().set_policy_overrides(&[], SetOverrideType::SetOverride).unwrap();
    let private = object.with_policy(PrivateConnectionPolicy).unwrap();
    assert_eq!(private.policy(44).unwrap().and_then(|policy| policy.value().copied()), Some(PrivateConnectionPolicy));
}

/// INV_POLICY with the standard's minor code 1, COMPLETED_NO.
#[track_caller]
pub(super) fn assert_conflict(exception: &SystemException) {
    let expected = (SystemExceptionKind::InvPolicy, CompletionStatus::No);
    assert_eq!((kind_and_completion(exception), exception.minor()), (expected, minor::POLICY_CONFLICT), "{exception}");
}

#[test]
fn policies_that_cannot_be_reconciled_are_listed_and_end_calls() {
    let (port, received) = scripted(answer);
    let orb = client();
    let propagated = model(PriorityModel::ClientPropagated, 5);
    let exposed = PropagatedPolicy::PriorityBands(bands(&[(0, 99)]));
    let (own, others) = (bands(&[(0, 9)]), [10, 99]);
    // The object's policies, the client's bands, and the types of the inconsistent policies.
    let cases = [
        (vec![propagated.clone(), exposed.clone()], Some(own.clone()), vec![45]),
        (vec![], Some(own.clone()), vec![45]),
        (vec![exposed.clone()], None, vec![45]),
        (vec![propagated.clone()], Some(own.clone()), vec![45, 40]),
        (vec![model(PriorityModel::ServerDeclared, 10)], Some(own.clone()), vec![45, 40]),
    ];
    for (policies, client, expected) in cases {
        let mut target = target(&orb, &with_policies(port, &policies));
        if let Some(client) = client {
            target = target.with_policy(client).unwrap();
        }
        for priority in others {
            at_priority(priority, || {
                assert_conflict(&target.add(3, 4).unwrap_err());
                assert_conflict(&block_on(target.add_async(3, 4)).unwrap_err());
                let (is_valid, inconsistent) = target.as_object().validate_connection().unwrap();
                assert_eq!((is_valid, types(&inconsistent)), (false, expected.clone()), "{policies:?}");
            });
        }
    }
    assert!(received.lock().unwrap().is_empty(), "nothing was sent");
    let both = target(&orb, &with_policies(port, &[propagated, exposed])).with_policy(own).unwrap();
    assert_conflict(&both.as_object().policy(45).unwrap_err());
    assert_eq!(types(both.as_object().policy(40).unwrap().as_slice()), [40]);
}

#[test]
fn a_valid_connection_is_opened_by_a_locate_request() {
    let (port, received) = scripted(answer);
    let orb = client();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ServerDeclared, 5)]));
    assert_eq!(
        target.as_object().validate_connection().map(|(is_valid, policies)| (is_valid, policies.len())),
        Ok((true, 0))
    );
    let operations: Vec<_> = received.lock().unwrap().iter().map(|request| request.operation.clone()).collect();
    assert_eq!(operations, [""]);
}

#[test]
fn values_of_another_type_are_refused() {
    #[derive(Debug)]
    struct NoBands;

    impl PolicyValue for NoBands {
        fn policy_type(&self) -> u32 {
            45
        }

        fn scope(&self) -> PolicyScope {
            PolicyScope::Binding
        }
    }
    let orb = client();
    let target = target(&orb, &with_policies(1, &[model(PriorityModel::ServerDeclared, 5)]));
    assert_conflict(&target.with_policy(NoBands).unwrap().add(3, 4).unwrap_err());
}

/// A request that a server received: the number of its connection, the operation (empty for a LocateRequest), and the
/// contexts 10 and 11.
type Arrival = (usize, String, Vec<(u32, Vec<u8>)>);

/// The messages that a server has received, and the numbers of the connections that were closed.
#[derive(Default)]
struct Arrivals {
    requests: Vec<Arrival>,
    closed: Vec<usize>,
}

/// A server that records the connection of each request, and answers by `answer`.
fn recording(
    answer: impl Fn(&ReceivedRequest) -> Option<Vec<u8>> + Send + Sync + Copy + 'static,
) -> (u16, Arc<Mutex<Arrivals>>) {
    let arrivals = Arc::<Mutex<Arrivals>>::default();
    let log = Arc::clone(&arrivals);
    let port = fake_server(move |number, mut stream| {
        let log = Arc::clone(&log);
        std::thread::spawn(move || {
            while let Ok(message) = read_message(&mut stream) {
                if message[7] == MessageType::CloseConnection as u8 {
                    break;
                }
                let request = ReceivedRequest::read(&message);
                let mut contexts = request.contexts.clone();
                contexts
                    .retain(|(id, _)| [contexts::RT_CORBA_PRIORITY, contexts::RT_CORBA_PRIORITY_RANGE].contains(id));
                log.lock().unwrap().requests.push((number, request.operation.clone(), contexts));
                let _ = stream.write_all(&answer(&request).unwrap());
            }
            log.lock().unwrap().closed.push(number);
        });
    });
    (port, arrivals)
}

/// The connections of the received requests, and their operations.
fn connections(arrivals: &Mutex<Arrivals>) -> Vec<(usize, String)> {
    let requests = std::mem::take(&mut arrivals.lock().unwrap().requests);
    requests.into_iter().map(|(number, operation, _)| (number, operation)).collect()
}

fn numbers(arrivals: &Mutex<Arrivals>) -> Vec<usize> {
    connections(arrivals).into_iter().map(|(number, _)| number).collect()
}

const BANDS: [(i16, i16); 2] = [(0, 9), (10, 99)];

#[test]
fn calls_use_the_connection_of_their_band() {
    let (port, arrivals) = recording(answer);
    let orb = client();
    let ior = with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]);
    let target = target(&orb, &ior);
    assert_eq!(target.add(3, 4), Ok(7));
    let banded = target.with_policy(bands(&BANDS)).unwrap();
    for priority in [5, 50, 7, 10] {
        at_priority(priority, || {
            assert_eq!(banded.add(3, 4), Ok(7));
            assert_eq!(block_on(banded.add_async(3, 4)), Ok(7));
        });
    }
    assert_eq!(numbers(&arrivals), [0, 1, 1, 2, 2, 1, 1, 2, 2], "the first one is no band's");
    // Other references with the same bands share the connections; those without bands have the first one.
    let other = super::real_time::target(&orb, &ior).with_policy(bands(&BANDS)).unwrap();
    at_priority(50, || assert_eq!(other.add(3, 4), Ok(7)));
    at_priority(50, || assert_eq!(target.add(3, 4), Ok(7)));
    let inverse = target.with_policy(bands(&[(0, 49), (50, 99)])).unwrap();
    at_priority(50, || assert_eq!(inverse.add(3, 4), Ok(7)));
    assert_eq!(numbers(&arrivals), [2, 0, 3]);
}

#[test]
fn many_threads_of_one_band_share_its_connection() {
    let (port, arrivals) = recording(answer);
    let orb = client();
    let exposed = PropagatedPolicy::PriorityBands(bands(&BANDS));
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5), exposed]));
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let target = &target;
            scope.spawn(move || {
                at_priority(thread % 2 * 50, || (0..10).for_each(|_| assert_eq!(target.add(3, 4), Ok(7))))
            });
        }
    });
    let mut used = numbers(&arrivals);
    used.sort_unstable();
    assert_eq!((used.len(), used.first(), used.last()), (160, Some(&0), Some(&1)));
}

#[test]
fn the_servers_priority_selects_the_band_of_a_server_declared_object() {
    let (port, arrivals) = recording(answer);
    let orb = client();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ServerDeclared, 50)]));
    let banded = target.with_policy(bands(&BANDS)).unwrap();
    assert!(banded.as_object().validate_connection().unwrap().0);
    at_priority(5, || assert_eq!(banded.add(3, 4), Ok(7)));
    let expected = ["", "_bind_priority_band", "_non_existent", "add"].map(|operation| (0, operation.to_owned()));
    assert_eq!(connections(&arrivals), expected);
}

#[test]
fn explicit_binding_opens_and_binds_a_connection_for_each_band() {
    let (port, arrivals) = recording(answer);
    let orb = client();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    let banded = target.with_policy(bands(&BANDS)).unwrap();
    at_priority(50, || assert!(banded.as_object().validate_connection().unwrap().0));
    // The band of the calling thread comes first.
    let range = |low: i16, high: i16| {
        let order = u8::from(ByteOrder::NATIVE == ByteOrder::Little);
        let octets = [&[order, 0][..], &low.to_ne_bytes(), &high.to_ne_bytes()].concat();
        vec![(contexts::RT_CORBA_PRIORITY_RANGE, octets)]
    };
    let requests = std::mem::take(&mut arrivals.lock().unwrap().requests);
    let bind = "_bind_priority_band".to_owned();
    // The last one asks whether the server accepts the priority and the bands.
    let expected: [Arrival; 5] = [
        (0, String::new(), vec![]),
        (0, bind.clone(), range(10, 99)),
        (1, String::new(), vec![]),
        (1, bind, range(0, 9)),
        (0, "_non_existent".to_owned(), vec![(contexts::RT_CORBA_PRIORITY, octets(50).unwrap())]),
    ];
    assert_eq!(requests, expected);
    at_priority(5, || assert_eq!(banded.add(3, 4), Ok(7)));
    at_priority(99, || assert_eq!(banded.add(3, 4), Ok(7)));
    assert_eq!(numbers(&arrivals), [1, 0]);
}

/// Answers the implicit operation with this system exception.
fn refuse_binding(request: &ReceivedRequest, kind: &str) -> Option<Vec<u8>> {
    if request.operation != "_bind_priority_band" {
        return answer(request);
    }
    Some(request.reply(ReplyStatus::SystemException, |out| {
        out.short_str(&format!("IDL:omg.org/CORBA/{kind}:1.0")).unwrap();
        out.u32(0);
        out.u32(1);
    }))
}

#[test]
fn a_server_without_bands_is_bound_and_a_refusal_is_reported() {
    let (without, _) = recording(|request| refuse_binding(request, "BAD_OPERATION"));
    let (denying, _) = recording(|request| refuse_binding(request, "NO_PERMISSION"));
    let (without_lane, _) = recording(|request| refuse_binding(request, "INV_POLICY"));
    let orb = client();
    let validate = |port| {
        let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
        let banded = target.with_policy(bands(&BANDS)).unwrap();
        at_priority(5, || banded.as_object().validate_connection())
    };
    let validate = |port| validate(port).map(|(is_valid, inconsistent)| (is_valid, types(&inconsistent)));
    assert_eq!(validate(without), Ok((true, vec![])));
    assert_eq!(validate(without_lane), Ok((false, vec![45])), "the server has no lane for the band");
    assert_eq!(validate(denying).unwrap_err().kind(), SystemExceptionKind::NoPermission);
}

#[test]
fn a_private_connection_is_used_by_one_reference_and_closed_with_it() {
    let (port, arrivals) = recording(answer);
    let orb = client();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    assert_eq!(target.add(3, 4), Ok(7));
    let private = [0, 1].map(|_| target.with_policy(PrivateConnectionPolicy).unwrap());
    for _ in 0..2 {
        private.iter().for_each(|private| assert_eq!(private.add(3, 4), Ok(7)));
        assert_eq!(target.add(3, 4), Ok(7));
    }
    assert_eq!(numbers(&arrivals), [0, 1, 2, 0, 1, 2, 0]);
    let banded = private[0].with_policy(bands(&BANDS)).unwrap();
    at_priority(5, || assert_eq!(banded.add(3, 4), Ok(7)));
    at_priority(50, || assert_eq!(banded.add(3, 4), Ok(7)));
    assert_eq!(numbers(&arrivals), [3, 4], "a band's private connection");
    drop(banded);
    drop(private);
    wait_until("the private connections are closed", || {
        let mut closed = arrivals.lock().unwrap().closed.clone();
        closed.sort_unstable();
        closed == [1, 2, 3, 4]
    });
    assert_eq!(target.add(3, 4), Ok(7));
    assert_eq!(numbers(&arrivals), [0]);
}

#[test]
fn connections_of_bands_count_against_the_limit_of_the_orb() {
    let (port, arrivals) = recording(answer);
    let builder = Orb::builder().max_client_connections(1);
    let orb = builder.binding_policies(RtClient::new(&scheduling())).build().unwrap();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    let banded = target.with_policy(bands(&BANDS)).unwrap();
    for priority in [5, 50, 5] {
        at_priority(priority, || assert_eq!(banded.add(3, 4), Ok(7)));
    }
    assert_eq!(numbers(&arrivals), [0, 1, 2]);
    wait_until("the evicted connections are closed", || arrivals.lock().unwrap().closed.len() == 2);
}

#[test]
fn a_binding_follows_the_object_and_its_policies() {
    let (there, arrivals) = recording(answer);
    let forwarded = with_policies(there, &[model(PriorityModel::ServerDeclared, 500)]);
    let (here, _) =
        scripted(move |request| Some(request.located(LocateStatus::ObjectForward, |out| write_ior(&forwarded, out))));
    let orb = client();
    let target = target(&orb, &with_policies(here, &[model(PriorityModel::ClientPropagated, 5)]));
    let banded = target.with_policy(bands(&BANDS)).unwrap();
    let (is_valid, inconsistent) = at_priority(5, || banded.as_object().validate_connection()).unwrap();
    assert_eq!((is_valid, types(&inconsistent)), (false, vec![45, 40]), "no band has the priority 500");
    assert!(!connections(&arrivals).is_empty());
}

/// A connection that a [`Recorder`] opened.
#[derive(Debug, PartialEq)]
struct Opened {
    scheme: &'static str,
    no_delay: bool,
    keep_alive: bool,
    traffic_class: u8,
    priority: u32,
    send_queue: Option<usize>,
}

/// A protocol over TCP that records the options of its sockets.
#[derive(Debug)]
struct Recorder {
    scheme: &'static str,
    opened: Arc<Mutex<Vec<Opened>>>,
}

impl Protocol for Recorder {
    type Stream = inet::Stream;

    fn scheme(&self) -> &'static str {
        self.scheme
    }

    fn addresses(&self, profile: &IiopProfile) -> Vec<Address> {
        vec![Address::at_port(self.scheme, &profile.host, profile.port)]
    }

    fn connect(
        &self,
        address: &Address,
        timeout: Option<Duration>,
        sockets: &SocketSettings,
    ) -> io::Result<inet::Stream> {
        let stream = connect_inet(&Address::new("iiop", address.address()), timeout, sockets)?;
        self.opened.lock().unwrap().push(Opened {
            scheme: self.scheme,
            no_delay: stream.no_delay()?,
            keep_alive: stream.keep_alive()?,
            #[cfg(target_os = "linux")]
            traffic_class: stream.tos()?,
            #[cfg(not(target_os = "linux"))]
            traffic_class: sockets.tuning.and_then(|tuning| tuning.traffic_class).unwrap_or_default(),
            #[cfg(target_os = "linux")]
            priority: stream.priority()?,
            #[cfg(not(target_os = "linux"))]
            priority: sockets.tuning.and_then(|tuning| tuning.priority).unwrap_or_default(),
            send_queue: sockets.send_queue,
        });
        Ok(stream)
    }
}

/// Expedited forwarding, and the fifth queue of this host, from the priority 100 on.
#[derive(Debug)]
struct Expedited;

impl NetworkPriorityMapping for Expedited {
    fn to_network(&self, priority: Priority) -> Option<u8> {
        (priority.get() >= 100).then_some(46)
    }

    fn to_socket(&self, priority: Priority) -> Option<u32> {
        (priority.get() >= 100).then_some(5)
    }
}

/// A client with recorders in place of TCP and UNIX-domain sockets.
fn recording_client() -> (Orb, Arc<Mutex<Vec<Opened>>>) {
    let opened = Arc::<Mutex<Vec<Opened>>>::default();
    let recorder = |scheme| Recorder { scheme, opened: Arc::clone(&opened) };
    let client = RtClient::new(&scheduling()).network_priorities(Arc::new(Expedited));
    let builder = Orb::builder().protocol(recorder("iiop")).protocol(recorder("uds"));
    (builder.binding_policies(client).build().unwrap(), opened)
}

pub(super) fn protocols(list: &[(u32, Option<TransportProperties>)]) -> ClientProtocolPolicy {
    let protocol = |(protocol_type, transport): &(u32, Option<TransportProperties>)| rt::protocols::Protocol {
        protocol_type: *protocol_type,
        transport: transport.clone(),
    };
    ClientProtocolPolicy::new(list.iter().map(protocol).collect()).unwrap()
}

#[test]
fn sockets_have_the_properties_of_the_clients_protocol() {
    let (port, arrivals) = recording(answer);
    let (orb, opened) = recording_client();
    let mut tcp = TcpProtocolProperties::default();
    (tcp.keep_alive, tcp.no_delay, tcp.enable_network_priority) = (false, false, true);
    tcp.set_buffer_sizes(65_536, 0).unwrap();
    let policy = protocols(&[(rt::protocols::IIOP, Some(TransportProperties::Tcp(tcp)))]);
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    assert_eq!(target.add(3, 4), Ok(7));
    let target = target.with_policy(policy).unwrap();
    for priority in [100, 5, 200, 6] {
        at_priority(priority, || assert_eq!(target.add(3, 4), Ok(7)));
    }
    // Calls of equal network priorities share a connection.
    assert_eq!(numbers(&arrivals), [0, 1, 2, 1, 2]);
    let in_group = |traffic_class, priority| Opened {
        scheme: "iiop",
        no_delay: false,
        keep_alive: false,
        traffic_class,
        priority,
        send_queue: Some(65_536),
    };
    let mut opened = opened.lock().unwrap();
    let first = opened.remove(0);
    assert_eq!(
        (first.no_delay, first.keep_alive, first.traffic_class, first.priority, first.send_queue),
        (true, true, 0, 0, None),
        "of the ORB"
    );
    assert_eq!(*opened, [in_group(46 << 2, 5), in_group(0, 0)]);
}

#[test]
fn the_clients_protocols_are_tried_in_their_order() {
    let (port, _) = recording(answer);
    let (orb, opened) = recording_client();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    let (tcp, unix) = (rt::protocols::IIOP, rt::protocols::UNIX_DOMAIN);
    for (order, expected) in
        [(vec![unix, tcp], "uds"), (vec![tcp, unix], "iiop"), (vec![tcp], "iiop"), (vec![unix], "uds")]
    {
        let list: Vec<_> = order.into_iter().map(|number| (number, None)).collect();
        let target = target.with_policy(protocols(&list)).unwrap();
        assert_eq!(target.add(3, 4), Ok(7));
        assert_eq!(block_on(target.add_async(3, 4)), Ok(7));
        let schemes: Vec<_> = std::mem::take(&mut *opened.lock().unwrap()).iter().map(|opened| opened.scheme).collect();
        assert_eq!(schemes, [expected]);
    }
}

#[test]
fn a_reference_without_a_permitted_protocol_raises_inv_policy() {
    let (port, arrivals) = recording(answer);
    let orb = client();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    for number in [rt::protocols::SHARED_MEMORY, rt::protocols::DATAGRAMS, 4711] {
        let target = target.with_policy(protocols(&[(number, None)])).unwrap();
        assert_conflict(&target.add(3, 4).unwrap_err());
        let (is_valid, inconsistent) = target.as_object().validate_connection().unwrap();
        assert_eq!((is_valid, types(&inconsistent)), (false, vec![43]));
    }
    assert!(arrivals.lock().unwrap().requests.is_empty());
}

#[test]
fn the_protocols_in_a_reference_are_obeyed_and_contradict_those_of_the_client() {
    let (port, _) = recording(answer);
    let (orb, opened) = recording_client();
    let mut tcp = TcpProtocolProperties::default();
    tcp.set_buffer_sizes(65_536, 0).unwrap();
    let (iiop, unix) = (rt::protocols::IIOP, rt::protocols::UNIX_DOMAIN);
    let named = protocols(&[(iiop, Some(TransportProperties::Tcp(tcp)))]);
    let reference = |policy: &ClientProtocolPolicy| {
        let exposed = PropagatedPolicy::ClientProtocols(policy.clone());
        target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5), exposed]))
    };
    let named_target = reference(&named);
    at_priority(5, || assert_eq!(named_target.add(3, 4), Ok(7)));
    let sizes: Vec<_> = opened.lock().unwrap().iter().map(|opened| (opened.scheme, opened.send_queue)).collect();
    assert_eq!(sizes, [("iiop", Some(65_536))]);
    let in_force = named_target.as_object().policy(43).unwrap().unwrap();
    assert_eq!(in_force.value(), Some(&named));
    // 4.15.4: both is an error.
    let both = named_target.with_policy(protocols(&[(unix, None)])).unwrap();
    assert_conflict(&at_priority(5, || both.add(3, 4)).unwrap_err());
    let (is_valid, inconsistent) = at_priority(5, || both.as_object().validate_connection()).unwrap();
    assert_eq!((is_valid, types(&inconsistent)), (false, vec![43]));
}

/// A mapping to a number that is no code point.
#[derive(Debug)]
struct TooGreat;

impl NetworkPriorityMapping for TooGreat {
    fn to_network(&self, _: Priority) -> Option<u8> {
        Some(64)
    }
}

#[test]
fn a_network_priority_that_is_no_code_point_is_refused() {
    let client = RtClient::new(&scheduling()).network_priorities(Arc::new(TooGreat));
    let orb = Orb::builder().binding_policies(client).build().unwrap();
    let mut tcp = TcpProtocolProperties::default();
    tcp.enable_network_priority = true;
    let policy = protocols(&[(rt::protocols::IIOP, Some(TransportProperties::Tcp(tcp)))]);
    let target =
        target(&orb, &with_policies(1, &[model(PriorityModel::ServerDeclared, 5)])).with_policy(policy).unwrap();
    let exception = target.add(3, 4).unwrap_err();
    assert_eq!((exception.kind(), exception.minor()), (SystemExceptionKind::DataConversion, minor::PRIORITY_MAPPING));
}

/// Records the priority in the contexts of each request.
#[derive(Clone, Default)]
struct PriorityLog(Arc<Mutex<Vec<Option<i16>>>>);

impl Interceptor for PriorityLog {}

impl ServerRequestInterceptor for PriorityLog {
    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let context = info.request_service_context(contexts::RT_CORBA_PRIORITY);
        let sent: Vec<_> = context.into_iter().collect();
        let priority = contexts::find_priority(&ServiceContexts::from(&sent[..])).unwrap();
        self.0.lock().unwrap().push(priority.map(Priority::get));
        Ok(())
    }
}

/// The reference with the priority model CLIENT_PROPAGATED in each profile.
fn propagated(ior: &Ior) -> Ior {
    let mut ior = ior.clone();
    for tagged in &mut ior.profiles {
        let mut profile = IiopProfile::decode(tagged).unwrap().unwrap();
        profile.components.push(contexts::encode_policies(&[model(PriorityModel::ClientPropagated, 5)]).unwrap());
        *tagged = profile.encode().unwrap();
    }
    ior
}

#[test]
fn a_server_reads_the_priority_of_remote_and_collocated_calls() {
    let log = PriorityLog::default();
    let builder = Orb::builder().server_request_interceptor(log.clone()).unwrap();
    let server = Server::with(builder.binding_policies(RtClient::new(&scheduling())));
    let ior = propagated(server.object.ior());
    for orb in [client(), server.orb.clone()] {
        at_priority(300, || assert_eq!(target(&orb, &ior).add(3, 4), Ok(7)));
        at_priority(0, || assert_eq!(block_on(target(&orb, &ior).add_async(3, 4)), Ok(7)));
        assert_eq!(std::mem::take(&mut *log.0.lock().unwrap()), [Some(300), Some(0)]);
    }
}

#[test]
fn nested_calls_carry_the_priority_of_the_request_that_a_lane_runs() {
    let (port, received) = scripted(answer);
    let orb = client();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    let rt_orb = rt::RtOrb::<rt::BoxedJob>::new(scheduling());
    let priority = |number| Priority::new(number).unwrap();
    let lanes = [100, 2_000].map(|number| rt::LaneSettings {
        priority: priority(number),
        static_threads: 1,
        dynamic_threads: 0,
    });
    let id = rt_orb.create_threadpool_with_lanes(0, lanes.to_vec(), false, true, 0, 0).unwrap();
    let pool = rt_orb.threadpool(id).unwrap();
    for number in [2_000, 150] {
        let (target, (done, outcome)) = (target.clone(), std::sync::mpsc::channel());
        let job: rt::BoxedJob = Box::new(move |_| done.send(target.add(3, 4)).unwrap());
        assert!(pool.submit(rt::Work::new(priority(number), 1, job)).is_ok());
        assert_eq!(outcome.recv().unwrap(), Ok(7));
    }
    assert_eq!(priorities(&received), [octets(2_000), octets(150)]);
}

#[test]
fn buffered_one_ways_are_flushed_by_the_reference_that_sent_them() {
    let (port, arrivals) = recording(answer);
    let orb = client();
    let target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    let limits = BufferingConstraintPolicy { timeout: Duration::MAX, ..BufferingConstraintPolicy::default() };
    let private = target.with_policy(PrivateConnectionPolicy).unwrap().with_sync_scope(SyncScopePolicy::None);
    let private = private.with_policy(limits).unwrap();
    private.note(&[1]).unwrap();
    assert!(arrivals.lock().unwrap().requests.is_empty());
    private.as_object().flush().unwrap();
    wait_until("the one-way arrives", || !arrivals.lock().unwrap().requests.is_empty());
}

#[test]
fn the_most_urgent_call_that_waits_for_a_server_is_sent_first() {
    let (accept, accepted) = mpsc::channel();
    let port = fake_server(move |_, stream| drop(accept.send(stream)));
    let builder = Orb::builder().binding_policies(RtClient::new(&scheduling()));
    let orb = builder.socket_queues(Some(8192), Some(8192)).connections_per_peer(1).build().unwrap();
    let propagated = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    let declared = target(&orb, &with_policies(port, &[model(PriorityModel::ServerDeclared, 30_000)]));
    // More than the sockets take: the rest of a message that has begun comes before all others.
    let buffered = propagated.with_sync_scope(SyncScopePolicy::None);
    at_priority(9, || buffered.note(&[7; 1 << 20]).unwrap());
    wait_until("the sockets are full", || propagated.as_object().is_flow_controlled().unwrap());
    let call =
        |priority, target: &Target, text: &str| at_priority(priority, || target.echo_octets_async(text.as_bytes()));
    let _calls = [
        call(10, &propagated, "first"),
        call(10, &propagated, "second"),
        call(20_000, &propagated, "urgent"),
        call(10, &propagated, "third"),
        call(1, &declared, "declared"),
    ];
    let mut stream = accepted.recv_timeout(Duration::from_secs(60)).unwrap();
    let mut order = Vec::new();
    while order.len() < 5 {
        let message = read_message(&mut stream).unwrap();
        let texts = ["first", "second", "urgent", "third", "declared"];
        order.extend(texts.into_iter().find(|text| message.ends_with(text.as_bytes())));
    }
    assert_eq!(order, ["declared", "urgent", "first", "second", "third"]);
}
