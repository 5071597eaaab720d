//! The count of held locks, in builds that count them.
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
fn a_claimed_lock_does_not_count_as_held() {
    let mutex = Mutex::new(0);
    let claimed = mutex.lock_claimed();
    assert_eq!(held::count(), 0);
    drop(claimed);
    held::enable_checks();
    held::assert_none("a test");
}

/// The aborted process is another one.
#[test]
fn a_lock_held_at_an_assertion_aborts_the_process() {
    const ABORT_ROLE: &str = "SPANDREL_HELD_ENDS";
    if std::env::var_os(ABORT_ROLE).is_some() {
        held::enable_checks();
        let mutex = Mutex::new(0);
        let _guard = mutex.lock();
        held::assert_none("the callee");
        std::process::exit(0);
    }
    let name = "held::a_lock_held_at_an_assertion_aborts_the_process";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ABORT_ROLE, "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("the callee is called while locks are held"), "{stderr}");
    assert!(stderr.contains("held.rs:"), "{stderr}");
}
