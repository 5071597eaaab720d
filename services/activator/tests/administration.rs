//! Registrations, and the administrative end of servers.

use spandrel::SystemExceptionKind;
use spandrel::services::implementation_repository::administration::{RegisterServerError, RemoveServerError};
use spandrel::services::implementation_repository::{ActivationMode, ServerState, StartupOptions};

use crate::fixture::{Fixture, quick_limits};

#[test]
fn a_registration_names_only_a_configured_command() {
    let fixture = Fixture::new("normal", quick_limits());
    for command in ["/bin/true", "../bank", "", "bank\0x"] {
        let options = StartupOptions { command: command.into(), ..StartupOptions::default() };
        match fixture.repository().register_server("other", &options) {
            Err(RegisterServerError::CannotComplete(cannot)) => {
                let reason = if command.is_empty() { "needs a command" } else { "not in the configuration" };
                assert!(cannot.reason.contains(reason), "{}", cannot.reason);
            }
            Err(RegisterServerError::System(exception)) if command.contains('\0') => {
                assert_ne!(exception.kind(), SystemExceptionKind::Unknown, "{exception}"); // no text of IDL
            }
            other => panic!("{command:?}: {other:?}"),
        }
    }
    for name in ["", "a/b", "..", "-a", &"a".repeat(65), "a b"] {
        let options = StartupOptions { command: "bank".into(), ..StartupOptions::default() };
        let refused = fixture.repository().register_server(name, &options);
        assert!(matches!(refused, Err(RegisterServerError::CannotComplete(_))), "{name:?}: {refused:?}");
    }
    assert_eq!(fixture.repository().list().unwrap(), []);
}

#[test]
fn administrative_data_survives_a_restart() {
    let mut fixture = Fixture::new("normal", quick_limits());
    let options = StartupOptions {
        command: "bank".into(),
        activation: ActivationMode::Manual,
        start_limit: 3,
        start_timeout: 1_000,
        owner: "Grace".into(),
        permissions: "operators may stop it".into(),
        description: "Accounts".into(),
    };
    fixture.repository().register_server("bank", &options).unwrap();
    fixture.repository().enable_server("bank", false).unwrap();
    let again = fixture.repository().register_server("bank", &options);
    assert!(matches!(again, Err(RegisterServerError::AlreadyRegistered(_))), "{again:?}");
    fixture.activator.take().unwrap().stop().unwrap();
    let folder = std::sync::Arc::clone(&fixture.folder);
    drop(fixture);
    let second = Fixture::open(folder, quick_limits());
    let found = second.find("bank");
    assert_eq!((found.startup, found.enabled), (options, false));
    second.repository().remove_server("bank").unwrap();
    assert_eq!(second.repository().list().unwrap(), []);
}

#[test]
fn a_disabled_server_is_not_forwarded_to() {
    let fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Normal);
    fixture.object("bank").ping().unwrap();
    fixture.repository().enable_server("bank", false).unwrap();
    let client = fixture.object("bank");
    assert_eq!(client.ping().unwrap_err().kind(), SystemExceptionKind::Transient);
    fixture.repository().enable_server("bank", true).unwrap();
    client.ping().unwrap();
    assert_eq!(fixture.starts().len(), 1);
}

#[test]
fn a_stopped_server_is_started_by_the_next_call_alone() {
    for drains in [false, true] {
        let fixture = Fixture::new("normal", quick_limits());
        fixture.register("bank", ActivationMode::Normal);
        let object = fixture.object("bank");
        object.ping().unwrap();
        let refused = fixture.repository().remove_server("bank");
        assert!(matches!(refused, Err(RemoveServerError::CannotComplete(_))), "{refused:?}");
        fixture.repository().shutdown_server("bank", drains).unwrap();
        fixture.wait_for("bank", ServerState::Stopped);
        let found = fixture.find("bank");
        assert_eq!((found.pid, found.failures, found.starts), (0, 0, 1));
        object.ping().unwrap();
        assert_eq!(fixture.starts().len(), 2);
    }
}
