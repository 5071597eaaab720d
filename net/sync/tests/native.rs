//! The native backend, on real threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use spandrel_sync::{Arc, Condition, Mutex, RwLock, thread};

static IN_A_STATIC: Mutex<u32> = Mutex::new(0);

#[test]
fn a_mutex_counts_what_four_threads_add() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| *IN_A_STATIC.lock() += 1));
        }
    });
    assert_eq!(*IN_A_STATIC.lock(), 4_000);
}

#[test]
fn a_timed_wait_times_out() {
    let (mutex, condition) = (Mutex::new(()), Condition::new());
    let limit = Duration::from_millis(20);
    let start = Instant::now();
    let mut guard = mutex.lock();
    while !condition.wait_for(&mut guard, limit).timed_out() {}
    assert!(start.elapsed() >= limit);
}

#[test]
fn a_timed_wait_ends_when_notified() {
    let shared = Arc::new((Mutex::new(false), Condition::new()));
    let other = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        *other.0.lock() = true;
        other.1.notify_all();
    });
    let mut ready = shared.0.lock();
    while !*ready {
        assert!(!shared.1.wait_for(&mut ready, Duration::from_secs(60)).timed_out());
    }
    drop(ready);
    thread.join().unwrap();
}

#[test]
fn a_panic_does_not_poison() {
    let mutex = Mutex::new(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut value = mutex.lock();
        *value = 2;
        panic!("while locked");
    }));
    assert!(panicked.is_err());
    assert_eq!(mutex.try_lock().as_deref(), Some(&2));
}

#[test]
fn try_lock_fails_while_locked() {
    let (mut mutex, mut lock) = (Mutex::new(1), RwLock::new(1));
    let held = mutex.lock();
    assert!(mutex.try_lock().is_none());
    assert_eq!(format!("{mutex:?}"), "Mutex(<locked>)");
    drop(held);
    let held = lock.read();
    assert_eq!(lock.try_read().as_deref(), Some(&1));
    assert!(lock.try_write().is_none());
    drop(held);
    *mutex.get_mut() += 1;
    *lock.get_mut() += 1;
    assert_eq!((mutex.into_inner(), lock.into_inner()), (2, 2));
}
