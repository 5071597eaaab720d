//! Starting on demand, and forwarding.

use spandrel::services::implementation_repository::{ActivationMode, ServerObject, ServerState};
use spandrel::{ObjectRef, SystemExceptionKind};

use crate::fixture::{Fixture, call_after_kill, kill, quick_limits};

#[test]
fn a_call_starts_the_server_once_and_later_calls_go_to_it() {
    let fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Normal);
    assert_eq!(fixture.find("bank").state, ServerState::Stopped);
    let object = fixture.object("bank");
    object.ping().unwrap();
    assert!(object.as_object().is_forwarded());
    // Also without the activator.
    fixture.repository().enable_server("bank", false).unwrap();
    object.ping().unwrap();
    assert_eq!(fixture.starts().len(), 1);
    let found = fixture.find("bank");
    assert_eq!((found.starts, found.state, found.pid), (1, ServerState::Running, fixture.starts()[0].1));
}

#[test]
fn clients_at_the_same_time_start_one_server() {
    let fixture = Fixture::new("slow", quick_limits());
    fixture.register("bank", ActivationMode::Normal);
    let clients: Vec<_> = (0..16)
        .map(|_| {
            let object = fixture.object("bank");
            std::thread::spawn(move || object.ping())
        })
        .collect();
    // All wait, and hold no thread of the activator meanwhile.
    spandrel_test_support::wait_until("waiting requests", || fixture.find("bank").waiting == 16);
    std::fs::write(fixture.folder.path().join("go"), "").unwrap();
    for client in clients {
        client.join().unwrap().unwrap();
    }
    assert_eq!(fixture.starts().len(), 1);
}

/// The persistent reference that the server has written.
fn persistent(fixture: &Fixture) -> ServerObject {
    let text = std::fs::read_to_string(fixture.folder.path().join("reference")).unwrap();
    let object: ObjectRef = fixture.client.string_to_object(&text).unwrap();
    object.unchecked_narrow()
}

#[test]
fn a_persistent_reference_survives_the_end_of_its_server() {
    let fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Normal);
    fixture.object("bank").ping().unwrap();
    let object = persistent(&fixture);
    object.ping().unwrap();
    assert!(object.as_object().is_a("IDL:spandrel/ImplementationRepository/ServerObject:1.0").unwrap());
    for round in 2..4 {
        let (_, pid) = *fixture.starts().last().unwrap();
        // The client comes back to the activator, and is forwarded to the next process.
        call_after_kill(pid, &object);
        assert_eq!(fixture.starts().len(), round);
    }
}

#[test]
fn a_server_in_mode_manual_is_not_started_by_clients() {
    let fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::Manual);
    let refused = fixture.object("bank").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient, "{refused}");
    assert_eq!(fixture.starts().len(), 0);
    fixture.repository().activate_server("bank").unwrap();
    fixture.wait_for("bank", ServerState::Running);
    fixture.object("bank").ping().unwrap();
    assert_eq!(fixture.starts().len(), 1);
}

#[test]
fn a_server_in_mode_auto_start_is_started_with_the_activator() {
    let mut fixture = Fixture::new("normal", quick_limits());
    fixture.register("bank", ActivationMode::AutoStart);
    assert_eq!(fixture.starts().len(), 0);
    fixture.activator.take().unwrap().stop().unwrap();
    let folder = std::sync::Arc::clone(&fixture.folder);
    drop(fixture);
    let second = Fixture::open(folder, quick_limits());
    second.wait_for("bank", ServerState::Running);
    assert_eq!(second.starts().len(), 1);
}

#[test]
fn an_unknown_server_does_not_exist() {
    let fixture = Fixture::new("normal", quick_limits());
    let refused = fixture.object("unknown").ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::ObjectNotExist, "{refused}");
}

/// The naming service as a started server, called by omniORB's client.
#[test]
fn a_client_of_omniorb_starts_a_server_and_comes_back_after_its_end() {
    use std::process::Command;
    if Command::new("nameclt").output().is_err() {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "nameclt is absent (package omniorb)");
        eprintln!("absent: nameclt (package omniorb)");
        return;
    }
    let fixture = Fixture::new("naming", quick_limits());
    fixture.register("names", ActivationMode::Normal);
    let (host, port) = fixture.orb.listen().unwrap().remove(0);
    let run = |words: &[&str]| {
        let init = format!("NameService=corbaloc::{host}:{port}/ImplRepoService/names/NameService");
        let output = Command::new("nameclt").args(["-ORBInitRef", &init]).args(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {text}");
        text
    };
    run(&["bind_new_context", "bank"]);
    assert_eq!(fixture.starts().len(), 1);
    kill(fixture.starts()[0].1);
    assert!(run(&["list"]).contains("bank"));
    assert_eq!(fixture.starts().len(), 2);
}

/// A client of omniORB that keeps its reference, and is connected to the server when that is killed.
#[test]
fn a_connected_client_of_omniorb_falls_back_to_the_activator() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(program) = spandrel_test_support::omniorb_peer("activated", target) else { return };
    let fixture = Fixture::new("naming", quick_limits());
    fixture.register("names", ActivationMode::Normal);
    let (host, port) = fixture.orb.listen().unwrap().remove(0);
    let init = format!("NameService=corbaloc::{host}:{port}/ImplRepoService/names/NameService");
    let mut command = Command::new(program);
    command.args(["-ORBInitRef", &init]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = spandrel_test_support::ChildProcess::start(&mut command);
    let (mut input, mut output) = (client.stdin.take().unwrap(), BufReader::new(client.stdout.take().unwrap()));
    let mut line = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(line(), "ok bind\n");
    for kills in 1..=2 {
        let starts = fixture.starts();
        assert_eq!(starts.len(), kills);
        kill(starts[kills - 1].1);
        writeln!(input, "killed").unwrap();
        assert_eq!(line(), format!("ok resolve/{kills}\n"));
    }
    assert_eq!(fixture.starts().len(), 3);
    drop(input);
    assert!(client.wait().unwrap().success());
}
