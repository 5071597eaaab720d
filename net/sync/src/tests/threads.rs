//! Models of the thread manager: starting at once, suspending, cancelling, waiting.

use std::time::Duration;

use shuttle::check_random;

use crate::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::{Arc, Semaphore, SpawnError, ThreadManager, thread};

/// Never times out under the model checker.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Effects {
    flag: AtomicBool,
    count: AtomicUsize,
}

impl Effects {
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
            let (manager, effects) = (ThreadManager::new(), Arc::new(Effects::default()));
            let group = manager.held_group("held");
            for _ in 0..3 {
                let effects = Arc::clone(&effects);
                let body = move |_: &_| {
                    assert!(effects.flag.load(Ordering::SeqCst), "began too early");
                    effects.add();
                };
                group.spawn("one", body).unwrap();
            }
            assert_eq!(effects.count(), 0);
            assert_eq!(group.running(), 3);
            effects.flag.store(true, Ordering::SeqCst);
            group.release();
            assert!(group.wait().is_clean());
            assert_eq!(effects.count(), 3);
        },
        500,
    );
}

#[test]
fn threads_spawned_at_once_all_start_or_none_does() {
    check_random(
        || {
            let (manager, effects) = (ThreadManager::with_limit(2), Arc::new(Effects::default()));
            let group = manager.group("at once");
            let body = |effects: &Arc<Effects>| {
                let effects = Arc::clone(effects);
                move |_: &_| effects.add()
            };
            let refused = group.spawn_n(3, "too many", body(&effects));
            assert!(matches!(refused, Err(SpawnError::LimitReached { limit: 2 })));
            assert_eq!((effects.count(), group.running()), (0, 0));
            group.spawn_n(2, "enough", body(&effects)).unwrap();
            assert!(group.wait().is_clean());
            assert_eq!(effects.count(), 2);
        },
        500,
    );
}

#[test]
fn threads_spawned_at_once_into_a_held_group_are_held() {
    check_random(
        || {
            let (manager, effects) = (ThreadManager::new(), Arc::new(Effects::default()));
            let group = manager.held_group("held");
            let body = Arc::clone(&effects);
            let body = move |_: &_| {
                assert!(body.flag.load(Ordering::SeqCst), "began too early");
                body.add();
            };
            group.spawn_n(2, "two", body).unwrap();
            effects.flag.store(true, Ordering::SeqCst);
            group.release();
            assert!(group.wait().is_clean());
            assert_eq!(effects.count(), 2);
        },
        500,
    );
}

#[test]
fn a_group_cancelled_before_its_release_never_begins() {
    check_random(
        || {
            let (manager, effects) = (ThreadManager::new(), Arc::new(Effects::default()));
            let group = manager.held_group("held");
            let other = Arc::clone(&effects);
            group.spawn("never", move |_| other.add()).unwrap();
            group.cancel();
            assert!(matches!(group.spawn("late", |_| ()), Err(SpawnError::Cancelled)));
            group.release();
            assert!(group.wait().is_clean());
            assert_eq!(effects.count(), 0);
        },
        200,
    );
}

#[test]
fn a_suspended_group_stops_until_it_is_resumed() {
    check_random(
        || {
            let (manager, effects) = (ThreadManager::new(), Arc::new(Effects::default()));
            let group = manager.group("working");
            let body = Arc::clone(&effects);
            let body = move |context: &crate::ThreadContext| {
                while !body.flag.load(Ordering::SeqCst) && context.checkpoint().is_ok() {
                    body.add();
                    thread::yield_now();
                }
            };
            group.spawn_n(2, "worker", body).unwrap();
            group.suspend();
            assert!(group.until_suspended(DAY));
            let late = Arc::clone(&effects);
            group.spawn("newcomer", move |_| late.add()).unwrap();
            let before = effects.count();
            thread::yield_now();
            assert_eq!(effects.count(), before, "one went on");
            effects.flag.store(true, Ordering::SeqCst);
            group.resume();
            assert!(group.wait().is_clean());
            assert!(effects.count() > before, "the thread spawned while suspended ran after all");
        },
        500,
    );
}

#[test]
fn a_manager_suspends_resumes_and_cancels_all_groups() {
    check_random(
        || {
            let (manager, effects) = (ThreadManager::new(), Arc::new(Effects::default()));
            let early = manager.group("made before");
            manager.suspend_all();
            let late = manager.group("made while suspended");
            for group in [&early, &late] {
                let effects = Arc::clone(&effects);
                group.spawn("one", move |_| effects.add()).unwrap();
            }
            assert!(manager.until_suspended(DAY));
            assert_eq!(effects.count(), 0);
            manager.resume_all();
            assert!(manager.wait().is_clean());
            assert_eq!(effects.count(), 2);
            manager.cancel_all();
            assert!(matches!(early.spawn("no more", |_| ()), Err(SpawnError::Cancelled)));
            let other = Arc::clone(&effects);
            assert!(manager.spawn("another group", move |_| other.add()).unwrap().wait().is_clean());
            assert_eq!(effects.count(), 3);
        },
        500,
    );
}

#[test]
fn cancelling_ends_suspended_and_pausing_threads() {
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
fn a_timed_out_wait_names_the_running_threads() {
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
fn a_thread_that_ends_before_its_handle_is_stored_is_joined() {
    check_random(
        || {
            let (manager, effects) = (ThreadManager::new(), Arc::new(Effects::default()));
            let group = manager.group("quick");
            let waiting = group.clone();
            let waiting = thread::spawn(move || assert!(waiting.wait().is_clean()));
            let other = Arc::clone(&effects);
            group.spawn("one", move |_| other.add()).unwrap();
            waiting.join().unwrap();
            assert!(group.wait().is_clean());
            assert_eq!((effects.count(), group.running()), (1, 0));
        },
        500,
    );
}

#[test]
fn several_threads_and_a_member_may_wait_for_a_group() {
    check_random(
        || {
            let (manager, effects) = (Arc::new(ThreadManager::new()), Arc::new(Effects::default()));
            let group = manager.group("all");
            let other = Arc::clone(&effects);
            group.spawn("worker", move |_| other.add()).unwrap();
            let (own, other) = (group.clone(), Arc::clone(&effects));
            group
                .spawn("inside", move |_| {
                    assert!(own.wait().is_clean());
                    assert_eq!(other.count(), 1);
                })
                .unwrap();
            let (outside, other) = (group.clone(), Arc::clone(&effects));
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
fn dropping_a_manager_ends_its_threads() {
    check_random(
        || {
            let (manager, effects) = (ThreadManager::new(), Arc::new(Effects::default()));
            let other = Arc::clone(&effects);
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
            assert_eq!((group.running(), effects.count() % 2), (0, 0), "every thread that began has ended");
            assert!(matches!(group.spawn("late", |_| ()), Err(SpawnError::Cancelled)));
        },
        300,
    );
}
