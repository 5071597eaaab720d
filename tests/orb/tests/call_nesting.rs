//! Nested calls: pool threads that wait for a reply serve further requests meanwhile (the wait strategy *on
//! reactor*).

use std::time::Duration;

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemExceptionKind,
    options::{Concurrency, WaitStrategy},
};
use spandrel_orb_tests::{
    Repeater, Server,
    probe::{Relay, RelaySkeleton, Target},
    support::{TEST_TIMEOUT, in_background, retry_with_longer_timeout, wait_until},
};
#[cfg(target_os = "linux")]
use spandrel_test_support::alone;

/// The nesting limit of requests in one thread.
const LIMIT: i32 = 64;

/// A pool of this many threads, and one connection in each direction.
fn pool_of(threads: usize) -> OrbBuilder {
    Orb::builder().concurrency(Concurrency::LeaderFollowers { threads: Some(threads) }).connections_per_peer(1)
}

/// Two servers whose servants call each other.
struct Pair {
    left: Server,
    right: Server,
    to_left: Target,
    to_right: Target,
    left_relay: Relay,
    right_relay: Relay,
}

impl Pair {
    fn of(builder: impl Fn() -> OrbBuilder) -> Self {
        let (left, right) = (Server::with(builder()), Server::with(builder()));
        let orb = Orb::builder().connections_per_peer(1).build().unwrap();
        let [to_left, to_right] =
            [&left, &right].map(|server| Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap());
        let [left_relay, right_relay] = [&left, &right].map(|server| {
            let relay = server.poa.activate(RelaySkeleton::new(Repeater)).unwrap();
            Relay::narrow(&orb.string_to_object(&relay.to_string()).unwrap()).unwrap()
        });
        Self { left, right, to_left, to_right, left_relay, right_relay }
    }

    fn recurse(&self, depth: i32) -> Result<i32, spandrel::SystemException> {
        let (target, other, back) = (self.left_relay.clone(), self.right_relay.clone(), self.left_relay.clone());
        let call = in_background(move || target.recurse(Some(&other), Some(&back), depth));
        call.recv_timeout(TEST_TIMEOUT).expect("the callbacks end")
    }
}

#[test]
fn a_pool_of_one_thread_nests_callbacks_up_to_the_limit() {
    for threads in [1, 2] {
        let pair = Pair::of(|| pool_of(threads));
        for depth in [0, 1, 2, 20, LIMIT] {
            assert_eq!(pair.recurse(depth).unwrap(), depth);
        }
        assert_eq!((pair.to_left.add(1, 2).unwrap(), pair.to_right.add(3, 4).unwrap()), (3, 7));
    }
}

#[test]
fn calls_beyond_the_nesting_limit_raise_transient_and_the_pool_continues() {
    let pair = Pair::of(|| pool_of(1));
    for _ in 0..3 {
        // Each server runs every second upcall.
        let error = pair.recurse(3 * LIMIT).unwrap_err();
        assert_eq!(
            (error.kind(), error.completed()),
            (SystemExceptionKind::Transient, CompletionStatus::Maybe),
            "{error}"
        );
        assert_eq!(pair.recurse(2 * LIMIT - 2).unwrap(), 2 * LIMIT - 2);
    }
}

#[test]
fn the_wait_strategy_on_reactor_nests_requests_in_a_shared_pool() {
    let pair = Pair::of(|| {
        Orb::builder()
            .concurrency(Concurrency::LeaderFollowers { threads: None })
            .wait_strategy(WaitStrategy::OnReactor)
    });
    assert_eq!(pair.recurse(40).unwrap(), 40);
}

#[test]
fn concurrent_circular_calls_complete() {
    const CALLERS: i32 = 8;
    let pair = Pair::of(|| pool_of(2));
    let calls: Vec<_> = (0..CALLERS)
        .map(|depth| {
            let (target, other, back) = (pair.left_relay.clone(), pair.right_relay.clone(), pair.left_relay.clone());
            in_background(move || {
                for _ in 0..50 {
                    assert_eq!(target.recurse(Some(&other), Some(&back), depth).unwrap(), depth);
                }
            })
        })
        .collect();
    for call in calls {
        call.recv_timeout(TEST_TIMEOUT).expect("the calls end");
    }
}

