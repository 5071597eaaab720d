//! Deadlines in service contexts: their encoding, their inheritance by nested calls, and requests refused
//! because of them.

use spandrel::poa::WaitForCompletion;
use std::{
    io::Write,
    net::TcpStream,
    sync::mpsc::{self, Receiver, Sender},
    time::{Duration, Instant, SystemTime},
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    diagnostics::statistics::Event,
    minor,
    options::{Collocation, Concurrency},
    policy::{
        DeadlineContext, Policy, RelativeRequestTimeoutPolicy, ReplyEndTimePolicy, ReplyStartTimePolicy,
        RequestEndTimePolicy, RequestStartTimePolicy, SetOverrideType, UtcT,
    },
    server::{CancellationToken, Replied, Servant, ServerCall, remaining_time},
    types::{IiopProfile, Ior},
};
use spandrel_cdr::{ByteOrder, Decode, Decoder, Encode, Encoder, GiopVersion, Wire};
use spandrel_giop::{
    MessageHeader, ReplyStatus, RequestHeader, RequestTemplate, ResponseFlags, ServiceContext, begin_reply,
    component::Component, ids,
};
use spandrel_orb_tests::support::{
    TEST_TIMEOUT, block_on, fake_server, in_background, kind_and_completion, read_message, retry_with_longer_timeout,
};

const INVOCATION_POLICIES: u32 = 7;

/// An observation of a servant: its remaining time, and the outcome of its nested call.
type Observation = (Option<Duration>, Option<Result<(), SystemException>>);

/// A servant that records its remaining time and calls the next server.
struct RelayServant {
    next: Option<ObjectRef>,
    observations: Sender<Observation>,
    begun: Sender<()>,
}

fn call_operation(object: &ObjectRef, operation: &str) -> Result<(), SystemException> {
    object.invoke(operation, |_| Ok(()), |_| Ok(()))
}

impl Servant for RelayServant {
    fn repository_id(&self) -> &str {
        "IDL:Tests/Hop:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match operation {
            // Calls the next server; the last one answers at once.
            "hop" => {
                let left = remaining_time();
                let nested = self.next.as_ref().map(|next| call_operation(next, "hop"));
                self.observations.send((left, nested.clone())).unwrap();
                nested.unwrap_or(Ok(()))?;
            }
            // Calls the next server; the last one answers only when its request is cancelled.
            "stick" => match &self.next {
                Some(next) => {
                    let nested = call_operation(next, "stick");
                    self.observations.send((remaining_time(), Some(nested.clone()))).unwrap();
                    nested?;
                }
                None => {
                    self.begun.send(()).unwrap();
                    assert!(CancellationToken::current().wait_timeout(TEST_TIMEOUT), "the request was never cancelled");
                    self.observations.send((remaining_time(), None)).unwrap();
                    // The caller may not have timed out yet.
                    return Err(SystemException::timeout(0, CompletionStatus::Maybe));
                }
            },
            "later" => {
                let (next, observations) = (self.next.clone(), self.observations.clone());
                return call.spawn(|deferred| async move {
                    let left = remaining_time();
                    let nested = match &next {
                        Some(next) => Some(next.invoke_async("stick", |_| Ok(()), |_| Ok(())).await),
                        None => None,
                    };
                    observations.send((left, nested)).unwrap();
                    let answered = deferred.answer(|call| call.reply(|_| Ok(())));
                    deferred.end(answered);
                });
            }
            _ => return call.implicit(self),
        }
        call.reply(|_| Ok(()))
    }
}

struct Server {
    orb: Orb,
    poa: Poa,
    object: ObjectRef,
    observations: Receiver<Observation>,
    /// Receives the beginnings of `stick` upcalls.
    begun: Receiver<()>,
}

impl Server {
    fn start(builder: OrbBuilder, next: Option<&Server>) -> Self {
        let orb = builder.build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        Self::of(orb, poa, next)
    }

    fn of(orb: Orb, poa: Poa, next: Option<&Server>) -> Self {
        let ((observe, observations), (begin, begun)) = (mpsc::channel(), mpsc::channel());
        let next = next.map(|next| orb.string_to_object(&next.object.to_string()).unwrap());
        let object = poa.activate(RelayServant { next, observations: observe, begun: begin }).unwrap();
        Self { orb, poa, object, observations, begun }
    }

    fn client(&self) -> ObjectRef {
        self.client_with(Orb::builder())
    }

