//! Models of the locks that this crate implements itself, and of components that are generic over them.

use std::cell::Cell;
use std::time::Duration;

use shuttle::{check_dfs, check_random};

use crate::atomic::{AtomicBool, Ordering};
use crate::{AdaptiveMutex, Arc, Guarded, Lock, Monitor, Mutex, RecursiveMutex, RwLock, thread};

/// Two threads add to a counter, in two steps between which a third thread could come in.
fn check_exclusion<L: Lock>()
where
    L::Of<u32>: Send + Sync,
{
    check_random(
        || {
            let count = Arc::new(Guarded::<u32, L>::new(0));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let count = Arc::clone(&count);
                    thread::spawn(move || {
                        for _ in 0..2 {
                            let mut guard = count.lock();
                            let read = *guard;
                            thread::yield_now();
                            *guard = read + 1;
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(*count.read(), 4);
        },
        500,
    );
}

#[test]
fn every_strategy_for_many_threads_excludes() {
    check_exclusion::<Mutex>();
    check_exclusion::<AdaptiveMutex>();
    check_exclusion::<RwLock>();
}

/// A value passes from one thread to another.
fn check_monitor<L: Monitor>()
where
    L::Of<Option<u32>>: Send + Sync,
    L::Condition: Send + Sync,
{
    check_dfs(
        || {
            let place = Arc::new((Guarded::<Option<u32>, L>::new(None), L::Condition::default()));
            let giver = Arc::clone(&place);
            let thread = thread::spawn(move || {
                *giver.0.lock() = Some(7_u32);
                L::notify_one(&giver.1);
            });
            let mut value = place.0.lock();
            L::wait_while(&place.1, &mut value, |value| value.is_none()).unwrap();
            assert_eq!(value.take(), Some(7));
            drop(value);
            thread.join().unwrap();
        },
        Some(5_000),
    );
}

#[test]
fn every_monitor_for_many_threads_notifies() {
    check_monitor::<Mutex>();
    check_monitor::<AdaptiveMutex>();
}

#[test]
fn an_adaptive_lock_is_taken_by_spinning_or_after_sleeping() {
    // Spinning must neither be the only way to the lock (the holder may take longer) nor miss the unlock.
    check_dfs(
        || {
            let lock = Arc::new(AdaptiveMutex::new(0));
            let other = Arc::clone(&lock);
            let thread = thread::spawn(move || *other.lock() += 1);
            *lock.lock() += 1;
            thread.join().unwrap();
            assert_eq!(*lock.lock(), 2);
        },
        Some(20_000),
    );
}

#[test]
fn a_timed_lock_of_a_held_adaptive_mutex_times_out() {
    check_random(
        || {
            let lock = AdaptiveMutex::new(());
            let _taken = lock.lock();
            assert!(lock.try_lock().is_none());
            assert!(lock.try_lock_for(Duration::from_secs(1)).is_none());
        },
        50,
    );
}

#[test]
fn a_recursive_mutex_is_left_when_its_last_guard_is_dropped() {
    check_random(
        || {
            let lock = Arc::new((RecursiveMutex::new(Cell::new(0)), AtomicBool::new(false)));
            let other = Arc::clone(&lock);
            let thread = thread::spawn(move || {
                let value = other.0.lock();
                assert!(other.1.load(Ordering::SeqCst) || value.get() == 0, "seen before the last guard was dropped");
                value.set(value.get() + 10);
            });
            let outer = lock.0.lock();
            let inner = lock.0.try_lock().expect("the holder may lock again");
            inner.set(inner.get() + 1);
            drop(inner);
            thread::yield_now();
            outer.set(outer.get() + 1);
            lock.1.store(true, Ordering::SeqCst);
            drop(outer);
            thread.join().unwrap();
            assert_eq!(lock.0.lock().get(), 12);
        },
        500,
    );
}

#[test]
fn another_thread_does_not_lock_a_held_recursive_mutex() {
    check_random(
        || {
            let lock = Arc::new(RecursiveMutex::new(()));
            let held = lock.lock();
            let other = Arc::clone(&lock);
            let thread = thread::spawn(move || {
                assert!(other.try_lock().is_none());
                assert!(other.try_lock_for(Duration::from_secs(1)).is_none());
            });
            thread.join().unwrap();
            drop(held);
        },
        100,
    );
}
