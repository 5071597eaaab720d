//! Resource limits of started servers.

use std::time::Duration;

use spandrel::SystemExceptionKind;
use spandrel::services::implementation_repository::{ActivationMode, ServerState};
use spandrel_activator::Limits;

use crate::fixture::{Fixture, quick_limits};

#[cfg(target_os = "linux")]
#[test]
fn processes_have_the_limits_of_their_command() {
    let fixture = Fixture::with_commands(quick_limits(), |folder| {
        format!(
            "[commands.bank]\n{}[commands.bank.limits]\ncpu_seconds = 77\nmemory = 8589934592\ndescriptors = 99\n",
            crate::server::command(folder, "normal")
        )
    });
    fixture.register("bank", ActivationMode::Normal);
    fixture.object("bank").ping().unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", fixture.find("bank").pid)).unwrap();
    for (name, value) in [("Max cpu time", "77"), ("Max address space", "8589934592"), ("Max open files", "99")] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let words: Vec<&str> = line[name.len()..].split_whitespace().collect();
        assert_eq!(words[..2], [value, value], "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_exceeds_its_processor_time_is_ended() {
    let fixture = Fixture::with_commands(quick_limits(), |_| {
        "[commands.bank]\nprogram = '/bin/sh'\narguments = ['-c', 'while :; do :; done']\n\
         [commands.bank.limits]\ncpu_seconds = 1\n"
            .to_owned()
    });
    let options = spandrel::services::implementation_repository::StartupOptions {
        command: "bank".into(),
        start_limit: 1,
        ..Default::default()
    };
    fixture.repository().register_server("bank", &options).unwrap();
    let refused = fixture.object("bank").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
    let failure = fixture.find("bank").last_failure;
    assert!(failure.contains("signal: 9") || failure.contains("signal: 24"), "{failure}");
}

#[test]
fn a_command_has_no_more_instances_than_its_limit() {
    let fixture = Fixture::with_commands(quick_limits(), |folder| {
        format!("[commands.bank]\n{}[commands.bank.limits]\ninstances = 1\n", crate::server::command(folder, "normal"))
    });
    fixture.register("first", ActivationMode::Normal);
    let options = spandrel::services::implementation_repository::StartupOptions {
        command: "bank".into(),
        start_timeout: 300,
        ..Default::default()
    };
    fixture.repository().register_server("second", &options).unwrap();
    fixture.register("third", ActivationMode::Normal);
    fixture.object("first").ping().unwrap();
    let refused = fixture.object("second").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
    fixture.repository().enable_server("second", false).unwrap();
    fixture.repository().shutdown_server("first", false).unwrap();
    fixture.wait_for("first", ServerState::Stopped);
    // This one has more time for its start.
    fixture.object("third").ping().unwrap();
    assert_eq!(fixture.starts().len(), 2);
}

#[test]
fn a_bounded_number_of_requests_waits() {
    let limits = Limits { max_waiting_per_server: 2, start_timeout: Duration::from_secs(60), ..quick_limits() };
    let fixture = Fixture::new("slow", limits);
    fixture.register("bank", ActivationMode::Normal);
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let object = fixture.object("bank");
            std::thread::spawn(move || object.ping())
        })
        .collect();
    spandrel_test_support::wait_until("waiting requests", || fixture.find("bank").waiting == 2);
    let refused = fixture.object("bank").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
    std::fs::write(fixture.folder.path().join("go"), "").unwrap();
    for client in clients {
        client.join().unwrap().unwrap();
    }
}
