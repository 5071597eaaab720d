//! Hostile input to the activator.

use spandrel::services::activation;
use spandrel::services::implementation_repository::administration::{ServerIsRunningError, ServerIsShuttingDownError};
use spandrel::services::implementation_repository::{ActivationMode, ServerObject, ServerState};
use spandrel::types::IiopProfile;
use spandrel::{ObjectRef, SystemExceptionKind};
use spandrel_activator::Limits;

use crate::fixture::{Fixture, quick_limits};

/// An object of the activator with this key.
fn with_key(fixture: &Fixture, key: &[u8]) -> ServerObject {
    let repository = fixture.client.resolve_initial_references("ImplRepoService").unwrap();
    fixture.client.reference(activation::with_key(repository.ior(), "", key)).unchecked_narrow()
}

#[test]
fn keys_that_name_no_server_do_not_exist() {
    let fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Normal);
    let long = [&b"ImplRepoService/"[..], &[b'a'; 100_000], b"/x"].concat();
    let keys: [&[u8]; 11] = [
        b"ImplRepoService/",
        b"ImplRepoService//",
        b"ImplRepoService/bank",
        b"ImplRepoService/../bank/x",
        b"ImplRepoService/bank\0/x",
        b"ImplRepoService/\xff\xfe/x",
        b"ImplRepoService/%62ank/x",
        b"ImplRepoServicebank/x",
        b"ImplRepoService/-rf/x",
        b"x",
        &long,
    ];
    for key in keys {
        let refused = with_key(&fixture, key).ping().unwrap_err();
        assert_eq!(refused.kind(), SystemExceptionKind::ObjectNotExist, "{}: {refused}", key.escape_ascii());
    }
    assert_eq!(fixture.starts().len(), 0);
    // An unknown object of a known server does not exist there.
    let refused = with_key(&fixture, b"ImplRepoService/bank/\xff\0x").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::ObjectNotExist, "{refused}");
}

#[test]
fn a_stranger_cannot_take_the_place_of_a_running_server() {
    let fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Normal);
    let object = fixture.object("bank");
    object.ping().unwrap();
    let pid = fixture.find("bank").pid;
    for token in ["", "guess", &"0".repeat(32)] {
        let refused = fixture.repository().server_is_running("bank", token, Some(&object));
        assert!(matches!(refused, Err(ServerIsRunningError::AlreadyRunning(_))), "{refused:?}");
        let refused = fixture.repository().server_is_shutting_down("bank", token);
        match refused {
            Err(ServerIsShuttingDownError::System(refused)) => {
                assert_eq!(refused.kind(), SystemExceptionKind::NoPermission);
            }
            other => panic!("{other:?}"),
        }
    }
    // The server object of a server refuses a shutdown without its token.
    object.shutdown("guess").unwrap();
    object.ping().unwrap();
    assert_eq!((fixture.find("bank").state, fixture.find("bank").pid), (ServerState::Running, pid));
}

/// Only the process that the activator starts is the server.
#[test]
fn a_stranger_cannot_take_the_place_of_a_server_that_does_not_run() {
    let fixture = Fixture::new("normal", quick_limits());
    let stranger: ServerObject =
        fixture.client.string_to_object("corbaloc::127.0.0.1:9/evil").unwrap().unchecked_narrow();
    fixture.register("bank", ActivationMode::Normal);
    for token in ["", "guess"] {
        let refused = fixture.repository().server_is_running("bank", token, Some(&stranger));
        assert!(matches!(refused, Err(ServerIsRunningError::CannotComplete(_))), "{refused:?}");
    }
    assert_eq!(fixture.find("bank").state, ServerState::Stopped);
    fixture.object("bank").ping().unwrap();
}

#[test]
fn references_without_an_address_or_beyond_the_limit_are_refused() {
    let fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Manual);
    let repository = fixture.repository();
    let refuse = |object: Option<&ServerObject>| {
        let refused = repository.server_is_running("bank", "", object);
        assert!(matches!(refused, Err(ServerIsRunningError::CannotComplete(_))), "{refused:?}");
    };
    refuse(None);
    let profile = IiopProfile {
        version: spandrel::cdr::GiopVersion::V1_2,
        host: "h".repeat(20_000),
        port: 1,
        object_key: b"key".to_vec(),
        components: Vec::new(),
    };
    let ior = spandrel::types::Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] };
    let large: ObjectRef = fixture.client.reference(ior);
    refuse(Some(&large.unchecked_narrow()));
    assert_eq!(fixture.find("bank").state, ServerState::Stopped);
}

#[test]
fn a_process_that_the_activator_has_not_started_does_not_become_a_server_that_it_starts() {
    let fixture = Fixture::new("crash", Limits { start_limit: 1, ..quick_limits() });
    let repository = fixture.repository();
    let stranger = fixture.client.string_to_object("corbaloc::127.0.0.1:1/stranger").unwrap().unchecked_narrow();
    let refuse = |server: &str, state: ServerState| {
        for (token, reason) in [("", "its process has a token"), ("0123", "not that of a running process")] {
            let refused = repository.server_is_running(server, token, Some(&stranger));
            let Err(ServerIsRunningError::CannotComplete(refused)) = refused else { panic!("{state:?}: {refused:?}") };
            assert!(refused.reason.contains(reason), "{state:?}, {token:?}: {}", refused.reason);
            assert_eq!(fixture.find(server).state, state, "{token:?}");
        }
    };
    fixture.register("bank", ActivationMode::Normal);
    refuse("bank", ServerState::Stopped);
    assert_eq!(fixture.object("bank").ping().unwrap_err().kind(), SystemExceptionKind::Transient);
    fixture.wait_for("bank", ServerState::Failed);
    refuse("bank", ServerState::Failed);
}
