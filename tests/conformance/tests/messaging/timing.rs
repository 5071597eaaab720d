//! Request and reply timing (17.2.4).

use std::time::{Duration, Instant, SystemTime};

use spandrel::{
    Any, CompletionStatus, Orb, Policy, PolicyType, SystemException, SystemExceptionKind, minor,
    policies::{
        PolicyError, RelativeRequestTimeoutPolicy, RelativeRoundtripTimeoutPolicy, ReplyEndTimePolicy,
        ReplyStartTimePolicy, RequestEndTimePolicy, RequestStartTimePolicy, SetOverrideType, UtcT,
    },
};
use spandrel_conformance_tests::{
    idl::conformance::Subject,
    support::{Gate, PATIENCE, Pair, gated, in_background, named},
};

const REQUEST_START_TIME: PolicyType = 27;
const REQUEST_END_TIME: PolicyType = 28;
const REPLY_START_TIME: PolicyType = 29;
const REPLY_END_TIME: PolicyType = 30;
const RELATIVE_REQ_TIMEOUT: PolicyType = 31;
const RELATIVE_RT_TIMEOUT: PolicyType = 32;

/// Long enough for a call to get to a server of this process, mostly.
const SHORT: Duration = Duration::from_millis(100);
/// The same on any machine.
const LONGER: Duration = Duration::from_millis(1500);

fn with(subject: &Subject, policies: &[Policy]) -> Subject {
    let object = subject.as_object().set_policy_overrides(policies, SetOverrideType::AddOverride);
    Subject::unchecked_narrow(&object.expect("policies of clients"))
}

#[track_caller]
fn assert_timeout<T: std::fmt::Debug>(outcome: Result<T, SystemException>, minor: u32, status: CompletionStatus) {
    let exception = outcome.unwrap_err();
    assert_eq!(
        (exception.kind(), exception.minor(), exception.completed()),
        (SystemExceptionKind::Timeout, minor, status),
        "{exception}"
    );
}

/// How a call ends whose time is up while it waits: with more time as long as that is up before the request is sent.
fn late(call: impl Fn(Duration) -> Result<String, SystemException>) -> Result<String, SystemException> {
    let mut time = SHORT;
    loop {
        let outcome = call(time);
        let was_sent =
            outcome.as_ref().map_or_else(|exception| exception.completed() != CompletionStatus::No, |_| true);
        if was_sent || time > PATIENCE {
            return outcome;
        }
        time *= 4;
    }
}

fn soon() -> SystemTime {
    SystemTime::now() + SHORT
}

fn past() -> SystemTime {
    SystemTime::now() - SHORT
}

// 17.2.4.1 to 17.2.4.4: "a value of type TimeBase::UtcT is passed to CORBA::ORB::create_policy".
#[test]
fn points_in_time_are_made_from_utc_times() {
    let orb = Orb::builder().build().unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let value = Any::new(&UtcT::from_system_time(at).unwrap()).unwrap();
    let made = |policy_type| orb.create_policy(policy_type, &value).unwrap();
    assert_eq!(made(REQUEST_START_TIME).value(), Some(&RequestStartTimePolicy(at)));
    assert_eq!(made(REQUEST_END_TIME).value(), Some(&RequestEndTimePolicy(at)));
    assert_eq!(made(REPLY_START_TIME).value(), Some(&ReplyStartTimePolicy(at)));
    assert_eq!(made(REPLY_END_TIME).value(), Some(&ReplyEndTimePolicy(at)));
    for policy_type in REQUEST_START_TIME..=REPLY_END_TIME {
        assert_eq!(made(policy_type).policy_type(), policy_type);
        let span = Any::new(&1_u64).unwrap();
        assert_eq!(orb.create_policy(policy_type, &span).unwrap_err(), PolicyError::BadPolicyType);
    }
}

// 17.2.4.5 and 17.2.4.6: "a value of type TimeBase::TimeT is passed", in units of 100 ns.
#[test]
fn relative_limits_are_made_from_spans() {
    let orb = Orb::builder().build().unwrap();
    let value = Any::new(&15_u64).unwrap();
    let span = Duration::from_nanos(1500);
    let made = |policy_type| orb.create_policy(policy_type, &value).unwrap();
    assert_eq!(made(RELATIVE_REQ_TIMEOUT).value(), Some(&RelativeRequestTimeoutPolicy(span)));
    assert_eq!(made(RELATIVE_RT_TIMEOUT).value(), Some(&RelativeRoundtripTimeoutPolicy(span)));
}

// 17.2.4.1: "the time after which a request may be delivered to its target", for "both synchronous and asynchronous invocations".
#[test]
fn a_request_is_delivered_after_its_start_time() {
    let pair = Pair::new();
    for subject in pair.ways(&pair.root.activate_shared(named("a")).unwrap()) {
        let begun = Instant::now();
        assert_eq!(with(&subject, &[RequestStartTimePolicy(soon()).into()]).name().unwrap(), "a");
        assert!(begun.elapsed() >= SHORT);
        assert_eq!(with(&subject, &[RequestStartTimePolicy(past()).into()]).name().unwrap(), "a");
    }
}

