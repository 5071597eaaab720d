//! The executable `spandrel-property`: its lines, exit codes, and its end at any instant.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use spandrel::services::cos_property_service::{PropertySet, PropertySetFactory};
use spandrel::{ObjectRef, Orb};
use spandrel_test_support::{ChildProcess, check_output_errors, free_port, wait_until};

use crate::support::long;

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-property"));
    command.env_remove("SPANDREL_LOG");
    command
}

/// A process that serves the store in this folder, and the URL of its factory.
pub(crate) struct Process {
    child: ChildProcess,
    pub(crate) url: String,
}

impl Process {
    fn start(folder: &Path, port: u16, words: &[&str]) -> Self {
        Self::with(folder, &[&["--listen", &format!("iiop://127.0.0.1:{port}")], words].concat())
    }

    /// A process with these options.
    pub(crate) fn with(folder: &Path, words: &[&str]) -> Self {
        let mut command = command();
        command.arg("--data").arg(folder).args(words);
        let mut child = ChildProcess::start(command.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("ready: PropertySetFactory ").expect("the line of readiness").to_owned();
        Self { child, url }
    }

    fn factory(&self, client: &Orb) -> PropertySetFactory {
        client.string_to_object(&self.url).unwrap().narrow().unwrap()
    }
}

type Contents = BTreeMap<String, i32>;

/// The properties of a worker. The others of its set are those of another worker.
fn contents((set, worker): &(PropertySet, usize)) -> Contents {
    let (properties, rest) = set.get_all_properties(1_000).unwrap();
    assert!(rest.is_none());
    let own = properties.into_iter().filter(|it| it.property_name.starts_with(&format!("{worker}-")));
    own.map(|it| (it.property_name, it.property_value.extract().unwrap())).collect()
}

/// Makes a random change of one or several properties, also in `contents`. Whether it was acknowledged.
fn change((set, worker): &(PropertySet, usize), contents: &mut Contents) -> bool {
    let name = |nth: u8| format!("{worker}-p{nth}");
    let [nth, value] = [fastrand::u8(..20), fastrand::u8(..)];
    match fastrand::u8(..4) {
        0 if contents.remove(&name(nth)).is_some() => set.delete_property(&name(nth)).is_ok(),
        1 => {
            // Several properties are one change.
            let properties: Vec<_> =
                (nth..nth + 5).map(|nth| crate::support::property(&name(nth), long(value.into()))).collect();
            contents.extend((nth..nth + 5).map(|nth| (name(nth), i32::from(value))));
            set.define_properties(&properties).is_ok()
        }
        _ => {
            contents.insert(name(nth), value.into());
            set.define_property(&name(nth), &long(value.into())).is_ok()
        }
    }
}

/// Each round ends the service at another instant. `SPANDREL_KILLS` is the number of rounds.
#[test]
fn acknowledged_changes_survive_kill_9_under_load() {
    const WORKERS: usize = 4;
    const SETS: usize = 2;
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let rounds: usize = std::env::var("SPANDREL_KILLS").map_or(4, |rounds| rounds.parse().unwrap());
    let mut sets = Vec::<String>::new();
    let mut expected = Vec::<[Contents; 2]>::new();
    let (mut changes, mut uncertain) = (0, 0);
    for round in 0..=rounds {
        let client = Orb::builder().build().unwrap();
        let mut process = Process::start(folder.path(), port, &[]);
        if sets.is_empty() {
            let factory = process.factory(&client);
            sets = (0..SETS)
                .map(|_| ObjectRef::from(factory.create_propertyset().unwrap().unwrap()).to_string())
                .collect();
        }
        let object = |nth: usize| client.string_to_object(&sets[nth % SETS]).unwrap().narrow().unwrap();
        let objects: Vec<(PropertySet, usize)> = (0..WORKERS).map(|nth| (object(nth), nth)).collect();
        let present: Vec<Contents> = objects.iter().map(contents).collect();
        for (now, [acknowledged, perhaps]) in present.iter().zip(&expected) {
            assert!(now == acknowledged || now == perhaps, "{now:?}\n{acknowledged:?}\n{perhaps:?}");
            uncertain += usize::from(acknowledged != perhaps && now == perhaps);
        }
        if round == rounds {
            client.shutdown().unwrap();
            break;
        }
        let acknowledged = AtomicUsize::new(0);
        expected = std::thread::scope(|scope| {
            let worker = |(set, mut contents): ((PropertySet, usize), Contents)| {
                let acknowledged = &acknowledged;
                scope.spawn(move || {
                    loop {
                        let before = contents.clone();
                        if !change(&set, &mut contents) {
                            return [before, contents];
                        }
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                })
            };
            let workers: Vec<_> = objects.into_iter().zip(present).map(worker).collect();
            let instant = fastrand::usize(1..100);
            wait_until("changes", || acknowledged.load(Ordering::Relaxed) >= instant);
            process.child.kill().unwrap();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        changes += acknowledged.load(Ordering::Relaxed);
        client.shutdown().unwrap();
    }
    println!("{rounds} ends, {changes} acknowledged changes; {uncertain} changes were made and not acknowledged");
}

#[test]
fn sets_in_memory_need_no_store_and_clients_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), 0, &["--transient", "--sets-of-client", "2"]);
    let client = Orb::builder().build().unwrap();
    let factory = process.factory(&client);
    for _ in 0..2 {
        factory.create_propertyset().unwrap();
    }
    factory.create_propertyset().unwrap_err();
    assert!(!folder.path().join("property.redb").exists());
    client.shutdown().unwrap();
}

#[test]
fn the_numbers_of_requests_are_at_the_endpoint_of_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let endpoint = format!("-ORBMetricsEndpoint {address}");
    let process = Process::start(folder.path(), 0, &["--transient", "--orb", &endpoint, "--orb", "-ORBMetrics yes"]);
    let client = Orb::builder().build().unwrap();
    process.factory(&client).create_propertyset().unwrap();
    // A request is counted behind its reply.
    wait_until("the count of the request", || {
        let mut connection = TcpStream::connect(&address).unwrap();
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        let counted =
            |line: &str| line.starts_with("spandrel_request_seconds_count{") && line.contains("\"create_propertyset\"");
        text.lines().any(counted)
    });
    client.shutdown().unwrap();
}

