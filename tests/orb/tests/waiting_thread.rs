//! `Orb::block_on`: a thread that waits for a future that is woken often drives the reactor meanwhile.

use std::{
    future::poll_fn,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::{Poll, Waker},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use spandrel::{Orb, SystemExceptionKind};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, block_on, in_background, wait_until},
};
use spandrel_test_support::within_time;

/// More wake-ups than those after which the thread drives the reactor.
const MANY: i32 = 20;

/// A server, and the ORB and the target of a client with one connection.
fn bed() -> (Server, Orb, Target) {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    (server, target.as_object().orb().clone(), target)
}

/// The thread that runs the reactor's work now.
async fn reactor_thread(orb: &Orb) -> ThreadId {
    let id = Arc::<Mutex<Option<ThreadId>>>::default();
    let sent = Arc::clone(&id);
    let mut is_begun = false;
    let waker = Arc::<Mutex<Option<Waker>>>::default();
    poll_fn(move |context| {
        if let Some(id) = *id.lock().unwrap() {
            return Poll::Ready(id);
        }
        *waker.lock().unwrap() = Some(context.waker().clone());
        if !is_begun {
            is_begun = true;
            let (id, waker) = (Arc::clone(&sent), Arc::clone(&waker));
            orb.spawn(async move {
                *id.lock().unwrap() = Some(thread::current().id());
                waker.lock().unwrap().take().into_iter().for_each(Waker::wake);
            })
            .unwrap();
        }
        Poll::Pending
    })
    .await
}

/// Makes so many calls, one after the other.
async fn call(target: &Target, calls: i32) {
    for number in 0..calls {
        assert_eq!(target.add_async(number, 1).await.unwrap(), number + 1);
    }
}

/// Makes calls until this thread drives the reactor. On a busy machine, it may take a poll for a long one, and begin again.
async fn call_until_driving(orb: &Orb, target: &Target) {
    while reactor_thread(orb).await != thread::current().id() {
        call(target, MANY).await;
    }
}

#[test]
fn a_thread_that_is_woken_often_drives_the_reactor_until_its_future_is_ready() {
    let (_server, orb, target) = bed();
    within_time(move || {
        let own = thread::current().id();
        let first = orb.block_on(async {
            call(&target, 1).await;
            let first = reactor_thread(&orb).await;
            call_until_driving(&orb, &target).await;
            first
        });
        assert_ne!(first, own, "a short wait changes nothing");
        assert_eq!(block_on(reactor_thread(&orb)), first, "the reactor's own thread goes on");
    });
}

#[test]
fn a_wake_up_by_another_thread_ends_the_wait_of_a_thread_that_drives() {
    let (_server, orb, target) = bed();
    within_time(move || {
        let (wake, wakers) = mpsc::channel::<(Waker, Arc<AtomicBool>)>();
        let waking = thread::spawn(move || {
            for (waker, is_woken) in wakers {
                is_woken.store(true, Ordering::SeqCst);
                waker.wake();
            }
        });
        orb.block_on(async {
            call_until_driving(&orb, &target).await;
            for _ in 0..1000 {
                let is_woken = Arc::new(AtomicBool::new(false));
                let mut is_sent = false;
                poll_fn(|context| {
                    if is_woken.load(Ordering::SeqCst) {
                        return Poll::Ready(());
                    }
                    if !mem::replace(&mut is_sent, true) {
                        wake.send((context.waker().clone(), Arc::clone(&is_woken))).unwrap();
                    }
                    Poll::Pending
                })
                .await;
            }
        });
        drop(wake);
        waking.join().unwrap();
    });
}

#[test]
fn several_threads_wait_for_futures_of_one_orb() {
    let (_server, orb, target) = bed();
    let waits = (0..4).map(|_| {
        let (orb, target) = (orb.clone(), target.clone());
        in_background(move || orb.block_on(call(&target, 10 * MANY)))
    });
    let waits: Vec<_> = waits.collect();
    // One that waits by itself.
    block_on(call(&target, MANY));
    waits.into_iter().for_each(|wait| wait.recv_timeout(TEST_TIMEOUT).unwrap());
}

#[test]
fn a_future_may_wait_for_another_one_and_make_synchronous_calls() {
    let (_server, orb, target) = bed();
    let sum = within_time(move || {
        orb.block_on(async {
            call_until_driving(&orb, &target).await;
            assert_eq!(target.add(1, 2).unwrap(), 3, "a synchronous call");
            let inner = orb.block_on(async {
                call_until_driving(&orb, &target).await;
                target.add_async(3, 4).await.unwrap()
            });
            call(&target, MANY).await;
            inner + target.add_async(5, 6).await.unwrap()
        })
    });
    assert_eq!(sum, 18);
}

#[test]
fn a_long_poll_gives_the_reactor_back_to_its_thread() {
    let (_server, orb, target) = bed();
    within_time(move || {
        let own = thread::current().id();
        orb.block_on(async {
            call_until_driving(&orb, &target).await;
            let begin = Instant::now();
            wait_until("5 ms have passed", || begin.elapsed() >= Duration::from_millis(5));
            call(&target, 1).await;
            assert_ne!(reactor_thread(&orb).await, own);
            call(&target, MANY).await;
        });
    });
}

#[test]
fn deadlines_pass_while_a_thread_drives() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().request_timeout(Some(Duration::from_millis(500))));
    let kind = within_time(move || {
        let orb = target.as_object().orb();
        orb.block_on(async {
            call_until_driving(orb, &target).await;
            target.hold_async(1).await.unwrap_err().kind()
        })
    });
    assert_eq!(kind, SystemExceptionKind::Timeout);
    server.probe.open(1);
}

#[test]
fn shutdown_ends_the_calls_of_a_thread_that_drives() {
    let (server, orb, target) = bed();
    let waiting = {
        let orb = orb.clone();
        in_background(move || {
            orb.block_on(async {
                call_until_driving(&orb, &target).await;
                target.hold_async(1).await.unwrap_err().kind()
            })
        })
    };
    server.probe.await_held(1);
    orb.shutdown().unwrap();
    assert_eq!(waiting.recv_timeout(TEST_TIMEOUT).unwrap(), SystemExceptionKind::BadInvOrder);
    server.probe.open(1);
}

#[test]
fn a_panic_of_the_future_gives_the_reactor_back() {
    let (_server, orb, target) = bed();
    within_time(move || {
        let panics = AssertUnwindSafe(|| {
            orb.block_on(async {
                call_until_driving(&orb, &target).await;
                panic_any("on purpose");
            });
        });
        assert!(catch_unwind(panics).is_err());
        block_on(call(&target, MANY));
    });
}
