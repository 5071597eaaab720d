//! The executable `spandrel-trading`: its lines, exit codes, and its end at any instant.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use spandrel::Orb;
use spandrel::services::cos_trading::{Lookup, Register};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel_test_support::{ChildProcess, check_output_errors, free_port, wait_until};

use crate::support::{all, long, property};

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-trading"));
    command.env_remove("SPANDREL_LOG");
    command
}

/// A process that serves the store in this folder, and the URL of its `Lookup`.
struct Process {
    child: ChildProcess,
    url: String,
}

impl Process {
    fn start(folder: &Path, port: u16, words: &[&str]) -> Self {
        let mut command = command();
        command.args(["--listen", &format!("iiop://127.0.0.1:{port}"), "--data"]).arg(folder).args(words);
        let mut child = ChildProcess::start(command.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("ready: TradingService ").expect("the line of readiness").to_owned();
        Self { child, url }
    }

    fn lookup(&self, client: &Orb) -> Lookup {
        client.string_to_object(&self.url).unwrap().narrow().unwrap()
    }
}

fn add_type(lookup: &Lookup) {
    let types: ServiceTypeRepository = lookup.type_repos().unwrap().unwrap().narrow().unwrap();
    types.add_type("T", "", &[], &[]).unwrap();
}

/// The numbers of all offers.
fn numbers(lookup: &Lookup) -> BTreeSet<i32> {
    let (offers, rest, limits) = lookup.query("T", "", "", &[], &all(), u32::MAX).unwrap();
    assert!(rest.is_none() && limits.is_empty());
    offers.iter().map(|offer| offer.properties[0].value.extract().unwrap()).collect()
}

/// The exports and withdrawals of one client. The last one has no acknowledgement.
#[derive(Default)]
struct Changes {
    exported: Vec<i32>,
    withdrawn: Vec<i32>,
    uncertain: Option<i32>,
}

/// Exports offers, and withdraws every third, until a call fails.
fn change(register: &Register, client: &Orb, first: i32, acknowledged: &AtomicUsize) -> Changes {
    let object = client.string_to_object("corbaloc::127.0.0.1:1/o").unwrap();
    let mut changes = Changes::default();
    for number in first.. {
        changes.uncertain = Some(number);
        let Ok(id) = register.export(Some(&object), "T", &[property("n", long(number))]) else { break };
        acknowledged.fetch_add(1, Ordering::Relaxed);
        if number % 3 == 0 {
            if register.withdraw(&id).is_err() {
                break;
            }
            changes.withdrawn.push(number);
        } else {
            changes.exported.push(number);
        }
    }
    changes
}

/// Each round ends the service at another instant. `SPANDREL_KILLS` is the number of rounds.
#[test]
fn acknowledged_changes_survive_kill_9_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let rounds: i32 = std::env::var("SPANDREL_KILLS").map_or(4, |rounds| rounds.parse().unwrap());
    let (mut expected, mut uncertain) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..=rounds {
        let client = Orb::builder().build().unwrap();
        let mut process = Process::start(folder.path(), port, &[]);
        let lookup = process.lookup(&client);
        if round == 0 {
            add_type(&lookup);
        }
        let present = numbers(&lookup);
        let wrong: Vec<_> = present.symmetric_difference(&expected).filter(|n| !uncertain.contains(*n)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        expected = present;
        uncertain.clear();
        if round < rounds {
            let register = lookup.register_if().unwrap().unwrap();
            let acknowledged = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..4)
                    .map(|worker| {
                        let (register, client, acknowledged) = (&register, &client, &acknowledged);
                        scope.spawn(move || change(register, client, (round * 4 + worker) * 100_000, acknowledged))
                    })
                    .collect();
                let instant = fastrand::usize(1..100);
                wait_until("changes", || acknowledged.load(Ordering::Relaxed) >= instant);
                process.child.kill().unwrap();
                for worker in workers {
                    let changes = worker.join().unwrap();
                    expected.extend(changes.exported);
                    assert!(changes.withdrawn.iter().all(|number| !expected.contains(number)));
                    uncertain.extend(changes.uncertain);
                }
            });
        }
        client.shutdown().unwrap();
    }
}

#[test]
fn a_trader_in_memory_needs_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), 0, &["--transient"]);
    let client = Orb::builder().build().unwrap();
    add_type(&process.lookup(&client));
    assert!(!folder.path().join("trading.redb").exists());
    client.shutdown().unwrap();
}

#[test]
fn a_store_is_checked_and_copied_and_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut process = Process::start(&data, 0, &[]);
    let client = Orb::builder().build().unwrap();
    add_type(&process.lookup(&client));
    let address = process.url.trim_start_matches("corbaloc::").trim_end_matches("/TradingService");
    let output = command().args(["backup", "--server", address, "--timeout", "60", "monday"]).output().unwrap();
    let copy = data.join("backups/trading/monday");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", copy.display()), "{output:?}");
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    client.shutdown().unwrap();

    let check = || command().arg("--data").arg(&data).arg("check").output().unwrap();
    let output = check();
    let sound = "the store is sound: 1 service types and 0 offers\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), sound, "{output:?}");
    for words in [&["--help"][..], &["check"]] {
        check_output_errors(|| {
            let mut command = command();
            command.arg("--data").arg(&data).args(words);
            command
        });
    }
    std::fs::write(data.join("trading.redb"), "no database").unwrap();
    for output in [check(), command().args(["--listen", "iiop://127.0.0.1:0", "--data"]).arg(&data).output().unwrap()] {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && errors.contains("trading.redb"), "{errors}");
    }
}