#[test]
fn a_store_is_checked_and_copied_and_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut process = Process::start(&data, 0, &[]);
    let client = Orb::builder().build().unwrap();
    let set = process.factory(&client).create_propertyset().unwrap().unwrap();
    set.define_property("a", &long(1)).unwrap();
    let initial = format!("-ORBInitRef PropertySetFactory={}", process.url);
    let output = command().args(["backup", "--orb", &initial, "--timeout", "60", "monday"]).output().unwrap();
    let copy = data.join("backups/property/monday");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", copy.display()), "{output:?}");
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    client.shutdown().unwrap();

    let check = || command().arg("--data").arg(&data).arg("check").output().unwrap();
    let output = check();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "the store is sound: 1 sets with 1 properties\n", "{output:?}");
    // Without a port, it is that at which the service listens by default.
    let output = command().args(["backup", "--server", "127.0.0.77", "monday"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("127.0.0.77:2812"), "{errors}");
    for words in [&["--help"][..], &["check"]] {
        check_output_errors(|| {
            let mut command = command();
            command.arg("--data").arg(&data).args(words);
            command
        });
    }
    std::fs::write(data.join("property.redb"), "no database").unwrap();
    for output in [check(), command().args(["--listen", "iiop://127.0.0.1:0", "--data"]).arg(&data).output().unwrap()] {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && errors.contains("property.redb"), "{errors}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), 0, &[]);
    spandrel_test_support::threads::check_daemon(process.child.id());
}
