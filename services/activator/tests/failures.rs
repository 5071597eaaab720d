//! Servers that fail, and activators that are killed.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spandrel::SystemExceptionKind;
use spandrel::services::implementation_repository::{ActivationMode, ServerState, StartupOptions};
use spandrel_activator::{Commands, Limits};

use crate::fixture::{Fixture, kill, quick_limits};

#[test]
fn a_server_that_never_registers_gives_transient_in_bounded_time() {
    let fixture = Fixture::new("never ready", quick_limits());
    let options =
        StartupOptions { command: "bank".into(), start_timeout: 300, start_limit: 1, ..StartupOptions::default() };
    fixture.repository().register_server("bank", &options).unwrap();
    let begun = Instant::now();
    let refused = fixture.object("bank").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
    assert!((Duration::from_millis(300)..Duration::from_secs(20)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    // Its process does not remain.
    fixture.wait_for("bank", ServerState::Failed);
    assert_eq!(fixture.find("bank").pid, 0);
    assert_eq!(fixture.find("bank").starts, 1);
}

#[test]
fn a_server_that_crashes_is_started_again_as_often_as_its_limit_allows() {
    let fixture = Fixture::new("crash", Limits { start_limit: 4, ..quick_limits() });
    fixture.register("bank", ActivationMode::Normal);
    let refused = fixture.object("bank").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
    fixture.wait_for("bank", ServerState::Failed);
    let found = fixture.find("bank");
    assert_eq!((found.starts, found.failures), (4, 4));
    assert!(found.last_failure.contains("it ended before it registered"), "{}", found.last_failure);
    assert_eq!(fixture.starts().len(), 4);
    // No further one, until an administrator asks for it.
    assert_eq!(fixture.object("bank").ping().unwrap_err().kind(), SystemExceptionKind::Transient);
    assert_eq!(fixture.starts().len(), 4);
    fixture.repository().activate_server("bank").unwrap();
    spandrel_test_support::wait_until("further starts", || fixture.find("bank").starts == 8);
}

#[test]
fn a_server_that_ends_with_status_0_before_it_has_registered_has_failed() {
    let fixture = Fixture::new("end", Limits { start_limit: 2, ..quick_limits() });
    fixture.register("bank", ActivationMode::Normal);
    fixture.repository().activate_server("bank").unwrap();
    fixture.wait_for("bank", ServerState::Failed);
    let found = fixture.find("bank");
    assert_eq!((found.starts, found.failures), (2, 2));
    assert_eq!(found.last_failure, "it ended before it registered: exit status: 0 (its output is in logs/bank.log)");
}

#[test]
fn a_server_whose_command_was_removed_fails_once() {
    let fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Normal);
    fixture.activator.as_ref().unwrap().set_commands(Commands::default());
    let refused = fixture.object("bank").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
    let found = fixture.find("bank");
    assert_eq!((found.state, found.starts, found.failures), (ServerState::Failed, 0, 1));
    assert_eq!(found.last_failure, "the command `bank` is not configured");
}

/// A time to end by SIGTERM that does not pass in a test: the test ends the process.
const GRACE: Duration = Duration::from_secs(600);

/// Ends the process of the server `bank`, which ignores SIGTERM.
fn end_stubborn(fixture: &Fixture) {
    fixture.repository().enable_server("bank", false).unwrap();
    kill(fixture.find("bank").pid);
}

#[test]
fn a_server_that_is_stopped_while_a_failed_start_is_ended_is_not_started_again() {
    let fixture = Fixture::new("stubborn never ready", Limits { kill_grace: GRACE, ..quick_limits() });
    let options = StartupOptions { command: "bank".into(), start_timeout: 2_000, ..StartupOptions::default() };
    fixture.repository().register_server("bank", &options).unwrap();
    fixture.repository().activate_server("bank").unwrap();
    fixture.wait_for("bank", ServerState::Stopping);
    assert_eq!(fixture.find("bank").last_failure, "it did not register in time");
    fixture.repository().shutdown_server("bank", false).unwrap();
    kill(fixture.find("bank").pid);
    spandrel_test_support::wait_until("the end of the process", || fixture.find("bank").pid == 0);
    let found = fixture.find("bank");
    assert_eq!((found.state, found.starts, found.failures), (ServerState::Stopped, 1, 0));
    // A start is one again.
    fixture.repository().activate_server("bank").unwrap();
    spandrel_test_support::wait_until("another start", || fixture.find("bank").starts == 2);
    end_stubborn(&fixture);
}

#[test]
fn a_start_that_follows_a_failed_one_begins_when_that_has_ended() {
    let limits = Limits { first_backoff: Duration::from_secs(600), ..quick_limits() };
    let limits = Limits { kill_grace: GRACE, longest_backoff: limits.first_backoff, ..limits };
    let fixture = Fixture::new("stubborn never ready", limits);
    let options = StartupOptions { command: "bank".into(), start_timeout: 2_000, ..StartupOptions::default() };
    fixture.repository().register_server("bank", &options).unwrap();
    fixture.repository().activate_server("bank").unwrap();
    fixture.wait_for("bank", ServerState::Stopping);
    fixture.repository().activate_server("bank").unwrap();
    kill(fixture.find("bank").pid);
    spandrel_test_support::wait_until("another start", || fixture.find("bank").starts == 2);
    assert_eq!(fixture.find("bank").failures, 0);
    end_stubborn(&fixture);
}

#[test]
fn a_server_that_is_stopped_before_it_has_registered_cannot_register() {
    let fixture = Fixture::new("stubborn slow", Limits { kill_grace: Duration::from_secs(600), ..quick_limits() });
    fixture.register("bank", ActivationMode::Normal);
    fixture.repository().activate_server("bank").unwrap();
    spandrel_test_support::wait_until("the process", || fixture.starts().len() == 1);
    fixture.repository().shutdown_server("bank", false).unwrap();
    std::fs::write(fixture.folder.path().join("go"), "").unwrap();
    // It ends by itself, because it is refused.
    spandrel_test_support::wait_until("the end of the process", || fixture.find("bank").pid == 0);
    let found = fixture.find("bank");
    assert_eq!((found.state, found.starts, found.failures), (ServerState::Stopped, 1, 0));
}

#[test]
fn the_delay_between_starts_doubles() {
    let first_backoff = Duration::from_millis(100);
    let fixture = Fixture::new("crash", Limits { start_limit: 4, first_backoff, ..quick_limits() });
    fixture.register("bank", ActivationMode::Normal);
    let begun = Instant::now();
    fixture.repository().activate_server("bank").unwrap();
    fixture.wait_for("bank", ServerState::Failed);
    assert!(begun.elapsed() >= first_backoff * (1 + 2 + 4), "{:?}", begun.elapsed());
}

#[test]
fn a_server_that_was_killed_is_started_again_without_a_client() {
    let fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Normal);
    fixture.object("bank").ping().unwrap();
    kill(fixture.starts()[0].1);
    spandrel_test_support::wait_until("another start", || fixture.find("bank").starts == 2);
    fixture.wait_for("bank", ServerState::Running);
    assert_eq!(fixture.find("bank").failures, 1);
}