    fn client_with(&self, builder: OrbBuilder) -> ObjectRef {
        builder.build().unwrap().string_to_object(&self.object.to_string()).unwrap()
    }

    #[track_caller]
    fn observation(&self) -> Observation {
        self.observations.recv_timeout(TEST_TIMEOUT).expect("the servant was called")
    }

    fn profile(&self) -> IiopProfile {
        IiopProfile::decode(&self.object.ior().profiles[0]).unwrap().unwrap()
    }

    fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.profile().port)).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream
    }

    /// An encoded request.
    fn request(&self, operation: &str, contexts: &[ServiceContext]) -> Vec<u8> {
        let template = RequestTemplate::new(Wire::default(), &self.profile().object_key);
        let mut out = Encoder::new(Wire::default());
        template.begin(&mut out, 1, ResponseFlags::TWO_WAY, operation, contexts).end(&mut out).unwrap();
        out.to_vec()
    }
}

fn limited(object: &ObjectRef, policies: &[Policy]) -> ObjectRef {
    object.set_policy_overrides(policies, SetOverrideType::AddOverride).unwrap()
}

#[track_caller]
fn assert_timeout(outcome: Result<(), SystemException>, status: CompletionStatus) {
    assert_eq!(kind_and_completion(&outcome.unwrap_err()), (SystemExceptionKind::Timeout, status));
}

/// The remaining time for the answer and for the delivery, in the context of Spandrel.
fn remaining(answer: Option<Duration>, delivery: Option<Duration>) -> ServiceContext {
    let span = |time: Option<Duration>| time.map_or(u64::MAX, |time| u64::try_from(time.as_nanos() / 100).unwrap());
    let data = [[0; 8], span(answer).to_be_bytes(), span(delivery).to_be_bytes()].concat();
    ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data }
}

/// The end times in the standard's InvocationPolicies context.
fn absolute(order: ByteOrder, ends: &[(u32, SystemTime)]) -> ServiceContext {
    let wire = Wire::new(order, GiopVersion::V1_2);
    let mut out = Encoder::new(wire);
    out.u8(u8::from(order == ByteOrder::Little));
    out.len(ends.len()).unwrap();
    for (policy_type, end) in ends {
        let end = UtcT::from_system_time(*end).unwrap();
        let mut value = Encoder::new(wire);
        value.u8(u8::from(order == ByteOrder::Little));
        end.encode(&mut value).unwrap();
        out.u32(*policy_type);
        let value = value.to_vec();
        out.len(value.len()).unwrap();
        out.octets(&value);
    }
    ServiceContext { id: INVOCATION_POLICIES, data: out.to_vec() }
}

/// Reads a Reply; returns the exception's id, minor code and completion status, if it is one.
fn outcome(stream: &mut TcpStream) -> Option<(String, u32, u32)> {
    let octets = read_message(stream).unwrap();
    assert_eq!(octets[7], 1, "a reply");
    let mut input = Decoder::new(&octets, Wire::default()).at(16);
    let (status, contexts) = (input.u32().unwrap(), input.u32().unwrap());
    assert_eq!(contexts, 0);
    (status == 2).then(|| (input.str().unwrap().into_owned(), input.u32().unwrap(), input.u32().unwrap()))
}

fn timeout(minor: u32, completed: u32) -> Option<(String, u32, u32)> {
    Some(("IDL:omg.org/CORBA/TIMEOUT:1.0".to_owned(), minor, completed))
}

const NO: u32 = 1;

#[test]
fn each_nested_call_has_less_remaining_time() {
    let last = Server::start(Orb::builder(), None);
    let middle = Server::start(Orb::builder(), Some(&last));
    let first = Server::start(Orb::builder(), Some(&middle));
    let client = first.client();
    call_operation(&client, "hop").unwrap();
    for server in [&first, &middle, &last] {
        assert_eq!(server.observation().0, None, "without a deadline");
    }
    let time = Duration::from_secs(20);
    call_operation(&client.with_timeout(Some(time)), "hop").unwrap();
    let left = [&first, &middle, &last].map(|server| server.observation().0.unwrap());
    assert!(time > left[0] && left[0] > left[1] && left[1] > left[2], "{left:?}");
    assert!(left[2] > Duration::from_secs(1));
    call_operation(&client, "hop").unwrap();
    assert_eq!(last.observation().0, None, "the deadline applied to one call only");
    assert_eq!(remaining_time(), None);
}

