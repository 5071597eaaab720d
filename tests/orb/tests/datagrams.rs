//! One-way requests by datagram (DIOP): selection of calls, size limits, and malformed datagrams.
#![cfg(unix)]

use spandrel::interception::IfPresent;
use spandrel::poa::WaitForCompletion;
use std::{
    net::UdpSocket,
    sync::{Arc, Mutex},
};

use spandrel::{
    Endpoint, Orb, OrbBuilder,
    diagnostics::statistics::{Event, Statistics},
    interception::{
        ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, ServerRequestInfo,
        ServerRequestInterceptor, ServiceContext,
    },
    policy::{SetOverrideType, SyncScopePolicy},
    types::IiopProfile,
};
use spandrel_giop::datagram::DatagramAddress;
use spandrel_orb_tests::{Server, listen, probe::Target, support::eventually};

fn server_with(builder: OrbBuilder, datagrams: &str) -> Server {
    Server::with(builder.listen(Endpoint::new("", 0)).listen(datagrams.parse().unwrap()))
}

fn server() -> Server {
    server_with(Orb::builder(), "diop://127.0.0.1:0")
}

fn client() -> OrbBuilder {
    Orb::builder().datagrams(true)
}

fn sent(orb: &Orb) -> u64 {
    count(orb.statistics(), Event::DatagramSent)
}

fn count(statistics: &Statistics, event: Event) -> u64 {
    statistics.count(event)
}

fn address(target: &Target) -> DatagramAddress {
    let profile = IiopProfile::decode(&target.as_object().ior().profiles[0]).unwrap().unwrap();
    profile.components.iter().find_map(DatagramAddress::decode).unwrap()
}

#[test]
fn one_ways_use_datagrams_and_other_calls_the_connection() {
    let server = server();
    let orb = client().build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    for size in [0, 100, 1000] {
        target.note(&vec![7; size]).unwrap();
    }
    eventually(|| target.count().unwrap() == 3);
    assert_eq!(sent(&orb), 3);
    assert_eq!(count(server.orb.statistics(), Event::DatagramReceived), 3);
    assert_eq!(target.add(40, 2).unwrap(), 42);
    assert_eq!(sent(&orb), 3, "calls with a reply use the connection");
    let with_server = target
        .as_object()
        .set_policy_overrides(&[SyncScopePolicy::WithServer.into()], SetOverrideType::AddOverride)
        .unwrap();
    Target::unchecked_narrow(&with_server).note(&[7]).unwrap();
    assert_eq!((sent(&orb), target.count().unwrap()), (3, 4), "one-ways WITH_SERVER use the connection");
}

/// Adds a service context to each request, and records those that arrive.
#[derive(Clone, Default)]
struct ContextRecorder(Arc<Mutex<Vec<Vec<u8>>>>);

const CONTEXT: u32 = 0x5350_0001;

impl Interceptor for ContextRecorder {}

impl ClientRequestInterceptor for ContextRecorder {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        Ok(info
            .add_request_service_context(ServiceContext { id: CONTEXT, data: b"context".to_vec() }, IfPresent::Fail)?)
    }
}

impl ServerRequestInterceptor for ContextRecorder {
    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.lock().unwrap().push(info.request_service_context(CONTEXT)?.data);
        Ok(())
    }
}

#[test]
fn intercepted_one_ways_use_datagrams_with_their_contexts() {
    let recorder = ContextRecorder::default();
    let builder = Orb::builder().server_request_interceptor(recorder.clone()).unwrap();
    let server = server_with(builder, "diop://127.0.0.1:0");
    let orb = client().client_request_interceptor(recorder.clone()).unwrap().build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap());
    target.note(&[7]).unwrap();
    eventually(|| recorder.0.lock().unwrap().len() == 1);
    assert_eq!(sent(&orb), 1);
    assert_eq!(*recorder.0.lock().unwrap(), [b"context"]);
}

#[test]
fn one_ways_beyond_the_datagram_size_use_the_connection() {
    for (endpoint, fits) in [("diop://127.0.0.1:0/max=200", 60), ("diop://127.0.0.1:0/max=60000", 50_000)] {
        let server = server_with(Orb::builder(), endpoint);
        let orb = client().build().unwrap();
        let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
        target.note(&vec![7; fits]).unwrap();
        target.note(&vec![7; 70_000]).unwrap();
        eventually(|| target.count().unwrap() == 2);
        assert_eq!(sent(&orb), 1, "{endpoint}");
    }
}

