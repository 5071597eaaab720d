//! Servants, adapters and the threads that serve them.

mod allocations;
mod asynchronous_servants;
mod concurrency;
mod demux;
mod dynamic_servants;
mod nested;
mod poa;
mod threads;
mod waiting;

use spandrel_orb_tests::SERVERS;
use spandrel_test_support::run_modules_with;

// The same tests over servers that work otherwise; `spandrel_orb_tests::arranged` says how.

#[test]
fn pooled() {
    run_modules_with(&["poa", "threads"], SERVERS, "pooled");
}

#[test]
fn queued() {
    run_modules_with(&["poa", "threads"], SERVERS, "queued");
}

#[test]
#[cfg(unix)]
fn over_uds() {
    run_modules_with(&["threads", "waiting"], SERVERS, "over_uds");
}

#[test]
#[cfg(target_os = "linux")]
fn over_shm() {
    run_modules_with(&["threads", "waiting"], SERVERS, "over_shm");
}

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts for the tests that run alone.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
