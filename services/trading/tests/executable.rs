//! The executable `spandrel-trading`: its lines, exit codes, and its end at any instant.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use spandrel::services::cos_trading::{FollowOption, Lookup, Register};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::services::{NamingClient, NamingError};
use spandrel::types::{Any, Interface as _};
use spandrel::{Endpoint, Orb};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_test_support::{ChildProcess, TEST_TIMEOUT, check_output_errors, free_port, in_background, wait_until};

use crate::support::{all, long, policy, property};

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-trading"));
    command.env_remove("SPANDREL_LOG");
    command
}

/// A process that serves the store in this folder, and the URL of its `Lookup`.
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
        // One reply has all offers of the next rounds.
        if expected.len() > 2_000 {
            lookup.register_if().unwrap().unwrap().withdraw_using_constraint("T", "").unwrap();
            expected.clear();
        }
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
fn the_numbers_of_requests_are_at_the_endpoint_of_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let endpoint = format!("-ORBMetricsEndpoint {address}");
    let process = Process::start(folder.path(), 0, &["--transient", "--orb", &endpoint, "--orb", "-ORBMetrics yes"]);
    let client = Orb::builder().build().unwrap();
    add_type(&process.lookup(&client));
    // A request is counted behind its reply.
    wait_until("the count of the request", || {
        let mut connection = TcpStream::connect(&address).unwrap();
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        let counted = |line: &str| line.starts_with("spandrel_request_seconds_count{") && line.contains("\"add_type\"");
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
    add_type(&process.lookup(&client));
    let initial = format!("-ORBInitRef TradingService={}", process.url);
    let output = command().args(["backup", "--orb", &initial, "--timeout", "60", "monday"]).output().unwrap();
    let copy = data.join("backups/trading/monday");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", copy.display()), "{output:?}");
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    client.shutdown().unwrap();

    let check = || command().arg("--data").arg(&data).arg("check").output().unwrap();
    let output = check();
    let sound = "the store is sound: 1 service types and 0 offers\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), sound, "{output:?}");
    // Without a port, it is that at which the service listens by default.
    let output = command().args(["backup", "--server", "127.0.0.77", "monday"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("127.0.0.77:2811"), "{errors}");
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

/// A ring of five processes, each with one offer: its number.
#[test]
fn a_ring_of_five_processes_answers_without_a_killed_one() {
    const TRADERS: usize = 5;
    let rounds: usize = std::env::var("SPANDREL_KILLS").map_or(2, |rounds| rounds.parse().unwrap());
    let folders: Vec<_> = (0..TRADERS).map(|_| tempfile::tempdir().unwrap()).collect();
    let ports: Vec<u16> = (0..TRADERS).map(|_| free_port()).collect();
    let client = Orb::builder().build().unwrap();
    // A query that a trader cannot pass on ends when the connection is refused.
    let start = |nth: usize| Process::start(folders[nth].path(), ports[nth], &["--query-time", "60000"]);
    let mut traders: Vec<Process> = (0..TRADERS).map(start).collect();
    for (nth, trader) in traders.iter().enumerate() {
        let lookup = trader.lookup(&client);
        add_type(&lookup);
        let offered = [property("n", long(nth as i32))];
        lookup.register_if().unwrap().unwrap().export(Some(lookup.as_object()), "T", &offered).unwrap();
        let next = traders[(nth + 1) % TRADERS].lookup(&client);
        let links = lookup.link_if().unwrap().unwrap();
        links.add_link("next", Some(&next), FollowOption::Always, FollowOption::Always).unwrap();
    }
    let follow = [policy("link_follow_rule", Any::new(FollowOption::Always).unwrap())];
    // The numbers of the offers from a trader on, each of which is there once.
    let query = |traders: &[Process], first: usize| {
        let lookup = traders[first].lookup(&client);
        let (offers, rest, _) = lookup.query("T", "", "min n", &follow, &all(), u32::MAX).unwrap();
        assert!(rest.is_none());
        offers.iter().map(|offer| offer.properties[0].value.extract().unwrap()).collect::<Vec<i32>>()
    };
    assert_eq!(query(&traders, 0), [0, 1, 2, 3, 4]);
    for round in 0..rounds {
        let (first, killed) = (round % TRADERS, (round + 1 + fastrand::usize(1..TRADERS - 1)) % TRADERS);
        let running = in_background({
            let (lookup, follow) = (traders[first].lookup(&client), follow.clone());
            move || lookup.query("T", "", "min n", &follow, &all(), u32::MAX).map(|(offers, _, _)| offers.len())
        });
        traders[killed].child.kill().unwrap();
        traders[killed].child.wait().unwrap();
        // A query that was on its way has the offers before the killed trader at least.
        assert!((1..=TRADERS).contains(&running.recv_timeout(TEST_TIMEOUT).unwrap().unwrap()), "round {round}");
        let before = (first..).map(|nth| nth % TRADERS).take_while(|nth| *nth != killed);
        let mut expected: Vec<i32> = before.map(|nth| nth as i32).collect();
        expected.sort_unstable();
        assert_eq!(query(&traders, first), expected, "round {round}: {killed} is killed");
        traders[killed] = start(killed);
        assert_eq!(query(&traders, first), [0, 1, 2, 3, 4], "round {round}");
    }
    client.shutdown().unwrap();
}

#[test]
#[cfg(unix)]
fn a_published_trader_is_found_by_its_name_until_it_ends() {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let naming = NamingService::start(&orb, NamingOptions::new(folder.path())).unwrap();
    let reference = format!("NameService=corbaloc::127.0.0.1:{}/NameService", orb.listen().unwrap()[0].1);
    let client = Orb::builder().init_ref("NameService", reference.trim_start_matches("NameService=")).build().unwrap();
    let names = NamingClient::new(&client).unwrap();
    let data = folder.path().join("trader");
    let orb_options = format!("-ORBInitRef {reference}");
    let mut process = Process::start(&data, 0, &["--publish", "services/trader", "--orb", &orb_options]);
    let published: Lookup = names.resolve("services/trader").unwrap();
    add_type(&published);
    assert!(published.is_equivalent(&process.lookup(&client).lookup_if().unwrap().unwrap()));
    let pid = rustix::process::Pid::from_raw(process.child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(process.child.wait().unwrap().success());
    assert!(matches!(names.resolve::<Lookup>("services/trader"), Err(NamingError::NotFound { .. })));
    naming.stop().unwrap();
    client.shutdown().unwrap();
    orb.shutdown().unwrap();

    let absent = "-ORBInitRef NameService=corbaloc::127.0.0.1:1/NameService";
    let mut command = command();
    command.args(["--transient", "--listen", "iiop://127.0.0.1:0", "--data"]).arg(&data);
    let output = command.args(["--publish", "services/trader", "--orb", absent]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("error: cannot publish `services/trader` in the naming service (--publish): "), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), 0, &["--purge", "3600"]);
    spandrel_test_support::threads::check_daemon(process.child.id());
}
