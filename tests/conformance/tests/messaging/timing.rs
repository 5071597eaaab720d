//! Request and reply timing (17.2.4).

use std::time::{Duration, Instant, SystemTime};

use spandrel::{
    CompletionStatus, Orb, SystemException, SystemExceptionKind, minor,
    policy::{
        Policy, PolicyErrorCode, PolicyType, RelativeRequestTimeoutPolicy, RelativeRoundtripTimeoutPolicy,
        ReplyEndTimePolicy, ReplyStartTimePolicy, RequestEndTimePolicy, RequestStartTimePolicy, SetOverrideType, UtcT,
    },
    types::Any,
};
use spandrel_conformance_tests::{
    idl::conformance::Subject,
    support::{Gate, Pair, TEST_TIMEOUT, gated_servant, in_background, named_servant},
};

const REQUEST_START_TIME: PolicyType = 27;
const REQUEST_END_TIME: PolicyType = 28;
const REPLY_START_TIME: PolicyType = 29;
const REPLY_END_TIME: PolicyType = 30;
const RELATIVE_REQ_TIMEOUT: PolicyType = 31;
const RELATIVE_RT_TIMEOUT: PolicyType = 32;

/// A time within which a call normally reaches a server of this process.
const SHORT: Duration = Duration::from_millis(100);
/// A time within which it does on any machine.
const LONGER: Duration = Duration::from_millis(1500);