#[test]
fn a_nested_call_inherits_the_clients_deadline() {
    let builders = || {
        [
            Orb::builder(),
            Orb::builder().concurrency(Concurrency::LeaderFollowers { threads: Some(1) }),
            Orb::builder().concurrency(Concurrency::ThreadPool { threads: 1, queue: 4 }),
        ]
    };
    for operation in ["stick", "later"] {
        for index in 0..builders().len() {
            retry_with_longer_timeout(Duration::from_millis(200), |time| {
                let last = Server::start(Orb::builder(), None);
                let first = Server::start(builders().into_iter().nth(index).unwrap(), Some(&last));
                let client = first.client();
                // Connects before the timeout starts.
                call_operation(&client, "hop").unwrap();
                let _ = (first.observation(), last.observation());
                let ended = call_operation(&client.with_timeout(Some(time)), operation);
                // Without a beginning, the request did not arrive in time.
                last.begun.try_recv().ok()?;
                assert_timeout(ended, CompletionStatus::Maybe);
                if operation == "stick" {
                    let (left, nested) = first.observation();
                    assert_eq!(left, Some(Duration::ZERO));
                    assert_timeout(nested.unwrap(), CompletionStatus::Maybe);
                }
                // Cancelled by its own deadline or by the first server's CancelRequest, whichever comes
                // first.
                assert!(last.observation().0.is_some(), "{operation}: the last server has a deadline, too");
                Some(())
            });
        }
    }
}

#[test]
fn without_inherit_deadlines_nested_calls_have_no_deadline() {
    let last = Server::start(Orb::builder(), None);
    let first = Server::start(Orb::builder().inherit_deadlines(false), Some(&last));
    let client = first.client();
    retry_with_longer_timeout(Duration::from_millis(100), |time| {
        let ended = call_operation(&client.with_timeout(Some(time)), "stick");
        last.begun.try_recv().ok()?;
        assert_timeout(ended, CompletionStatus::Maybe);
        Some(())
    });
    assert!(last.observations.try_recv().is_err(), "the last server has no deadline");
    // The first server's client has timed out, and its nested call is cancelled by this shutdown.
    last.orb.begin_shutdown().unwrap();
}

#[test]
fn cancel_nested_ends_nested_calls_of_a_cancelled_request() {
    for concurrency in [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::ThreadPool { threads: 1, queue: 4 },
    ] {
        let last = Server::start(Orb::builder(), None);
        let middle = Server::start(Orb::builder().cancel_nested(true), Some(&last));
        let first = Server::start(Orb::builder().concurrency(concurrency).cancel_nested(true), Some(&middle));
        let call = first.client().invoke_async::<(), SystemException>("stick", |_| Ok(()), |_| Ok(()));
        last.begun.recv_timeout(TEST_TIMEOUT).unwrap();
        drop(call);
        for server in [&first, &middle] {
            let ended = server.observation().1.unwrap().unwrap_err();
            assert_eq!(
                kind_and_completion(&ended),
                (SystemExceptionKind::Transient, CompletionStatus::Maybe),
                "{ended}"
            );
            assert_eq!(ended.minor(), minor::REQUEST_CANCELLED);
        }
        assert_eq!(last.observation().0, None, "the last server was cancelled without a deadline");
        assert_eq!(last.orb.statistics().count(Event::CancelledByClient), 1);
        call_operation(&first.client(), "hop").unwrap();
    }
}

#[test]
fn collocated_calls_pass_their_deadline_on() {
    for collocation in [Collocation::Direct, Collocation::ThroughPoa, Collocation::No] {
        let last = Server::start(Orb::builder(), None);
        let server = Server::start(Orb::builder().collocation(collocation), Some(&last));
        call_operation(&server.object, "hop").unwrap();
        assert_eq!((server.observation().0, last.observation().0), (None, None));
        let limited_object = server.object.with_timeout(Some(Duration::from_secs(20)));
        call_operation(&limited_object, "hop").unwrap();
        let (here, there) = (server.observation().0.unwrap(), last.observation().0.unwrap());
        assert!(Duration::from_secs(20) > here && here > there, "{collocation:?}");
        retry_with_longer_timeout(Duration::from_millis(200), |time| {
            let last = Server::start(Orb::builder(), None);
            let server = Server::start(Orb::builder().collocation(collocation), Some(&last));
            call_operation(&server.object, "hop").unwrap();
            let _ = (server.observation(), last.observation());
            let ended = call_operation(&server.object.with_timeout(Some(time)), "stick");
            assert_eq!(remaining_time(), None);
            // Without a beginning, the request did not arrive in time.
            last.begun.try_recv().ok()?;
            assert_timeout(ended, CompletionStatus::Maybe);
            assert_timeout(server.observation().1.unwrap(), CompletionStatus::Maybe);
            Some(())
        });
    }
}

