//! Bidirectional GIOP: clients that nobody can connect to are called over the connections that they have opened.

use std::{
    io::{self, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use spandrel::{
    BidirectionalPolicy, CancelReason, CancellationToken, CompletionStatus, Concurrency, Endpoint, GiopVersion,
    IiopProfile, Located, Orb, OrbBuilder, SystemException, SystemExceptionKind, WaitStrategy, ior_to_string,
    policies::SetOverrideType,
    statistics::Event,
    transport::{Address, Listener, ListenerSource, PublishedAddresses, ServerProtocol, SocketSettings},
};
use spandrel_orb_tests::{
    Probe, Repeater, Server,
    probe::{
        Relay, RelayAsyncServant, RelayAsyncSkeleton, RelayServant, RelaySkeleton, Target, TargetServant,
        TargetSkeleton,
    },
    support::{PATIENCE, block_on, in_background, kind_and_completion, pretend, read_message, with_time_enough},
    wiretap::{Wiretap, at_port},
};

/// A client with objects, and a server that calls them.
struct Pair {
    client: Server,
    server: Server,
    /// The server's, as the client has it.
    to_server: Target,
    server_relay: Relay,
    /// The client's, to be sent.
    own: Target,
    own_relay: Relay,
}

impl Pair {
    fn new() -> Self {
        Self::of(client(), server())
    }

    fn of(client: OrbBuilder, server: OrbBuilder) -> Self {
        let (client, server) = (Server::with(client), Server::with(server));
        let to_server = Target::narrow(&client.orb.string_to_object(&server.ior()).unwrap()).unwrap();
        let server_relay = server.poa.activate(RelaySkeleton::new(Repeater)).unwrap();
        let server_relay = Relay::narrow(&client.orb.string_to_object(&server_relay.to_string()).unwrap()).unwrap();
        let own = Target::narrow(&client.orb.string_to_object(&client.ior()).unwrap()).unwrap();
        let own_relay = client.poa.activate(RelaySkeleton::new(Repeater)).unwrap();
        let own_relay = Relay::narrow(&own_relay).unwrap();
        Self { client, server, to_server, server_relay, own, own_relay }
    }

    /// The client's object, as the server has it.
    fn as_seen_by_server(&self) -> Target {
        // What the client has said before is known by then.
        self.to_server.ping().unwrap();
        Target::unchecked_narrow(&self.server.orb.string_to_object(&self.client.ior()).unwrap())
    }

    fn recurse(&self, depth: i32) -> Result<i32, spandrel::SystemException> {
        let (target, other, back) = (self.server_relay.clone(), self.own_relay.clone(), self.server_relay.clone());
        let call = in_background(move || target.recurse(Some(&other), Some(&back), depth));
        call.recv_timeout(PATIENCE).expect("the call-backs end")
    }
}

fn client() -> OrbBuilder {
    Orb::builder().bidirectional(true).listen(Endpoint::nowhere())
}

fn server() -> OrbBuilder {
    Orb::builder().bidirectional(true)
}

/// The same object, for so many milliseconds per call.
fn limited(object: &Target, milliseconds: u64) -> Target {
    Target::unchecked_narrow(&object.as_object().with_timeout(Some(Duration::from_millis(milliseconds))))
}

#[test]
fn a_servant_calls_its_client_back_although_nobody_can_connect_there() {
    let pair = Pair::new();
    for _ in 0..100 {
        pair.to_server.call_back(Some(&pair.own)).unwrap();
    }
}

#[test]
fn an_idle_client_is_called() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    for number in 0..100 {
        assert_eq!(back.add(number, 1).unwrap(), number + 1);
    }
    let text = "x".repeat(300_000);
    assert_eq!(back.echo(&text).unwrap(), text);
    let error = back.refuse(7).unwrap_err();
    assert!(error.to_string().contains("because of 7"), "{error}");
}

#[test]
fn limits_hold_for_call_backs_too() {
    let pair = Pair::of(client().max_service_contexts(0).exception_details(true), server());
    let back = pair.as_seen_by_server();
    // Its deadline is a context.
    let refused = limited(&back, 20_000).ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::ImpLimit, "{refused}");
    assert!(refused.to_string().contains("-ORBMaxServiceContexts"), "{refused}");
}

