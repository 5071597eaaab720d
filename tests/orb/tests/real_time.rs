//! Real-time CORBA on the client's side: policies in force, and the priority in requests.

use std::ops::RangeInclusive;
use std::sync::Arc;

use spandrel::{
    CompletionStatus, ObjectRef, Orb, SystemException, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    minor,
    policy::{OverrideError, Policy, PolicyValue, ReferencePolicies, SetOverrideType},
    rt::{
        LinearMapping, NativePriority, Priority, PriorityMapping, RtClient, RtCurrent, Scheduling, SchedulingClass,
        contexts::{self, PropagatedPolicy},
        policies::{
            PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy, PrivateConnectionPolicy,
            ServerProtocolPolicy, ThreadpoolPolicy,
        },
        protocols::Protocol,
    },
    types::{IiopProfile, Ior},
};
use spandrel_giop::{LocateStatus, ReplyStatus};
use spandrel_orb_tests::{
    probe::Target,
    scripted::{ReceivedLog, ReceivedRequest, ior_at, scripted},
    support::{block_on, kind_and_completion},
};

const ADD: SetOverrideType = SetOverrideType::AddOverride;

/// Threads keep their native priorities: these tests need no rights.
fn scheduling() -> Scheduling {
    Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping))
}

fn client() -> Orb {
    Orb::builder().binding_policies(RtClient::new(&scheduling())).build().unwrap()
}

/// Runs `call` in a thread of its own, with this priority.
fn at_priority<R: Send>(priority: i16, call: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            RtCurrent::new(scheduling()).set_the_priority(priority).unwrap();
            call()
        });
        thread.join().unwrap()
    })
}

fn model(model: PriorityModel, server_priority: i16) -> PropagatedPolicy {
    PropagatedPolicy::PriorityModel(PriorityModelPolicy {
        model,
        server_priority: Priority::new(server_priority).unwrap(),
    })
}

fn bands(ranges: &[(i16, i16)]) -> PriorityBandedConnectionPolicy {
    let bands = ranges.iter().map(|(low, high)| PriorityBand::new(*low, *high).unwrap());
    PriorityBandedConnectionPolicy::new(bands.collect()).unwrap()
}

/// A reference with these policies.
fn with_policies(port: u16, policies: &[PropagatedPolicy]) -> Ior {
    let mut ior = ior_at(port, GiopVersion::V1_2, "key");
    let mut profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    profile.components.push(contexts::encode_policies(policies).unwrap());
    ior.profiles = vec![profile.encode().unwrap()];
    ior
}

/// Answers each request with 7, and locates the object here.
fn answer(request: &ReceivedRequest) -> Option<Vec<u8>> {
    Some(match request.operation.is_empty() {
        true => request.located(LocateStatus::ObjectHere, |_| {}),
        false => request.reply(ReplyStatus::NoException, |out| out.i32(7)),
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

fn target(orb: &Orb, ior: &Ior) -> Target {
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

/// What TAO does as well (`RT_Invocation_Endpoint_Selectors.cpp`): the native priority is mapped, or else
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

fn types(policies: &[Policy]) -> Vec<u32> {
    policies.iter().map(Policy::policy_type).collect()
}

#[test]
fn policies_of_adapters_are_an_orbs_alone() {
    let orb = client();
    let object = orb.reference(ior_at(1, GiopVersion::V1_2, "key"));
    let iiop = Protocol { protocol_type: 0, transport: None };
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
fn assert_conflict(exception: &SystemException) {
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
    }
    let orb = client();
    let target = target(&orb, &with_policies(1, &[model(PriorityModel::ServerDeclared, 5)]));
    assert_conflict(&target.with_policy(NoBands).unwrap().add(3, 4).unwrap_err());
}
