//! Models of semaphores and barriers.

use std::time::Duration;

use shuttle::{check_dfs, check_random};

use crate::atomic::{AtomicUsize, Ordering};
use crate::{Arc, Barrier, Semaphore, thread};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_semaphore_admits_no_more_than_its_permits() {
    check_random(
        || {
            let shared = Arc::new((Semaphore::new(2), AtomicUsize::new(0)));
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        let permit = shared.0.acquire();
                        assert!(shared.1.fetch_add(1, Ordering::SeqCst) < 2, "a third was admitted");
                        thread::yield_now();
                        shared.1.fetch_sub(1, Ordering::SeqCst);
                        drop(permit);
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!((shared.0.available(), shared.0.waiting()), (2, 0));
        },
        1_000,
    );
}

#[test]
fn every_posted_permit_lets_one_waiter_go_on() {
    check_dfs(
        || {
            let semaphore = Arc::new(Semaphore::new(0));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let semaphore = Arc::clone(&semaphore);
                    thread::spawn(move || semaphore.acquire().forget())
                })
                .collect();
            semaphore.post(2).unwrap();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(semaphore.available(), 0);
        },
        Some(20_000),
    );
}

#[test]
fn a_timed_out_waiter_takes_no_permit() {
    check_random(
        || {
            let semaphore = Arc::new(Semaphore::new(0));
            let hasty = Arc::clone(&semaphore);
            let hasty = thread::spawn(move || hasty.acquire_for(SECOND).map(crate::Permit::forget).is_some());
            let patient = Arc::clone(&semaphore);
            let patient = thread::spawn(move || patient.acquire().forget());
            semaphore.post(1).unwrap();
            if hasty.join().unwrap() {
                semaphore.post(1).unwrap();
            }
            patient.join().unwrap();
            assert_eq!((semaphore.available(), semaphore.waiting()), (0, 0));
        },
        1_000,
    );
}

#[test]
fn try_acquire_takes_free_permits_only() {
    check_random(
        || {
            let semaphore = Arc::new(Semaphore::new(1));
            let permit = semaphore.try_acquire().expect("one is free");
            assert!(semaphore.try_acquire().is_none());
            assert!(semaphore.try_acquire_owned().is_none());
            assert_eq!(semaphore.available(), 0);
            drop(permit);
            let owned = semaphore.try_acquire_owned().expect("given back");
            owned.forget();
            assert!(semaphore.acquire_for(SECOND).is_none());
            assert_eq!((semaphore.available(), semaphore.waiting(), Arc::strong_count(&semaphore)), (0, 0, 1));
        },
        20,
    );
}

#[test]
fn no_thread_passes_a_barrier_before_all_have_arrived_in_each_round() {
    check_random(
        || {
            let shared = Arc::new((Barrier::new(3), AtomicUsize::new(0), AtomicUsize::new(0)));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        for round in 1..=2 {
                            shared.1.fetch_add(1, Ordering::SeqCst);
                            let leads = shared.0.wait().is_leader();
                            assert!(shared.1.load(Ordering::SeqCst) >= 3 * round, "passed too early");
                            shared.2.fetch_add(usize::from(leads), Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(shared.2.load(Ordering::SeqCst), 2, "one leader in each round");
            assert_eq!(shared.0.waiting(), 0);
        },
        1_000,
    );
}

#[test]
fn a_timed_out_thread_has_not_arrived_at_a_barrier() {
    check_random(
        || {
            let barrier = Arc::new(Barrier::new(2));
            assert_eq!(barrier.wait_for(SECOND), None);
            let other = Arc::clone(&barrier);
            let other = thread::spawn(move || {
                // Waits again until the other thread is there.
                loop {
                    if let Some(passage) = other.wait_for(SECOND) {
                        return passage;
                    }
                }
            });
            let own = barrier.wait();
            assert_ne!(own, other.join().unwrap(), "one leads, the other follows");
            assert_eq!(barrier.waiting(), 0);
        },
        500,
    );
}
