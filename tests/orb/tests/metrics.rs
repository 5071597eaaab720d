//! Metrics of calls and requests, recorded if enabled.

use spandrel::poa::WaitForCompletion;
use spandrel::{Orb, OrbBuilder, diagnostics::TracePropagation, types::IiopProfile};
use spandrel_orb_tests::{
    Server,
    probe::{Relay, Target},
    support::{TEST_TIMEOUT, block_on, wait_until},
};

const INTERFACE: &str = "IDL:Probe/Target:1.0";

fn with_metrics() -> OrbBuilder {
    Orb::builder().metrics(true)
}

fn client_of(server: &Server, builder: OrbBuilder) -> (Orb, Target) {
    let orb = builder.build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    (orb, target)
}

/// The value of the first series with this prefix.
fn number(orb: &Orb, series: &str) -> Option<f64> {
    let text = orb.render_metrics();
    let line = text.lines().find(|line| line.starts_with(series))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

fn count(side: &str, operation: &str, outcome: &str) -> String {
    format!(r#"spandrel_{side}_seconds_count{{interface="{INTERFACE}",operation="{operation}",outcome="{outcome}"}}"#)
}

#[test]
fn calls_and_requests_are_counted_by_operation_and_outcome() {
    let server = Server::with(with_metrics());
    let (orb, target) = client_of(&server, with_metrics());
    target.ping().unwrap();
    target.ping().unwrap();
    target.refuse(7).unwrap_err();
    target.fail(3).unwrap_err();
    target.note(&[7]).unwrap();
    target.panic().unwrap_err();
    for (operation, outcome, calls) in
        [("ping", "ok", 2.0), ("refuse", "user_exception", 1.0), ("fail", "BAD_PARAM", 1.0), ("note", "ok", 1.0)]
    {
        assert_eq!(number(&orb, &count("call", operation, outcome)), Some(calls), "{operation}");
        let request = count("request", operation, outcome);
        wait_until(&request, || number(&server.orb, &request) == Some(calls));
    }
    assert_eq!(number(&orb, &count("call", "panic", "UNKNOWN")), Some(1.0));
    wait_until("the panic", || number(&server.orb, &count("request", "panic", "UNKNOWN")) == Some(1.0));
    assert_eq!(number(&orb, r#"spandrel_requests_running{side="client"}"#), Some(0.0));
    wait_until("the end", || number(&server.orb, r#"spandrel_requests_running{side="server"}"#) == Some(0.0));
}

#[test]
fn calls_by_a_reference_without_a_type_are_labelled_with_the_interface_of_their_stub() {
    let server = Server::start();
    let orb = with_metrics().build().unwrap();
    let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let key: String = profile.object_key.iter().map(|octet| format!("%{octet:02x}")).collect();
    let plain = orb.string_to_object(&format!("corbaloc::127.0.0.1:{}/{key}", server.port())).unwrap();
    assert_eq!(plain.type_id(), "");
    let target = Target::narrow(&plain).unwrap();
    target.ping().unwrap();
    block_on(target.ping_async()).unwrap();
    drop(target.hold_async(9));
    // References with other policies belong to the same stub.
    let limited = target.as_object().with_timeout(Some(TEST_TIMEOUT));
    Target::unchecked_narrow(&limited).ping().unwrap();
    limited.invoke::<(), spandrel::SystemException>("ping", |_| Ok(()), |_| Ok(())).unwrap();
    assert_eq!(number(&orb, &count("call", "ping", "ok")), Some(4.0), "{}", orb.render_metrics());
    assert_eq!(number(&orb, &count("call", "hold", "abandoned")), Some(1.0));
    // The same reference through another stub, and through none.
    let other = plain.unchecked_narrow::<Relay>().recurse(None, None, 0);
    other.unwrap_err();
    let relayed =
        r#"spandrel_call_seconds_count{interface="IDL:Probe/Relay:1.0",operation="recurse",outcome="BAD_OPERATION"}"#;
    assert_eq!(number(&orb, relayed), Some(1.0));
    let untyped = r#"spandrel_call_seconds_count{interface="",operation="_is_a",outcome="ok"}"#;
    assert_eq!(number(&orb, untyped), Some(1.0));
    assert_eq!(orb.render_metrics().matches(r#"_seconds_count{interface="","#).count(), 1);
    server.probe.open(9);
}

#[test]
fn the_buckets_of_a_histogram_end_in_its_count() {
    let server = Server::start();
    let (orb, target) = client_of(&server, with_metrics());
    (0..10).for_each(|_| target.ping().unwrap());
    let series = count("call", "ping", "ok");
    let labels = &series[series.find('{').unwrap() + 1..series.len() - 1];
    let text = orb.render_metrics();
    let bucket = format!("spandrel_call_seconds_bucket{{{labels},le=");
    let counts: Vec<f64> = text
        .lines()
        .filter(|line| line.starts_with(&bucket))
        .map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
        .collect();
    assert!(counts.is_sorted() && counts.len() > 20, "{counts:?}");
    assert_eq!(counts.last(), Some(&10.0));
    let sum = number(&orb, &series.replace("_count", "_sum")).unwrap();
    assert!(sum > 0.0 && sum < 30.0, "{sum}");
}

#[test]
fn asynchronous_calls_and_servants_are_measured_to_their_end() {
    let server = Server::with(with_metrics());
    let (orb, target) = client_of(&server, with_metrics());
    block_on(target.ping_async()).unwrap();
    block_on(target.refuse_async(1)).unwrap_err();
    drop(target.hold_async(9));
    assert_eq!(number(&orb, &count("call", "ping", "ok")), Some(1.0));
    assert_eq!(number(&orb, &count("call", "refuse", "user_exception")), Some(1.0));
    assert_eq!(number(&orb, &count("call", "hold", "abandoned")), Some(1.0));
    server.probe.open(9);
}

#[test]
fn unknown_operations_are_counted_as_other_by_the_server() {
    let server = Server::with(with_metrics());
    let (orb, target) = client_of(&server, with_metrics());
    for number in 0..50 {
        let name = format!("no_such_{number}");
        let outcome = spandrel::types::Interface::as_object(&target).invoke::<(), spandrel::SystemException>(
            &name,
            |_| Ok(()),
            |_| Ok(()),
        );
        outcome.unwrap_err();
    }
    let other = r#"spandrel_request_seconds_count{interface="other",operation="other",outcome="BAD_OPERATION"}"#;
    wait_until("all of them", || number(&server.orb, other) == Some(50.0));
    assert!(!server.orb.render_metrics().contains("no_such_"));
    assert!(number(&orb, &count("call", "no_such_49", "BAD_OPERATION")).is_some(), "the client keeps the name");
}

#[test]
fn the_number_of_series_is_limited() {
    let server = Server::start();
    let (orb, target) = client_of(&server, Orb::builder().max_series(2));
    target.ping().unwrap();
    target.count().unwrap();
    target.add(1, 2).unwrap();
    let named = orb.render_metrics().matches("spandrel_call_seconds_count").count();
    assert_eq!(named, 3, "two named ones and `other`");
}

#[test]
fn each_open_connection_has_its_own_series() {
    let server = Server::with(with_metrics());
    let (orb, target) = client_of(&server, with_metrics());
    target.ping().unwrap();
    let server_series = r#"spandrel_connection_requests_total{side="server",peer="iiop://127.0.0.1:"#;
    // `_is_a` is not called where the reference has the type id.
    assert_eq!(number(&server.orb, server_series), Some(1.0));
    let client_series =
        format!(r#"spandrel_connection_requests_total{{side="client",peer="iiop://127.0.0.1:{}"}}"#, server.port());
    assert_eq!(number(&orb, &client_series), Some(1.0), "{}", orb.render_metrics());
    assert!(number(&orb, &client_series.replace("requests_total", "request_octets_total")).unwrap() > 12.0);
    drop(target);
    orb.shutdown().unwrap();
    wait_until("the connection's end", || number(&server.orb, server_series).is_none());
}

#[test]
fn calls_are_measured_only_if_enabled() {
    let server = Server::start();
    let (orb, target) = client_of(&server, Orb::builder().trace_context(TracePropagation::Yes));
    target.ping().unwrap();
    assert!(!orb.render_metrics().contains("seconds"));
    let mut args = ["-ORBMetrics", "yes"].map(String::from).to_vec();
    let (orb, target) = client_of(&server, Orb::builder().take_args(&mut args).unwrap());
    target.ping().unwrap();
    assert_eq!(number(&orb, &count("call", "ping", "ok")), Some(1.0));
}

#[test]
fn queue_lengths_and_thread_counts_are_read_when_rendered() {
    let orb = with_metrics().build().unwrap();
    let level = |series: &str| number(&orb, series).unwrap();
    for _ in 0..3 {
        orb.run_in_main(Box::new(|| {})).unwrap();
    }
    assert_eq!(level(r#"spandrel_queue_length{queue="main"}"#), 3.0);
    orb.perform_work().unwrap();
    assert_eq!(level(r#"spandrel_queue_length{queue="main"}"#), 2.0);

    let server = Server::with(with_metrics());
    server.poa.the_poa_manager().hold_requests(WaitForCompletion::No).unwrap();
    let (_orb, target) = client_of(&server, Orb::builder());
    let held: Vec<_> = (0..4).map(|_| target.ping_async()).collect();
    for series in [r#"spandrel_queue_length{queue="adapter"}"#, r#"spandrel_queue_length{queue="deferred"}"#] {
        wait_until(series, || number(&server.orb, series) == Some(4.0));
    }
    server.poa.the_poa_manager().activate().unwrap();
    held.into_iter().for_each(|call| block_on(call).unwrap());
    wait_until("the end of the held requests", || {
        number(&server.orb, r#"spandrel_queue_length{queue="adapter"}"#) == Some(0.0)
    });
    assert!(number(&server.orb, r#"spandrel_threads{kind="pool"}"#).unwrap() >= 1.0);
}

#[test]
fn the_wait_of_requests_for_a_pool_thread_is_measured() {
    let server = Server::with(with_metrics().option("-ORBConcurrency", "thread-pool:1:16").unwrap());
    let (_orb, target) = client_of(&server, Orb::builder());
    target.ping().unwrap();
    target.ping().unwrap();
    let waits = r#"spandrel_queue_wait_seconds_count{queue="pool"}"#;
    wait_until("both waits", || number(&server.orb, waits) == Some(2.0));
}
