//! Connections and transports: sharing, limits, closing, TLS, datagrams, peers that misbehave.

mod backpressure;
mod bidirectional;
mod bidirectional_faults;
mod busy_connections;
mod callbacks_in_flight;
mod certificates;
mod connection_reuse;
mod connection_sharing;
mod datagrams;
mod flooding_peers;
mod idle_connections;
mod late_replies;
mod leftover_threads;
mod local_address_components;
mod malformed_messages;
mod many_connections;
mod partial_writes;
mod pooled_connections;
mod reply_batching;
mod server_limits;
mod shutdown;
mod shutdown_anywhere;
mod shutdown_peers;
mod slow_upcalls;
mod stale_connections;
mod tls;
mod tls_identity;
mod tls_refusals;
mod tls_renewal;
mod transports;
mod upcall_monitor;
mod warnings;

use spandrel_orb_tests::SERVERS;
use spandrel_test_support::run_modules_with;

// The tests of these modules run again with other servers; `spandrel_orb_tests::configured_servers` has the
// values.

#[test]
fn pooled() {
    run_modules_with(
        &["bidirectional", "connection_reuse", "malformed_messages", "partial_writes", "shutdown"],
        SERVERS,
        "pooled",
    );
}

#[test]
fn queued() {
    run_modules_with(&["connection_reuse", "malformed_messages", "shutdown"], SERVERS, "queued");
}

#[test]
fn reactive() {
    run_modules_with(&["malformed_messages"], SERVERS, "reactive");
}

#[test]
fn fixed() {
    run_modules_with(&["malformed_messages"], SERVERS, "fixed");
}

#[test]
#[cfg(unix)]
fn over_uds() {
    run_modules_with(
        &[
            "connection_reuse",
            "malformed_messages",
            "partial_writes",
            "shutdown",
            "slow_upcalls",
            "local_address_components",
        ],
        SERVERS,
        "over_uds",
    );
}

#[test]
#[cfg(target_os = "linux")]
fn over_shm() {
    run_modules_with(
        &[
            "connection_reuse",
            "malformed_messages",
            "partial_writes",
            "shutdown",
            "slow_upcalls",
            "local_address_components",
        ],
        SERVERS,
        "over_shm",
    );
}

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts the allocations of tests that run alone.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
