//! Groups of servers that run at the same time, and whose slices alternate.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use spandrel_orchestra::idl::orchestra::harness::StartServerError;
use spandrel_orchestra::idl::orchestra::work_team::TakeResultError;
use spandrel_orchestra::idl::orchestra::{Address, Server};
use spandrel_orchestra::plan::{Plan, Slice};
use spandrel_test_support::{ChildProcess, wait_until};

use crate::plan::run;
use crate::running::{Site, is_sooner_than_a_wait, orchestra, output, records, text};

/// Servers of these architectures, each compared with the first of them.
fn plan(site: &Site, architectures: &[&str], more: &str) -> PathBuf {
    let list: Vec<String> = architectures.iter().map(|name| format!("\"{name}\"")).collect();
    let pair = |name: &&str| format!("[[pair]]\nfirst = \"test/{name}\"\nsecond = \"test/{}\"\n", architectures[0]);
    let text = format!(
        "name = \"groups\"\nclients = [\"load\"]\noctets = 400\npools = [2]\nagent_wait = 0.0\n{more}\n\
         [[server]]\nhost = \"server\"\ncommand = \"test\"\narchitectures = [{}]\n{}",
        list.join(", "),
        architectures[1..].iter().map(pair).collect::<String>()
    );
    site.write("plan.toml", &text)
}

const ALONE: &str =
    "[[server]]\nhost = \"server\"\ncommand = \"test\"\nname = \"lone\"\narchitectures = [\"steady\"]\n";

fn server(architecture: &str) -> Server {
    Server { name: "test".to_owned(), architecture: architecture.to_owned(), workers: 0, greeting: true }
}

fn is_reachable(address: &Address) -> bool {
    std::net::TcpStream::connect((address.host.as_str(), address.port)).is_ok()
}

#[test]
fn compared_servers_are_measured_in_alternation() {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    let plan = plan(&site, &["steady", "pool"], "samples = 3\nrequests = 50\nslices = 4");
    let pooled = fs::read_to_string(&plan).unwrap() + ALONE;
    site.write("plan.toml", &pooled);
    let order = text(&output(run(&site, &plan).arg("--dry-run")));
    let lines: BTreeSet<&str> = order.lines().collect();
    assert!(lines.contains("1 test/steady test/pool closed") && lines.contains("1 lone/steady closed"), "{order}");
    let done = output(&mut run(&site, &plan));
    assert!(done.status.success(), "{}", text(&done));
    let results = site.path("plan.jsonl");
    let samples = records(&results, "sample");
    assert_eq!(samples.len(), 9);
    let of = |name: &str| samples.iter().filter(|sample| sample["target"] == name).collect::<Vec<_>>();
    for sample in &samples {
        assert_eq!((&sample["answered"], &sample["octets"]), (&50.into(), &20_000.into()), "{sample}");
        assert!(sample["elapsed"].as_f64().unwrap() > 0.0 && sample["latency"]["p50"].as_f64().unwrap() > 0.0);
        assert!(sample["cpu"]["machine"].is_object() && sample["processes"].as_u64().unwrap() >= 1, "{sample}");
    }
    for ((one, other), lone) in of("test/steady").iter().zip(of("test/pool")).zip(of("lone/steady")) {
        assert_eq!((&one["round"], &one["at"]), (&other["round"], &other["at"]));
        assert_ne!(one["at"], lone["at"]);
    }
    check_report(&site, &results);
}

/// The interval is that of the rounds, for the server's and the machine's time.
fn check_report(site: &Site, results: &Path) {
    let folder = site.path("report");
    let mut command = orchestra();
    command.arg("report").arg(results).arg("--output").arg(&folder).args(["--pair", "lone/steady,test/steady"]);
    let report = output(&mut command);
    assert!(text(&report).contains("Each sample is the sum of 4 slices."), "{}", text(&report));
    let json: Value = serde_json::from_str(&fs::read_to_string(folder.join("report.json")).unwrap()).unwrap();
    let rounds = |pair: usize, scope: &str| json["pairs"][pair][scope]["comparison"]["rounds"].as_u64();
    assert_eq!(json["pairs"].as_array().unwrap().len(), 2);
    // A machine whose processors have had no tick of 10 ms has no variance.
    assert!([Some(3), None].contains(&rounds(0, "machine")) && rounds(1, "machine").is_none_or(|rounds| rounds == 0));
    assert!([Some(3), None].contains(&rounds(0, "server")) && rounds(1, "server").is_none_or(|rounds| rounds == 0));
}

