//! The executable `spandrel-event`: its lines, exit codes, and its end at any instant.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use spandrel::services::NamingClient;
use spandrel::services::cos_event_channel_admin::EventChannel;
use spandrel::services::cos_event_comm::PushConsumerSkeleton;
use spandrel::services::event::event_channel_factory::CreateChannelError;
use spandrel::services::omni_events::EventChannelFactory;
use spandrel::types::Any;
use spandrel::{Endpoint, Orb, Poa, SystemException, SystemExceptionKind};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_test_support::{ChildProcess, check_output_errors, free_port, wait_until};

use crate::support::{Recorder, consumers, long, supplier};

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-event"));
    command.env_remove("SPANDREL_LOG");
    command
}

/// A process that serves the store in this folder, and its address.
struct Process {
    child: ChildProcess,
    address: String,
}

impl Process {
    fn start(folder: &Path, port: u16, words: &[&str]) -> Self {
        let mut command = command();
        command.args(["--listen", &format!("iiop://127.0.0.1:{port}"), "--data"]).arg(folder).args(words);
        let mut child = ChildProcess::start(command.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("ready: omniEvents corbaloc::").expect("the line of readiness");
        Self { child, address: url.trim_end_matches("/omniEvents").to_owned() }
    }

    fn factory(&self, client: &Orb) -> EventChannelFactory {
        client.string_to_object(&format!("corbaloc::{}/omniEvents", self.address)).unwrap().narrow().unwrap()
    }

    fn channel(&self, client: &Orb, name: &str) -> EventChannel {
        client.string_to_object(&format!("corbaloc::{}/{name}", self.address)).unwrap().narrow().unwrap()
    }
}

/// A client with a consumer.
fn consuming_client(port: u16) -> (Orb, Arc<Recorder>, spandrel::ObjectRef) {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
    let recorder = Arc::new(Recorder::default());
    let object = Poa::root(&orb).unwrap().activate(PushConsumerSkeleton::new(Arc::clone(&recorder))).unwrap();
    (orb, recorder, object)
}

/// Each round ends the service at another instant: the channels and connections whose creation was acknowledged are there
/// after it, and work. `SPANDREL_KILLS` is the number of rounds. Some rounds share a store, so that the number of its channels
/// stays below its bound.
#[test]
fn acknowledged_channels_and_connections_survive_kill_9_under_load() {
    const ROUNDS_OF_STORE: usize = 8;
    let mut folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let rounds: usize = std::env::var("SPANDREL_KILLS").map_or(4, |rounds| rounds.parse().unwrap());
    let (client, recorder, object) = consuming_client(0);
    let mut created = BTreeSet::<String>::new();
    for round in 0..=rounds {
        if round % ROUNDS_OF_STORE == 0 && round < rounds {
            folder = tempfile::tempdir().unwrap();
            created.clear();
        }
        let mut process = Process::start(folder.path(), port, &[]);
        let factory = process.factory(&client);
        let numbers = recorder.numbers.lock().unwrap().len();
        for name in &created {
            supplier(&process.channel(&client, name)).push(&long(1)).unwrap();
        }
        wait_until("an event of each channel", || recorder.numbers.lock().unwrap().len() >= numbers + created.len());
        if round == rounds {
            break;
        }
        let (acknowledged, new) = (AtomicUsize::new(0), Mutex::new(BTreeSet::<String>::new()));
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let (factory, object, acknowledged, new) = (&factory, &object, &acknowledged, &new);
                scope.spawn(move || {
                    for number in 0.. {
                        let name = format!("{round}-{worker}-{number}");
                        match factory.create_channel(&name) {
                            Ok(channel) => {
                                let proxy = channel.and_then(|channel| channel.for_consumers().ok().flatten());
                                let proxy = proxy.and_then(|admin| admin.obtain_push_supplier().ok().flatten());
                                let consumer = object.unchecked_narrow();
                                let Some(proxy) = proxy else { return };
                                if proxy.connect_push_consumer(Some(&consumer)).is_err() {
                                    return;
                                }
                                new.lock().unwrap().insert(name);
                                acknowledged.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(CreateChannelError::NameAlreadyUsed(_)) => panic!("{name} is new"),
                            Err(CreateChannelError::System(_)) => return,
                        }
                    }
                });
            }
            wait_until("channels", || acknowledged.load(Ordering::Relaxed) > 3 * (round % ROUNDS_OF_STORE));
            process.child.kill().unwrap();
        });
        process.child.wait().unwrap();
        created.extend(new.into_inner().unwrap());
    }
    client.shutdown().unwrap();
}