#[test]
fn an_expired_request_is_answered_and_not_run() {
    let past = SystemTime::now() - Duration::from_secs(1);
    let (request, reply) = (minor::REQUEST_EXPIRED, minor::ROUND_TRIP_EXPIRED);
    for (context, minor) in [
        (remaining(Some(Duration::ZERO), None), reply),
        (remaining(None, Some(Duration::ZERO)), request),
        (absolute(ByteOrder::Big, &[(28, past)]), request),
        (absolute(ByteOrder::Little, &[(30, past)]), reply),
    ] {
        let server = Server::start(Orb::builder(), None);
        let mut client = server.raw();
        client.write_all(&server.request("hop", &[context])).unwrap();
        assert_eq!(outcome(&mut client), timeout(minor, NO));
        client.write_all(&server.request("hop", &[])).unwrap();
        assert_eq!(outcome(&mut client), None);
        assert_eq!(server.observations.try_iter().count(), 1);
        assert_eq!(server.orb.statistics().count(Event::RefusedExpired), 1);
    }
}

#[test]
fn a_held_request_that_expires_is_answered_and_not_run() {
    for concurrency in [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::ThreadPool { threads: 1, queue: 4 },
    ] {
        let server = Server::start(Orb::builder().concurrency(concurrency), None);
        let manager = server.poa.the_poa_manager();
        manager.hold_requests(WaitForCompletion::Yes).unwrap();
        let mut client = server.raw();
        let short = Some(Duration::from_millis(50));
        client.write_all(&server.request("hop", &[remaining(short, None)])).unwrap();
        assert_eq!(outcome(&mut client), timeout(minor::ROUND_TRIP_EXPIRED, NO), "while the request is held");
        // The time for delivery is checked only when the request is released.
        client.write_all(&server.request("hop", &[remaining(None, Some(Duration::from_millis(600)))])).unwrap();
        client.write_all(&server.request("hop", &[remaining(Some(Duration::from_millis(900)), None)])).unwrap();
        assert_eq!(outcome(&mut client), timeout(minor::ROUND_TRIP_EXPIRED, NO));
        manager.activate().unwrap();
        assert_eq!(outcome(&mut client), timeout(minor::REQUEST_EXPIRED, NO));
        client.write_all(&server.request("hop", &[])).unwrap();
        assert_eq!(outcome(&mut client), None);
        assert_eq!(server.observations.try_iter().count(), 1);
    }
}

#[test]
fn a_queued_request_that_expires_is_answered_and_not_run() {
    let server = Server::start(Orb::builder().concurrency(Concurrency::ThreadPool { threads: 1, queue: 4 }), None);
    let (mut busy, mut waiting) = (server.raw(), server.raw());
    let (short, long) = (Duration::from_millis(100), Duration::from_millis(2000));
    // The first request occupies the thread until its deadline, which is later than the other's.
    busy.write_all(&server.request("stick", &[remaining(Some(long), None)])).unwrap();
    server.begun.recv_timeout(TEST_TIMEOUT).unwrap();
    waiting.write_all(&server.request("hop", &[remaining(Some(short), None)])).unwrap();
    assert_eq!(server.observation().0, Some(Duration::ZERO));
    assert_eq!(outcome(&mut waiting), timeout(minor::ROUND_TRIP_EXPIRED, NO));
    assert_eq!(outcome(&mut busy), timeout(0, 2));
    assert!(server.observations.try_recv().is_err());
}