#[test]
fn a_reply_that_arrives_during_a_nested_upcall_waits_for_its_end() {
    let pair = Pair::of(|| pool_of(1));
    // The left thread waits for the right server, which holds the call; meanwhile it serves another request.
    let waiting = {
        let (target, held) = (pair.left_relay.clone(), pair.to_right.clone());
        in_background(move || target.hold(Some(&held), 1))
    };
    pair.right.probe.await_held(1);
    let inner = {
        let target = pair.left.client();
        in_background(move || target.hold(2))
    };
    pair.left.probe.await_held(1);
    pair.right.probe.open(1);
    // The reply has arrived, but the left thread is still inside the other upcall.
    pair.right.probe.await_released();
    assert!(waiting.try_recv().is_err());
    pair.left.probe.open(2);
    inner.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

/// Waits until the threads with this name wait for something.
#[cfg(target_os = "linux")]
fn await_idle(name: &str) {
    let is_waiting = |task: std::path::PathBuf| {
        let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
        !stat.contains(&format!("({name})")) || stat.contains(") S ")
    };
    let tasks = || std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    wait_until("the threads to be idle", || tasks().all(is_waiting));
}

#[test]
#[cfg(target_os = "linux")]
fn a_waiting_thread_leaves_further_requests_to_idle_ones() {
    const TRIES: u32 = 20;
    alone(|| {
        for (strategy, name) in [
            (Concurrency::LeaderFollowers { threads: Some(2) }, "spandrel-reacto"),
            (Concurrency::LeaderFollowers { threads: Some(3) }, "spandrel-reacto"),
            (Concurrency::ThreadPool { threads: 2, queue: 8 }, "spandrel-worker"),
        ] {
            let server = Server::with(Orb::builder().concurrency(strategy));
            let relay = server.poa.activate(RelaySkeleton::new(Repeater)).unwrap();
            // The client's servant answers the second callback after the first call has returned.
            let client = Server::with(Orb::builder().connections_per_peer(1));
            let relay: Relay = client.orb.string_to_object(&relay.to_string()).unwrap().unchecked_narrow();
            for number in 0..TRIES {
                let [first, second] = [2 * number, 2 * number + 1];
                let call = |gate| {
                    let (relay, held) = (relay.clone(), client.object.unchecked_narrow::<Target>());
                    in_background(move || relay.hold(Some(&held), gate))
                };
                await_idle(name);
                let first_call = call(first);
                client.probe.await_held(1);
                let second_call = call(second);
                client.probe.await_held(2);
                client.probe.open(first);
                let returned = first_call.recv_timeout(TEST_TIMEOUT);
                client.probe.open(second);
                returned.unwrap_or_else(|_| panic!("{strategy}: the first call waits for the second")).unwrap();
                second_call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
            }
        }
    });
}

#[test]
fn a_timeout_ends_a_call_that_waits_in_a_pool_thread() {
    let (pair, error) = retry_with_longer_timeout(Duration::from_millis(100), |time| {
        let pair = Pair::of(|| pool_of(1).request_timeout(Some(time)));
        let waiting = {
            let (target, held) = (pair.left_relay.clone(), pair.to_right.clone());
            in_background(move || target.hold(Some(&held), 1))
        };
        let error = waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
        (error.completed() != CompletionStatus::No).then_some((pair, error))
    });
    assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{error}");
    assert_eq!(pair.to_left.add(1, 1).unwrap(), 2);
    pair.right.probe.open(1);
}

#[test]
fn threads_that_wait_on_a_waker_get_their_own_replies() {
    let server = Server::start();
    let builder = Orb::builder().wait_strategy(WaitStrategy::OnWaker).connections_per_peer(2);
    let target = server.client_with(builder);
    std::thread::scope(|scope| {
        for id in 0..8 {
            let target = target.clone();
            scope.spawn(move || {
                for round in 0..100 {
                    assert_eq!(target.add(id, round).unwrap(), id + round);
                }
            });
        }
    });
    let error = target.refuse(7).unwrap_err();
    assert!(error.to_string().contains("because of 7"), "{error}");
}

#[test]
fn slow_upcalls_occupy_one_pool_thread_each() {
    const THREADS: u32 = 3;
    let server = Server::with(pool_of(THREADS as usize));
    let held: Vec<_> = (1..THREADS)
        .map(|gate| {
            let target = server.client();
            in_background(move || target.hold(gate))
        })
        .collect();
    server.probe.await_held(THREADS as usize - 1);
    let quick = server.client();
    for i in 0..200 {
        assert_eq!(quick.add(i, 1).unwrap(), i + 1);
    }
    // All threads are busy: another request waits until the first upcall ends.
    let last = server.client();
    let last = in_background(move || last.hold(THREADS));
    server.probe.await_held(THREADS as usize);
    let behind = in_background(move || quick.add(1, 2));
    assert!(behind.try_recv().is_err());
    server.probe.open(1);
    assert_eq!(behind.recv_timeout(TEST_TIMEOUT).expect("one thread is available again").unwrap(), 3);
    (2..=THREADS).for_each(|gate| server.probe.open(gate));
    for call in held.into_iter().chain([last]) {
        call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    }
}