/// A consumer process is killed, and another takes its place at the same address: the stored connection serves it.
#[test]
fn a_consumer_that_was_killed_is_served_again_when_it_returns() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), 0, &["--channel", "Alarms"]);
    let client = Orb::builder().build().unwrap();
    let channel = process.channel(&client, "Alarms");
    let port = free_port();
    let (orb, recorder, object) = consuming_client(port);
    orb.set_object_key_alias("consumer", &object).unwrap();
    let by_key = client.string_to_object(&format!("corbaloc::127.0.0.1:{port}/consumer")).unwrap();
    let proxy = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
    proxy.connect_push_consumer(Some(&by_key.unchecked_narrow())).unwrap();
    let supplier = supplier(&channel);
    supplier.push(&long(1)).unwrap();
    recorder.wait_for(&[1]);
    orb.shutdown().unwrap();
    supplier.push(&long(2)).unwrap();
    let (orb, recorder, object) = consuming_client(port);
    orb.set_object_key_alias("consumer", &object).unwrap();
    // The event of the meantime was not executed anywhere, and comes first.
    recorder.wait_for(&[2]);
    orb.shutdown().unwrap();
    client.shutdown().unwrap();
}

/// The resident memory of a process, in KiB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the resident memory");
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Events are pushed to a consumer that accepts its connection and reads nothing. `SPANDREL_SILENT_SECONDS` is the time.
#[test]
#[cfg(target_os = "linux")]
fn memory_is_flat_while_a_consumer_never_reads() {
    let time = std::env::var("SPANDREL_SILENT_SECONDS").ok().map(|text| Duration::from_secs(text.parse().unwrap()));
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), 0, &["--channel", "Alarms", "--peer-timeout", "86400000"]);
    let client = Orb::builder().build().unwrap();
    let channel = process.channel(&client, "Alarms");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = client.string_to_object(&format!("corbaloc::{}/silent", silent.local_addr().unwrap())).unwrap();
    let proxy = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
    proxy.connect_push_consumer(Some(&silent.unchecked_narrow())).unwrap();
    let (supplier, event) = (supplier(&channel), Any::new("x".repeat(4_000)).unwrap());
    let push = |count: usize| (0..count).for_each(|_| supplier.push(&event).unwrap());
    // The queue of the consumer is full.
    push(1_500);
    let (before, start, mut pushed) = (resident(process.child.id()), Instant::now(), 0);
    while pushed < 4_500 || time.is_some_and(|time| start.elapsed() < time) {
        push(500);
        pushed += 500;
    }
    let after = resident(process.child.id());
    // Those events together have more than four times this.
    assert!(after < before + 4_096, "{before} KiB before {pushed} events, and {after} KiB after them");
    eprintln!("{before} KiB before {pushed} events, and {after} KiB after them");
    client.shutdown().unwrap();
}

#[test]
fn metrics_and_channels_of_the_command_line_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let words = ["--transient", "--channel", "A", "--channel", "B", "--queue", "7", "--metrics", &address];
    let process = Process::start(folder.path(), 0, &words);
    assert!(!folder.path().join("event.redb").exists());
    let client = Orb::builder().build().unwrap();
    let pulled = consumers(&process.channel(&client, "A")).obtain_pull_supplier().unwrap().unwrap();
    pulled.connect_pull_consumer(None).unwrap();
    let supplier = supplier(&process.channel(&client, "A"));
    (0..10).for_each(|number| supplier.push(&long(number)).unwrap());
    let text = spandrel_metrics::read(address.parse().unwrap()).unwrap();
    for line in [
        "spandrel_event_channels 2\n",
        "spandrel_events_received_total{channel=\"A\"} 10\n",
        "spandrel_events_dropped_total{channel=\"A\"} 3\n",
        "spandrel_event_queue_length{channel=\"A\"} 7\n",
        "spandrel_events_received_total{channel=\"B\"} 0\n",
        "spandrel_requests",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    client.shutdown().unwrap();
}

