//! The load generator: counts, kinds of errors, and the latencies of an open loop.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use spandrel_measure::histogram::Histogram;
use spandrel_orchestra::idl::orchestra::{ArrivalKind, Distribution, DistributionKind, Load, LoadResult};
use spandrel_orchestra::load::{self, Control, FailureKind, paper_load};
use spandrel_test_support::free_port;

use crate::server::{Behaviour, start};

fn to(address: SocketAddr, requests: u64) -> Load {
    paper_load(&address.ip().to_string(), address.port(), requests, 400, 5)
}

fn run(load: &Load) -> LoadResult {
    let target = load::resolve(&load.target).unwrap();
    load::run(load, &target, &Control::default()).unwrap()
}

/// The histogram as the description of `LoadResult` in IDL has it.
fn histogram(result: &LoadResult) -> Histogram {
    Histogram::decode(&result.histogram, 3_600_000_000_000).unwrap()
}

/// The only kind of error, and its count.
fn only_error(result: &LoadResult) -> (&str, u64) {
    assert_eq!(result.errors.len(), 1, "{result:?}");
    assert_eq!(result.requests, result.answered + result.failed);
    (&result.errors[0].kind, result.errors[0].count)
}

#[test]
fn every_request_is_answered_and_counted_once() {
    for greeting in [true, false] {
        let result = run(&Load { greeting, ..to(start(Behaviour::Steady, greeting), 500) });
        assert_eq!((result.requests, result.answered, result.failed), (500, 500, 0), "{:?}", result.errors);
        assert_eq!(result.octets, 500 * 400);
        assert_eq!(histogram(&result).count(), 500);
        assert!(result.elapsed > 0.0 && result.times.lowest > 0.0 && result.times.highest >= result.times.p99);
    }
}

#[test]
fn failures_are_counted_by_their_kinds() {
    let free = (Ipv4Addr::LOCALHOST, free_port()).into();
    assert_eq!(only_error(&run(&to(free, 30))), ("refused", 30));
    let kinds = [
        (Behaviour::Short, "short reply"),
        (Behaviour::Reset, "reset"),
        (Behaviour::WrongGreeting, "wrong greeting"),
        (Behaviour::WrongReply, "wrong reply"),
    ];
    for (behaviour, kind) in kinds {
        assert_eq!(only_error(&run(&to(start(behaviour, true), 30))), (kind, 30));
    }
    let silent = Load { timeout: 0.05, ..to(start(Behaviour::Silent, true), 10) };
    assert_eq!(only_error(&run(&silent)), ("timed out", 10));
}

#[test]
fn exhausted_ports_and_descriptors_have_kinds_of_their_own() {
    for (kind, expected) in [
        (io::ErrorKind::AddrNotAvailable, "ports exhausted"),
        (io::ErrorKind::AddrInUse, "ports exhausted"),
        (io::ErrorKind::HostUnreachable, "unreachable"),
        (io::ErrorKind::InvalidInput, "other"),
    ] {
        assert_eq!(FailureKind::from(&io::Error::from(kind)).name(), expected);
    }
    let too_many = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
    assert_eq!(FailureKind::from(&too_many), FailureKind::DescriptorsExhausted);
}

#[test]
fn a_time_ends_a_load_without_a_number() {
    let result = run(&Load { seconds: 0.2, requests: 0, ..to(start(Behaviour::Steady, true), 0) });
    assert!(result.answered > 0 && result.failed == 0 && result.elapsed >= 0.2 * 0.9, "{result:?}");
}

#[test]
fn a_stall_shows_in_all_requests_that_were_due_during_it() {
    const STALL: Duration = Duration::from_millis(200);
    const RATE: f64 = 500.0;
    let server = start(Behaviour::Stall(50, STALL), true);
    let load = Load { arrival: ArrivalKind::OpenPaced, rate: RATE, workers: 2, ..to(server, 300) };
    let result = run(&load);
    assert_eq!((result.answered, result.failed), (300, 0));
    // In the first half of the stall 50 requests are due. Each of them waits for half of it at least.
    let half = STALL.as_nanos() as u64 / 2;
    let slow = histogram(&result).count_from(half - half / 100);
    assert!(slow >= 48, "only {slow} requests took {half} ns");
    assert!(result.elapsed >= 299.0 / RATE, "requests were sent before they were due: {} s", result.elapsed);
}

#[test]
fn requests_that_find_no_worker_within_the_timeout_are_counted() {
    let load = Load {
        arrival: ArrivalKind::OpenPaced,
        rate: 1000.0,
        workers: 1,
        timeout: 0.05,
        ..to(start(Behaviour::Silent, true), 200)
    };
    let result = run(&load);
    assert_eq!((result.requests, result.answered), (200, 0));
    let count = |kind: &str| result.errors.iter().find(|error| error.kind == kind).map_or(0, |error| error.count);
    assert!(count("timed out") > 0 && count("not sent") > 0, "{:?}", result.errors);
    assert_eq!(count("timed out") + count("not sent"), 200);
}

#[test]
fn a_poisson_process_has_its_rate_and_a_seed_repeats_it() {
    let load = |seed: u64| {
        let load = to(start(Behaviour::Steady, true), 200);
        run(&Load { arrival: ArrivalKind::OpenPoisson, rate: 1000.0, seed, ..load })
    };
    let result = load(3);
    assert_eq!(result.answered, 200);
    // The sum of 200 exponential distances of 1 ms: 0.2 s, with a standard deviation of 0.014 s. Machines are late only.
    assert!(result.elapsed > 0.12, "{}", result.elapsed);
}