#[test]
fn call_backs_nest() {
    let pair = Pair::new();
    for depth in [0, 1, 2, 10, 20] {
        assert_eq!(pair.recurse(depth).unwrap(), depth);
    }
}

#[test]
fn a_client_is_called_while_it_waits_for_a_reply() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    let waiting = {
        let target = pair.to_server.clone();
        in_background(move || target.hold(1))
    };
    pair.server.probe.await_held(1);
    for number in 0..20 {
        assert_eq!(back.add(number, 2).unwrap(), number + 2);
    }
    back.release(1).unwrap();
    assert!(waiting.try_recv().is_err(), "that was another gate");
    pair.to_server.release(1).unwrap();
    waiting.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn a_slow_call_back_keeps_nobody_waiting() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let back = back.clone();
            in_background(move || back.hold(1))
        })
        .collect();
    pair.client.probe.await_held(8);
    assert_eq!(back.add(1, 2).unwrap(), 3);
    assert_eq!(pair.to_server.add(3, 4).unwrap(), 7);
    pair.client.probe.open(1);
    slow.iter().for_each(|slow| slow.recv_timeout(PATIENCE).unwrap().unwrap());
}

#[test]
fn one_ways_are_run_in_order_and_before_what_comes_after_them() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    for round in 1..=20 {
        for _ in 0..50 {
            back.note(&[7; 100]).unwrap();
        }
        assert_eq!(back.count().unwrap(), round * 50);
    }
}

#[test]
fn call_backs_nest_whoever_serves() {
    let strategies = [
        Concurrency::ThreadPerConnection { limit: 64 },
        Concurrency::ThreadPerConnection { limit: 0 },
        Concurrency::LeaderFollowers { threads: None },
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::LeaderFollowers { threads: Some(2) },
        Concurrency::ThreadPool { threads: 1, queue: 16 },
        Concurrency::ThreadPool { threads: 3, queue: 16 },
        Concurrency::Reactive,
    ];
    for of_client in strategies {
        for of_server in strategies {
            let pair = Pair::of(client().concurrency(of_client), server().concurrency(of_server));
            for depth in [1, 2, 10] {
                let reached = pair.recurse(depth);
                assert_eq!(reached.ok(), Some(depth), "{of_client:?} calls {of_server:?}");
            }
            assert_eq!(pair.as_seen_by_server().add(1, 2).unwrap(), 3);
        }
    }
}

#[test]
fn many_call_each_other_at_once() {
    let pair = Pair::of(client().connections_per_peer(2), server());
    let back = pair.as_seen_by_server();
    let callers: Vec<_> = (0..12)
        .map(|caller| {
            let (there, back) = (pair.to_server.clone(), back.clone());
            let (target, other) = (pair.server_relay.clone(), pair.own_relay.clone());
            in_background(move || {
                for round in 0..60 {
                    match caller % 3 {
                        0 => assert_eq!(there.add(caller, round).unwrap(), caller + round),
                        1 => assert_eq!(back.add(caller, round).unwrap(), caller + round),
                        _ => assert_eq!(target.recurse(Some(&other), Some(&target), round % 4).unwrap(), round % 4),
                    }
                }
            })
        })
        .collect();
    callers.iter().for_each(|caller| caller.recv_timeout(PATIENCE).expect("it ends"));
}