#[test]
fn datagrams_are_sent_only_if_enabled() {
    let server = server();
    let orb = Orb::builder().build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    target.note(&[7]).unwrap();
    assert_eq!((target.count().unwrap(), sent(&orb)), (1, 0));
    let mut args = ["-ORBDatagrams", "yes"].map(str::to_owned).to_vec();
    let orb = Orb::builder().take_args(&mut args).unwrap().build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    target.note(&[7]).unwrap();
    eventually(|| target.count().unwrap() == 2);
    assert_eq!(sent(&orb), 1);
}

#[test]
fn datagrams_are_sent_over_ipv6() {
    let server = server_with(Orb::builder(), "diop://[::1]:0");
    let orb = client().build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    target.note(&[7, 7, 7]).unwrap();
    eventually(|| target.count().unwrap() == 1);
    assert_eq!(sent(&orb), 1);
}

#[test]
fn malformed_datagrams_are_dropped_and_counted() {
    let server = server();
    let target = server.client_with(client());
    let DatagramAddress { host, port, .. } = address(&target);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect((host.as_str(), port)).unwrap();
    let mut rng = fastrand::Rng::with_seed(6);
    let mut sent = 0;
    for round in 0..300 {
        let mut octets: Vec<u8> = (0..rng.usize(1..200)).map(|_| rng.u8(..)).collect();
        match round % 4 {
            0 => octets.splice(..0, *b"GIOP\x01\x02\x01\x00").for_each(drop),
            1 => octets.splice(..0, *b"g\x01\x01\x00").for_each(drop),
            // Identical datagrams, and a request that expects a response.
            2 => octets = b"g\x01\x01\x00\x01\x00\x00\x00\x03\x00\x00\x00".to_vec(),
            _ => {}
        }
        sent += u64::from(socket.send(&octets).is_ok());
        if round % 50 == 0 {
            target.ping().unwrap();
        }
    }
    let statistics = server.orb.statistics();
    // The system may drop some; the others were refused or had an unknown object key.
    eventually(|| count(statistics, Event::DatagramRefused) + count(statistics, Event::DatagramReceived) >= sent / 2);
    let before = target.count().unwrap();
    target.note(&[7]).unwrap();
    eventually(|| target.count().unwrap() == before + 1);
}

#[test]
fn transport_rules_apply_to_datagrams() {
    let server =
        server_with(Orb::builder().server_transport_rule("localhost iiop; * none").unwrap(), "diop://127.0.0.1:0");
    let target = server.client_with(client());
    target.note(&[7]).unwrap();
    eventually(|| count(server.orb.statistics(), Event::RefusedForAddress) == 1);
    assert_eq!(target.count().unwrap(), 0, "the rules refuse datagrams of this address");
    let server = self::server();
    for builder in [client().transports(["iiop"]), client().client_transport_rule("* iiop").unwrap()] {
        let target = server.client_with(builder);
        let before = target.count().unwrap();
        target.note(&[7]).unwrap();
        assert_eq!(target.count().unwrap(), before + 1, "the request used the connection");
        assert_eq!(sent(target.as_object().orb()), 0);
    }
}

#[test]
fn held_datagrams_are_limited() {
    let server = server_with(Orb::builder().max_deferred_requests(3), "diop://127.0.0.1:0");
    let target = server.client_with(client());
    target.ping().unwrap();
    let manager = server.poa.the_poa_manager();
    manager.hold_requests(WaitForCompletion::No).unwrap();
    for _ in 0..8 {
        target.note(&[7]).unwrap();
    }
    assert_eq!(sent(target.as_object().orb()), 8);
    eventually(|| count(server.orb.statistics(), Event::RefusedDeferred) == 5);
    manager.activate().unwrap();
    eventually(|| target.count().unwrap() == 3);
    manager.hold_requests(WaitForCompletion::No).unwrap();
    target.note(&[7]).unwrap();
    manager.activate().unwrap();
    eventually(|| target.count().unwrap() == 4);
}

#[test]
fn one_ways_by_datagram_to_an_ended_server_are_lost_silently() {
    let server = server();
    let target = server.client_with(client());
    target.ping().unwrap();
    drop(server);
    for _ in 0..3 {
        // By datagram, or by a connection once the system reports that the port is closed.
        _ = target.note(&[7]);
    }
    assert!(target.ping().is_err());
}

#[test]
fn invalid_datagram_endpoint_options_are_refused() {
    for (endpoint, reason) in
        [("diop://127.0.0.1:0/max=10", "between 64"), ("diop://127.0.0.1:0/portspan=3", "not an option")]
    {
        let orb = Orb::builder().listen(endpoint.parse().unwrap()).build().unwrap();
        let refused = listen(&orb).unwrap_err();
        let cause = std::error::Error::source(&refused).unwrap().to_string();
        assert!(cause.contains(reason), "{cause}");
    }
}
