//! Deadlines that travel: what is said of them, what they bound, and what is not run any more because of them.

use std::{
    io::Write,
    net::TcpStream,
    sync::mpsc::{self, Receiver, Sender},
    time::{Duration, Instant, SystemTime},
};

use spandrel::{
    CancellationToken, Collocation, CompletionStatus, Concurrency, IiopProfile, Ior, ObjectRef, Orb, OrbBuilder, Poa,
    Policy, Replied, Servant, ServerCall, SystemException, SystemExceptionKind, minor,
    policies::{
        DeadlineContext, RelativeRequestTimeoutPolicy, ReplyEndTimePolicy, ReplyStartTimePolicy, RequestEndTimePolicy,
        RequestStartTimePolicy, SetOverrideType, UtcT,
    },
    remaining_time,
    statistics::Event,
};
use spandrel_cdr::{ByteOrder, Decode, Decoder, Encode, Encoder, GiopVersion, Wire};
use spandrel_giop::{
    MessageHeader, ReplyStatus, RequestHeader, RequestTemplate, ResponseFlags, ServiceContext, begin_reply,
    component::Component, ids,
};
use spandrel_orb_tests::support::{
    PATIENCE, block_on, in_background, kind_and_completion, pretend, read_message, with_time_enough,
};

const INVOCATION_POLICIES: u32 = 7;

/// What a servant of these tests has seen: its remaining time, and how a call of its own has ended.
type Seen = (Option<Duration>, Option<Result<(), SystemException>>);

/// A servant that notes how much time it has, and asks the next one.
struct Hop {
    next: Option<ObjectRef>,
    seen: Sender<Seen>,
    begun: Sender<()>,
}

fn ask(object: &ObjectRef, operation: &str) -> Result<(), SystemException> {
    object.invoke(operation, |_| Ok(()), |_| Ok(()))
}

