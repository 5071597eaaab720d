//! Bidirectional GIOP: callbacks over the connections that clients have opened.

use std::{
    io::{self, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use spandrel::{
    CompletionStatus, Endpoint, Orb, OrbBuilder, SystemException, SystemExceptionKind,
    cdr::GiopVersion,
    diagnostics::statistics::Event,
    net::transport::{Address, Listener, ListenerSource, PublishedAddresses, ServerProtocol, SocketSettings},
    options::{Concurrency, WaitStrategy},
    policy::{BidirectionalPolicy, SetOverrideType},
    server::{CancelReason, CancellationToken},
    types::{IiopProfile, Located, ior_to_string},
};
use spandrel_giop::ids;
use spandrel_orb_tests::{
    Probe, Repeater, Server,
    probe::{
        Relay, RelayAsyncServant, RelayAsyncSkeleton, RelayServant, RelaySkeleton, Target, TargetServant,
        TargetSkeleton,
    },
    support::{
        TEST_TIMEOUT, block_on, fake_server, in_background, kind_and_completion, read_message,
        retry_with_longer_timeout,
    },
    wiretap::{Wiretap, at_port},
};

/// A client with objects, and a server that calls them.
struct Pair {
    client: Server,
    server: Server,
    /// The server's object, as the client refers to it.
    to_server: Target,
    server_relay: Relay,
    /// The client's object, as passed to the server.
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

    /// The client's object, as the server refers to it.
    fn as_seen_by_server(&self) -> Target {
        // After this call, the server has processed the client's listen points.
        self.to_server.ping().unwrap();
        Target::unchecked_narrow(&self.server.orb.string_to_object(&self.client.ior()).unwrap())
    }

    fn recurse(&self, depth: i32) -> Result<i32, spandrel::SystemException> {
        let (target, other, back) = (self.server_relay.clone(), self.own_relay.clone(), self.server_relay.clone());
        let call = in_background(move || target.recurse(Some(&other), Some(&back), depth));
        call.recv_timeout(TEST_TIMEOUT).expect("the callbacks end")
    }
}

fn client() -> OrbBuilder {
    Orb::builder().bidirectional(true).listen(Endpoint::nowhere())
}

fn server() -> OrbBuilder {
    Orb::builder().bidirectional(true)
}

/// The same object with a timeout in milliseconds.
fn limited(object: &Target, milliseconds: u64) -> Target {
    Target::unchecked_narrow(&object.as_object().with_timeout(Some(Duration::from_millis(milliseconds))))
}

#[test]
fn a_callback_reaches_a_client_that_does_not_listen() {
    let pair = Pair::new();
    for _ in 0..100 {
        pair.to_server.call_back(Some(&pair.own)).unwrap();
    }
}

#[test]
fn a_server_calls_an_idle_client() {
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
fn callbacks_are_subject_to_the_clients_limits() {
    let pair = Pair::of(client().max_service_contexts(0).exception_details(true), server());
    let back = pair.as_seen_by_server();
    // The deadline is a service context.
    let refused = limited(&back, 20_000).ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::ImpLimit, "{refused}");
    assert!(refused.to_string().contains("-ORBMaxServiceContexts"), "{refused}");
}

#[test]
fn callbacks_nest() {
    let pair = Pair::new();
    for depth in [0, 1, 2, 10, 20] {
        assert_eq!(pair.recurse(depth).unwrap(), depth);
    }
}

#[test]
fn a_callback_reaches_a_client_that_waits_for_a_reply() {
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
    assert!(waiting.try_recv().is_err(), "the callback released another gate");
    pair.to_server.release(1).unwrap();
    waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

#[test]
fn slow_callbacks_delay_no_other_call() {
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
    slow.iter().for_each(|slow| slow.recv_timeout(TEST_TIMEOUT).unwrap().unwrap());
}

#[test]
fn one_way_callbacks_run_in_order_and_before_later_requests() {
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
fn callbacks_nest_with_every_pair_of_concurrency_strategies() {
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
fn concurrent_calls_in_both_directions_complete() {
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
    callers.iter().for_each(|caller| caller.recv_timeout(TEST_TIMEOUT).expect("the caller ends"));
}

#[test]
fn asynchronous_calls_complete_in_both_directions() {
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
fn a_completed_asynchronous_call_may_call_back_in_the_reactor_thread() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    let (send, outcome) = mpsc::channel();
    let answer = back.add_async(1, 2);
    let again = back.clone();
    let task = async move {
        let first = answer.await.unwrap();
        // In the thread that completes asynchronous calls.
        send.send(again.add(first, 4).unwrap()).unwrap();
    };
    pair.server.orb.spawn(task).unwrap();
    assert_eq!(outcome.recv_timeout(TEST_TIMEOUT).unwrap(), 7);
}

/// An asynchronous servant whose `hold` awaits a call back to the server.
struct GatedServant(Arc<Probe>);

impl RelayAsyncServant for GatedServant {
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
fn asynchronous_servants_serve_callbacks() {
    let pair = Pair::new();
    pair.to_server.ping().unwrap();
    let gated = RelayAsyncSkeleton::new(GatedServant(Arc::clone(&pair.client.probe)));
    let gated = pair.client.poa.activate(gated).unwrap();
    let back = Relay::unchecked_narrow(&pair.server.orb.string_to_object(&gated.to_string()).unwrap());
    let calls: Vec<_> = (0..50).map(|depth| (depth, back.recurse_async(None, None, depth))).collect();
    for (depth, call) in calls {
        assert_eq!(block_on(call).unwrap(), depth);
    }
    // The client's future awaits the server, which is called over the same connection.
    let there = Target::unchecked_narrow(&pair.server.orb.string_to_object(&pair.server.ior()).unwrap());
    let held = back.hold_async(Some(&there), 1);
    pair.server.probe.await_held(1);
    pair.server.probe.open(1);
    block_on(held).unwrap();
    pair.client.probe.hold(2).unwrap();
}

/// A client and a server whose connections can be cut.
struct CuttablePair {
    client: Server,
    server: Server,
    to_server: Target,
    back: Target,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl CuttablePair {
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
fn a_callback_ends_in_comm_failure_when_its_connection_is_lost() {
    let pair = CuttablePair::new();
    let back = pair.back.clone();
    let waiting = in_background(move || back.hold(1));
    pair.client.probe.await_held(1);
    pair.cut();
    let error = waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{error}");
    // The server has no other connection to the client.
    let error = pair.back.ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    assert_eq!(error.minor(), ids::TRANSIENT_NO_CALLBACK_CONNECTION);
    assert!(error.to_string().contains("-ORBBidirectional"), "{error}");
    pair.client.probe.open(1);
    // One call may find the connection lost; the next one opens another and announces the listen points
    // again.
    if let Err(error) = pair.to_server.ping() {
        assert_eq!(error.kind(), SystemExceptionKind::CommFailure, "{error}");
        pair.to_server.ping().unwrap();
    }
    pair.back.ping().unwrap();
}

#[test]
fn a_callback_after_the_clients_shutdown_raises_transient() {
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
fn a_clients_shutdown_waits_for_running_callbacks() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    let held = in_background(move || back.hold(1));
    pair.client.probe.await_held(1);
    let ending = {
        let orb = pair.client.orb.clone();
        in_background(move || orb.shutdown())
    };
    // Shutdown waits for the running request.
    assert!(ending.recv_timeout(Duration::from_millis(50)).is_err());
    pair.client.probe.open(1);
    held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    ending.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

#[test]
fn a_timeout_does_not_close_a_bidirectional_connection() {
    let pair = Pair::of(client(), server());
    let back = pair.as_seen_by_server();
    for wait in [WaitStrategy::OnRead, WaitStrategy::OnWaker] {
        let _ = wait;
        let short = limited(&pair.to_server, 20);
        let error = short.hold(5).unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::Timeout);
        let error = limited(&back, 20).hold(5).unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::Timeout);
        back.ping().unwrap();
    }
    pair.server.probe.open(5);
    pair.client.probe.open(5);
    back.ping().unwrap();
}

/// TRANSIENT of a server's call back, which the server passes on: its own operation had begun.
const PASSED_ON: (SystemExceptionKind, CompletionStatus) = (SystemExceptionKind::Transient, CompletionStatus::Maybe);

#[test]
fn callbacks_need_the_setting_on_both_sides() {
    for (of_client, of_server) in [(false, true), (true, false), (false, false)] {
        let client = Orb::builder().bidirectional(of_client).listen(Endpoint::nowhere());
        let pair = Pair::of(client, Orb::builder().bidirectional(of_server));
        let error = pair.to_server.call_back(Some(&pair.own)).unwrap_err();
        assert_eq!(kind_and_completion(&error), PASSED_ON, "{error}");
        assert_eq!(pair.to_server.add(1, 2).unwrap(), 3);
    }
}

#[test]
fn giop_1_0_and_1_1_have_no_callbacks() {
    for version in [GiopVersion::V1_0, GiopVersion::V1_1] {
        let pair = Pair::of(client().giop_version(version), server());
        let error = pair.to_server.call_back(Some(&pair.own)).unwrap_err();
        assert_eq!(kind_and_completion(&error), PASSED_ON, "{error}");
        let pair = Pair::of(client(), server().giop_version(version));
        let error = pair.to_server.call_back(Some(&pair.own)).unwrap_err();
        assert_eq!(kind_and_completion(&error), PASSED_ON, "{error}");
    }
}

#[test]
fn the_bidirectional_policy_of_an_adapter_overrides_the_orbs_setting() {
    // The ORB's setting is off: callbacks reach only the adapter with the policy.
    let pair = Pair::of(Orb::builder().listen(Endpoint::nowhere()), server());
    // A connection opened earlier can be used.
    pair.to_server.ping().unwrap();
    let called = pair.client.poa.create_poa("called", None, [BidirectionalPolicy::Both.into()]).unwrap();
    called.the_poa_manager().activate().unwrap();
    let object = called.activate(TargetSkeleton::new(Arc::clone(&pair.client.probe))).unwrap();
    pair.to_server.call_back(Some(&Target::narrow(&object).unwrap())).unwrap();
    let error = pair.to_server.call_back(Some(&pair.own)).unwrap_err();
    assert_eq!(
        (error.kind(), error.minor()),
        (SystemExceptionKind::NoPermission, ids::NO_PERMISSION_CALLBACK),
        "{error}"
    );

    // The ORB's setting is on: callbacks reach all adapters except the one with the policy NORMAL.
    let pair = Pair::new();
    let uncalled = pair.client.poa.create_poa("uncalled", None, [BidirectionalPolicy::Normal.into()]).unwrap();
    uncalled.the_poa_manager().activate().unwrap();
    let object = uncalled.activate(TargetSkeleton::new(Arc::clone(&pair.client.probe))).unwrap();
    let error = pair.to_server.call_back(Some(&Target::narrow(&object).unwrap())).unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::NoPermission, "{error}");
    pair.to_server.call_back(Some(&pair.own)).unwrap();
}

#[test]
fn the_bidirectional_policy_can_be_set_on_the_policy_manager() {
    let pair = Pair::of(Orb::builder().listen(Endpoint::nowhere()), server());
    let policy = pair.client.orb.create_policy(37, &spandrel::types::Any::new(1u16).unwrap()).unwrap();
    assert_eq!(policy.value(), Some(&BidirectionalPolicy::Both));
    pair.client.orb.policy_manager().set_policy_overrides(&[policy], SetOverrideType::AddOverride).unwrap();
    pair.to_server.call_back(Some(&pair.own)).unwrap();
}

/// A protocol that only publishes addresses, without a listener.
#[derive(Debug)]
struct UnreachableProtocol;

impl ServerProtocol for UnreachableProtocol {
    fn scheme(&self) -> &'static str {
        "claimed"
    }

    fn listen(&self, endpoint: &Endpoint, _: &SocketSettings) -> io::Result<Listener> {
        let (host, port) = endpoint.host_and_port()?;
        let published = PublishedAddresses { hosts: vec![(host.to_owned(), port)], ..PublishedAddresses::default() };
        Ok(Listener::new(Address::at_port("claimed", host, port), published, ListenerSource::Nothing))
    }
}

/// A client whose references name this address without listening there.
fn published_as(address: &str) -> OrbBuilder {
    Orb::builder().bidirectional(true).server_protocol(UnreachableProtocol).listen(Endpoint::of("claimed", address))
}

#[test]
fn a_client_that_listens_is_called_over_its_own_connection() {
    let pair = Pair::of(Orb::builder().bidirectional(true), server());
    let back = pair.as_seen_by_server();
    back.ping().unwrap();
    assert_eq!(pair.client.orb.statistics().count(Event::ConnectionAccepted), 0);
}

#[test]
fn a_listen_point_of_another_host_is_used_only_if_trusted() {
    // 192.0.2.0/24 is reserved for examples.
    let pair = Pair::of(published_as("192.0.2.1:9999"), server());
    let back = pair.as_seen_by_server();
    let error = limited(&back, 200).ping().unwrap_err();
    assert_eq!(error.completed(), CompletionStatus::No, "{error}");

    let pair = Pair::of(published_as("192.0.2.1:9999"), server().trust_listen_points(true));
    pair.as_seen_by_server().ping().unwrap();
}

#[test]
fn a_listen_point_belongs_to_the_first_connection_that_announced_it() {
    let server = Server::with(server());
    let [first, second] = [(); 2].map(|()| {
        let client = Server::with(published_as("127.0.0.1:9"));
        let there = Target::unchecked_narrow(&client.orb.string_to_object(&server.ior()).unwrap());
        there.ping().unwrap();
        client
    });
    let back = |client: &Server| Target::unchecked_narrow(&server.orb.string_to_object(&client.ior()).unwrap());
    back(&first).ping().unwrap();
    // The second client's object key is unknown to the first client.
    assert_eq!(back(&second).ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    let third = back(&second);
    drop(first);
    third.ping().unwrap();
}

#[test]
fn a_listen_point_with_the_servers_own_address_is_ignored() {
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
fn listen_points_are_sent_once_and_each_side_has_its_own_request_ids() {
    let (client, server) = (Server::with(client()), Server::with(server()));
    let tap = Wiretap::before(&server);
    let there = Target::unchecked_narrow(&client.orb.string_to_object(&tap.ior()).unwrap());
    let own = client.orb.listen().unwrap()[0].0.clone();
    for _ in 0..5 {
        there.ping().unwrap();
    }
    let requests = tap.take_requests();
    let announces = |message: &&Vec<u8>| message.windows(own.len()).any(|part| part == own.as_bytes());
    assert_eq!(requests.iter().filter(announces).count(), 1);
    assert!(requests.iter().all(|message| id(message).is_multiple_of(2)));
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
fn fragments_are_sent_in_both_directions() {
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
    threads.iter().for_each(|thread| thread.recv_timeout(TEST_TIMEOUT).expect("the caller ends"));
}

#[test]
fn a_client_answers_locate_requests() {
    let pair = Pair::new();
    let back = pair.as_seen_by_server();
    assert_eq!(back.as_object().locate().unwrap(), Located::Here);
    assert!(!back.as_object().non_existent().unwrap());
    let deactivated = pair.client.poa.activate(TargetSkeleton::new(Arc::clone(&pair.client.probe))).unwrap();
    let id = pair.client.poa.reference_to_id(&deactivated).unwrap();
    pair.client.poa.deactivate_object(&id).unwrap();
    let deactivated = pair.server.orb.string_to_object(&deactivated.to_string()).unwrap();
    assert_eq!(deactivated.locate().unwrap(), Located::Unknown);
}

#[test]
fn a_callback_is_cancelled_when_its_caller_stops_waiting() {
    /// A servant that reports the beginning of each upcall and the reason of its cancellation.
    struct CancellationRecorder(mpsc::Sender<()>, mpsc::Sender<Option<CancelReason>>);
    impl RelayServant for CancellationRecorder {
        fn recurse(&self, _: Option<&Relay>, _: Option<&Relay>, _: i32) -> Result<i32, SystemException> {
            self.0.send(()).unwrap();
            let token = CancellationToken::current();
            let is_cancelled = token.wait_timeout(TEST_TIMEOUT);
            self.1.send(token.reason()).unwrap();
            Ok(i32::from(is_cancelled))
        }

        fn hold(&self, _: Option<&Target>, _: u32) -> Result<(), SystemException> {
            Ok(())
        }
    }
    let pair = CuttablePair::new();
    let ((began, beginnings), (send, reasons)) = (mpsc::channel(), mpsc::channel());
    let recorder = pair.client.poa.activate(RelaySkeleton::new(CancellationRecorder(began, send))).unwrap();
    let recorder = Relay::unchecked_narrow(&pair.server.orb.string_to_object(&recorder.to_string()).unwrap());
    retry_with_longer_timeout(Duration::from_millis(50), |time| {
        let limited = recorder.as_object().with_timeout(Some(time));
        // The servant has the same deadline, and its reply may still arrive.
        match Relay::unchecked_narrow(&limited).recurse(None, None, 0) {
            Ok(is_cancelled) => assert_eq!(is_cancelled, 1),
            Err(error) => assert_eq!(error.kind(), SystemExceptionKind::Timeout, "{error}"),
        }
        // Without a beginning, the request did not arrive in time.
        beginnings.try_recv().ok()
    });
    let reason = reasons.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    assert!(matches!(reason, CancelReason::ClientCancelled | CancelReason::DeadlineElapsed), "{reason}");
    let waiting = in_background(move || recorder.recurse(None, None, 0));
    beginnings.recv_timeout(TEST_TIMEOUT).unwrap();
    pair.cut();
    assert_eq!(reasons.recv_timeout(TEST_TIMEOUT).unwrap(), Some(CancelReason::ConnectionLost));
    assert!(waiting.recv_timeout(TEST_TIMEOUT).unwrap().is_err());
}

/// Starts a fake server that answers a client's first request with `what`; returns the exception of the
/// client's call.
fn send_to_client(what: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> (Server, SystemException) {
    let client = Server::with(client());
    let key = IiopProfile::decode(&client.object.ior().profiles[0]).unwrap().unwrap().object_key;
    let port = fake_server(move |_, mut stream| {
        let request = read_message(&mut stream).unwrap();
        stream.write_all(&what(&key)).unwrap();
        // The request is never answered: the message sent ends the connection.
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
fn malformed_requests_of_a_server_end_only_its_connection() {
    for body in [&b""[..], b"\x01", b"\x01\0\0\0\x03\0\0\0\x07\0\0\0", b"\x01\0\0\0\x03\0\0\0\0\0\xff\xff\xff\xff"] {
        for message_type in [0, 3] {
            let body = body.to_vec();
            let (client, error) = send_to_client(move |_| message(message_type, &body));
            assert_eq!(error.completed(), CompletionStatus::Maybe, "{error}");
            assert_ne!(error.kind(), SystemExceptionKind::Timeout, "type {message_type}: {error}");
            drop(client);
        }
    }
}

#[test]
fn a_server_that_floods_its_client_is_disconnected() {
    let (client, error) = send_to_client(|key| {
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
fn callbacks_work_over_unix_sockets_and_shared_memory() {
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
