//! Each decision of an [`Invocation`], without a connection.

use std::io;
use std::time::Duration;

use spandrel_cdr::{CdrError, Encode, Encoder, GiopVersion, Ior, Wire};
use spandrel_giop::{
    AddressingDisposition, IiopProfile, Message, SystemExceptionKind, begin_locate_reply, begin_reply, ids, minor,
};
use spandrel_message::MessageBlock;
use spandrel_sync::{Arc, Mutex};

use super::{
    points::{AttemptPoints, ClientPoints},
    *,
};
use crate::{
    Orb, OrbBuilder,
    client::RequestLoss,
    interception::{ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, ReplyStatus as Ending},
};

/// A call on an object with destinations that no server listens at.
struct TestCall {
    object: ObjectRef,
    deadline: Option<Deadline>,
    state: InvocationState,
}

fn ior(ports: &[u16]) -> Ior {
    let profile = |port: &u16| IiopProfile {
        version: GiopVersion::V1_2,
        host: "192.0.2.1".into(),
        port: *port,
        object_key: b"key".to_vec(),
        components: Vec::new(),
    };
    Ior { type_id: String::new(), profiles: ports.iter().map(|port| profile(port).encode().unwrap()).collect() }
}

impl TestCall {
    fn new(ports: &[u16], rebind: RebindPolicy) -> Self {
        Self::by(&OrbBuilder::bare().build().unwrap(), ports, rebind)
    }

    fn by(orb: &Orb, ports: &[u16], rebind: RebindPolicy) -> Self {
        Self { object: orb.reference(ior(ports)), deadline: None, state: InvocationState::new(rebind) }
    }

    fn invocation(&mut self) -> Invocation<'_> {
        Invocation::new(&self.object, "deposit", self.deadline.as_ref(), &mut self.state)
    }

    /// Selects a destination, in a new round if the former has ended. Returns its index and whether a round
    /// began.
    fn select(&mut self) -> (usize, bool) {
        let forward = self.object.forwarded();
        let object = self.object.clone();
        let destinations = object.destinations(forward.as_deref()).unwrap();
        let mut invocation = self.invocation();
        if let Some(index) = invocation.select(destinations) {
            return (index, false);
        }
        invocation.begin_round(destinations.len());
        (invocation.select(destinations).unwrap(), true)
    }

    fn fail(&mut self, index: usize, failure: CallFailure) -> Result<Verdict, SystemException> {
        let (object, forward) = (self.object.clone(), self.object.forwarded());
        let destination = &object.destinations(forward.as_deref()).unwrap()[index];
        self.invocation().failed(failure, destination)
    }

    /// An attempt that gets no connection.
    fn fail_lease(&mut self, exception: SystemException) -> (usize, Result<Verdict, SystemException>) {
        let (index, _) = self.select();
        self.invocation().begin_lease();
        (index, self.fail(index, CallFailure::new(exception)))
    }

    /// An attempt whose request is lost.
    fn lose(&mut self, fresh: bool, loss: RequestLoss) -> (usize, Result<Verdict, SystemException>) {
        let (index, _) = self.select();
        self.invocation().leased(fresh);
        let exception = SystemException::comm_failure(0, CompletionStatus::Maybe);
        (index, self.fail(index, CallFailure::of(loss, exception)))
    }

    /// An attempt with a reply from a connection.
    fn reply(&mut self, reply: &Reply) -> (usize, Result<Verdict, SystemException>) {
        let (index, _) = self.select();
        self.invocation().leased(false);
        (index, self.invocation().replied(Some(reply)))
    }
}

fn parse(out: &Encoder<'_>) -> Reply {
    Reply::parse(Message::whole(MessageBlock::from(&*out.to_vec())).unwrap()).unwrap()
}

fn reply_with<'a>(status: ReplyStatus, body: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>) -> Reply {
    let mut out = Encoder::new(Wire::default());
    let end = begin_reply(&mut out, 1, status, &[]);
    body(&mut out).unwrap();
    end.end(&mut out).unwrap();
    parse(&out)
}

fn plain(status: ReplyStatus) -> Reply {
    reply_with(status, |out| out.short_str("IDL:Overdrawn:1.0"))
}