impl Servant for Hop {
    fn repository_id(&self) -> &str {
        "IDL:Tests/Hop:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match operation {
            // Asks the next one the same, and the last one answers.
            "hop" => {
                let left = remaining_time();
                let nested = self.next.as_ref().map(|next| ask(next, "hop"));
                self.seen.send((left, nested.clone())).unwrap();
                nested.unwrap_or(Ok(()))?;
            }
            // Asks the next one, who answers only once its gate opens, or nobody waits.
            "stick" => match &self.next {
                Some(next) => {
                    let nested = ask(next, "stick");
                    self.seen.send((remaining_time(), Some(nested.clone()))).unwrap();
                    nested?;
                }
                None => {
                    self.begun.send(()).unwrap();
                    assert!(CancellationToken::current().wait_timeout(PATIENCE), "it was never told");
                    self.seen.send((remaining_time(), None)).unwrap();
                    // In case that the caller is not quite as punctual, and waits still.
                    return Err(SystemException::timeout(0, CompletionStatus::Maybe));
                }
            },
            "later" => {
                let (next, seen) = (self.next.clone(), self.seen.clone());
                return call.spawn(|deferred| async move {
                    let left = remaining_time();
                    let nested = match &next {
                        Some(next) => Some(next.invoke_async("stick", |_| Ok(()), |_| Ok(())).await),
                        None => None,
                    };
                    seen.send((left, nested)).unwrap();
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
    seen: Receiver<Seen>,
    /// One has begun that sticks.
    begun: Receiver<()>,
}

impl Server {
    fn start(builder: OrbBuilder, next: Option<&Server>) -> Self {
        let orb = builder.build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        Self::of(orb, poa, next)
    }

    fn of(orb: Orb, poa: Poa, next: Option<&Server>) -> Self {
        let ((see, seen), (begin, begun)) = (mpsc::channel(), mpsc::channel());
        let next = next.map(|next| orb.string_to_object(&next.object.to_string()).unwrap());
        let object = poa.activate(Hop { next, seen: see, begun: begin }).unwrap();
        Self { orb, poa, object, seen, begun }
    }

    fn client(&self) -> ObjectRef {
        self.client_with(Orb::builder())
    }

    fn client_with(&self, builder: OrbBuilder) -> ObjectRef {
        builder.build().unwrap().string_to_object(&self.object.to_string()).unwrap()
    }

    #[track_caller]
    fn saw(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).expect("the servant was called")
    }

    fn profile(&self) -> IiopProfile {
        IiopProfile::decode(&self.object.ior().profiles[0]).unwrap().unwrap()
    }

    fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.profile().port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A request by hand.
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
fn assert_late(outcome: Result<(), SystemException>, status: CompletionStatus) {
    assert_eq!(kind_and_completion(&outcome.unwrap_err()), (SystemExceptionKind::Timeout, status));
}

/// So much time is left, and so much until it is delivered.
fn remaining(answer: Option<Duration>, delivery: Option<Duration>) -> ServiceContext {
    let span = |time: Option<Duration>| time.map_or(u64::MAX, |time| u64::try_from(time.as_nanos() / 100).unwrap());
    let data = [[0; 8], span(answer).to_be_bytes(), span(delivery).to_be_bytes()].concat();
    ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data }
}

/// The standard's form.
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

/// How the reply ends that comes next: the exception's id, its minor code and its completion status, if it is one.
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
fn each_hop_has_less_time_than_the_one_before() {
    let last = Server::start(Orb::builder(), None);
    let middle = Server::start(Orb::builder(), Some(&last));
    let first = Server::start(Orb::builder(), Some(&middle));
    let client = first.client();
    ask(&client, "hop").unwrap();
    for server in [&first, &middle, &last] {
        assert_eq!(server.saw().0, None, "nobody is in a hurry");
    }
    let time = Duration::from_secs(20);
    ask(&client.with_timeout(Some(time)), "hop").unwrap();
    let left = [&first, &middle, &last].map(|server| server.saw().0.unwrap());
    assert!(time > left[0] && left[0] > left[1] && left[1] > left[2], "{left:?}");
    assert!(left[2] > Duration::from_secs(1));
    ask(&client, "hop").unwrap();
    assert_eq!(last.saw().0, None, "that was one call's");
    assert_eq!(remaining_time(), None);
}

#[test]
fn a_nested_call_waits_no_longer_than_its_client() {
    let builders = || {
        [
            Orb::builder(),
            Orb::builder().concurrency(Concurrency::LeaderFollowers { threads: Some(1) }),
            Orb::builder().concurrency(Concurrency::ThreadPool { threads: 1, queue: 4 }),
        ]
    };
    for operation in ["stick", "later"] {
        for index in 0..builders().len() {
            with_time_enough(Duration::from_millis(200), |time| {
                let last = Server::start(Orb::builder(), None);
                let first = Server::start(builders().into_iter().nth(index).unwrap(), Some(&last));
                let client = first.client();
                // Connected before time counts.
                ask(&client, "hop").unwrap();
                let _ = (first.saw(), last.saw());
                let ended = ask(&client.with_timeout(Some(time)), operation);
                // Otherwise the request was not there in time.
                last.begun.try_recv().ok()?;
                assert_late(ended, CompletionStatus::Maybe);
                if operation == "stick" {
                    let (left, nested) = first.saw();
                    assert_eq!(left, Some(Duration::ZERO));
                    assert_late(nested.unwrap(), CompletionStatus::Maybe);
                }
                // By its own deadline or by the first one's word, whichever comes earlier.
                assert!(last.saw().0.is_some(), "{operation}: the last one has learnt it, too");
                Some(())
            });
        }
    }
}

#[test]
fn a_server_may_give_its_own_calls_more_time() {
    let last = Server::start(Orb::builder(), None);
    let first = Server::start(Orb::builder().inherit_deadlines(false), Some(&last));
    let client = first.client();
    with_time_enough(Duration::from_millis(100), |time| {
        let ended = ask(&client.with_timeout(Some(time)), "stick");
        last.begun.try_recv().ok()?;
        assert_late(ended, CompletionStatus::Maybe);
        Some(())
    });
    assert!(last.seen.try_recv().is_err(), "the last one has no deadline");
    // The first one's client is gone now, and so is its own call.
    last.orb.shutdown(false).unwrap();
}

#[test]
fn a_call_that_is_made_for_nobody_any_more_ends_if_that_is_wanted() {
    for concurrency in [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::ThreadPool { threads: 1, queue: 4 },
    ] {
        let last = Server::start(Orb::builder(), None);
        let middle = Server::start(Orb::builder().cancel_nested(true), Some(&last));
        let first = Server::start(Orb::builder().concurrency(concurrency).cancel_nested(true), Some(&middle));
        let asked = first.client().invoke_async::<(), SystemException>("stick", |_| Ok(()), |_| Ok(()));
        last.begun.recv_timeout(PATIENCE).unwrap();
        drop(asked);
        for server in [&first, &middle] {
            let ended = server.saw().1.unwrap().unwrap_err();
            assert_eq!(
                kind_and_completion(&ended),
                (SystemExceptionKind::Transient, CompletionStatus::Maybe),
                "{ended}"
            );
            assert_eq!(ended.minor(), minor::REQUEST_CANCELLED);
        }
        assert_eq!(last.saw().0, None, "it was told, and had all the time in the world");
        assert_eq!(last.orb.statistics().count(Event::CancelledByClient), 1);
        ask(&first.client(), "hop").unwrap();
    }
}

#[test]
fn callers_in_the_same_orb_hand_their_time_on() {
    for collocation in [Collocation::Direct, Collocation::ThroughPoa, Collocation::No] {
        let last = Server::start(Orb::builder(), None);
        let server = Server::start(Orb::builder().collocation(collocation), Some(&last));
        ask(&server.object, "hop").unwrap();
        assert_eq!((server.saw().0, last.saw().0), (None, None));
        let late = server.object.with_timeout(Some(Duration::from_secs(20)));
        ask(&late, "hop").unwrap();
        let (here, there) = (server.saw().0.unwrap(), last.saw().0.unwrap());
        assert!(Duration::from_secs(20) > here && here > there, "{collocation:?}");
        with_time_enough(Duration::from_millis(200), |time| {
            let last = Server::start(Orb::builder(), None);
            let server = Server::start(Orb::builder().collocation(collocation), Some(&last));
            ask(&server.object, "hop").unwrap();
            let _ = (server.saw(), last.saw());
            let ended = ask(&server.object.with_timeout(Some(time)), "stick");
            assert_eq!(remaining_time(), None);
            // Otherwise the request was not there in time.
            last.begun.try_recv().ok()?;
            assert_late(ended, CompletionStatus::Maybe);
            assert_late(server.saw().1.unwrap(), CompletionStatus::Maybe);
            Some(())
        });
    }
}

#[test]
fn what_comes_too_late_is_not_run() {
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
        assert_eq!(server.seen.try_iter().count(), 1);
        assert_eq!(server.orb.statistics().count(Event::RefusedExpired), 1);
    }
}

#[test]
fn a_request_that_is_held_too_long_is_answered_and_not_run() {
    for concurrency in [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::ThreadPool { threads: 1, queue: 4 },
    ] {
        let server = Server::start(Orb::builder().concurrency(concurrency), None);
        let manager = server.poa.the_poa_manager();
        manager.hold_requests(true).unwrap();
        let mut client = server.raw();
        let short = Some(Duration::from_millis(50));
        client.write_all(&server.request("hop", &[remaining(short, None)])).unwrap();
        assert_eq!(outcome(&mut client), timeout(minor::ROUND_TRIP_EXPIRED, NO), "while it is held");
        // Its time for delivery alone matters when its turn comes.
        client.write_all(&server.request("hop", &[remaining(None, Some(Duration::from_millis(600)))])).unwrap();
        client.write_all(&server.request("hop", &[remaining(Some(Duration::from_millis(900)), None)])).unwrap();
        assert_eq!(outcome(&mut client), timeout(minor::ROUND_TRIP_EXPIRED, NO));
        manager.activate().unwrap();
        assert_eq!(outcome(&mut client), timeout(minor::REQUEST_EXPIRED, NO));
        client.write_all(&server.request("hop", &[])).unwrap();
        assert_eq!(outcome(&mut client), None);
        assert_eq!(server.seen.try_iter().count(), 1);
    }
}

#[test]
fn a_request_that_waits_too_long_for_a_thread_is_not_run() {
    let server = Server::start(Orb::builder().concurrency(Concurrency::ThreadPool { threads: 1, queue: 4 }), None);
    let (mut busy, mut waiting) = (server.raw(), server.raw());
    let (short, long) = (Duration::from_millis(100), Duration::from_millis(2000));
    // It keeps the thread until its own time is up, which is when the other's is as well.
    busy.write_all(&server.request("stick", &[remaining(Some(long), None)])).unwrap();
    server.begun.recv_timeout(PATIENCE).unwrap();
    waiting.write_all(&server.request("hop", &[remaining(Some(short), None)])).unwrap();
    assert_eq!(server.saw().0, Some(Duration::ZERO));
    assert_eq!(outcome(&mut waiting), timeout(minor::ROUND_TRIP_EXPIRED, NO));
    assert_eq!(outcome(&mut busy), timeout(0, 2));
    assert!(server.seen.try_recv().is_err());
}

#[test]
fn the_standards_form_is_understood_in_both_orders() {
    let server = Server::start(Orb::builder(), None);
    let mut client = server.raw();
    let (end, past) = (SystemTime::now() + Duration::from_secs(20), SystemTime::now() - Duration::from_secs(1));
    for order in [ByteOrder::Big, ByteOrder::Little] {
        client.write_all(&server.request("hop", &[absolute(order, &[(27, past), (28, end), (30, end)])])).unwrap();
        assert_eq!(outcome(&mut client), None);
        let left = server.saw().0.unwrap();
        assert!(left < Duration::from_secs(20) && left > Duration::from_secs(1), "{left:?}");
    }
    // Where both are there, no clock has to be believed.
    let both = [absolute(ByteOrder::Big, &[(30, past)]), remaining(Some(Duration::from_secs(9)), None)];
    client.write_all(&server.request("hop", &both)).unwrap();
    assert_eq!(outcome(&mut client), None);
    assert!(server.saw().0.unwrap() > Duration::from_secs(1));
}

// 17.2.4.1, for clients that leave the waiting to the server.
#[test]
fn a_request_that_comes_too_early_is_held() {
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
        ask(&server.client(), "hop").unwrap();
        assert_eq!(server.saw(), (None, None), "others are served meanwhile");
        assert_eq!(outcome(&mut client), None);
        assert!(begun.elapsed() >= time, "it was run after {:?}", begun.elapsed());
        assert_eq!(server.saw(), (None, None));
        let end = SystemTime::now() + time;
        let never = absolute(ByteOrder::Big, &[(27, end + PATIENCE), (30, end)]);
        client.write_all(&server.request("hop", &[never])).unwrap();
        assert_eq!(outcome(&mut client), timeout(minor::ROUND_TRIP_EXPIRED, NO));
        assert!(server.seen.try_recv().is_err());
    }
}

#[test]
fn contexts_that_make_no_sense_say_nothing() {
    let server = Server::start(Orb::builder(), None);
    let mut client = server.raw();
    let end = SystemTime::now() + Duration::from_secs(20);
    let sound = [remaining(Some(Duration::from_secs(9)), None), absolute(ByteOrder::Big, &[(28, end), (30, end)])];
    for context in &sound {
        for len in 0..context.data.len() {
            let data = context.data[..len].to_vec();
            client.write_all(&server.request("hop", &[ServiceContext { id: context.id, data }])).unwrap();
            assert_eq!(outcome(&mut client), None, "{len}");
            assert_eq!(server.saw().0, None, "{len}");
        }
    }
    let endless = [&[0; 4][..], &[0xff; 40]].concat();
    let huge = [&[0; 8][..], &(u64::MAX - 1).to_be_bytes(), &[0xff; 8]].concat();
    for (id, data) in [(INVOCATION_POLICIES, endless), (ids::CONTEXT_REMAINING_TIME, huge)] {
        client.write_all(&server.request("hop", &[ServiceContext { id, data }])).unwrap();
        assert_eq!(outcome(&mut client), None);
        server.saw();
    }
}

/// What a request says of its deadline: the spans of ours, and the types of the standard's policies.
#[derive(Debug, Default, PartialEq)]
struct Said {
    remaining: Option<(u64, u64)>,
    policies: Vec<(u32, SystemTime)>,
}

fn said(octets: &[u8]) -> Said {
    let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
    let wire = Wire::new(header.order, header.version);
    let mut input = Decoder::new(octets, wire).at(12);
    let request = RequestHeader::decode(&mut input).unwrap();
    let mut said = Said::default();
    if let Some(data) = request.service_contexts.find(ids::CONTEXT_REMAINING_TIME) {
        let mut input = Decoder::of_encapsulation(data, wire).unwrap();
        said.remaining = Some((input.u64().unwrap(), input.u64().unwrap()));
    }
    if let Some(data) = request.service_contexts.find(INVOCATION_POLICIES) {
        let mut input = Decoder::of_encapsulation(data, wire).unwrap();
        for _ in 0..input.u32().unwrap() {
            let (policy_type, value) = (input.u32().unwrap(), input.octet_sequence().unwrap());
            let end = UtcT::decode(&mut Decoder::of_encapsulation(value, wire).unwrap()).unwrap();
            said.policies.push((policy_type, end.to_system_time().unwrap()));
        }
    }
    said
}

/// A server that tells what requests say, and answers all.
fn telling() -> (u16, Receiver<Said>) {
    let (tell, told) = mpsc::channel();
    let port = pretend(move |_, mut stream| {
        let tell = tell.clone();
        std::thread::spawn(move || {
            while let Ok(octets) = read_message(&mut stream) {
                if octets[7] != 0 {
                    continue;
                }
                let id = u32::from_ne_bytes(octets[12..16].try_into().unwrap());
                let mut out = Encoder::new(Wire::default());
                begin_reply(&mut out, id, ReplyStatus::NoException, &[]).end(&mut out).unwrap();
                let _ = tell.send(said(&octets));
                if octets[16] != 0 && stream.write_all(&out.to_vec()).is_err() {
                    return;
                }
            }
        });
    });
    (port, told)
}

fn reference(orb: &Orb, port: u16, is_ours: bool) -> ObjectRef {
    let orb_type = Component::OrbType(if is_ours { ids::ORB_TYPE } else { 0x4154_5400 }).encode().unwrap();
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
fn a_request_says_how_much_time_it_has_to_those_who_understand() {
    for caches in [true, false] {
        let (port, told) = telling();
        let hear = || told.recv_timeout(PATIENCE).unwrap();
        let orb = Orb::builder().request_caching(caches).build().unwrap();
        let ours = reference(&orb, port, true);
        ask(&ours, "a").unwrap();
        assert_eq!(hear(), Said::default(), "nothing, without a deadline");
        let timed = ours.with_timeout(Some(Duration::from_secs(9)));
        let spans: Vec<_> = (0..3)
            .map(|_| {
                ask(&timed, "a").unwrap();
                hear().remaining.unwrap()
            })
            .collect();
        // Anew each time, also in a header that is kept.
        assert!(spans.iter().all(|(answer, delivery)| *answer <= 90_000_000 && *answer > 0 && *delivery == u64::MAX));
        block_on(timed.invoke_async::<(), SystemException>("a", |_| Ok(()), |_| Ok(()))).unwrap();
        assert!(hear().remaining.unwrap().0 <= 90_000_000);
        let sent = limited(&ours, &[RelativeRequestTimeoutPolicy(Duration::from_secs(9)).into()]);
        ask(&sent, "a").unwrap();
        let (answer, delivery) = hear().remaining.unwrap();
        assert!(answer == u64::MAX && delivery <= 90_000_000);
        timed.send_oneway("b", |_| Ok(())).unwrap();
        assert_eq!(hear(), Said::default(), "nobody waits for the answer to a one-way");
        let theirs = reference(&orb, port, false).with_timeout(Some(Duration::from_secs(9)));
        ask(&theirs, "a").unwrap();
        assert_eq!(hear(), Said::default());
    }
}

#[test]
fn the_standards_form_is_written_if_it_is_wanted() {
    let (port, told) = telling();
    let end = SystemTime::now() + Duration::from_secs(9);
    for (form, is_remaining, is_absolute) in [
        (DeadlineContext::Remaining, true, false),
        (DeadlineContext::Absolute, false, true),
        (DeadlineContext::Both, true, true),
        (DeadlineContext::None, false, false),
    ] {
        let orb = Orb::builder().deadline_context(form).build().unwrap();
        for is_ours in [true, false] {
            let policies = [ReplyEndTimePolicy(end).into(), RequestEndTimePolicy(end).into()];
            let object = limited(&reference(&orb, port, is_ours), &policies);
            ask(&object, "a").unwrap();
            let said = told.recv_timeout(PATIENCE).unwrap();
            assert_eq!(said.remaining.is_some(), is_remaining && is_ours, "{form:?}");
            let types: Vec<u32> = said.policies.iter().map(|(policy_type, _)| *policy_type).collect();
            assert_eq!(types, if is_absolute { vec![28, 30] } else { vec![] }, "{form:?}");
            for (_, said) in said.policies {
                let off = said.duration_since(end).unwrap_or_else(|early| early.duration());
                assert!(off < Duration::from_secs(1), "{off:?}");
            }
        }
    }
}

// 17.2.4.1 and 17.2.4.3.
#[test]
fn nothing_is_delivered_before_its_time() {
    let server = Server::start(Orb::builder(), None);
    let client = server.client();
    ask(&client, "hop").unwrap();
    server.saw();
    let short = Duration::from_millis(80);
    for is_asynchronous in [false, true] {
        let ask = |object: &ObjectRef| match is_asynchronous {
            false => ask(object, "hop"),
            true => block_on(object.invoke_async("hop", |_| Ok(()), |_| Ok(()))),
        };
        let begun = Instant::now();
        let held = limited(&client, &[RequestStartTimePolicy(SystemTime::now() + short).into()]);
        let call = in_background({
            let held = held.clone();
            move || held.invoke::<(), SystemException>("hop", |_| Ok(()), |_| Ok(()))
        });
        ask(&held).unwrap();
        server.saw();
        assert!(begun.elapsed() >= short, "the servant was called at {:?}", begun.elapsed());
        call.recv_timeout(PATIENCE).unwrap().unwrap();
        server.saw();
        let begun = Instant::now();
        let kept = limited(&client, &[ReplyStartTimePolicy(SystemTime::now() + short).into()]);
        ask(&kept).unwrap();
        assert!(begun.elapsed() >= short, "the reply was handed over at {:?}", begun.elapsed());
        server.saw();
        let past = SystemTime::now() - short;
        ask(&limited(&client, &[RequestStartTimePolicy(past).into(), ReplyStartTimePolicy(past).into()])).unwrap();
        server.saw();
    }
}

#[test]
fn what_may_start_only_after_its_end_ends_at_once() {
    let server = Server::start(Orb::builder(), None);
    let late = SystemTime::now() + PATIENCE;
    let limit = |object: &ObjectRef| object.with_timeout(Some(PATIENCE / 2));
    let begun = Instant::now();
    for policy in [RequestStartTimePolicy(late).into(), ReplyStartTimePolicy(late).into()] as [Policy; 2] {
        let object = limit(&limited(&server.client(), &[policy]));
        assert_late(ask(&object, "hop"), CompletionStatus::No);
        assert_late(block_on(object.invoke_async("hop", |_| Ok(()), |_| Ok(()))), CompletionStatus::No);
    }
    let sent = [RelativeRequestTimeoutPolicy(PATIENCE / 2).into(), RequestStartTimePolicy(late).into()];
    assert_eq!(ask(&limited(&server.client(), &sent), "hop").unwrap_err().minor(), minor::REQUEST_EXPIRED);
    assert!(begun.elapsed() < PATIENCE / 2);
    assert!(server.seen.try_recv().is_err());
}

#[test]
fn a_held_call_ends_with_its_orb_and_with_its_future() {
    let server = Server::start(Orb::builder(), None);
    let orb = Orb::builder().build().unwrap();
    let client = orb.string_to_object(&server.object.to_string()).unwrap();
    let held = limited(&client, &[RequestStartTimePolicy(SystemTime::now() + PATIENCE * 100).into()]);
    let dropped = held.invoke_async::<(), SystemException>("hop", |_| Ok(()), |_| Ok(()));
    drop(dropped);
    let asked = held.invoke_async::<(), SystemException>("hop", |_| Ok(()), |_| Ok(()));
    let waits = held.clone();
    let (begin, begun) = mpsc::channel();
    let call = in_background(move || {
        begin.send(()).unwrap();
        ask(&waits, "hop")
    });
    begun.recv_timeout(PATIENCE).unwrap();
    orb.shutdown(true).unwrap();
    let ended = [block_on(asked), call.recv_timeout(PATIENCE).unwrap()];
    for outcome in ended {
        assert_eq!(
            kind_and_completion(&outcome.unwrap_err()),
            (SystemExceptionKind::BadInvOrder, CompletionStatus::No)
        );
    }
    assert!(server.seen.try_recv().is_err());
}
