//! Client policies: precedence between object, thread and ORB, and their effects on calls (CORBA 3.3 Part 1,
//! 8.9 and 17.2).

use std::{
    io::Write,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant, SystemTime},
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, SystemException, SystemExceptionKind, minor,
    policy::{
        ConnectionTimeoutPolicy, OverrideError, Policy, PolicyErrorCode, PolicyFactory, PolicyType, PolicyValue,
        RebindPolicy, RelativeRequestTimeoutPolicy, RelativeRoundtripTimeoutPolicy, ReplyEndTimePolicy,
        RequestEndTimePolicy, SetOverrideType, SyncScopePolicy, UtcT,
    },
    types::Any,
};
use spandrel_cdr::{Encoder, GiopVersion, Wire};
use spandrel_giop::{LocateStatus, MessageType, ReplyStatus, bare_message, begin_locate_reply, begin_reply};
use spandrel_orb_tests::{
    Server,
    probe::{Target, TargetSkeleton},
    support::{
        TEST_TIMEOUT, block_on, fake_server, in_background, kind_and_completion, read_message,
        retry_with_longer_timeout, wait_until,
    },
};

const REBIND: PolicyType = 23;
const SYNC_SCOPE: PolicyType = 24;
const ROUND_TRIP: PolicyType = 32;

/// A timeout within which a call normally reaches a server of this process.
const SHORT: Duration = Duration::from_millis(100);

const ADD: SetOverrideType = SetOverrideType::AddOverride;

fn with(target: &Target, policy: impl Into<Policy>) -> Target {
    Target::unchecked_narrow(&target.as_object().set_policy_overrides(&[policy.into()], ADD).unwrap())
}

fn scope_of(object: &ObjectRef) -> SyncScopePolicy {
    *object.client_policy(SYNC_SCOPE).unwrap().value().unwrap()
}

#[track_caller]
fn assert_kind(
    outcome: Result<impl std::fmt::Debug, SystemException>,
    kind: SystemExceptionKind,
    status: CompletionStatus,
) {
    assert_eq!(kind_and_completion(&outcome.unwrap_err()), (kind, status));
}

// 8.9.1: object scope, then Current scope, then ORB scope, then the default.
#[test]
fn object_policies_precede_thread_policies_and_those_precede_orb_policies() {
    let server = Server::start();
    let target = server.client();
    let object = target.as_object().clone();
    let orb = object.orb().clone();
    assert_eq!(scope_of(&object), SyncScopePolicy::WithTransport);
    orb.policy_manager().set_policy_overrides(&[SyncScopePolicy::None.into()], ADD).unwrap();
    assert_eq!(scope_of(&object), SyncScopePolicy::None);
    orb.policy_current().set_policy_overrides(&[SyncScopePolicy::WithServer.into()], ADD).unwrap();
    assert_eq!(scope_of(&object), SyncScopePolicy::WithServer);
    let own = object.set_policy_overrides(&[SyncScopePolicy::WithTarget.into()], ADD).unwrap();
    assert_eq!(scope_of(&own), SyncScopePolicy::WithTarget);
    assert_eq!(scope_of(&object), SyncScopePolicy::WithServer, "the original reference is unchanged");
    let elsewhere = object.clone();
    let in_thread = in_background(move || scope_of(&elsewhere)).recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(in_thread, SyncScopePolicy::None, "thread policies apply to their thread only");
    let other = Orb::builder().build().unwrap().reference(object.ior().clone());
    assert_eq!(scope_of(&other), SyncScopePolicy::WithTransport, "ORB policies apply to their ORB only");
    orb.policy_current().set_policy_overrides(&[], SetOverrideType::SetOverride).unwrap();
    assert_eq!(scope_of(&object), SyncScopePolicy::None);
    assert!(orb.policy_current().policy_overrides(&[]).is_empty());
    let set = own.policy_overrides(&[]);
    assert_eq!(set.iter().map(Policy::policy_type).collect::<Vec<_>>(), [SYNC_SCOPE]);
}