fn located(status: LocateStatus) -> Reply {
    let mut out = Encoder::new(Wire::default());
    begin_locate_reply(&mut out, 1, status).end(&mut out).unwrap();
    parse(&out)
}

fn raised(exception: &SystemException) -> Reply {
    reply_with(ReplyStatus::SystemException, |out| exception.encode(out))
}

fn forwarded_to(status: ReplyStatus, ports: &[u16]) -> Reply {
    let target = ior(ports);
    reply_with(status, |out| target.encode(out))
}

fn addressed_by(disposition: AddressingDisposition) -> Reply {
    reply_with(ReplyStatus::NeedsAddressingMode, |out| {
        out.u16(disposition as u16);
        Ok(())
    })
}

fn refused() -> SystemException {
    SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No)
}

fn timed_out() -> SystemException {
    SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No)
}

#[test]
fn a_round_tries_each_destination_once() {
    let mut call = TestCall::new(&[1, 2, 3], RebindPolicy::default());
    assert_eq!(call.fail_lease(refused()), (0, Ok(Verdict::NextDestination)));
    assert_eq!(call.fail_lease(refused()), (1, Ok(Verdict::NextDestination)));
    let (index, outcome) = call.fail_lease(refused());
    assert_eq!((index, outcome.unwrap_err().kind()), (2, SystemExceptionKind::Transient));
}

#[test]
fn a_slow_destination_is_tried_again_after_the_others() {
    let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
    assert_eq!(call.fail_lease(timed_out()), (0, Ok(Verdict::NextDestination)));
    assert_eq!(call.fail_lease(refused()), (1, Ok(Verdict::NextDestination)));
    let (index, outcome) = call.fail_lease(refused());
    assert_eq!((index, outcome.unwrap_err().kind()), (0, SystemExceptionKind::Transient));
}

#[test]
fn the_lease_of_one_of_several_destinations_is_limited() {
    let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
    call.select();
    assert!(call.invocation().begin_lease().is_some());
    let mut call = TestCall::new(&[1], RebindPolicy::default());
    call.select();
    assert_eq!(call.invocation().begin_lease(), None);
}

#[test]
fn a_new_connection_that_ends_at_once_leads_to_the_next_destination() {
    let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
    assert_eq!(call.lose(true, RequestLoss::ClosedOrderly), (0, Ok(Verdict::NextDestination)));
    let (index, outcome) = call.lose(true, RequestLoss::NotWritten);
    let exception = outcome.unwrap_err();
    assert_eq!((index, exception.minor()), (1, minor::NO_USABLE_PROFILE));
    assert_eq!(exception.completed(), CompletionStatus::No);
}

#[test]
fn a_request_that_the_server_has_not_read_is_sent_again_once() {
    for loss in [
        RequestLoss::NotWritten,
        RequestLoss::ConnectionAbandoned,
        RequestLoss::PartiallyWritten,
        RequestLoss::ClosedOrderly,
    ] {
        let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
        assert_eq!(call.lose(false, loss), (0, Ok(Verdict::Resend)), "{loss:?}");
        assert!(call.select().1, "{loss:?}: the next attempt begins a round");
        let (_, outcome) = call.lose(false, loss);
        assert_eq!(outcome.unwrap_err().completed(), CompletionStatus::No, "{loss:?}");
    }
}

#[test]
fn other_lost_requests_end_the_call() {
    for (loss, completed) in [
        (RequestLoss::Rejected, CompletionStatus::No),
        (RequestLoss::MessageErrorReceived, CompletionStatus::Maybe),
        (RequestLoss::SendTimedOut, CompletionStatus::No),
        (RequestLoss::InDoubt, CompletionStatus::Maybe),
    ] {
        for fresh in [false, true] {
            let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
            let (index, outcome) = call.lose(fresh, loss);
            assert_eq!((index, outcome.unwrap_err().completed()), (0, completed), "{loss:?}");
        }
    }
}

#[test]
fn an_abandoned_connection_does_not_lead_to_the_next_destination() {
    let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
    assert_eq!(call.lose(true, RequestLoss::ConnectionAbandoned), (0, Ok(Verdict::Resend)));
    assert_eq!(call.select(), (0, true));
}

