//! Models of the thread manager: starting at once, suspending, cancelling, waiting.

use std::time::Duration;

use shuttle::check_random;

use crate::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::{Arc, Semaphore, SpawnError, ThreadManager, thread};

/// Never runs out under the model checker.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Seen {
    flag: AtomicBool,
    count: AtomicUsize,
}

impl Seen {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }
    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

#[test]
fn no_thread_of_a_held_group_begins_before_it_is_released() {
    check_random(
        || {
            let (manager, seen) = (ThreadManager::new(), Arc::new(Seen::default()));
            let group = manager.held_group("held");
            for _ in 0..3 {
                let seen = Arc::clone(&seen);
                let body = move |_: &_| {
                    assert!(seen.flag.load(Ordering::SeqCst), "began too early");
                    seen.add();
                };
                group.spawn("one", body).unwrap();
            }
            assert_eq!(seen.count(), 0);
            assert_eq!(group.running(), 3);
            seen.flag.store(true, Ordering::SeqCst);
            group.release();
            assert!(group.wait().is_clean());
            assert_eq!(seen.count(), 3);
        },
        500,
    );
}

#[test]
fn threads_spawned_at_once_are_all_there_or_none_has_begun() {
    check_random(
        || {
            let (manager, seen) = (ThreadManager::with_limit(2), Arc::new(Seen::default()));
            let group = manager.group("at once");
            let body = |seen: &Arc<Seen>| {
                let seen = Arc::clone(seen);
                move |_: &_| seen.add()
            };
            let refused = group.spawn_n(3, "too many", body(&seen));
            assert!(matches!(refused, Err(SpawnError::LimitReached { limit: 2 })));
            assert_eq!((seen.count(), group.running()), (0, 0));
            group.spawn_n(2, "enough", body(&seen)).unwrap();
            assert!(group.wait().is_clean());
            assert_eq!(seen.count(), 2);
        },
        500,
    );
}

#[test]
fn threads_spawned_at_once_into_a_held_group_are_held() {
    check_random(
        || {
            let (manager, seen) = (ThreadManager::new(), Arc::new(Seen::default()));
            let group = manager.held_group("held");
            let body = Arc::clone(&seen);
            let body = move |_: &_| {
                assert!(body.flag.load(Ordering::SeqCst), "began too early");
                body.add();
            };
            group.spawn_n(2, "two", body).unwrap();
            seen.flag.store(true, Ordering::SeqCst);
            group.release();
            assert!(group.wait().is_clean());
            assert_eq!(seen.count(), 2);
        },
        500,
    );
}

#[test]
fn what_is_cancelled_before_it_is_released_never_begins() {
    check_random(
        || {
            let (manager, seen) = (ThreadManager::new(), Arc::new(Seen::default()));
            let group = manager.held_group("held");
            let other = Arc::clone(&seen);
            group.spawn("never", move |_| other.add()).unwrap();
            group.cancel();
            assert!(matches!(group.spawn("late", |_| ()), Err(SpawnError::Cancelled)));
            group.release();
            assert!(group.wait().is_clean());
            assert_eq!(seen.count(), 0);
        },
        200,
    );
}

#[test]
fn a_suspended_group_stands_still_until_it_is_resumed() {
    check_random(
        || {
            let (manager, seen) = (ThreadManager::new(), Arc::new(Seen::default()));
            let group = manager.group("working");
            let body = Arc::clone(&seen);
            let body = move |context: &crate::ThreadContext| {
                while !body.flag.load(Ordering::SeqCst) && context.checkpoint().is_ok() {
                    body.add();
                    thread::yield_now();
                }
            };
            group.spawn_n(2, "worker", body).unwrap();
            group.suspend();
            assert!(group.until_suspended(DAY));
            let late = Arc::clone(&seen);
            group.spawn("newcomer", move |_| late.add()).unwrap();
            let before = seen.count();
            thread::yield_now();
            assert_eq!(seen.count(), before, "one went on");
            seen.flag.store(true, Ordering::SeqCst);
            group.resume();
            assert!(group.wait().is_clean());
            assert!(seen.count() > before, "the newcomer ran after all");
        },
        500,
    );
}