// 17.2.4.6, on the reference, the ORB and the thread.
#[test]
fn a_roundtrip_timeout_applies_on_reference_orb_and_thread() {
    let server = Server::start();
    let call_until_maybe = |call: &dyn Fn(Policy) -> Result<(), SystemException>| {
        retry_with_longer_timeout(SHORT, |time| {
            let ended = call(RelativeRoundtripTimeoutPolicy(time).into()).unwrap_err();
            assert_eq!(ended.kind(), SystemExceptionKind::Timeout);
            (ended.completed() == CompletionStatus::Maybe).then_some(time)
        })
    };
    call_until_maybe(&|limit| with(&server.client(), limit).hold(1));
    let of_orb = server.client();
    let manager = of_orb.as_object().orb().policy_manager();
    let time = call_until_maybe(&|limit| {
        manager.set_policy_overrides(&[limit], ADD).unwrap();
        of_orb.hold(1)
    });
    assert_eq!(of_orb.as_object().timeout(), Some(time));
    assert_eq!(Target::unchecked_narrow(&of_orb.as_object().with_timeout(None)).as_object().timeout(), None);
    let of_thread = server.client();
    let current = of_thread.as_object().orb().policy_current();
    for call in [|target: &Target| target.hold(1), |target: &Target| block_on(target.hold_async(1))] {
        call_until_maybe(&|limit| {
            current.set_policy_overrides(&[limit], ADD).unwrap();
            call(&of_thread)
        });
    }
    current.set_policy_overrides(&[], SetOverrideType::SetOverride).unwrap();
    server.probe.open(1);
    of_thread.hold(1).unwrap();
}

#[test]
fn the_request_timeout_setting_is_a_policy_of_the_orb() {
    let orb = Orb::builder().request_timeout(Some(SHORT)).build().unwrap();
    let set = orb.policy_manager().policy_overrides(&[ROUND_TRIP]);
    assert_eq!(set[0].value(), Some(&RelativeRoundtripTimeoutPolicy(SHORT)));
    assert!(orb.policy_manager().policy_overrides(&[SYNC_SCOPE]).is_empty());
}

// 17.2.4.2, 17.2.4.4, 17.2.4.5.
#[test]
fn expired_end_times_and_request_timeouts_fail_before_sending() {
    let server = Server::start();
    let target = server.client();
    target.ping().unwrap();
    let past = SystemTime::now() - Duration::from_secs(1);
    let (request, reply) = (minor::REQUEST_EXPIRED, minor::ROUND_TRIP_EXPIRED);
    for (policy, expired) in [
        (RequestEndTimePolicy(past).into(), request),
        (ReplyEndTimePolicy(past).into(), reply),
        (RelativeRequestTimeoutPolicy(Duration::ZERO).into(), request),
        (RelativeRoundtripTimeoutPolicy(Duration::ZERO).into(), reply),
    ] as [(Policy, u32); 4]
    {
        let limited = with(&target, policy);
        assert_eq!(limited.ping().unwrap_err().minor(), expired);
        assert_kind(limited.ping(), SystemExceptionKind::Timeout, CompletionStatus::No);
        assert_kind(limited.note(&[7]), SystemExceptionKind::Timeout, CompletionStatus::No);
        assert_kind(block_on(limited.ping_async()), SystemExceptionKind::Timeout, CompletionStatus::No);
    }
    assert_eq!(target.count().unwrap(), 0, "nothing was sent");
    retry_with_longer_timeout(SHORT, |time| {
        let ended = with(&target, ReplyEndTimePolicy(SystemTime::now() + time)).hold(1).unwrap_err();
        (ended.completed() == CompletionStatus::Maybe).then(|| assert_eq!(ended.kind(), SystemExceptionKind::Timeout))
    });
    server.probe.open(1);
    with(&target, ReplyEndTimePolicy(SystemTime::now() + TEST_TIMEOUT)).ping().unwrap();
}