#[test]
fn asynchronous_calls_go_both_ways() {
    for strategy in [WaitStrategy::OnRead, WaitStrategy::OnWaker] {
        let pair = Pair::of(client().wait_strategy(strategy), server().wait_strategy(strategy));
        let back = pair.as_seen_by_server();
        let answers: Vec<_> = (0..50).map(|number| back.add_async(number, 1)).collect();
        let there: Vec<_> = (0..50).map(|number| pair.to_server.add_async(number, 2)).collect();
        for (number, (back, there)) in (0..).zip(answers.into_iter().zip(there)) {
            assert_eq!((block_on(back).unwrap(), block_on(there).unwrap()), (number + 1, number + 2));
        }
        assert_eq!(pair.recurse(5).unwrap(), 5);
    }
}

#[test]
fn who_is_told_of_an_answer_may_call_back_at_once() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    let (told, outcome) = mpsc::channel();
    let answer = back.add_async(1, 2);
    let again = back.clone();
    let task = async move {
        let first = answer.await.unwrap();
        // In the thread that brings the answers.
        told.send(again.add(first, 4).unwrap()).unwrap();
    };
    pair.server.orb.spawn(task).unwrap();
    assert_eq!(outcome.recv_timeout(PATIENCE).unwrap(), 7);
}

/// Answers when it is told to.
struct Later(Arc<Probe>);

impl RelayAsyncServant for Later {
    async fn recurse(&self, _: Option<&Relay>, _: Option<&Relay>, depth: i32) -> Result<i32, SystemException> {
        Ok(depth)
    }

    async fn hold(&self, other: Option<&Target>, gate: u32) -> Result<(), SystemException> {
        let other = other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?;
        other.hold_async(gate).await?;
        self.0.open(gate + 1);
        Ok(())
    }
}

#[test]
fn futures_serve_call_backs() {
    let pair = Pair::new();
    pair.to_server.ping().unwrap();
    let later = RelayAsyncSkeleton::new(Later(Arc::clone(&pair.client.probe)));
    let later = pair.client.poa.activate(later).unwrap();
    let back = Relay::unchecked_narrow(&pair.server.orb.string_to_object(&later.to_string()).unwrap());
    let calls: Vec<_> = (0..50).map(|depth| (depth, back.recurse_async(None, None, depth))).collect();
    for (depth, call) in calls {
        assert_eq!(block_on(call).unwrap(), depth);
    }
    // The client's future waits for the server, which is called over the same connection.
    let there = Target::unchecked_narrow(&pair.server.orb.string_to_object(&pair.server.ior()).unwrap());
    let held = back.hold_async(Some(&there), 1);
    pair.server.probe.await_held(1);
    pair.server.probe.open(1);
    block_on(held).unwrap();
    pair.client.probe.hold(2).unwrap();
}

/// A pair whose connections can be cut.
struct Tapped {
    client: Server,
    server: Server,
    to_server: Target,
    back: Target,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Tapped {
    fn new() -> Self {
        let (client, server) = (Server::with(client()), Server::with(server()));
        let (listener, to) = (TcpListener::bind("127.0.0.1:0").unwrap(), server.port());
        let ior = at_port(server.object.ior(), listener.local_addr().unwrap().port());
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let all = Arc::clone(&streams);
        thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(("127.0.0.1", to)).unwrap());
                all.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                    thread::spawn(move || io::copy(&mut from, &mut to));
                }
            }
        });
        let to_server = Target::unchecked_narrow(&client.orb.string_to_object(&ior_to_string(&ior)).unwrap());
        to_server.ping().unwrap();
        let back = Target::unchecked_narrow(&server.orb.string_to_object(&client.ior()).unwrap());
        Self { client, server, to_server, back, streams }
    }

    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn what_waits_for_a_client_that_is_lost_ends_in_comm_failure() {
    let tapped = Tapped::new();
    let back = tapped.back.clone();
    let waiting = in_background(move || back.hold(1));
    tapped.client.probe.await_held(1);
    tapped.cut();
    let error = waiting.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{error}");
    // Nobody leads there any more.
    let error = tapped.back.ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("-ORBBidirectional"), "{reason}");
    tapped.client.probe.open(1);
    // One call may find out what has happened; the next one makes another connection, and says so.
    if let Err(error) = tapped.to_server.ping() {
        assert_eq!(error.kind(), SystemExceptionKind::CommFailure, "{error}");
        tapped.to_server.ping().unwrap();
    }
    tapped.back.ping().unwrap();
}