#[test]
fn a_manager_suspends_resumes_and_cancels_all_groups() {
    check_random(
        || {
            let (manager, seen) = (ThreadManager::new(), Arc::new(Seen::default()));
            let early = manager.group("made before");
            manager.suspend_all();
            let late = manager.group("made while suspended");
            for group in [&early, &late] {
                let seen = Arc::clone(&seen);
                group.spawn("one", move |_| seen.add()).unwrap();
            }
            assert!(manager.until_suspended(DAY));
            assert_eq!(seen.count(), 0);
            manager.resume_all();
            assert!(manager.wait().is_clean());
            assert_eq!(seen.count(), 2);
            manager.cancel_all();
            assert!(matches!(early.spawn("no more", |_| ()), Err(SpawnError::Cancelled)));
            let other = Arc::clone(&seen);
            assert!(manager.spawn("another group", move |_| other.add()).unwrap().wait().is_clean());
            assert_eq!(seen.count(), 3);
        },
        500,
    );
}

#[test]
fn cancelling_ends_the_suspended_and_the_pausing() {
    check_random(
        || {
            let manager = ThreadManager::new();
            let group = manager.group("both");
            group
                .spawn("suspended", |context| {
                    while context.checkpoint().is_ok() {
                        thread::yield_now();
                    }
                })
                .unwrap();
            group.spawn("pausing", |context| assert!(context.pause(DAY).is_err())).unwrap();
            group.suspend();
            assert!(group.until_suspended(DAY));
            group.cancel();
            assert!(group.wait().is_clean());
        },
        500,
    );
}

#[test]
fn a_wait_with_a_limit_tells_who_is_still_running() {
    check_random(
        || {
            let (manager, gate) = (ThreadManager::new(), Arc::new(Semaphore::new(0)));
            let other = Arc::clone(&gate);
            manager.spawn("quick", |_| ()).unwrap();
            manager.spawn("waiting", move |_| other.acquire().forget()).unwrap();
            let running = manager.wait_for(MINUTE).unwrap_err();
            assert!(running.threads.iter().any(|name| &**name == "waiting"), "{running}");
            gate.post(1).unwrap();
            assert!(manager.wait().is_clean());
        },
        200,
    );
}

#[test]
fn a_thread_that_ends_before_its_spawner_knows_it_is_joined_all_the_same() {
    check_random(
        || {
            let (manager, seen) = (ThreadManager::new(), Arc::new(Seen::default()));
            let group = manager.group("quick");
            let waiting = group.clone();
            let waiting = thread::spawn(move || assert!(waiting.wait().is_clean()));
            let other = Arc::clone(&seen);
            group.spawn("one", move |_| other.add()).unwrap();
            waiting.join().unwrap();
            assert!(group.wait().is_clean());
            assert_eq!((seen.count(), group.running()), (1, 0));
        },
        500,
    );
}

#[test]
fn several_may_wait_for_a_group_and_one_of_its_threads_for_the_others() {
    check_random(
        || {
            let (manager, seen) = (Arc::new(ThreadManager::new()), Arc::new(Seen::default()));
            let group = manager.group("all");
            let other = Arc::clone(&seen);
            group.spawn("worker", move |_| other.add()).unwrap();
            let (own, other) = (group.clone(), Arc::clone(&seen));
            group
                .spawn("inside", move |_| {
                    assert!(own.wait().is_clean());
                    assert_eq!(other.count(), 1);
                })
                .unwrap();
            let (outside, other) = (group.clone(), Arc::clone(&seen));
            let outside = thread::spawn(move || {
                assert!(outside.wait().is_clean());
                assert_eq!(other.count(), 1);
            });
            assert!(group.wait().is_clean());
            outside.join().unwrap();
            assert_eq!(manager.running(), 0);
        },
        500,
    );
}

#[test]
fn a_manager_that_is_dropped_has_ended_its_threads() {
    check_random(
        || {
            let (manager, seen) = (ThreadManager::new(), Arc::new(Seen::default()));
            let other = Arc::clone(&seen);
            let body = move |context: &crate::ThreadContext| {
                other.add();
                while context.checkpoint().is_ok() {
                    thread::yield_now();
                }
                other.add();
            };
            let group = manager.group("left alone");
            group.spawn_n(2, "one", body).unwrap();
            drop(manager);
            assert_eq!((group.running(), seen.count() % 2), (0, 0), "whoever began has ended");
            assert!(matches!(group.spawn("late", |_| ()), Err(SpawnError::Cancelled)));
        },
        300,
    );
}