// 17.2.4.5: the policy limits the delivery of the request, not of the reply.
#[test]
fn a_reply_may_arrive_after_the_request_timeout() {
    let server = Server::start();
    let limited = with(&server.client(), RelativeRequestTimeoutPolicy(SHORT * 10));
    limited.ping().unwrap();
    let begun = Instant::now();
    let held = in_background(move || limited.hold(1));
    server.probe.await_held(1);
    while begun.elapsed() < SHORT * 12 {
        std::thread::yield_now();
    }
    server.probe.open(1);
    held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

/// Outcomes of a one-way request that fails in the servant, and of one to a deactivated object.
fn one_way_outcomes(server: &Server, client: &Target, scope: SyncScopePolicy) -> [Result<(), SystemExceptionKind>; 2] {
    let deactivated = server.poa.activate(TargetSkeleton::new(Arc::clone(&server.probe))).unwrap();
    server.poa.deactivate(&deactivated).unwrap();
    let deactivated = Target::unchecked_narrow(&client.as_object().orb().reference(deactivated.ior().clone()));
    let kind = |outcome: Result<(), SystemException>| outcome.map_err(|error| error.kind());
    let outcome = |target: &Target| {
        let target = with(target, scope);
        let (blocking, polled) = (kind(target.note(&[8])), kind(block_on(target.note_async(&[8]))));
        assert_eq!(blocking, polled);
        blocking
    };
    [outcome(client), outcome(&deactivated)]
}

// 17.2.2.1: the outcomes that a client of each scope observes.
#[test]
fn a_one_way_returns_according_to_its_sync_scope() {
    let server = Server::start();
    let (unknown, deactivated) = (Err(SystemExceptionKind::Unknown), Err(SystemExceptionKind::ObjectNotExist));
    // From another ORB, and collocated.
    for client in [server.client(), Target::unchecked_narrow(&server.object)] {
        let outcomes = |scope| one_way_outcomes(&server, &client, scope);
        assert_eq!(outcomes(SyncScopePolicy::WithServer), [Ok(()), deactivated]);
        assert_eq!(outcomes(SyncScopePolicy::WithTarget), [unknown, deactivated]);
    }
    let client = server.client();
    assert_eq!(one_way_outcomes(&server, &client, SyncScopePolicy::None), [Ok(()), Ok(())]);
    assert_eq!(one_way_outcomes(&server, &client, SyncScopePolicy::WithTransport), [Ok(()), Ok(())]);
    let target = server.client();
    for count in 1..=3 {
        with(&target, SyncScopePolicy::WithTarget).note(&[7]).unwrap();
        assert_eq!(server.client().count().unwrap(), count, "the operation has run when the call returns");
    }
}

// With WITH_SERVER forwarding works before the target runs (17.2.2.1).
#[test]
fn a_synchronised_one_way_follows_a_forwarding() {
    let (old, new) = (Server::start(), Server::start());
    let there = old.orb.reference(new.object.ior().clone());
    old.poa.forward(&old.object, there).unwrap();
    for scope in [SyncScopePolicy::WithServer, SyncScopePolicy::WithTarget] {
        with(&Target::unchecked_narrow(old.client().as_object()), scope).note(&[7]).unwrap();
    }
    wait_until("both", || new.probe.counted() == 2);
}

/// Answers Requests and LocateRequests until `goes_on` returns false for a message; then sends
/// CloseConnection.
fn answer_until(mut stream: TcpStream, mut goes_on: impl FnMut(&[u8]) -> bool) {
    while let Ok(message) = read_message(&mut stream) {
        let wire = Wire::default();
        let id = u32::from_ne_bytes(message[12..16].try_into().unwrap());
        let mut out = Encoder::new(wire);
        let body = match message[7] {
            kind if kind == MessageType::LocateRequest as u8 => {
                begin_locate_reply(&mut out, id, LocateStatus::ObjectHere)
            }
            _ if message[16] & 1 == 0 => {
                goes_on(&message);
                continue;
            }
            _ => begin_reply(&mut out, id, ReplyStatus::NoException, &[]),
        };
        body.end(&mut out).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        if !goes_on(&message) {
            // Later messages are not processed (9.4.6).
            stream.write_all(&bare_message(wire.version, wire.order, MessageType::CloseConnection)).unwrap();
            return;
        }
    }
}

fn fake_target(port: u16) -> Target {
    let orb = Orb::builder().build().unwrap();
    Target::unchecked_narrow(&orb.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap())
}

// Part 2, 9.4.2.1: the flags of a GIOP 1.2 request.
#[test]
fn the_sync_scope_determines_the_response_flags() {
    let (send, flags) = mpsc::channel();
    let port = fake_server(move |_, stream| {
        answer_until(stream, |message| send.send(message[16]).is_ok());
    });
    let target = fake_target(port);
    for (scope, expected) in [
        (SyncScopePolicy::None, 0),
        (SyncScopePolicy::WithTransport, 0),
        (SyncScopePolicy::WithServer, 1),
        (SyncScopePolicy::WithTarget, 3),
    ] {
        with(&target, scope).note(&[7]).unwrap();
        assert_eq!(flags.recv_timeout(TEST_TIMEOUT).unwrap(), expected, "{scope:?}");
    }
}

// Before GIOP 1.2 there is one flag: whether a reply is expected.
#[test]
fn giop_1_0_and_1_1_wait_for_the_reply_of_a_synchronised_one_way() {
    let server = Server::start();
    for version in [GiopVersion::V1_0, GiopVersion::V1_1] {
        let target = with(&server.client_with(Orb::builder().giop_version(version)), SyncScopePolicy::WithTarget);
        let before = server.client().count().unwrap();
        target.note(&[7]).unwrap();
        assert_eq!(server.client().count().unwrap(), before + 1);
    }
}

// 17.2.1.2: the policy applies to a bound reference only.
#[test]
fn a_bound_reference_that_must_not_be_rebound_raises_rebind() {
    for rebind in [RebindPolicy::NoRebind, RebindPolicy::NoReconnect] {
        let (old, new) = (Server::start(), Server::start());
        let (bound, unbound) = (with(&old.client(), rebind), with(&old.client(), rebind));
        bound.ping().unwrap();
        old.poa.forward(&old.object, old.orb.reference(new.object.ior().clone())).unwrap();
        assert_kind(bound.ping(), SystemExceptionKind::Rebind, CompletionStatus::No);
        assert_kind(block_on(bound.ping_async()), SystemExceptionKind::Rebind, CompletionStatus::No);
        with(&bound, RebindPolicy::Transparent).ping().unwrap();
        unbound.ping().unwrap();
        // 8.3.10: validate_connection may rebind explicitly.
        assert!(bound.as_object().validate_connection().unwrap().0);
        bound.ping().unwrap();
        assert_eq!(new.client().add(1, 1).unwrap(), 2);
    }
}

// The policy of the thread applies too, also to a reference that was bound under another policy.
#[test]
fn a_no_rebind_policy_of_the_thread_applies_to_references_bound_before() {
    let (old, new) = (Server::start(), Server::start());
    let target = old.client();
    target.ping().unwrap();
    old.poa.forward(&old.object, old.orb.reference(new.object.ior().clone())).unwrap();
    let current = target.as_object().orb().policy_current();
    current.set_policy_overrides(&[RebindPolicy::NoRebind.into()], ADD).unwrap();
    assert_kind(target.ping(), SystemExceptionKind::Rebind, CompletionStatus::No);
    current.set_policy_overrides(&[], SetOverrideType::SetOverride).unwrap();
    target.ping().unwrap();
}

// 17.2.1.2, NO_RECONNECT.
#[test]
fn a_closed_connection_is_reopened_under_no_rebind_but_not_under_no_reconnect() {
    for is_allowed in [true, false] {
        // Each connection ends after one answer.
        let (ended, closed) = mpsc::channel();
        let port = fake_server(move |_, stream| {
            answer_until(stream, |_| false);
            let _ = ended.send(());
        });
        let rebind = if is_allowed { RebindPolicy::NoRebind } else { RebindPolicy::NoReconnect };
        let target = with(&fake_target(port), rebind);
        target.ping().unwrap();
        closed.recv_timeout(TEST_TIMEOUT).unwrap();
        if is_allowed {
            target.ping().unwrap();
            continue;
        }
        assert_kind(target.ping(), SystemExceptionKind::Rebind, CompletionStatus::No);
        assert_kind(target.ping(), SystemExceptionKind::Rebind, CompletionStatus::No);
        assert_kind(block_on(target.ping_async()), SystemExceptionKind::Rebind, CompletionStatus::No);
    }
}

#[test]
fn validate_connection_reopens_a_connection_under_no_reconnect() {
    let answered = Arc::new(AtomicBool::new(false));
    let stays_open = Arc::clone(&answered);
    let (ended, closed) = mpsc::channel();
    let port = fake_server(move |_, stream| {
        answer_until(stream, |_| stays_open.load(Ordering::SeqCst));
        let _ = ended.send(());
    });
    let target = with(&fake_target(port), RebindPolicy::NoReconnect);
    target.ping().unwrap();
    closed.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_kind(target.ping(), SystemExceptionKind::Rebind, CompletionStatus::No);
    answered.store(true, Ordering::SeqCst);
    assert!(target.as_object().validate_connection().unwrap().0);
    target.ping().unwrap();
}

#[test]
fn validate_connection_raises_object_not_exist_for_a_deactivated_object() {
    let server = Server::start();
    let target = server.client();
    server.poa.deactivate(&server.object).unwrap();
    let refused = target.as_object().validate_connection();
    assert_kind(refused, SystemExceptionKind::ObjectNotExist, CompletionStatus::No);
}

// 8.3.9: adapter policies are refused for clients; 30 is the standard's minor code for two policies of a
// type.
#[test]
fn adapter_policies_and_duplicate_types_are_refused_for_clients() {
    #[derive(Debug)]
    struct Foreign(PolicyType);
    impl PolicyValue for Foreign {
        fn policy_type(&self) -> PolicyType {
            self.0
        }
    }
    let orb = Orb::builder().build().unwrap();
    let set = |policies: &[Policy]| orb.policy_manager().set_policy_overrides(policies, ADD).unwrap_err();
    let system = |error: OverrideError| SystemException::from(error).kind();
    assert_eq!(system(set(&[Foreign(16).into()])), SystemExceptionKind::NoPermission);
    assert_eq!(system(set(&[Foreign(99).into(), Foreign(99).into()])), SystemExceptionKind::BadParam);
    let wrong = set(&[Foreign(99).into(), Foreign(REBIND).into()]);
    assert_eq!(wrong, OverrideError::InvalidPolicies { indices: vec![1], types: vec![REBIND] });
    assert!(orb.policy_manager().policy_overrides(&[]).is_empty(), "nothing was set");
    orb.policy_manager().set_policy_overrides(&[Foreign(99).into()], ADD).unwrap();
    assert_eq!(orb.policy_manager().policy_overrides(&[]).len(), 1);
}

// 8.8.2 and the values of 17.2.
#[test]
fn create_policy_accepts_the_standards_values() {
    let orb = Orb::builder().build().unwrap();
    let of = |policy_type, any: &Any| orb.create_policy(policy_type, any);
    let short = |value: i16| Any::new(value).unwrap();
    assert_eq!(of(REBIND, &short(2)).unwrap().value(), Some(&RebindPolicy::NoReconnect));
    assert_eq!(of(SYNC_SCOPE, &short(1)).unwrap().value(), Some(&SyncScopePolicy::WithTransport));
    assert_eq!(of(REBIND, &short(3)).unwrap_err().reason, PolicyErrorCode::BadPolicyValue);
    assert_eq!(of(REBIND, &short(-1)).unwrap_err().reason, PolicyErrorCode::UnsupportedPolicyValue);
    assert_eq!(of(REBIND, &Any::new(2i32).unwrap()).unwrap_err().reason, PolicyErrorCode::BadPolicyType);
    let time = Any::new(15_000_000u64).unwrap();
    let limit = Duration::from_millis(1500);
    assert_eq!(of(31, &time).unwrap().value(), Some(&RelativeRequestTimeoutPolicy(limit)));
    assert_eq!(of(32, &time).unwrap().value(), Some(&RelativeRoundtripTimeoutPolicy(limit)));
    assert_eq!(of(0x5441_0008, &time).unwrap().value(), Some(&ConnectionTimeoutPolicy(limit)));
    let epoch = UtcT { time: 0x01b2_1dd2_1381_4000, ..UtcT::default() };
    let point = Any::new(epoch).unwrap();
    assert_eq!(of(28, &point).unwrap().value(), Some(&RequestEndTimePolicy(SystemTime::UNIX_EPOCH)));
    assert_eq!(of(30, &point).unwrap().value(), Some(&ReplyEndTimePolicy(SystemTime::UNIX_EPOCH)));
    let text = "cannot create a policy of type 23 (REBIND_POLICY_TYPE) from the short 3: the value is invalid for this \
                policy type";
    assert_eq!(of(REBIND, &short(3)).unwrap_err().to_string(), text);
    assert_eq!(of(33, &short(0)).unwrap_err().reason, PolicyErrorCode::UnsupportedPolicy);
    assert_eq!(of(4_000_000, &short(0)).unwrap_err().reason, PolicyErrorCode::BadPolicyType);
}

// 16.7.2.12, 16.7.3.
#[test]
fn a_registered_policy_factory_creates_other_policy_types() {
    #[derive(Debug, PartialEq)]
    struct Colour(i32);
    impl PolicyValue for Colour {
        fn policy_type(&self) -> PolicyType {
            5000
        }
    }
    struct ColourFactory;
    impl PolicyFactory for ColourFactory {
        fn create_policy(&self, _: PolicyType, value: &Any) -> Result<Policy, PolicyErrorCode> {
            value.extract().map(|colour| Colour(colour).into()).map_err(|_| PolicyErrorCode::BadPolicyValue)
        }
    }
    let server = Server::start();
    let object = server.client().as_object().clone();
    let orb = object.orb();
    assert_eq!(object.policy(5000).unwrap_err().minor(), minor::UNKNOWN_POLICY_TYPE);
    orb.register_policy_factory(5000, spandrel::net::sync::Arc::new(ColourFactory)).unwrap();
    assert!(object.policy(5000).unwrap().is_none());
    let created = orb.create_policy(5000, &Any::new(7i32).unwrap()).unwrap();
    let coloured = object.set_policy_overrides(&[created], ADD).unwrap();
    assert_eq!(coloured.policy(5000).unwrap().unwrap().value(), Some(&Colour(7)));
    let refused = orb.create_policy(5000, &Any::new("red").unwrap()).unwrap_err();
    let text =
        "cannot create a policy of type 5000 from a value of type `string`: the value is invalid for this policy type";
    assert_eq!(refused.to_string(), text);
    for taken in [5000, REBIND] {
        let again = orb.register_policy_factory(taken, spandrel::net::sync::Arc::new(ColourFactory)).unwrap_err();
        assert_eq!((again.kind(), again.minor()), (SystemExceptionKind::BadInvOrder, minor::POLICY_FACTORY_REGISTERED));
    }
}
