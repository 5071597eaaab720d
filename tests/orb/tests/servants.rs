//! Servants, adapters and the threads that serve them.

mod allocations;
mod asynchronous_replies;
mod asynchronous_servants;
mod bounded_waiting;
mod call_nesting;
mod concurrency;
mod demux;
mod dynamic_servants;
mod fairness;
mod long_waits;
mod pipelining;
mod poa;
mod service_modes;
mod threads;

use spandrel_orb_tests::SERVERS;
use spandrel_test_support::run_modules_with;

// The tests of these modules run again with other servers; `spandrel_orb_tests::configured_servers` has the
// values.

#[test]
fn pooled() {
    run_modules_with(&["pipelining", "poa", "threads"], SERVERS, "pooled");
}

#[test]
fn queued() {
    run_modules_with(&["poa", "threads"], SERVERS, "queued");
}

#[test]
#[cfg(unix)]
fn over_uds() {
    run_modules_with(&["threads", "bounded_waiting"], SERVERS, "over_uds");
}

#[test]
#[cfg(target_os = "linux")]
fn over_shm() {
    run_modules_with(&["threads", "bounded_waiting"], SERVERS, "over_shm");
}

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts the allocations of tests that run alone.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