#[test]
fn no_request_is_sent_after_the_deadline() {
    let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
    let (index, _) = call.select();
    assert!(call.invocation().begin_attempt().is_ok());
    call.invocation().begin_lease();
    call.deadline = Some(Deadline::after(Duration::ZERO));
    // Also after waiting for a connection.
    let failure = call.invocation().begin_attempt().unwrap_err();
    let exception = call.fail(index, failure).unwrap_err();
    assert_eq!((exception.kind(), exception.completed()), (SystemExceptionKind::Timeout, CompletionStatus::No));
    // Nor is one repeated that could be otherwise.
    let (_, outcome) = call.lose(false, RequestLoss::NotWritten);
    assert_eq!(outcome.unwrap_err().kind(), SystemExceptionKind::CommFailure);
}

#[test]
fn a_bound_reference_without_reconnection_raises_rebind() {
    let mut call = TestCall::new(&[1], RebindPolicy::NoReconnect);
    assert!(!call.invocation().keeps_connections(), "it is not bound yet");
    assert_eq!(call.reply(&plain(ReplyStatus::NoException)), (0, Ok(Verdict::Done)));
    assert!(call.invocation().keeps_connections());
    let (_, outcome) = call.lose(false, RequestLoss::ClosedOrderly);
    assert_eq!(outcome.unwrap_err().kind(), SystemExceptionKind::Rebind);
}

#[test]
fn results_and_user_exceptions_end_the_call_and_bind_the_reference() {
    for status in [ReplyStatus::NoException, ReplyStatus::UserException] {
        let mut call = TestCall::new(&[1], RebindPolicy::default());
        assert_eq!(call.reply(&plain(status)), (0, Ok(Verdict::Done)));
        assert!(call.object.is_bound());
    }
}

#[test]
fn only_object_here_binds_the_reference_by_a_locate_request() {
    for (status, is_bound) in
        [(LocateStatus::ObjectHere, true), (LocateStatus::UnknownObject, false), (LocateStatus::ObjectForward, false)]
    {
        let mut call = TestCall::new(&[1], RebindPolicy::default());
        assert_eq!(call.reply(&located(status)).1, Ok(Verdict::Done));
        assert_eq!(call.object.is_bound(), is_bound, "{status:?}");
    }
}

#[test]
fn the_destination_that_answers_is_preferred() {
    let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
    assert_eq!(call.fail_lease(refused()), (0, Ok(Verdict::NextDestination)));
    assert_eq!(call.reply(&plain(ReplyStatus::NoException)), (1, Ok(Verdict::Done)));
    call.state = InvocationState::default();
    assert_eq!(call.select(), (1, true));
    // So is one that a one-way was sent to.
    call.invocation().begin_lease();
    assert_eq!(call.fail(1, CallFailure::new(refused())), Ok(Verdict::NextDestination));
    assert_eq!(call.select(), (0, false));
    call.invocation().leased(true);
    assert_eq!(call.invocation().replied(None), Ok(Verdict::Done));
    call.state = InvocationState::default();
    assert_eq!(call.select(), (0, true));
}

#[test]
fn a_rejection_by_the_server_leads_to_the_next_destination() {
    let rejections =
        [SystemException::transient(7, CompletionStatus::No), SystemException::comm_failure(7, CompletionStatus::No)];
    for exception in &rejections {
        let mut call = TestCall::new(&[1, 2, 3], RebindPolicy::default());
        assert_eq!(call.reply(&raised(exception)), (0, Ok(Verdict::NextDestination)));
        // The server's exception takes precedence over a failed connection.
        assert_eq!(call.fail_lease(timed_out()), (1, Ok(Verdict::NextDestination)));
        assert_eq!(call.fail_lease(refused()), (2, Ok(Verdict::NextDestination)));
        let (index, outcome) = call.fail_lease(refused());
        assert_eq!((index, outcome.unwrap_err().minor()), (1, 7));
        // The last destination's is the outcome.
        let mut call = TestCall::new(&[1], RebindPolicy::default());
        assert_eq!(call.reply(&raised(exception)).1.unwrap_err().minor(), 7);
    }
    for exception in [
        SystemException::transient(7, CompletionStatus::Maybe),
        SystemException::no_permission(7, CompletionStatus::No),
    ] {
        let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
        assert_eq!(call.reply(&raised(&exception)).1.unwrap_err(), exception);
        assert!(!call.object.is_bound());
    }
}