#[test]
fn a_server_that_fails_leaves_the_others_of_its_group_their_samples() {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    let plan = plan(&site, &["steady", "fails", "dies", "pool"], "samples = 1\nrequests = 200\nslices = 5");
    let done = output(&mut run(&site, &plan));
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(text(&done).contains("2 samples are missing"), "{}", text(&done));
    let results = site.path("plan.jsonl");
    let samples = records(&results, "sample");
    let names: BTreeSet<&str> = samples.iter().map(|sample| sample["target"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["test/pool", "test/steady"]));
    assert!(samples.iter().all(|sample| sample["answered"] == 200), "{samples:?}");
    let failures = records(&results, "failure");
    assert_eq!(failures.len(), 4, "both are tried twice: {failures:?}");
    for failure in failures {
        let expected = match failure["target"].as_str().unwrap() {
            "test/fails" => "the server ended before it listened: exit status: 7",
            _ => "the server has ended: exit status: 9",
        };
        assert!(failure["reason"].as_str().unwrap().contains(expected), "{failure}");
        assert!(failure["lost_agent"].is_null(), "{failure}");
    }
}

/// A plan whose samples do not end soon.
fn long_plan(site: &Site) -> PathBuf {
    let plan = plan(site, &["steady", "pool"], "samples = 1\nslices = 100");
    let load = "[[load]]\nname = \"long\"\nrequests = 1000000\nthink_time = { kind = \"constant\", mean = 0.01 }\n";
    let text = fs::read_to_string(&plan).unwrap() + load;
    site.write("plan.toml", &text)
}

#[test]
fn an_interrupted_run_ends_all_servers_of_the_group() {
    assert!(is_sooner_than_a_wait(time_of_an_interruption));
}

/// Interrupts a run, and checks its end; the time that this took.
fn time_of_an_interruption() -> Duration {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    let (harness, team) = (site.harness("server"), site.team("load"));
    let supervisor = ChildProcess::start(run(&site, &long_plan(&site)).stdout(Stdio::piped()).stderr(Stdio::piped()));
    wait_until("a load", || team.current_progress().unwrap().answered > 0);
    let addresses = [1, 2].map(|number| harness.server_address(number).unwrap());
    assert!(addresses.iter().all(is_reachable), "both run");
    let begin = Instant::now();
    let process = rustix::process::Pid::from_child(&supervisor);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let done = supervisor.wait_with_output();
    let time = begin.elapsed();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(text(&done).contains("the same command continues it"), "{}", text(&done));
    assert!(!addresses.iter().any(is_reachable), "the servers have ended");
    assert!(matches!(team.take_result(0.0), Err(TakeResultError::NoLoad(_))), "the load is cancelled");
    let results = site.path("plan.jsonl");
    assert_eq!(records(&results, "failure").len() + records(&results, "sample").len(), 0);
    time
}

#[test]
fn an_agent_that_dies_fails_the_samples_of_the_group() {
    let site = Site::new();
    let (mut server, _load) = (site.agent("server"), site.agent("load"));
    let team = site.team("load");
    let supervisor = ChildProcess::start(run(&site, &long_plan(&site)).stdout(Stdio::piped()).stderr(Stdio::piped()));
    wait_until("a load", || team.current_progress().unwrap().answered > 0);
    server.kill();
    let done = supervisor.wait_with_output();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    let failures = records(&site.path("plan.jsonl"), "failure");
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures.iter().all(|failure| failure["lost_agent"] == "server"), "{failures:?}");
    // The servers of the agent end with the next one.
    let _next = site.agent("server");
}

#[test]
fn another_supervisor_ends_all_servers_of_the_group() {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    let (harness, team) = (site.harness("server"), site.team("load"));
    let results = site.path("plan.jsonl");
    let mut supervisor = ChildProcess::start(run(&site, &long_plan(&site)).stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until("a load", || team.current_progress().unwrap().answered > 0);
    let addresses = [1, 2].map(|number| harness.server_address(number).unwrap());
    let other = harness.start_server(&server("steady"), &[]).unwrap();
    assert!(!addresses.iter().any(is_reachable), "the servers have ended");
    wait_until("the end of both samples", || records(&results, "failure").len() >= 2);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    for failure in records(&results, "failure") {
        let reason = failure["reason"].as_str().unwrap();
        assert!(reason.contains("another supervisor has started a server"), "{failure}");
    }
    assert!(other.number > 2);
}

#[test]
fn servers_run_beside_others_until_one_is_started_without_them() {
    let site = Site::new();
    let mut agent = site.agent("alpha");
    let harness = site.harness("alpha");
    let mut numbers = Vec::new();
    let mut addresses = Vec::new();
    for _ in 0..16 {
        let started = harness.start_server(&server("steady"), &numbers).unwrap();
        numbers.push(started.number);
        addresses.push(started.listens_at);
    }
    match harness.start_server(&server("steady"), &numbers) {
        Err(StartServerError::Refused(refused)) => assert!(refused.reason.contains("at most 16"), "{refused:?}"),
        other => panic!("{other:?}"),
    }
    let snapshots: BTreeSet<u32> =
        numbers.iter().map(|number| harness.take_snapshot(*number).unwrap().process).collect();
    assert_eq!(snapshots.len(), 16, "each has a process of its own");
    assert_eq!(harness.server_address(0).unwrap(), addresses[15], "0 is the last one");
    harness.stop_server(numbers[0], 5.0).unwrap();
    match harness.start_server(&server("steady"), &numbers) {
        Err(StartServerError::NoServer(_)) => {}
        other => panic!("{other:?}"),
    }
    assert!(addresses[1..].iter().all(is_reachable), "a refused start changes nothing");
    let next = harness.start_server(&server("steady"), &numbers[14..]).unwrap();
    assert!(!addresses[..14].iter().any(is_reachable) && addresses[14..].iter().all(is_reachable));
    assert_eq!(agent.terminate(), Some(0), "{}", agent.errors());
    assert!(!addresses.iter().chain([&next.listens_at]).any(is_reachable), "all end with the agent");
}

/// A plan of a text.
fn parsed(text: &str) -> anyhow::Result<Plan> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    fs::write(&file, format!("name = \"n\"\nclients = [\"c\", \"d\"]\n{text}")).unwrap();
    Plan::read(&file)
}

