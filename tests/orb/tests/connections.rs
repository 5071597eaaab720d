//! Connections and transports: sharing, limits, closing, TLS, datagrams, peers that misbehave.

mod backpressure;
mod bidirectional;
mod bidirectional_faults;
mod certificates;
mod connection_reuse;
mod connection_sharing;
mod datagrams;
mod hostile;
mod idle;
mod limits;
mod many_connections;
mod partial_writes;
mod pooled_connections;
mod schemes;
mod shutdown;
mod shutdown_anywhere;
mod slow;
mod threads_left;
mod tls;
mod tls_identity;
mod tls_refusals;
mod tls_renewal;
mod transports;
mod upcall_monitor;

use spandrel_orb_tests::SERVERS;
use spandrel_test_support::run_modules_with;

// The same tests over servers that work otherwise; `spandrel_orb_tests::arranged` says how.

#[test]
fn pooled() {
    run_modules_with(
        &["bidirectional", "connection_reuse", "hostile", "partial_writes", "shutdown"],
        SERVERS,
        "pooled",
    );
}

#[test]
fn queued() {
    run_modules_with(&["connection_reuse", "hostile", "shutdown"], SERVERS, "queued");
}

#[test]
fn reactive() {
    run_modules_with(&["hostile"], SERVERS, "reactive");
}

#[test]
fn fixed() {
    run_modules_with(&["hostile"], SERVERS, "fixed");
}

#[test]
#[cfg(unix)]
fn over_uds() {
    run_modules_with(
        &["connection_reuse", "hostile", "partial_writes", "shutdown", "slow", "schemes"],
        SERVERS,
        "over_uds",
    );
}

#[test]
#[cfg(target_os = "linux")]
fn over_shm() {
    run_modules_with(
        &["connection_reuse", "hostile", "partial_writes", "shutdown", "slow", "schemes"],
        SERVERS,
        "over_shm",
    );
}

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts for the tests that run alone.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
