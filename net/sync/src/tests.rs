//! Models of the ways in which the rest of Spandrel uses this crate, run under many interleavings.

use std::cell::Cell;
use std::time::Duration;

use shuttle::{check_dfs, check_random};

use crate::atomic::{AtomicUsize, Ordering};
use crate::time::Instant;
use crate::{Arc, Condition, Mutex, RwLock, thread};

mod locks;
mod primitives;
mod threads;
mod token;

#[test]
fn a_notification_between_the_test_and_the_wait_is_not_lost() {
    // A slot for one value, as between a caller and the thread that reads its reply.
    check_dfs(
        || {
            let place = Arc::new((Mutex::new(None), Condition::new()));
            let reader = Arc::clone(&place);
            let thread = thread::spawn(move || {
                *reader.0.lock() = Some(7);
                reader.1.notify_one();
            });
            let mut value = place.0.lock();
            place.1.wait_while(&mut value, |value| value.is_none());
            assert_eq!(value.take(), Some(7));
            drop(value);
            thread.join().unwrap();
        },
        None,
    );
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_checker_finds_a_notification_that_is_lost() {
    // The mistake that the model above guards against: the value is tested before the lock is taken for the
    // wait.
    check_dfs(
        || {
            let place = Arc::new((Mutex::new(false), Condition::new()));
            let setter = Arc::clone(&place);
            let thread = thread::spawn(move || {
                *setter.0.lock() = true;
                setter.1.notify_one();
            });
            let ready = *place.0.lock();
            if !ready {
                let mut guard = place.0.lock();
                place.1.wait(&mut guard);
            }
            thread.join().unwrap();
        },
        None,
    );
}

#[test]
fn notify_all_wakes_every_waiter() {
    check_random(
        || {
            let gate = Arc::new((Mutex::new(false), Condition::new()));
            let passed = Arc::new(AtomicUsize::new(0));
            let waiters: Vec<_> = (0..3)
                .map(|_| {
                    let (gate, passed) = (Arc::clone(&gate), Arc::clone(&passed));
                    thread::spawn(move || {
                        let mut open = gate.0.lock();
                        gate.1.wait_while(&mut open, |open| !*open);
                        passed.fetch_add(1, Ordering::Relaxed);
                    })
                })
                .collect();
            *gate.0.lock() = true;
            gate.1.notify_all();
            for waiter in waiters {
                waiter.join().unwrap();
            }
            assert_eq!(passed.load(Ordering::Relaxed), 3);
        },
        500,
    );
}

#[test]
fn writers_are_exclusive_and_readers_share() {
    check_random(
        || {
            let lock = Arc::new(RwLock::new((0, 0)));
            let writer = Arc::clone(&lock);
            let thread = thread::spawn(move || {
                let mut pair = writer.write();
                pair.0 += 1;
                thread::yield_now();
                pair.1 += 1;
            });
            let pair = lock.read();
            assert_eq!(pair.0, pair.1, "a half-written pair was seen");
            assert!(lock.try_write().is_none());
            drop(pair);
            thread.join().unwrap();
            assert_eq!(*lock.read(), (1, 1));
        },
        500,
    );
}

#[test]
fn a_timed_wait_ends_without_a_notification() {
    check_random(
        || {
            let (lock, condition) = (Mutex::new(()), Condition::new());
            let limit = Duration::from_secs(60);
            let begin = Instant::now();
            let mut guard = lock.lock();
            while !condition.wait_for(&mut guard, limit).timed_out() {}
            assert_eq!(Instant::now().saturating_duration_since(begin), limit);
        },
        50,
    );
}

#[test]
fn a_timed_lock_of_a_held_mutex_times_out() {
    check_random(
        || {
            let lock = Mutex::new(());
            let limit = Duration::from_secs(60);
            let begin = Instant::now();
            let _taken = lock.lock();
            assert!(lock.try_lock_for(limit).is_none());
            assert_eq!(Instant::now().saturating_duration_since(begin), limit);
        },
        50,
    );
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wait_of_a_day_needs_a_notification() {
    check_random(
        || {
            let (lock, condition) = (Mutex::new(()), Condition::new());
            condition.wait_for(&mut lock.lock(), Duration::from_secs(24 * 60 * 60));
        },
        1,
    );
}

#[test]
fn each_thread_has_its_own_thread_locals() {
    crate::thread_local! {
        static COUNT: Cell<u32> = const { Cell::new(0) };
    }
    check_random(
        || {
            let add = || COUNT.with(|count| count.replace(count.get() + 1));
            let threads: Vec<_> = (0..2).map(|_| thread::spawn(move || (add(), add()))).collect();
            assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>(), [(0, 1); 2]);
        },
        50,
    );
}