#[test]
fn invocation_policies_contexts_are_read_in_both_byte_orders() {
    let server = Server::start(Orb::builder(), None);
    let mut client = server.raw();
    let (end, past) = (SystemTime::now() + Duration::from_secs(20), SystemTime::now() - Duration::from_secs(1));
    for order in [ByteOrder::Big, ByteOrder::Little] {
        client.write_all(&server.request("hop", &[absolute(order, &[(27, past), (28, end), (30, end)])])).unwrap();
        assert_eq!(outcome(&mut client), None);
        let left = server.observation().0.unwrap();
        assert!(left < Duration::from_secs(20) && left > Duration::from_secs(1), "{left:?}");
    }
    // Where both contexts are present, the relative one precedes, which needs no synchronised clocks.
    let both = [absolute(ByteOrder::Big, &[(30, past)]), remaining(Some(Duration::from_secs(9)), None)];
    client.write_all(&server.request("hop", &both)).unwrap();
    assert_eq!(outcome(&mut client), None);
    assert!(server.observation().0.unwrap() > Duration::from_secs(1));
}

// 17.2.4.1, for clients that send RequestStartTime to the server.
#[test]
fn a_request_is_held_until_its_request_start_time() {
    for concurrency in [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::ThreadPool { threads: 1, queue: 4 },
    ] {
        let server = Server::start(Orb::builder().concurrency(concurrency), None);
        let mut client = server.raw();
        let (begun, time) = (Instant::now(), Duration::from_millis(80));
        let start = SystemTime::now() + time;
        client.write_all(&server.request("hop", &[absolute(ByteOrder::Big, &[(27, start)])])).unwrap();
        call_operation(&server.client(), "hop").unwrap();
        assert_eq!(server.observation(), (None, None), "other requests are served meanwhile");
        assert_eq!(outcome(&mut client), None);
        assert!(begun.elapsed() >= time, "the request was run after {:?}", begun.elapsed());
        assert_eq!(server.observation(), (None, None));
        let end = SystemTime::now() + time;
        let never = absolute(ByteOrder::Big, &[(27, end + TEST_TIMEOUT), (30, end)]);
        client.write_all(&server.request("hop", &[never])).unwrap();
        assert_eq!(outcome(&mut client), timeout(minor::ROUND_TRIP_EXPIRED, NO));
        assert!(server.observations.try_recv().is_err());
    }
}

#[test]
fn malformed_deadline_contexts_are_ignored() {
    let server = Server::start(Orb::builder(), None);
    let mut client = server.raw();
    let end = SystemTime::now() + Duration::from_secs(20);
    let sound = [remaining(Some(Duration::from_secs(9)), None), absolute(ByteOrder::Big, &[(28, end), (30, end)])];
    for context in &sound {
        for len in 0..context.data.len() {
            let data = context.data[..len].to_vec();
            client.write_all(&server.request("hop", &[ServiceContext { id: context.id, data }])).unwrap();
            assert_eq!(outcome(&mut client), None, "{len}");
            assert_eq!(server.observation().0, None, "{len}");
        }
    }
    let endless = [&[0; 4][..], &[0xff; 40]].concat();
    let huge = [&[0; 8][..], &(u64::MAX - 1).to_be_bytes(), &[0xff; 8]].concat();
    for (id, data) in [(INVOCATION_POLICIES, endless), (ids::CONTEXT_REMAINING_TIME, huge)] {
        client.write_all(&server.request("hop", &[ServiceContext { id, data }])).unwrap();
        assert_eq!(outcome(&mut client), None);
        server.observation();
    }
}

/// The deadline contexts of a request: the relative times of Spandrel's, and the standard's policies.
#[derive(Debug, Default, PartialEq)]
struct DeadlineContexts {
    remaining: Option<(u64, u64)>,
    policies: Vec<(u32, SystemTime)>,
}

fn deadline_contexts(octets: &[u8]) -> DeadlineContexts {
    let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
    let wire = Wire::new(header.order, header.version);
    let mut input = Decoder::new(octets, wire).at(12);
    let request = RequestHeader::decode(&mut input).unwrap();
    let mut contexts = DeadlineContexts::default();
    if let Some(data) = request.service_contexts.find(ids::CONTEXT_REMAINING_TIME) {
        let mut input = Decoder::of_encapsulation(data, wire).unwrap();
        contexts.remaining = Some((input.u64().unwrap(), input.u64().unwrap()));
    }
    if let Some(data) = request.service_contexts.find(INVOCATION_POLICIES) {
        let mut input = Decoder::of_encapsulation(data, wire).unwrap();
        for _ in 0..input.u32().unwrap() {
            let (policy_type, value) = (input.u32().unwrap(), input.octet_sequence().unwrap());
            let end = UtcT::decode(&mut Decoder::of_encapsulation(value, wire).unwrap()).unwrap();
            contexts.policies.push((policy_type, end.to_system_time().unwrap()));
        }
    }
    contexts
}