fn with_policies(subject: &Subject, policies: &[Policy]) -> Subject {
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

/// The outcome of a call whose timeout expires after its request was sent; repeated with longer timeouts if
/// it expired before.
fn until_sent(call: impl Fn(Duration) -> Result<String, SystemException>) -> Result<String, SystemException> {
    let mut time = SHORT;
    loop {
        let outcome = call(time);
        let was_sent =
            outcome.as_ref().map_or_else(|exception| exception.completed() != CompletionStatus::No, |_| true);
        if was_sent || time > TEST_TIMEOUT {
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
fn absolute_time_policies_are_created_from_utc_times() {
    let orb = Orb::builder().build().unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let value = Any::new(UtcT::from_system_time(at).unwrap()).unwrap();
    let created = |policy_type| orb.create_policy(policy_type, &value).unwrap();
    assert_eq!(created(REQUEST_START_TIME).value(), Some(&RequestStartTimePolicy(at)));
    assert_eq!(created(REQUEST_END_TIME).value(), Some(&RequestEndTimePolicy(at)));
    assert_eq!(created(REPLY_START_TIME).value(), Some(&ReplyStartTimePolicy(at)));
    assert_eq!(created(REPLY_END_TIME).value(), Some(&ReplyEndTimePolicy(at)));
    for policy_type in REQUEST_START_TIME..=REPLY_END_TIME {
        assert_eq!(created(policy_type).policy_type(), policy_type);
        let span = Any::new(1_u64).unwrap();
        assert_eq!(orb.create_policy(policy_type, &span).unwrap_err().reason, PolicyErrorCode::BadPolicyType);
    }
}

// 17.2.4.5 and 17.2.4.6: "a value of type TimeBase::TimeT is passed", in units of 100 ns.
#[test]
fn relative_timeout_policies_are_created_from_time_spans() {
    let orb = Orb::builder().build().unwrap();
    let value = Any::new(15_u64).unwrap();
    let span = Duration::from_nanos(1500);
    let created = |policy_type| orb.create_policy(policy_type, &value).unwrap();
    assert_eq!(created(RELATIVE_REQ_TIMEOUT).value(), Some(&RelativeRequestTimeoutPolicy(span)));
    assert_eq!(created(RELATIVE_RT_TIMEOUT).value(), Some(&RelativeRoundtripTimeoutPolicy(span)));
}

// 17.2.4.1: "the time after which a request may be delivered to its target", for "both synchronous and
// asynchronous invocations".
#[test]
fn a_request_is_delivered_after_its_start_time() {
    let pair = Pair::new();
    for subject in pair.remote_and_local(&pair.root.activate_shared(named_servant("a")).unwrap()) {
        let begun = Instant::now();
        assert_eq!(with_policies(&subject, &[RequestStartTimePolicy(soon()).into()]).name().unwrap(), "a");
        assert!(begun.elapsed() >= SHORT);
        assert_eq!(with_policies(&subject, &[RequestStartTimePolicy(past()).into()]).name().unwrap(), "a");
    }
}

// 17.2.4.2: "the time after which a request may no longer be delivered to its target".
#[test]
fn a_request_is_not_delivered_after_its_end_time() {
    let pair = Pair::new();
    for subject in pair.remote_and_local(&pair.root.activate_shared(named_servant("a")).unwrap()) {
        let expired = with_policies(&subject, &[RequestEndTimePolicy(past()).into()]);
        assert_timeout(expired.name(), minor::REQUEST_EXPIRED, CompletionStatus::No);
        let in_time = with_policies(&subject, &[RequestEndTimePolicy(SystemTime::now() + TEST_TIMEOUT).into()]);
        assert_eq!(in_time.name().unwrap(), "a");
    }
}

// 17.2.4.3: "the time after which a reply may be delivered to the client".
#[test]
fn a_reply_is_delivered_after_its_start_time() {
    let pair = Pair::new();
    for subject in pair.remote_and_local(&pair.root.activate_shared(named_servant("a")).unwrap()) {
        let begun = Instant::now();
        assert_eq!(with_policies(&subject, &[ReplyStartTimePolicy(soon()).into()]).name().unwrap(), "a");
        assert!(begun.elapsed() >= SHORT);
    }
}

// 17.2.4.4: "the time after which a reply may no longer be obtained or returned to the client".
#[test]
fn a_call_ends_at_its_reply_end_time() {
    let pair = Pair::new();
    let gate = Gate::default();
    let subject = pair.as_client(&pair.root.activate_shared(gated_servant("a", &gate)).unwrap());
    let outcome =
        until_sent(|time| with_policies(&subject, &[ReplyEndTimePolicy(SystemTime::now() + time).into()]).wait());
    assert_timeout(outcome, minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe);
    gate.release();
    assert_eq!(
        with_policies(&subject, &[ReplyEndTimePolicy(SystemTime::now() + TEST_TIMEOUT).into()]).wait().unwrap(),
        "a"
    );
}

// 17.2.4.5: "the relative amount of time for which a Request may be delivered"; the reply may come later.
#[test]
fn a_relative_request_timeout_does_not_limit_the_reply() {
    let pair = Pair::new();
    let gate = Gate::default();
    let subject = pair.as_client(&pair.root.activate_shared(gated_servant("a", &gate)).unwrap());
    let limited = with_policies(&subject, &[RelativeRequestTimeoutPolicy(LONGER).into()]);
    let begun = Instant::now();
    let waiting = in_background(move || limited.wait());
    gate.await_arrivals(1);
    // The other call's timeout proves that the time has passed.
    let other = with_policies(&subject, &[RelativeRoundtripTimeoutPolicy(LONGER).into()]);
    assert_timeout(other.wait(), minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe);
    assert!(begun.elapsed() >= LONGER);
    gate.release();
    assert_eq!(waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), "a");
}

// 17.2.4.6: "the Request is cancelled (if a response has not yet been received from the target)"; the servant
// observes that.
#[test]
fn a_relative_roundtrip_timeout_cancels_the_request() {
    let pair = Pair::new();
    let (send, cancelled) = std::sync::mpsc::channel();
    let servant = spandrel_conformance_tests::support::closure_servant(move || {
        let token = spandrel::server::CancellationToken::current();
        let is_cancelled = token.wait_timeout(TEST_TIMEOUT);
        send.send(is_cancelled).unwrap();
        String::new()
    });
    let subject = pair.as_client(&pair.root.activate_shared(servant).unwrap());
    let outcome =
        until_sent(|time| with_policies(&subject, &[RelativeRoundtripTimeoutPolicy(time).into()]).wait()).map(|_| ());
    assert!(cancelled.recv_timeout(TEST_TIMEOUT).unwrap(), "the servant observes the cancellation");
    // The servant answers as soon as it is cancelled, possibly before its client times out.
    if outcome.is_err() {
        assert_timeout(outcome, minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe);
    }
}

// 17.2.4: the earliest of several limits applies.
#[test]
fn the_earliest_of_several_time_limits_applies() {
    let pair = Pair::new();
    let gate = Gate::default();
    let subject = pair.as_client(&pair.root.activate_shared(gated_servant("a", &gate)).unwrap());
    let long = RelativeRoundtripTimeoutPolicy(TEST_TIMEOUT);
    let end_in = |time| ReplyEndTimePolicy(SystemTime::now() + time);
    let outcome = until_sent(|time| with_policies(&subject, &[long.into(), end_in(time).into()]).wait());
    assert_timeout(outcome, minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe);
    let never =
        with_policies(&subject, &[long.into(), ReplyStartTimePolicy(SystemTime::now() + TEST_TIMEOUT * 2).into()]);
    assert_timeout(never.wait(), minor::ROUND_TRIP_EXPIRED, CompletionStatus::No);
    gate.release();
}