// 17.2.4.2: "the time after which a request may no longer be delivered to its target".
#[test]
fn a_request_is_not_delivered_after_its_end_time() {
    let pair = Pair::new();
    for subject in pair.ways(&pair.root.activate_shared(named("a")).unwrap()) {
        let late = with(&subject, &[RequestEndTimePolicy(past()).into()]);
        assert_timeout(late.name(), minor::REQUEST_EXPIRED, CompletionStatus::No);
        let in_time = with(&subject, &[RequestEndTimePolicy(SystemTime::now() + PATIENCE).into()]);
        assert_eq!(in_time.name().unwrap(), "a");
    }
}

// 17.2.4.3: "the time after which a reply may be delivered to the client".
#[test]
fn a_reply_is_delivered_after_its_start_time() {
    let pair = Pair::new();
    for subject in pair.ways(&pair.root.activate_shared(named("a")).unwrap()) {
        let begun = Instant::now();
        assert_eq!(with(&subject, &[ReplyStartTimePolicy(soon()).into()]).name().unwrap(), "a");
        assert!(begun.elapsed() >= SHORT);
    }
}

// 17.2.4.4: "the time after which a reply may no longer be obtained or returned to the client".
#[test]
fn a_reply_is_not_waited_for_after_its_end_time() {
    let pair = Pair::new();
    let gate = Gate::default();
    let subject = pair.seen(&pair.root.activate_shared(gated("a", &gate)).unwrap());
    let outcome = late(|time| with(&subject, &[ReplyEndTimePolicy(SystemTime::now() + time).into()]).wait());
    assert_timeout(outcome, minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe);
    gate.release();
    assert_eq!(with(&subject, &[ReplyEndTimePolicy(SystemTime::now() + PATIENCE).into()]).wait().unwrap(), "a");
}

// 17.2.4.5: "the relative amount of time for which a Request may be delivered"; its reply may come later.
#[test]
fn a_limit_of_delivery_is_none_of_the_reply() {
    let pair = Pair::new();
    let gate = Gate::default();
    let subject = pair.seen(&pair.root.activate_shared(gated("a", &gate)).unwrap());
    let limited = with(&subject, &[RelativeRequestTimeoutPolicy(LONGER).into()]);
    let begun = Instant::now();
    let waiting = in_background(move || limited.wait());
    gate.await_arrivals(1);
    // Another call's limit says that the time has passed.
    let other = with(&subject, &[RelativeRoundtripTimeoutPolicy(LONGER).into()]);
    assert_timeout(other.wait(), minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe);
    assert!(begun.elapsed() >= LONGER);
    gate.release();
    assert_eq!(waiting.recv_timeout(PATIENCE).unwrap().unwrap(), "a");
}

// 17.2.4.6: "the Request is cancelled (if a response has not yet been received from the target)"; and the server hears of it.
#[test]
fn a_round_trip_that_takes_too_long_is_cancelled() {
    let pair = Pair::new();
    let (told, heard) = std::sync::mpsc::channel();
    let servant = spandrel_conformance_tests::support::acting(move || {
        let token = spandrel::CancellationToken::current();
        let is_cancelled = token.wait_timeout(PATIENCE);
        told.send(is_cancelled).unwrap();
        String::new()
    });
    let subject = pair.seen(&pair.root.activate_shared(servant).unwrap());
    let outcome = late(|time| with(&subject, &[RelativeRoundtripTimeoutPolicy(time).into()]).wait()).map(|_| ());
    assert!(heard.recv_timeout(PATIENCE).unwrap(), "the servant knows");
    // The servant answers as soon as it knows, and its client may be a little late.
    if outcome.is_err() {
        assert_timeout(outcome, minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe);
    }
}

// 17.2.4: what is set together limits together.
#[test]
fn the_soonest_end_counts() {
    let pair = Pair::new();
    let gate = Gate::default();
    let subject = pair.seen(&pair.root.activate_shared(gated("a", &gate)).unwrap());
    let long = RelativeRoundtripTimeoutPolicy(PATIENCE);
    let end_in = |time| ReplyEndTimePolicy(SystemTime::now() + time);
    let outcome = late(|time| with(&subject, &[long.into(), end_in(time).into()]).wait());
    assert_timeout(outcome, minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe);
    let never = with(&subject, &[long.into(), ReplyStartTimePolicy(SystemTime::now() + PATIENCE * 2).into()]);
    assert_timeout(never.wait(), minor::ROUND_TRIP_EXPIRED, CompletionStatus::No);
    gate.release();
}
