//! Readiness, state, and the orderly end.

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use spandrel::Orb;
use spandrel::services::cos_naming::{NameComponent, NamingContextExt};
use spandrel_test_support::{check_output_errors, retry_interrupted};

use crate::running::{Running, command};

pub(crate) const ANY_PORT: [&str; 2] = ["--listen", "iiop://127.0.0.1:0"];

pub(crate) fn name(id: &str) -> [NameComponent; 1] {
    [NameComponent { id: id.to_owned(), kind: String::new() }]
}

pub(crate) fn root(orb: &Orb, url: &str) -> NamingContextExt {
    NamingContextExt::unchecked_narrow(&orb.string_to_object(url).unwrap())
}

#[test]
fn state_survives_an_orderly_end() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let orb = Orb::builder().build().unwrap();
    let mut first = Running::start(&data, &ANY_PORT);
    root(&orb, &first.url).bind_new_context(&name("bank")).unwrap();
    first.signal("-TERM");
    assert_eq!(first.process.wait().unwrap().code(), Some(0), "{}", first.errors());
    let second = Running::start(&data, &ANY_PORT);
    assert!(root(&orb, &second.url).resolve_str("bank").is_ok());
}

#[test]
fn a_signal_at_the_instant_of_readiness_ends_it_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let mut running = Running::start(&folder.path().join("data"), &ANY_PORT);
        running.signal("-TERM");
        assert_eq!(running.process.wait().unwrap().code(), Some(0), "{}", running.errors());
    }
}

#[test]
fn systemd_is_told_when_services_are_ready_and_when_they_stop() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("notify");
    let notified = UnixDatagram::bind(&socket).unwrap();
    notified.set_read_timeout(Some(spandrel_test_support::TEST_TIMEOUT)).unwrap();
    let mut text = [0; 200];
    let mut next = || {
        let octets = retry_interrupted(|| notified.recv(&mut text)).unwrap();
        String::from_utf8_lossy(&text[..octets]).trim().to_owned()
    };
    let data = folder.path().join("data");
    let mut running = Running::with(command(&data).args(ANY_PORT).env("NOTIFY_SOCKET", &socket), &data);
    assert_eq!(next(), "READY=1");
    running.signal("-INT");
    assert_eq!(next(), "STOPPING=1");
    assert_eq!(running.process.wait().unwrap().code(), Some(0));
}

#[test]
fn exposed_endpoints_are_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, "[[rule]]\naction = \"allow\"\n").unwrap();
    let policy = policy.to_str().unwrap();
    for (words, has_warnings) in [
        (&["--listen", "iiop://*:0"][..], (true, true)),
        (&["--listen", "iiop://*:0", "--policy", policy], (false, true)),
        (&["--orb", "-ORBListenEndpoints iiop://127.0.0.1:0;iiop://0.0.0.0:0"], (true, true)),
        (&["--listen", "iiop://:0/publish=localhost"], (true, true)),
        (&["--listen", "iiop://localhost:0"], (false, false)),
        (&["--listen", "iiop://:0"], (false, false)),
        (&["--listen", "iiop://127.0.0.1:0"], (false, false)),
    ] {
        let errors = Running::start(&data, words).errors();
        assert_eq!(
            (errors.contains("has no policy"), errors.contains("has no TLS")),
            has_warnings,
            "{words:?}: {errors}"
        );
    }
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    for words in [["--help"], ["--version"]] {
        check_output_errors(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-up"));
            command.args(words);
            command
        });
    }
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(&folder.path().join("data"), &ANY_PORT);
    spandrel_test_support::threads::check_daemon(running.process.id());
}