/// A fake server that answers all requests and reports their deadline contexts.
fn reporting_server() -> (u16, Receiver<DeadlineContexts>) {
    let (send, contexts) = mpsc::channel();
    let port = fake_server(move |_, mut stream| {
        let send = send.clone();
        std::thread::spawn(move || {
            while let Ok(octets) = read_message(&mut stream) {
                if octets[7] != 0 {
                    continue;
                }
                let id = u32::from_ne_bytes(octets[12..16].try_into().unwrap());
                let mut out = Encoder::new(Wire::default());
                begin_reply(&mut out, id, ReplyStatus::NoException, &[]).end(&mut out).unwrap();
                let _ = send.send(deadline_contexts(&octets));
                if octets[16] != 0 && stream.write_all(&out.to_vec()).is_err() {
                    return;
                }
            }
        });
    });
    (port, contexts)
}

fn reference(orb: &Orb, port: u16, is_spandrel: bool) -> ObjectRef {
    let orb_type = Component::OrbType(if is_spandrel { ids::ORB_TYPE } else { 0x4154_5400 }).encode().unwrap();
    let profile = IiopProfile {
        version: GiopVersion::V1_2,
        host: "127.0.0.1".to_owned(),
        port,
        object_key: b"key".to_vec(),
        components: vec![orb_type],
    };
    orb.reference(Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] })
}

#[test]
fn the_remaining_time_is_sent_to_spandrel_servers_only() {
    for caches in [true, false] {
        let (port, contexts) = reporting_server();
        let next = || contexts.recv_timeout(TEST_TIMEOUT).unwrap();
        let orb = Orb::builder().request_caching(caches).build().unwrap();
        let spandrel_object = reference(&orb, port, true);
        call_operation(&spandrel_object, "a").unwrap();
        assert_eq!(next(), DeadlineContexts::default(), "no contexts without a deadline");
        let timed = spandrel_object.with_timeout(Some(Duration::from_secs(9)));
        let spans: Vec<_> = (0..3)
            .map(|_| {
                call_operation(&timed, "a").unwrap();
                next().remaining.unwrap()
            })
            .collect();
        // The context is encoded for each request, also with a cached request header.
        assert!(spans.iter().all(|(answer, delivery)| *answer <= 90_000_000 && *answer > 0 && *delivery == u64::MAX));
        block_on(timed.invoke_async::<(), SystemException>("a", |_| Ok(()), |_| Ok(()))).unwrap();
        assert!(next().remaining.unwrap().0 <= 90_000_000);
        let sent = limited(&spandrel_object, &[RelativeRequestTimeoutPolicy(Duration::from_secs(9)).into()]);
        call_operation(&sent, "a").unwrap();
        let (answer, delivery) = next().remaining.unwrap();
        assert!(answer == u64::MAX && delivery <= 90_000_000);
        timed.send_oneway("b", |_| Ok(())).unwrap();
        assert_eq!(next(), DeadlineContexts::default(), "a one-way request has no deadline for its answer");
        let foreign_object = reference(&orb, port, false).with_timeout(Some(Duration::from_secs(9)));
        call_operation(&foreign_object, "a").unwrap();
        assert_eq!(next(), DeadlineContexts::default());
    }
}

#[test]
fn the_deadline_context_option_selects_the_contexts_sent() {
    let (port, contexts) = reporting_server();
    let end = SystemTime::now() + Duration::from_secs(9);
    for (form, is_remaining, is_absolute) in [
        (DeadlineContext::Remaining, true, false),
        (DeadlineContext::Absolute, false, true),
        (DeadlineContext::Both, true, true),
        (DeadlineContext::None, false, false),
    ] {
        let orb = Orb::builder().deadline_context(form).build().unwrap();
        for is_spandrel in [true, false] {
            let policies = [ReplyEndTimePolicy(end).into(), RequestEndTimePolicy(end).into()];
            let object = limited(&reference(&orb, port, is_spandrel), &policies);
            call_operation(&object, "a").unwrap();
            let sent = contexts.recv_timeout(TEST_TIMEOUT).unwrap();
            assert_eq!(sent.remaining.is_some(), is_remaining && is_spandrel, "{form:?}");
            let types: Vec<u32> = sent.policies.iter().map(|(policy_type, _)| *policy_type).collect();
            assert_eq!(types, if is_absolute { vec![28, 30] } else { vec![] }, "{form:?}");
            for (_, time) in sent.policies {
                let off = time.duration_since(end).unwrap_or_else(|early| early.duration());
                assert!(off < Duration::from_secs(1), "{off:?}");
            }
        }
    }
}