/// Factory and channels are bound in a naming service, until the process is told to end.
#[test]
fn published_names_are_withdrawn_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let names_orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let names = NamingService::start(&names_orb, NamingOptions::new(folder.path())).unwrap();
    let root = format!("NameService={}", names.reference());
    let orb_option = format!("-ORBInitRef {root}");
    let words = ["--transient", "--publish", "plant/events", "--channel", "plant.channel", "--orb", &orb_option];
    let mut process = Process::start(folder.path(), 0, &words);
    let lookup = Orb::init(["-ORBInitRef".to_owned(), root]).unwrap();
    let client = NamingClient::new(&lookup).unwrap();
    let factory: EventChannelFactory = client.resolve("plant/events").unwrap();
    assert!(factory.join_channel("plant.channel").unwrap().is_some());
    let channel: EventChannel = client.resolve("plant.channel").unwrap();
    supplier(&channel).push(&long(1)).unwrap();
    let end = Command::new("kill").args(["-TERM", &process.child.id().to_string()]).status().unwrap();
    assert!(end.success() && process.child.wait().unwrap().success());
    assert!(client.resolve::<EventChannel>("plant.channel").is_err());
    assert!(client.resolve::<EventChannelFactory>("plant/events").is_err());
    lookup.shutdown().unwrap();
    names.stop().unwrap();
    names_orb.shutdown().unwrap();
}

/// The policy names the adapter: clients pass events, and create and destroy no channels.
#[test]
fn a_policy_bounds_the_operations_of_clients() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    let operations = r#"["_is_a", "join_channel", "for_*", "obtain_*", "connect_*", "*push*", "*pull*"]"#;
    let rule = format!("[[rule]]\naction = \"allow\"\nadapter = \"Event\"\noperation = {operations}\n");
    std::fs::write(&policy, rule).unwrap();
    let words = ["--transient", "--channel", "Alarms", "--policy", policy.to_str().unwrap()];
    let process = Process::start(folder.path(), 0, &words);
    let client = Orb::builder().build().unwrap();
    let is_denied = |exception: &SystemException| exception.kind() == SystemExceptionKind::NoPermission;
    match process.factory(&client).create_channel("Other") {
        Err(CreateChannelError::System(error)) => assert!(is_denied(&error), "{error}"),
        other => panic!("{other:?}"),
    }
    let channel = process.factory(&client).join_channel("Alarms").unwrap().unwrap();
    assert!(is_denied(&channel.destroy().unwrap_err()));
    let pulled = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    pulled.connect_pull_consumer(None).unwrap();
    supplier(&channel).push(&long(1)).unwrap();
    assert_eq!(pulled.pull().unwrap().extract::<i32>().unwrap(), 1);
    client.shutdown().unwrap();
}

#[test]
fn a_store_is_checked_and_copied_and_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut process = Process::start(&data, 0, &["--channel", "A"]);
    let client = Orb::builder().build().unwrap();
    supplier(&process.channel(&client, "A"));
    let initial = format!("-ORBInitRef omniEvents=corbaloc::{}/omniEvents", process.address);
    let output = command().args(["backup", "--orb", &initial, "--timeout", "60", "monday"]).output().unwrap();
    let copy = data.join("backups/event/monday");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", copy.display()), "{output:?}");
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    client.shutdown().unwrap();

    let check = || command().arg("--data").arg(&data).arg("check").output().unwrap();
    let output = check();
    let sound = "the store is sound: 1 channels with 1 connections\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), sound, "{output:?}");
    for words in [&["--help"][..], &["check"]] {
        check_output_errors(|| {
            let mut command = command();
            command.arg("--data").arg(&data).args(words);
            command
        });
    }
    std::fs::write(data.join("event.redb"), "no database").unwrap();
    for output in [check(), command().args(["--listen", "iiop://127.0.0.1:0", "--data"]).arg(&data).output().unwrap()] {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && errors.contains("event.redb"), "{errors}");
    }
}

#[test]
fn bounds_of_zero_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for (option, value) in [("--queue", "0"), ("--memory", "0"), ("--peer-timeout", "0"), ("--max-failures", "0")] {
        let output = command().args([option, value, "--data"]).arg(folder.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains("0 is not in 1.."), "{option}: {errors}");
    }
}

#[test]
fn a_name_that_no_channel_can_have_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command();
    command.args(["--transient", "--channel", "a/b", "--listen", "iiop://127.0.0.1:0", "--data"]).arg(folder.path());
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("`a/b` cannot be the name of a channel"), "{errors}");
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), 0, &["--metrics", "127.0.0.1:0"]);
    spandrel_test_support::threads::check_daemon(process.child.id());
}