#[test]
fn a_client_that_ends_says_so() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    back.ping().unwrap();
    let Pair { client, server, .. } = pair;
    drop(client);
    let error = back.ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    drop(server);
}

#[test]
fn a_client_that_ends_lets_call_backs_end() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    let held = in_background(move || back.hold(1));
    pair.client.probe.await_held(1);
    let ending = {
        let orb = pair.client.orb.clone();
        in_background(move || orb.shutdown(true))
    };
    // It waits for the request that runs.
    assert!(ending.recv_timeout(Duration::from_millis(50)).is_err());
    pair.client.probe.open(1);
    held.recv_timeout(PATIENCE).unwrap().unwrap();
    ending.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn a_time_out_ends_no_connection_on_which_call_backs_may_come() {
    let pair = Pair::of(client(), server());
    let back = pair.as_seen_by_server();
    for wait in [WaitStrategy::OnRead, WaitStrategy::OnWaker] {
        let _ = wait;
        let impatient = limited(&pair.to_server, 20);
        let error = impatient.hold(5).unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::Timeout);
        let error = limited(&back, 20).hold(5).unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::Timeout);
        back.ping().unwrap();
    }
    pair.server.probe.open(5);
    pair.client.probe.open(5);
    back.ping().unwrap();
}

#[test]
fn both_sides_have_to_agree() {
    for (of_client, of_server) in [(false, true), (true, false), (false, false)] {
        let client = Orb::builder().bidirectional(of_client).listen(Endpoint::nowhere());
        let pair = Pair::of(client, Orb::builder().bidirectional(of_server));
        let error = pair.to_server.call_back(Some(&pair.own)).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
        assert_eq!(pair.to_server.add(1, 2).unwrap(), 3);
    }
}

#[test]
fn older_protocols_have_no_call_backs() {
    for version in [GiopVersion::V1_0, GiopVersion::V1_1] {
        let pair = Pair::of(client().giop_version(version), server());
        let error = pair.to_server.call_back(Some(&pair.own)).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
        let pair = Pair::of(client(), server().giop_version(version));
        let error = pair.to_server.call_back(Some(&pair.own)).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    }
}

#[test]
fn an_adapter_decides_for_its_objects() {
    // The setting is off: only the adapter with the policy is called.
    let pair = Pair::of(Orb::builder().listen(Endpoint::nowhere()), server());
    // A connection that is open already is good for it.
    pair.to_server.ping().unwrap();
    let called = pair.client.poa.create_poa("called", None, [BidirectionalPolicy::Both.into()]).unwrap();
    called.the_poa_manager().activate().unwrap();
    let object = called.activate(TargetSkeleton::new(Arc::clone(&pair.client.probe))).unwrap();
    pair.to_server.call_back(Some(&Target::narrow(&object).unwrap())).unwrap();
    let error = pair.to_server.call_back(Some(&pair.own)).unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::NoPermission, "{error}");

    // It is on: only the adapter that says no is not.
    let pair = Pair::new();
    let uncalled = pair.client.poa.create_poa("uncalled", None, [BidirectionalPolicy::Normal.into()]).unwrap();
    uncalled.the_poa_manager().activate().unwrap();
    let object = uncalled.activate(TargetSkeleton::new(Arc::clone(&pair.client.probe))).unwrap();
    let error = pair.to_server.call_back(Some(&Target::narrow(&object).unwrap())).unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::NoPermission, "{error}");
    pair.to_server.call_back(Some(&pair.own)).unwrap();
}