// 17.2.4.1 and 17.2.4.3.
#[test]
fn requests_and_replies_are_not_delivered_before_their_start_times() {
    let server = Server::start(Orb::builder(), None);
    let client = server.client();
    call_operation(&client, "hop").unwrap();
    server.observation();
    let short = Duration::from_millis(80);
    for is_asynchronous in [false, true] {
        let call_operation = |object: &ObjectRef| match is_asynchronous {
            false => call_operation(object, "hop"),
            true => block_on(object.invoke_async("hop", |_| Ok(()), |_| Ok(()))),
        };
        let begun = Instant::now();
        let held = limited(&client, &[RequestStartTimePolicy(SystemTime::now() + short).into()]);
        let call = in_background({
            let held = held.clone();
            move || held.invoke::<(), SystemException>("hop", |_| Ok(()), |_| Ok(()))
        });
        call_operation(&held).unwrap();
        server.observation();
        assert!(begun.elapsed() >= short, "the servant was called at {:?}", begun.elapsed());
        call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        server.observation();
        let begun = Instant::now();
        let delayed = limited(&client, &[ReplyStartTimePolicy(SystemTime::now() + short).into()]);
        call_operation(&delayed).unwrap();
        assert!(begun.elapsed() >= short, "the reply was delivered at {:?}", begun.elapsed());
        server.observation();
        let past = SystemTime::now() - short;
        call_operation(&limited(&client, &[RequestStartTimePolicy(past).into(), ReplyStartTimePolicy(past).into()]))
            .unwrap();
        server.observation();
    }
}

#[test]
fn a_start_time_after_the_deadline_fails_at_once() {
    let server = Server::start(Orb::builder(), None);
    let limited_object = SystemTime::now() + TEST_TIMEOUT;
    let limit = |object: &ObjectRef| object.with_timeout(Some(TEST_TIMEOUT / 2));
    let begun = Instant::now();
    for policy in
        [RequestStartTimePolicy(limited_object).into(), ReplyStartTimePolicy(limited_object).into()] as [Policy; 2]
    {
        let object = limit(&limited(&server.client(), &[policy]));
        assert_timeout(call_operation(&object, "hop"), CompletionStatus::No);
        assert_timeout(block_on(object.invoke_async("hop", |_| Ok(()), |_| Ok(()))), CompletionStatus::No);
    }
    let sent = [RelativeRequestTimeoutPolicy(TEST_TIMEOUT / 2).into(), RequestStartTimePolicy(limited_object).into()];
    assert_eq!(call_operation(&limited(&server.client(), &sent), "hop").unwrap_err().minor(), minor::REQUEST_EXPIRED);
    assert!(begun.elapsed() < TEST_TIMEOUT / 2);
    assert!(server.observations.try_recv().is_err());
}

#[test]
fn a_call_held_for_its_start_time_ends_with_its_orb_or_future() {
    let server = Server::start(Orb::builder(), None);
    let orb = Orb::builder().build().unwrap();
    let client = orb.string_to_object(&server.object.to_string()).unwrap();
    let held = limited(&client, &[RequestStartTimePolicy(SystemTime::now() + TEST_TIMEOUT * 100).into()]);
    let dropped = held.invoke_async::<(), SystemException>("hop", |_| Ok(()), |_| Ok(()));
    drop(dropped);
    let asynchronous = held.invoke_async::<(), SystemException>("hop", |_| Ok(()), |_| Ok(()));
    let blocking = held.clone();
    let (begin, begun) = mpsc::channel();
    let call = in_background(move || {
        begin.send(()).unwrap();
        call_operation(&blocking, "hop")
    });
    begun.recv_timeout(TEST_TIMEOUT).unwrap();
    orb.shutdown().unwrap();
    let ended = [block_on(asynchronous), call.recv_timeout(TEST_TIMEOUT).unwrap()];
    for outcome in ended {
        assert_eq!(
            kind_and_completion(&outcome.unwrap_err()),
            (SystemExceptionKind::BadInvOrder, CompletionStatus::No)
        );
    }
    assert!(server.observations.try_recv().is_err());
}