/// Servers with these names.
fn servers(host: &str, command: &str, architectures: &str) -> String {
    format!("[[server]]\nhost = \"{host}\"\ncommand = \"{command}\"\narchitectures = [{architectures}]\n")
}

#[test]
fn groups_are_the_servers_of_one_host_that_pairs_connect() {
    let pair = |first: &str, second: &str| format!("[[pair]]\nfirst = \"{first}\"\nsecond = \"{second}\"\n");
    let text = [
        servers("h", "a", "\"1\", \"2\", \"3\""),
        servers("h", "b", "\"1\", \"2\""),
        servers("i", "c", "\"1\""),
        pair("a/1", "b/2"),
        pair("a/3", "b/2"),
        pair("a/2", "c/1"),
    ]
    .concat();
    let groups = |slices: u32| {
        let plan = parsed(&format!("samples = 1\nslices = {slices}\nbase = \"b\"\n{text}")).unwrap();
        let (targets, steps) = (plan.targets(), plan.steps());
        let name = |target: &usize| targets[*target].name.clone();
        steps.iter().map(|step| step.targets.iter().map(name).collect::<Vec<_>>().join(" ")).collect::<BTreeSet<_>>()
    };
    // `base` adds the pairs a/1 : b/1 and a/2 : b/2.
    let expected = ["a/1 a/2 a/3 b/1 b/2", "c/1"].map(str::to_owned);
    assert_eq!(groups(2), BTreeSet::from(expected));
    assert_eq!(groups(1).len(), 6, "without slices each server runs alone");
}

#[test]
fn slices_have_equal_parts_of_requests_and_time() {
    let loads = "[[load]]\nname = \"both\"\nrequests = 47\nseconds = 6\narrival = \"open-paced\"\nrate = 100.0\n";
    let plan = parsed(&format!("slices = 4\n{}{loads}", servers("h", "a", "\"1\""))).unwrap();
    let address = Address { host: "127.0.0.1".to_owned(), port: 1 };
    let load = |client, number| plan.load(&plan.loads[0], &address, client, Slice { round: 3, number }, true);
    let requests = |client| [0, 1, 2, 3].map(|number| load(client, number).requests);
    assert_eq!((requests(0), requests(1)), ([6, 6, 6, 6], [6, 6, 6, 5]), "47 in all");
    assert_eq!((load(0, 0).seconds, load(0, 0).rate), (1.5, 50.0));
    let seeds: BTreeSet<u64> = (0..2).flat_map(|client| (0..4).map(move |number| load(client, number).seed)).collect();
    assert_eq!(seeds.len(), 8, "each has random numbers of its own");
}

#[test]
fn slices_are_bounded() {
    let many: Vec<String> = (0..17).map(|number| format!("\"{number}\"")).collect();
    let pairs: String = (1..17).map(|number| format!("[[pair]]\nfirst = \"a/{number}\"\nsecond = \"a/0\"\n")).collect();
    let crowd = [servers("h", "a", &many.join(", ")), pairs].concat();
    let one = servers("h", "a", "\"1\"");
    for (text, reason) in [
        (format!("slices = 0\n{one}"), "a sample has from 1 to 10000 slices"),
        (format!("slices = 10001\n{one}"), "a sample has from 1 to 10000 slices"),
        (format!("slices = 2\nlive = 0.1\n{one}"), "live samples are of a server that runs alone"),
        (
            format!("slices = 51\nrequests = 100\n{one}"),
            "load `closed`: 100 requests are fewer than one of each client in each of 51 slices",
        ),
        (
            format!("{one}[[load]]\nname = \"timed\"\nrequests = 1\nseconds = 5\n"),
            "load `timed`: 1 requests are fewer than one of each of 2 clients",
        ),
        (format!("slices = 2\n{crowd}"), "17 servers are compared with `a/0`, directly or not, and at most 16 run"),
    ] {
        let error = format!("{:#}", parsed(&text).unwrap_err());
        assert!(error.contains(reason), "`{reason}` is missing in: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert!(parsed(&format!("slices = 50\nrequests = 100\n{one}")).is_ok());
}
