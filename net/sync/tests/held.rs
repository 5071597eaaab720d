//! Locks are counted where they are held, in builds that count them.
#![cfg(debug_assertions)]

use spandrel_sync::{AdaptiveMutex, Condition, Mutex, RecursiveMutex, RwLock, held, thread};

#[test]
fn each_lock_counts_as_long_as_it_is_held_and_in_its_thread() {
    let (mutex, adaptive, shared, recursive) =
        (Mutex::new(0), AdaptiveMutex::new(0), RwLock::new(0), RecursiveMutex::new(0));
    assert_eq!(held::count(), 0);
    {
        let _mutex = mutex.lock();
        assert!(mutex.try_lock().is_none());
        let _adaptive = adaptive.try_lock().unwrap();
        let (_first, _second) = (shared.read(), shared.try_read().unwrap());
        let (_outer, _inner) = (recursive.lock(), recursive.lock());
        assert_eq!(held::count(), 6);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(held::count(), 0));
        });
    }
    drop(shared.write());
    assert_eq!(held::count(), 0);
}

#[test]
fn a_lock_is_held_again_after_a_wait_for_a_condition() {
    let (mutex, condition) = (Mutex::new(0), Condition::new());
    let mut guard = mutex.lock();
    condition.wait_for(&mut guard, std::time::Duration::ZERO);
    assert_eq!(held::count(), 1);
    drop(guard);
    assert_eq!(held::count(), 0);
}

#[test]
fn what_is_claimed_otherwise_is_no_lock() {
    let mutex = Mutex::new(0);
    let claimed = mutex.lock_claimed();
    assert_eq!(held::count(), 0);
    drop(claimed);
    held::watch();
    held::assert_none("a test");
}

/// The process that ends is another one.
#[test]
fn a_lock_that_is_held_where_none_may_be_ends_the_process() {
    const ASKED: &str = "SPANDREL_HELD_ENDS";
    if std::env::var_os(ASKED).is_some() {
        held::watch();
        let mutex = Mutex::new(0);
        let _guard = mutex.lock();
        held::assert_none("somebody");
        std::process::exit(0);
    }
    let name = "held::a_lock_that_is_held_where_none_may_be_ends_the_process";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ASKED, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("somebody is called while locks are held"), "{said}");
    assert!(said.contains("held.rs:"), "{said}");
}