#[test]
fn a_reply_from_this_orb_is_final() {
    let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
    call.select();
    call.invocation().begin_attempt().unwrap();
    let exception = SystemException::transient(7, CompletionStatus::No);
    assert_eq!(call.invocation().replied(Some(&raised(&exception))).unwrap_err().minor(), 7);
    let mut call = TestCall::new(&[1, 2], RebindPolicy::default());
    let (index, _) = call.select();
    call.invocation().begin_attempt().unwrap();
    let exception = SystemException::internal(7, CompletionStatus::No);
    assert_eq!(call.fail(index, CallFailure::new(exception)).unwrap_err().minor(), 7);
}

#[test]
fn a_forwarding_begins_a_round_with_its_destinations() {
    for status in [ReplyStatus::LocationForward, ReplyStatus::LocationForwardPerm] {
        let mut call = TestCall::new(&[1], RebindPolicy::default());
        assert_eq!(call.reply(&forwarded_to(status, &[2, 3])), (0, Ok(Verdict::Forwarded)));
        assert_eq!(call.select(), (0, true));
        let forward = call.object.forwarded().unwrap();
        assert_eq!((forward.destinations.len(), &*forward.ior), (2, &ior(&[2, 3])));
        assert_eq!(call.reply(&plain(ReplyStatus::NoException)).1, Ok(Verdict::Done));
    }
}

#[test]
fn a_forwarding_loop_ends_the_call() {
    let mut call = TestCall::new(&[1], RebindPolicy::default());
    for port in [2, 1, 2] {
        assert_eq!(call.reply(&forwarded_to(ReplyStatus::LocationForward, &[port])).1, Ok(Verdict::Forwarded));
    }
    let (_, outcome) = call.reply(&forwarded_to(ReplyStatus::LocationForward, &[1]));
    assert_eq!(outcome.unwrap_err().minor(), ids::TRANSIENT_FORWARD_LOOP);
}

#[test]
fn a_bound_reference_without_rebinding_is_not_forwarded() {
    let mut call = TestCall::new(&[1], RebindPolicy::NoRebind);
    let forwarding = forwarded_to(ReplyStatus::LocationForward, &[2]);
    assert_eq!(call.reply(&forwarding).1, Ok(Verdict::Forwarded), "it is not bound yet");
    assert_eq!(call.reply(&plain(ReplyStatus::NoException)).1, Ok(Verdict::Done));
    assert_eq!(call.reply(&forwarding).1.unwrap_err().kind(), SystemExceptionKind::Rebind);
}

#[test]
fn a_forwarding_to_a_lost_object_is_dropped_once() {
    let not_exist = raised(&SystemException::object_not_exist(0, CompletionStatus::No));
    let mut call = TestCall::new(&[1], RebindPolicy::default());
    let forwarding = forwarded_to(ReplyStatus::LocationForward, &[2]);
    assert_eq!(call.reply(&forwarding).1, Ok(Verdict::Forwarded));
    assert_eq!(call.reply(&not_exist).1, Ok(Verdict::Resend));
    assert!(call.object.forwarded().is_none());
    assert_eq!(call.reply(&forwarding).1, Ok(Verdict::Forwarded));
    assert_eq!(call.reply(&not_exist).1.unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}

#[test]
fn a_forwarding_to_a_lost_server_is_dropped() {
    let mut call = TestCall::new(&[1], RebindPolicy::default());
    assert_eq!(call.reply(&forwarded_to(ReplyStatus::LocationForward, &[2])).1, Ok(Verdict::Forwarded));
    assert_eq!(call.fail_lease(refused()).1, Ok(Verdict::Resend));
    assert!(call.object.forwarded().is_none());
    assert_eq!(call.fail_lease(refused()).1.unwrap_err().kind(), SystemExceptionKind::Transient);
}

#[test]
fn a_permanent_forwarding_is_kept() {
    let mut call = TestCall::new(&[1], RebindPolicy::default());
    assert_eq!(call.reply(&forwarded_to(ReplyStatus::LocationForwardPerm, &[2])).1, Ok(Verdict::Forwarded));
    assert_eq!(call.fail_lease(refused()).1.unwrap_err().kind(), SystemExceptionKind::Transient);
    assert!(call.object.forwarded().is_some());
}

#[test]
fn a_demanded_addressing_disposition_is_used_unless_it_is_in_use() {
    let mut call = TestCall::new(&[1], RebindPolicy::default());
    assert_eq!(call.reply(&addressed_by(AddressingDisposition::Profile)).1, Ok(Verdict::Resend));
    assert_eq!(call.reply(&addressed_by(AddressingDisposition::Reference)).1, Ok(Verdict::Resend));
    let (_, outcome) = call.reply(&addressed_by(AddressingDisposition::Reference));
    assert_eq!(outcome.unwrap_err().minor(), ids::COMM_FAILURE_PROTOCOL);
}

/// Records its points, and raises what the test wants.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    points: Vec<String>,
    to_raise: Option<(&'static str, Interruption)>,
}

impl Recorder {
    fn record(&self, point: &'static str, ending: Option<Ending>) -> Result<(), Interruption> {
        let mut record = self.0.lock();
        record.points.push(ending.map_or_else(|| point.to_owned(), |ending| format!("{point} {ending:?}")));
        match record.to_raise.take_if(|(wanted, _)| *wanted == point) {
            Some((_, interruption)) => Err(interruption),
            None => Ok(()),
        }
    }

    fn raise_at(&self, point: &'static str, interruption: Interruption) {
        self.0.lock().to_raise = Some((point, interruption));
    }

    fn points(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().points)
    }
}