#[test]
fn a_server_of_mode_manual_that_is_gone_is_found_by_a_ping() {
    // Nothing listens at its address.
    let limits = Limits { verify_interval: Duration::ZERO, ..quick_limits() };
    let fixture = Fixture::new("normal", limits);
    let options = StartupOptions { activation: ActivationMode::Manual, ..StartupOptions::default() };
    fixture.repository().register_server("elsewhere", &options).unwrap();
    let gone = fixture.client.string_to_object("corbaloc::127.0.0.1:1/gone").unwrap().unchecked_narrow();
    fixture.repository().server_is_running("elsewhere", "", Some(&gone)).unwrap();
    assert_eq!(fixture.find("elsewhere").state, ServerState::Running);
    let refused = fixture.object("elsewhere").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
    assert_eq!(fixture.find("elsewhere").state, ServerState::Stopped);
}

#[test]
fn a_process_that_no_longer_accepts_calls_is_replaced() {
    let limits = Limits { verify_interval: Duration::ZERO, ..quick_limits() };
    let fixture = Fixture::new("deaf", limits);
    fixture.register("bank", ActivationMode::Normal);
    let object = fixture.object("bank");
    spandrel_test_support::wait_until("another process", || {
        _ = object.ping(); // each process ends its ORB directly after it has registered
        fixture.find("bank").starts >= 2
    });
    let starts = fixture.starts();
    assert!(!Path::new(&format!("/proc/{}", starts[0].1)).exists());
}

#[test]
fn an_activator_that_is_started_again_adopts_its_servers() {
    let mut fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Normal);
    fixture.object("bank").ping().unwrap();
    fixture.activator.take().unwrap().stop().unwrap();
    let folder = Arc::clone(&fixture.folder);
    drop(fixture);
    let second = Fixture::open(folder, quick_limits());
    let found = second.find("bank");
    assert_eq!((found.state, found.pid, found.starts), (ServerState::Running, second.starts()[0].1, 0));
    second.object("bank").ping().unwrap();
    assert_eq!(second.starts().len(), 1);
    // It is watched as the others are.
    kill(second.starts()[0].1);
    second.object("bank").ping().unwrap();
    assert_eq!(second.starts().len(), 2);
}

#[test]
fn a_server_that_ignores_sigterm_is_killed() {
    let limits = quick_limits();
    let grace = limits.kill_grace;
    let fixture = Fixture::new("stubborn", limits);
    fixture.register("bank", ActivationMode::Manual);
    fixture.repository().activate_server("bank").unwrap();
    fixture.wait_for("bank", ServerState::Running);
    let pid = fixture.find("bank").pid;
    let begun = Instant::now();
    fixture.repository().shutdown_server("bank", false).unwrap();
    spandrel_test_support::wait_until("the end of the process", || fixture.find("bank").pid == 0);
    assert!(begun.elapsed() >= grace, "{:?}", begun.elapsed());
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}