#[test]
fn the_orbs_policy_is_a_setting_too() {
    let pair = Pair::of(Orb::builder().listen(Endpoint::nowhere()), server());
    let policy = pair.client.orb.create_policy(37, &spandrel::Any::new(&1u16).unwrap()).unwrap();
    assert_eq!(policy.value(), Some(&BidirectionalPolicy::Both));
    pair.client.orb.policy_manager().set_policy_overrides(&[policy], SetOverrideType::AddOverride).unwrap();
    pair.to_server.call_back(Some(&pair.own)).unwrap();
}

/// A protocol of which there is only what references say.
#[derive(Debug)]
struct Claimed;

impl ServerProtocol for Claimed {
    fn scheme(&self) -> &'static str {
        "claimed"
    }

    fn listen(&self, endpoint: &Endpoint, _: &SocketSettings) -> io::Result<Listener> {
        let (host, port) = endpoint.host_and_port()?;
        let published = PublishedAddresses { hosts: vec![(host.to_owned(), port)], ..PublishedAddresses::default() };
        Ok(Listener::new(Address::at_port("claimed", host, port), published, ListenerSource::Nothing))
    }
}

/// A client whose references name this address, although it is not there.
fn published_as(address: &str) -> OrbBuilder {
    Orb::builder().bidirectional(true).server_protocol(Claimed).listen(Endpoint::of("claimed", address))
}

#[test]
fn a_client_that_listens_is_called_over_its_connection_all_the_same() {
    let pair = Pair::of(Orb::builder().bidirectional(true), server());
    let back = pair.as_seen_by_server();
    back.ping().unwrap();
    assert_eq!(pair.client.orb.statistics().count(Event::ConnectionAccepted), 0);
}

#[test]
fn nobody_is_sent_what_is_meant_for_another_host() {
    // 192.0.2.0/24 is for examples: nobody is there.
    let pair = Pair::of(published_as("192.0.2.1:9999"), server());
    let back = pair.as_seen_by_server();
    let error = limited(&back, 200).ping().unwrap_err();
    assert_eq!(error.completed(), CompletionStatus::No, "{error}");

    let pair = Pair::of(published_as("192.0.2.1:9999"), server().trust_listen_points(true));
    pair.as_seen_by_server().ping().unwrap();
}