fn system(outcome: Result<(), Interruption>) -> Result<(), SystemException> {
    outcome.map_err(|interruption| match interruption {
        Interruption::System(exception) => exception,
        Interruption::ForwardRequest(_) => panic!("not permitted at this point"),
    })
}

impl Interceptor for Recorder {}

impl ClientRequestInterceptor for Recorder {
    fn send_request(&self, _info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.record("send_request", None)
    }

    fn send_poll(&self, _info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        system(self.record("send_poll", None))
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        system(self.record("receive_reply", info.reply_status().ok()))
    }

    fn receive_exception(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.record("receive_exception", info.reply_status().ok())
    }

    fn receive_other(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.record("receive_other", info.reply_status().ok())
    }
}

/// A call with client interceptors.
struct InterceptedCall {
    call: TestCall,
    points: ClientPoints,
    recorder: Recorder,
}

impl InterceptedCall {
    fn new(is_asynchronous: bool) -> Self {
        let recorder = Recorder::default();
        let orb = OrbBuilder::bare().client_request_interceptor(recorder.clone()).unwrap().build().unwrap();
        let call = TestCall::by(&orb, &[1, 2], RebindPolicy::default());
        let response_request = (spandrel_giop::ResponseFlags::TWO_WAY, false);
        let points = ClientPoints::new(&call.object, response_request, is_asynchronous);
        Self { call, points, recorder }
    }

    fn begin(&mut self) -> Result<bool, SystemException> {
        let (index, _) = self.call.select();
        let forward = self.call.object.forwarded();
        self.points.begin(&mut self.call.invocation(), forward.as_deref(), index)
    }

    fn end(
        &mut self,
        verdict: Result<Verdict, SystemException>,
        reply: Option<&Reply>,
    ) -> Result<Verdict, SystemException> {
        self.points.end(&mut self.call.invocation(), verdict, reply)
    }

    #[track_caller]
    fn expect(&self, points: &[&str]) {
        assert_eq!(self.recorder.points(), points);
    }
}

#[test]
fn a_synchronous_attempt_has_one_starting_and_one_ending_point() {
    let mut call = InterceptedCall::new(false);
    assert_eq!(call.begin(), Ok(true));
    assert_eq!(call.end(Ok(Verdict::NextDestination), None), Ok(Verdict::NextDestination));
    call.expect(&["send_request", "receive_other TransportRetry"]);
    assert_eq!(call.begin(), Ok(true));
    assert_eq!(call.end(Err(refused()), None), Err(refused()));
    call.expect(&["send_request", "receive_exception SystemException"]);
    for (status, point) in [
        (ReplyStatus::NoException, "receive_reply Successful"),
        (ReplyStatus::UserException, "receive_exception UserException"),
    ] {
        assert_eq!(call.begin(), Ok(true));
        assert_eq!(call.end(Ok(Verdict::Done), Some(&plain(status))), Ok(Verdict::Done));
        call.expect(&["send_request", point]);
    }
    assert_eq!(call.begin(), Ok(true));
    assert_eq!(call.end(Ok(Verdict::Done), None), Ok(Verdict::Done));
    call.expect(&["send_request", "receive_other Successful"]);
}

