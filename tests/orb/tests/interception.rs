//! Portable interceptors, traces and metrics.

mod certificates;

mod authorization;
mod client_interceptors;
mod interceptor_contexts;
mod interceptor_outcomes;
mod ior_interceptors;
mod metrics;
mod metrics_endpoint;
mod real_time;
mod real_time_policies;
mod real_time_servers;
mod server_interceptors;
mod statistics;
mod trace_context;
mod tracing;
mod upcall_order;

use spandrel_orb_tests::SERVERS;
use spandrel_test_support::run_modules_with;

// The tests of these modules run again with other servers; `spandrel_orb_tests::configured_servers` has the
// values.

#[test]
fn pooled() {
    run_modules_with(
        &["authorization", "interceptor_contexts", "interceptor_outcomes", "server_interceptors", "upcall_order"],
        SERVERS,
        "pooled",
    );
}

#[test]
fn queued() {
    run_modules_with(&["authorization", "interceptor_contexts", "server_interceptors"], SERVERS, "queued");
}

#[test]
#[cfg(unix)]
fn over_uds() {
    run_modules_with(&["interceptor_contexts", "server_interceptors"], SERVERS, "over_uds");
}

#[test]
#[cfg(target_os = "linux")]
fn over_shm() {
    run_modules_with(&["interceptor_contexts", "server_interceptors"], SERVERS, "over_shm");
}