#[test]
fn a_listen_point_stays_with_whoever_announced_it_first_until_he_is_gone() {
    let server = Server::with(server());
    let [first, second] = [(); 2].map(|()| {
        let client = Server::with(published_as("127.0.0.1:9"));
        let there = Target::unchecked_narrow(&client.orb.string_to_object(&server.ior()).unwrap());
        there.ping().unwrap();
        client
    });
    let back = |client: &Server| Target::unchecked_narrow(&server.orb.string_to_object(&client.ior()).unwrap());
    back(&first).ping().unwrap();
    // Its key means nothing to the first.
    assert_eq!(back(&second).ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    let third = back(&second);
    drop(first);
    third.ping().unwrap();
}

#[test]
fn a_server_is_not_talked_out_of_its_own_address() {
    let server = Server::with(server());
    let client = Server::with(published_as(&format!("127.0.0.1:{}", server.port())));
    let there = Target::unchecked_narrow(&client.orb.string_to_object(&server.ior()).unwrap());
    there.ping().unwrap();
    let same = there.same(Some(&there)).unwrap().unwrap();
    same.ping().unwrap();
    let own = Target::unchecked_narrow(&server.orb.string_to_object(&server.ior()).unwrap());
    own.ping().unwrap();
    assert_eq!(client.orb.statistics().count(Event::ConnectionAccepted), 0);
}

/// The id of a GIOP 1.2 Request, Reply or CancelRequest in this machine's order.
fn id(message: &[u8]) -> u32 {
    u32::from_ne_bytes(message[12..16].try_into().unwrap())
}

#[test]
fn a_connection_is_introduced_once_and_each_side_numbers_its_own_requests() {
    let (client, server) = (Server::with(client()), Server::with(server()));
    let tap = Wiretap::before(&server);
    let there = Target::unchecked_narrow(&client.orb.string_to_object(&tap.ior()).unwrap());
    let own = client.orb.listen().unwrap()[0].0.clone();
    for _ in 0..5 {
        there.ping().unwrap();
    }
    let said = tap.take_requests();
    let introduces = |message: &&Vec<u8>| message.windows(own.len()).any(|part| part == own.as_bytes());
    assert_eq!(said.iter().filter(introduces).count(), 1);
    assert!(said.iter().all(|message| id(message).is_multiple_of(2)));
    tap.take_replies();
    let back = Target::unchecked_narrow(&server.orb.string_to_object(&client.ior()).unwrap());
    for _ in 0..5 {
        back.ping().unwrap();
    }
    let (requests, replies) = (tap.take_replies(), tap.take_requests());
    assert_eq!((requests.len(), replies.len()), (5, 5));
    assert!(requests.iter().all(|message| message[7] == 0 && id(message) % 2 == 1), "requests of the server");
    assert!(replies.iter().all(|message| message[7] == 1 && id(message) % 2 == 1), "replies of the client");
}

#[test]
fn fragments_go_both_ways() {
    let pair = Pair::of(client().fragment_size(Some(1024)), server().fragment_size(Some(2048)));
    let back = pair.as_seen_by_server();
    let threads: Vec<_> = (0..4)
        .map(|caller| {
            let (there, back) = (pair.to_server.clone(), back.clone());
            in_background(move || {
                let text = char::from(b'a' + caller).to_string().repeat(20_000 + usize::from(caller));
                for _ in 0..10 {
                    assert_eq!(there.echo(&text).unwrap(), text);
                    assert_eq!(back.echo(&text).unwrap(), text);
                }
            })
        })
        .collect();
    threads.iter().for_each(|thread| thread.recv_timeout(PATIENCE).expect("it ends"));
}

#[test]
fn a_client_is_asked_where_its_objects_are() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    assert_eq!(back.as_object().locate().unwrap(), Located::Here);
    assert!(!back.as_object().non_existent().unwrap());
    let gone = pair.client.poa.activate(TargetSkeleton::new(Arc::clone(&pair.client.probe))).unwrap();
    let id = pair.client.poa.reference_to_id(&gone).unwrap();
    pair.client.poa.deactivate_object(&id).unwrap();
    let gone = pair.server.orb.string_to_object(&gone.to_string()).unwrap();
    assert_eq!(gone.locate().unwrap(), Located::Unknown);
}

#[test]
fn a_servant_of_a_client_learns_that_nobody_waits_any_more() {
    /// Says when it begins, and why it ends.
    struct Watchful(mpsc::Sender<()>, mpsc::Sender<Option<CancelReason>>);
    impl RelayServant for Watchful {
        fn recurse(&self, _: Option<&Relay>, _: Option<&Relay>, _: i32) -> Result<i32, SystemException> {
            self.0.send(()).unwrap();
            let token = CancellationToken::current();
            let is_cancelled = token.wait_timeout(PATIENCE);
            self.1.send(token.reason()).unwrap();
            Ok(i32::from(is_cancelled))
        }

        fn hold(&self, _: Option<&Target>, _: u32) -> Result<(), SystemException> {
            Ok(())
        }
    }
    let tapped = Tapped::new();
    let ((began, beginnings), (send, reasons)) = (mpsc::channel(), mpsc::channel());
    let watchful = tapped.client.poa.activate(RelaySkeleton::new(Watchful(began, send))).unwrap();
    let watchful = Relay::unchecked_narrow(&tapped.server.orb.string_to_object(&watchful.to_string()).unwrap());
    with_time_enough(Duration::from_millis(50), |time| {
        let limited = watchful.as_object().with_timeout(Some(time));
        // The servant knows the time as well, and its answer may still come.
        match Relay::unchecked_narrow(&limited).recurse(None, None, 0) {
            Ok(is_cancelled) => assert_eq!(is_cancelled, 1),
            Err(error) => assert_eq!(error.kind(), SystemExceptionKind::Timeout, "{error}"),
        }
        // Otherwise it was not there in time.
        beginnings.try_recv().ok()
    });
    let reason = reasons.recv_timeout(PATIENCE).unwrap().unwrap();
    assert!(matches!(reason, CancelReason::ClientCancelled | CancelReason::DeadlineElapsed), "{reason}");
    let waiting = in_background(move || watchful.recurse(None, None, 0));
    beginnings.recv_timeout(PATIENCE).unwrap();
    tapped.cut();
    assert_eq!(reasons.recv_timeout(PATIENCE).unwrap(), Some(CancelReason::ConnectionLost));
    assert!(waiting.recv_timeout(PATIENCE).unwrap().is_err());
}