#[test]
fn an_asynchronous_attempt_is_two_requests() {
    let mut call = InterceptedCall::new(true);
    assert_eq!(call.begin(), Ok(true));
    call.expect(&["send_request", "receive_other Successful"]);
    assert_eq!(call.end(Ok(Verdict::Resend), None), Ok(Verdict::Resend));
    call.expect(&["send_poll", "receive_other TransportRetry"]);
    assert_eq!(call.begin(), Ok(true));
    call.expect(&["send_request", "receive_other Successful"]);
    assert_eq!(call.end(Ok(Verdict::Done), Some(&plain(ReplyStatus::NoException))), Ok(Verdict::Done));
    call.expect(&["send_poll", "receive_reply Successful"]);
    // Without a request that has begun there is no further point.
    assert_eq!(call.end(Err(refused()), None), Err(refused()));
    call.expect(&[]);
    // A one-way that was sent has no second part.
    assert_eq!(call.begin(), Ok(true));
    assert_eq!(call.end(Ok(Verdict::Done), None), Ok(Verdict::Done));
    call.expect(&["send_request", "receive_other Successful"]);
}

#[test]
fn an_interceptor_may_forward_a_request_or_end_it() {
    for is_asynchronous in [false, true] {
        let mut call = InterceptedCall::new(is_asynchronous);
        let target = call.call.object.orb().reference(ior(&[5]));
        call.recorder.raise_at("send_request", Interruption::ForwardRequest(target.clone()));
        assert_eq!(call.begin(), Ok(false));
        assert_eq!(*call.call.object.forwarded().unwrap().ior, ior(&[5]));
        assert_eq!(call.call.select(), (0, true), "a new round begins");
        call.recorder.raise_at("receive_exception", Interruption::ForwardRequest(target));
        assert_eq!(call.begin(), Ok(true));
        assert_eq!(call.end(Err(refused()), None), Ok(Verdict::Resend));
        assert_eq!(call.call.select(), (0, true), "a new round begins");
        let exception = SystemException::no_permission(3, CompletionStatus::No);
        call.recorder.raise_at("send_request", exception.clone().into());
        assert_eq!(call.begin(), Err(exception.clone()));
        call.recorder.raise_at("receive_reply", exception.clone().into());
        assert_eq!(call.begin(), Ok(true));
        let outcome = call.end(Ok(Verdict::Done), Some(&plain(ReplyStatus::NoException)));
        assert_eq!(outcome, Err(exception.with_completed(CompletionStatus::Yes)));
    }
}

#[test]
fn an_unreachable_address_is_said_to_be_published_by_the_server_of_a_reference() {
    if !SystemException::KEEPS_DETAIL {
        return;
    }
    let unreachable = |kind: io::ErrorKind| {
        let exception = SystemException::timeout(0, CompletionStatus::No).with_detail("cannot connect to there");
        exception.with_source(io::Error::from(kind))
    };
    let orb = OrbBuilder::bare().build().unwrap();
    for (type_id, kind, is_explained) in [
        ("IDL:Bank/Account:1.0", io::ErrorKind::TimedOut, true),
        ("IDL:Bank/Account:1.0", io::ErrorKind::HostUnreachable, true),
        ("IDL:Bank/Account:1.0", io::ErrorKind::ConnectionRefused, false),
        ("", io::ErrorKind::TimedOut, false),
    ] {
        let object = orb.reference(Ior { type_id: type_id.to_owned(), ..ior(&[1]) });
        let mut call = TestCall { object, deadline: None, state: InvocationState::new(RebindPolicy::Transparent) };
        let error = call.fail_lease(unreachable(kind)).1.unwrap_err().to_string();
        let expected =
            "cannot connect to there, an address that the server of this `IDL:Bank/Account:1.0` has published";
        assert_eq!(error.contains(expected) && error.contains("-ORBPublish"), is_explained, "{error}");
    }
}