#[test]
fn sizes_follow_their_distribution() {
    let server = start(Behaviour::Steady, true);
    let octets = |kind: DistributionKind, spread: f64| {
        let size = Distribution { kind, mean: 1000.0, spread };
        run(&Load { size, ..to(server, 400) }).octets as f64 / 400.0
    };
    assert_eq!(octets(DistributionKind::Constant, 0.0), 1000.0);
    // Means of 400 values: five standard deviations around the mean.
    for (kind, spread, deviation) in [
        (DistributionKind::Uniform, 500.0, 289.0),
        (DistributionKind::Exponential, 0.0, 1000.0),
        (DistributionKind::Normal, 100.0, 100.0),
    ] {
        let (mean, limit) = (octets(kind, spread), 5.0 * deviation / 20.0);
        assert!((mean - 1000.0).abs() < limit && mean != 1000.0, "{kind:?}: {mean}");
        assert_eq!(mean, octets(kind, spread), "an equal seed gives equal sizes");
    }
}

#[test]
fn think_time_paces_a_closed_loop() {
    let think_time = Distribution { kind: DistributionKind::Constant, mean: 0.02, spread: 0.0 };
    let result = run(&Load { think_time, workers: 1, ..to(start(Behaviour::Steady, true), 6) });
    assert!(result.answered == 6 && result.elapsed >= 5.0 * 0.02, "{result:?}");
}

#[test]
fn a_time_ends_a_load_whose_workers_think() {
    let server = start(Behaviour::Steady, true);
    let think_time = Distribution { kind: DistributionKind::Constant, mean: 3600.0, spread: 0.0 };
    let load = Load { think_time, seconds: 0.2, workers: 3, ..to(server, 0) };
    let running = std::thread::spawn(move || run(&load));
    spandrel_test_support::wait_until("the load ends", || running.is_finished());
    let result = running.join().unwrap();
    assert_eq!((result.requests, result.answered), (3, 3), "{result:?}");
}

#[test]
fn a_cancelled_load_ends_early() {
    let control = Control::default();
    control.cancel();
    let load = to(start(Behaviour::Steady, true), 1_000_000);
    let result = load::run(&load, &load::resolve(&load.target).unwrap(), &control).unwrap();
    assert_eq!(result.requests, 0);
}

#[test]
fn values_out_of_range_are_refused() {
    let good = to("127.0.0.1:1".parse().unwrap(), 10);
    assert!(load::check(&good).is_ok());
    let distribution = |kind: DistributionKind, mean: f64, spread: f64| Distribution { kind, mean, spread };
    let size = |mean: f64| distribution(DistributionKind::Constant, mean, 0.0);
    let bad = [
        Load { requests: 0, ..good.clone() },
        Load { workers: 0, ..good.clone() },
        Load { workers: 5000, ..good.clone() },
        Load { seconds: f64::NAN, ..good.clone() },
        Load { seconds: -1.0, ..good.clone() },
        Load { arrival: ArrivalKind::OpenPaced, rate: 0.0, ..good.clone() },
        Load { timeout: 0.0, ..good.clone() },
        Load { size: size(10_000.0), ..good.clone() },
        Load { think_time: size(-1.0), ..good.clone() },
        Load { arrival: ArrivalKind::OpenPoisson, rate: 1e300, ..good.clone() },
        Load { arrival: ArrivalKind::OpenPoisson, rate: f64::NAN, ..good.clone() },
        Load { think_time: size(1e300), ..good.clone() },
        Load { think_time: size(f64::INFINITY), ..good.clone() },
        Load { think_time: distribution(DistributionKind::Exponential, f64::NAN, 0.0), ..good.clone() },
        Load { think_time: distribution(DistributionKind::Exponential, 3601.0, 0.0), ..good.clone() },
        Load { think_time: distribution(DistributionKind::Normal, 1.0, 1e300), ..good.clone() },
        Load { think_time: distribution(DistributionKind::Normal, 1.0, f64::INFINITY), ..good.clone() },
        Load { think_time: distribution(DistributionKind::Normal, 1.0, f64::NAN), ..good.clone() },
        Load { think_time: distribution(DistributionKind::Normal, 1.0, 3601.0), ..good.clone() },
        Load { think_time: distribution(DistributionKind::Uniform, 1800.0, 1801.0), ..good.clone() },
        Load { size: distribution(DistributionKind::Normal, 1000.0, 1e300), ..good.clone() },
        Load { size: distribution(DistributionKind::Uniform, 9000.0, 1000.0), ..good.clone() },
    ];
    for think_time in [
        distribution(DistributionKind::Uniform, 1800.0, 1800.0),
        distribution(DistributionKind::Uniform, 1.0, 2.0),
        distribution(DistributionKind::Normal, 3600.0, 3600.0),
        distribution(DistributionKind::Exponential, 3600.0, 0.0),
    ] {
        assert!(load::check(&Load { think_time, ..good.clone() }).is_ok(), "{think_time:?}");
    }
    for load in bad {
        assert!(load::check(&load).is_err(), "{load:?}");
    }
}

#[test]
fn a_cancellation_wakes_workers_that_wait_for_their_next_request() {
    let server = start(Behaviour::Steady, true);
    // The second request is due after 1,000 seconds.
    let load = Load { arrival: ArrivalKind::OpenPaced, rate: 0.001, ..to(server, 10) };
    let control = Control::default();
    let result = std::thread::scope(|scope| {
        let target = load::resolve(&load.target).unwrap();
        let (load, control) = (&load, &control);
        let running = scope.spawn(move || load::run(load, &target, control));
        spandrel_test_support::wait_until("the first request", || control.counts().0 == 1);
        control.cancel();
        running.join().unwrap().unwrap()
    });
    assert_eq!((result.requests, result.answered), (1, 1));
}