/// A server that is none: it answers the first request, and says what it is told to after that.
fn say_to_client(what: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> (Server, SystemException) {
    let client = Server::with(client());
    let key = IiopProfile::decode(&client.object.ior().profiles[0]).unwrap().unwrap().object_key;
    let port = pretend(move |_, mut stream| {
        let request = read_message(&mut stream).unwrap();
        stream.write_all(&what(&key)).unwrap();
        // Never answered: what was said ends the connection.
        let _ = (request, io::copy(&mut stream, &mut io::sink()));
    });
    let there = client.orb.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap();
    let error = limited(&Target::unchecked_narrow(&there), 2_000).ping().unwrap_err();
    (client, error)
}

/// A GIOP 1.2 message of this type in little-endian order.
fn message(message_type: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap();
    [b"GIOP\x01\x02\x01", &[message_type][..], &len.to_le_bytes(), body].concat()
}

#[test]
fn a_server_that_sends_nonsense_ends_its_connection_and_nothing_else() {
    for body in [&b""[..], b"\x01", b"\x01\0\0\0\x03\0\0\0\x07\0\0\0", b"\x01\0\0\0\x03\0\0\0\0\0\xff\xff\xff\xff"] {
        for message_type in [0, 3] {
            let body = body.to_vec();
            let (client, error) = say_to_client(move |_| message(message_type, &body));
            assert_eq!(error.completed(), CompletionStatus::Maybe, "{error}");
            assert_ne!(error.kind(), SystemExceptionKind::Timeout, "type {message_type}: {error}");
            drop(client);
        }
    }
}

#[test]
fn a_server_that_floods_its_client_is_refused_and_cut_off() {
    let (client, error) = say_to_client(|key| {
        let mut body = vec![1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
        body.extend(u32::try_from(key.len()).unwrap().to_le_bytes());
        body.extend(key);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(b"\x05\0\0\0hold\0\0\0\0\0\0\0\0");
        body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
        body.extend(1u32.to_le_bytes());
        message(0, &body).repeat(40_000)
    });
    assert!(matches!(error.kind(), SystemExceptionKind::CommFailure | SystemExceptionKind::Timeout), "{error}");
    client.probe.open(1);
}

#[test]
#[cfg(unix)]
fn call_backs_go_over_sockets_and_memory_of_one_host() {
    for scheme in ["uds", "shm"] {
        let folder = tempfile::tempdir().unwrap();
        let beside = Endpoint::of(scheme, folder.path().join("server").to_str().unwrap());
        let pair = Pair::of(client(), server().listen(Endpoint::new("", 0)).listen(beside));
        for depth in [1, 5] {
            assert_eq!(pair.recurse(depth).unwrap(), depth, "{scheme}");
        }
        let back = pair.as_seen_by_server();
        let text = "x".repeat(300_000);
        assert_eq!(back.echo(&text).unwrap(), text, "{scheme}");
    }
}
