//! Calls of every kind, from the client's side: static, dynamic, asynchronous, collocated; policies, versions, code sets.

mod addressing;
mod ami;
mod asynchronous;
mod asynchronous_faults;
mod bare_orb;
mod batching;
mod calls;
#[cfg(target_os = "linux")]
mod calls_in_flight;
mod cancellation;
mod certificates;
mod code_set_conversion;
mod code_sets;
mod collocation;
mod completion_status;
mod deadlines;
mod dispositions;
mod dynamic;
mod engines;
mod error_reports;
mod exception_texts;
mod facade;
mod forwarding;
mod fragments;
mod initial_references;
mod object_operations;
mod policies;
mod replies;
mod retries;
mod service_contexts;
mod timeouts;
mod versions;
mod waiting_thread;

use spandrel_orb_tests::SERVERS;
use spandrel_test_support::run_modules_with;

// The tests of these modules run again with other servers; `spandrel_orb_tests::configured_servers` has the
// values.

#[test]
fn pooled() {
    run_modules_with(
        &[
            "asynchronous",
            "calls",
            "code_sets",
            "completion_status",
            "service_contexts",
            "dispositions",
            "dynamic",
            "forwarding",
            "fragments",
            "initial_references",
            "policies",
            "replies",
            "timeouts",
            "versions",
        ],
        SERVERS,
        "pooled",
    );
}

#[test]
fn queued() {
    run_modules_with(
        &[
            "asynchronous",
            "calls",
            "code_sets",
            "completion_status",
            "initial_references",
            "policies",
            "replies",
            "timeouts",
        ],
        SERVERS,
        "queued",
    );
}

#[test]
fn reactive() {
    run_modules_with(&["calls", "code_sets", "completion_status"], SERVERS, "reactive");
}

#[test]
fn fixed() {
    run_modules_with(
        &["calls", "code_sets", "completion_status", "service_contexts", "fragments", "versions"],
        SERVERS,
        "fixed",
    );
}

#[test]
#[cfg(unix)]
fn over_uds() {
    run_modules_with(
        &["asynchronous", "calls", "code_sets", "dynamic", "initial_references", "policies", "replies", "timeouts"],
        SERVERS,
        "over_uds",
    );
}

#[test]
#[cfg(target_os = "linux")]
fn over_shm() {
    run_modules_with(
        &["asynchronous", "calls", "code_sets", "dynamic", "initial_references", "policies", "replies", "timeouts"],
        SERVERS,
        "over_shm",
    );
}
