//! ORBs without optional parts (`OrbBuilder::bare`), and parts that are plugged in one by one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, Poa, SystemExceptionKind,
    diagnostics::statistics::Event,
    interception::{ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption},
    options::WaitStrategy,
    policy::{Policy, RequestEndTimePolicy, SetOverrideType, SyncScopePolicy},
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{block_on, kind_and_completion},
};

const LOCATION: &str = "corbaloc:iiop:127.0.0.1:1/key";

#[test]
fn a_bare_client_calls_by_iiop() {
    let server = Server::start();
    assert_eq!(server.client_with(OrbBuilder::bare()).add(1, 2).unwrap(), 3);
}

#[test]
fn corbaloc_needs_the_url_forms() {
    let bare = OrbBuilder::bare().build().unwrap();
    let refused = bare.string_to_object(LOCATION).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::BadParam, "{refused}");
    assert!(OrbBuilder::bare().urls().build().unwrap().string_to_object(LOCATION).is_ok());
}

#[test]
fn a_bare_client_obeys_policies_once_they_are_set() {
    let server = Server::start();
    let target = server.client_with(OrbBuilder::bare());
    target.ping().unwrap();
    let passed = SystemTime::now() - Duration::from_secs(1);
    let late = target
        .as_object()
        .set_policy_overrides(&[RequestEndTimePolicy(passed).into()], SetOverrideType::AddOverride)
        .unwrap();
    let refused = Target::unchecked_narrow(&late).ping().unwrap_err();
    assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::Timeout, CompletionStatus::No), "{refused}");
    target.ping().unwrap();
}

struct Counting(Arc<AtomicUsize>);

impl Interceptor for Counting {}

impl ClientRequestInterceptor for Counting {
    fn send_request(&self, _: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_client_interceptor_is_plugged_in_by_its_registration() {
    let (server, sent) = (Server::start(), Arc::new(AtomicUsize::new(0)));
    let builder = OrbBuilder::bare().client_request_interceptor(Counting(Arc::clone(&sent))).unwrap();
    let target = server.client_with(builder);
    target.ping().unwrap();
    assert_eq!((target.add(1, 2).unwrap(), sent.load(Ordering::Relaxed)), (3, 2));
}

/// Uses every optional part of an ORB that has them all, and gives this ORB policies that let no call begin.
fn use_all_parts(server: &Server, sent: &Arc<AtomicUsize>) -> Orb {
    let builder = Orb::builder().metrics(true).wait_strategy(WaitStrategy::OnWaker);
    let orb = builder.client_request_interceptor(Counting(Arc::clone(sent))).unwrap().build().unwrap();
    Poa::root(&orb).unwrap();
    assert!(orb.string_to_object(LOCATION).is_ok());
    let object = orb.string_to_object(&server.ior()).unwrap();
    let target = Target::narrow(&object).unwrap();
    block_on(target.ping_async()).unwrap();
    let policies = orb.policy_manager();
    policies.set_policy_overrides(&[SyncScopePolicy::None.into()], SetOverrideType::AddOverride).unwrap();
    for _ in 0..50 {
        target.note(&[7; 100]).unwrap();
    }
    assert_eq!(target.count().unwrap(), 50);
    assert!(orb.statistics().count(Event::OneWayBatched) > 0);
    let passed = RequestEndTimePolicy(SystemTime::now() - Duration::from_secs(1));
    policies.set_policy_overrides(&[passed.into()], SetOverrideType::AddOverride).unwrap();
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Timeout);
    assert!(sent.load(Ordering::Relaxed) > 0 && orb.render_metrics().contains("spandrel_call_seconds_count"));
    orb
}

#[test]
fn no_part_or_policy_of_an_orb_changes_the_calls_of_a_bare_one() {
    let (server, sent) = (Server::start(), Arc::new(AtomicUsize::new(0)));
    let bare = || {
        let orb = OrbBuilder::bare().build().unwrap();
        let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
        (orb, target)
    };
    let earlier = bare();
    earlier.1.ping().unwrap();
    let full = use_all_parts(&server, &sent);
    let end_time_type = Policy::from(RequestEndTimePolicy(SystemTime::now())).policy_type();
    assert!(full.string_to_object(&server.ior()).unwrap().client_policy(end_time_type).is_some());
    let sent_by_full = sent.load(Ordering::Relaxed);
    let count = server.client().count().unwrap();
    // Also an ORB that was created before the parts of the other one.
    for (round, (orb, target)) in (1..).zip([earlier, bare()]) {
        for _ in 0..10 {
            target.note(&[7; 100]).unwrap();
        }
        assert_eq!((target.add(1, 2).unwrap(), target.count().unwrap()), (3, count + 10 * round));
        let refused = orb.string_to_object(LOCATION).unwrap_err();
        assert_eq!(refused.kind(), SystemExceptionKind::BadParam, "{refused}");
        assert!(target.as_object().client_policy(end_time_type).is_none());
        assert_eq!(orb.statistics().count(Event::OneWayBatched), 0);
        assert!(!orb.render_metrics().contains("spandrel_call_seconds_count"));
    }
    assert_eq!(sent.load(Ordering::Relaxed), sent_by_full, "no call of another ORB is intercepted");
}
