//! The executable `spandrel-notification`: its lines, names and exit codes.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use spandrel::services::NamingClient;
use spandrel::services::cos_notify_channel_admin::{
    EventChannel, EventChannelFactory, UnsupportedAdminOrUnsupportedQoSError,
};
use spandrel::{Endpoint, Orb, SystemExceptionKind};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_test_support::{ChildProcess, check_output_errors, free_port};

use crate::support::{event, pulled, pulling, supplier};

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-notification"));
    command.env_remove("SPANDREL_LOG");
    command
}

/// Starts the service, and returns it with its address.
fn start(folder: &Path, words: &[&str]) -> (ChildProcess, String) {
    start_at(folder, 0, words)
}

/// As `start`, at a port.
pub(crate) fn start_at(folder: &Path, port: u16, words: &[&str]) -> (ChildProcess, String) {
    let mut command = command();
    command.args(["--listen", &format!("iiop://127.0.0.1:{port}"), "--data"]).arg(folder).args(words);
    let mut child = ChildProcess::start(command.stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let url = line.trim().strip_prefix("ready: NotificationService corbaloc::").expect("the line of readiness");
    (child, url.trim_end_matches("/NotificationService").to_owned())
}

#[test]
fn names_are_published_and_metrics_shown_and_withdrawn_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let names_orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let names = NamingService::start(&names_orb, NamingOptions::new(folder.path())).unwrap();
    let root = format!("NameService={}", names.reference());
    let metrics = format!("127.0.0.1:{}", free_port());
    let orb_option = format!("-ORBInitRef {root}");
    let words =
        ["--publish", "--channel", "plant.channel", "--queue", "3", "--metrics", &metrics, "--orb", &orb_option];
    let (mut child, address) = start(folder.path(), &words);
    let lookup = Orb::init(["-ORBInitRef".to_owned(), root]).unwrap();
    let client = NamingClient::new(&lookup).unwrap();
    let factory: EventChannelFactory = client.resolve("NotifyEventChannelFactory").unwrap();
    assert_eq!(factory.get_all_channels().unwrap().len(), 1);
    let by_key = lookup.string_to_object(&format!("corbaloc::{address}/NotificationService")).unwrap();
    assert!(by_key.narrow::<EventChannelFactory>().is_ok());
    let channel: EventChannel = client.resolve("plant.channel").unwrap();
    let proxy = pulling(&channel);
    let pushes = supplier(&channel);
    for number in 0..5 {
        pushes.push_structured_event(&event(&number.to_string(), 0)).unwrap();
    }
    let text = spandrel_metrics::read(metrics.parse().unwrap()).unwrap();
    for line in [
        "spandrel_notification_channels 1\n",
        "spandrel_notifications_received_total{channel=\"1\"} 5\n",
        "spandrel_notifications_dropped_total{channel=\"1\"} 2\n",
        "spandrel_notification_queue_length{channel=\"1\"} 3\n",
        "spandrel_requests",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(pulled(&proxy), ["2", "3", "4"]);
    let end = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(end.success() && child.wait().unwrap().success());
    assert!(client.resolve::<EventChannel>("plant.channel").is_err());
    assert!(client.resolve::<EventChannelFactory>("NotifyEventChannelFactory").is_err());
    lookup.shutdown().unwrap();
    names.stop().unwrap();
    names_orb.shutdown().unwrap();
}

/// The policy names the adapter: clients pass events, and create and destroy no channels.
#[test]
fn a_policy_bounds_the_operations_of_clients() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    let operations = r#"["_is_a", "get_*", "_get_*", "obtain_*", "connect_*", "*push*", "*pull*"]"#;
    let rule = format!("[[rule]]\naction = \"allow\"\nadapter = \"Notification\"\noperation = {operations}\n");
    std::fs::write(&policy, &rule).unwrap();
    let (_child, address) = start(folder.path(), &["--policy", policy.to_str().unwrap()]);
    let client = Orb::builder().build().unwrap();
    let factory = client.string_to_object(&format!("corbaloc::{address}/NotificationService")).unwrap();
    let factory: EventChannelFactory = factory.narrow().unwrap();
    assert!(factory.get_all_channels().unwrap().is_empty());
    match factory.create_channel(&[], &[]) {
        Err(UnsupportedAdminOrUnsupportedQoSError::System(error)) => {
            assert_eq!(error.kind(), SystemExceptionKind::NoPermission);
        }
        other => panic!("{other:?}"),
    }
    client.shutdown().unwrap();
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let output = command().args(["--persistent", "--data"]).arg(folder.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("--channel"), "{errors}");
    for (option, value) in [("--queue", "0"), ("--memory", "0"), ("--peer-timeout", "0"), ("--max-failures", "0")] {
        let output = command().args([option, value, "--data"]).arg(folder.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains("0 is not in 1.."), "{option}: {errors}");
    }
    check_output_errors(|| {
        let mut command = command();
        command.arg("--help");
        command
    });
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (child, _) = start(folder.path(), &["--metrics", "127.0.0.1:0"]);
    spandrel_test_support::threads::check_daemon(child.id());
}
