//! Plans from end to end: samples, interruption, the death of an agent, and reports.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use spandrel_orchestra::idl::orchestra::Server;
use spandrel_orchestra::idl::orchestra::work_team::TakeResultError;
use spandrel_orchestra::plan::Plan;
use spandrel_test_support::{ChildProcess, wait_until};

use crate::running::{Site, is_sooner_than_a_wait, orchestra, output, records, text};

pub(crate) fn run(site: &Site, plan: &Path) -> Command {
    let mut command = orchestra();
    command.arg("run").arg(plan).args(["--naming", &site.naming]);
    command
}

fn plan(site: &Site, samples: u32, requests: u32, more: &str) -> std::path::PathBuf {
    let text = format!(
        "name = \"test servers\"\nclients = [\"load\"]\nsamples = {samples}\nrequests = {requests}\noctets = 400\n\
         pools = [2, 3]\n{more}"
    );
    site.write("plan.toml", &text)
}

const SERVER: &str = "[[server]]\nhost = \"server\"\ncommand = \"test\"\narchitectures = [\"steady\"]\n";
const POOL: &str = "[[server]]\nhost = \"server\"\ncommand = \"test\"\narchitectures = [\"pool\"]\npooled = true\n\
                    picture = \"thread pool\"\n";

/// Samples of a run that is to be interrupted: many more than are taken until that happens.
const SAMPLES: u32 = 25;

/// Server, load and round of each sample.
fn keys(file: &Path) -> Vec<(String, String, u64)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let key = |record: &serde_json::Value| {
        (text(&record["target"]), text(&record["load"]), record["round"].as_u64().unwrap())
    };
    records(file, "sample").iter().map(key).collect()
}

#[test]
fn a_plan_is_carried_out_and_reported() {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    let greetings = SERVER.replace("architectures", "greetings = [true, false]\narchitectures");
    let pairs = "[[pair]]\nfirst = \"test/steady\"\nsecond = \"test/steady-no-greeting\"\n";
    let loads = "[[load]]\nname = \"closed\"\n[[load]]\nname = \"poisson\"\narrival = \"open-poisson\"\nrate = 1000.0\n\
                 size = { kind = \"uniform\", mean = 300, spread = 100 }\n";
    let texts = "notes = [\"Others are <absent>.\"]\n";
    let versions = "[versions]\n\"C compiler\" = \"cc 1, \\\"old\\\"\"\n";
    let plan = plan(&site, 2, 50, &format!("{texts}{greetings}{POOL}{loads}{pairs}{versions}"));
    let results = site.path("plan.jsonl");
    let done = output(&mut run(&site, &plan));
    assert!(done.status.success(), "{}", text(&done));
    assert!(text(&done).contains("16/16"), "progress: {}", text(&done));

    let samples = records(&results, "sample");
    assert_eq!(samples.len(), 16, "4 servers, 2 loads, 2 samples of each");
    for sample in &samples {
        assert_eq!((&sample["requests"], &sample["answered"]), (&50.into(), &50.into()), "{sample}");
        assert_eq!(sample["failed"], 0, "{sample}");
        assert!(sample["elapsed"].as_f64().unwrap() > 0.0 && sample["latency"]["p50"].as_f64().unwrap() > 0.0);
        assert!(sample["cpu"]["machine"].is_object() && sample["cpu"]["tree"].is_object(), "{sample}");
    }
    let first: BTreeSet<_> =
        keys(&results)[..8].iter().map(|(target, load, _)| (target.clone(), load.clone())).collect();
    assert_eq!(first.len(), 8, "the first round has each server and load once");

    site.write("plan.toml", &fs::read_to_string(&plan).unwrap().replace("cc 1, \\\"old\\\"", "cc 2"));
    let again = output(&mut run(&site, &plan));
    assert!(again.status.success(), "{}", text(&again));
    assert_eq!(records(&results, "sample").len(), 16, "a run that is complete takes no sample");

    check_report(&site, &results);
    site.write("plan.toml", &fs::read_to_string(&plan).unwrap().replace("requests = 50", "requests = 51"));
    let other = output(&mut run(&site, &plan));
    assert!(!other.status.success() && text(&other).contains("the results of another plan"), "{}", text(&other));
}

fn check_report(site: &Site, results: &Path) {
    let folder = site.path("report");
    let mut command = orchestra();
    command.arg("report").arg(results).arg("--output").arg(&folder).args(["--pair", "test/pool-2,test/pool-3"]);
    let report = output(&mut command);
    assert!(report.status.success(), "{}", text(&report));
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let markdown = read("report.md");
    for part in [
        "## thread pool, closed",
        "| test/pool-2",
        "## Comparisons",
        "test/steady : test/steady-no-greeting",
        "95 % interval",
        "test server 1.2.3",
        "Others are \\<absent>.",
        "## Machines",
        "| kernel ",
        "| C compiler | cc 1, \"old\", then cc 2",
        "![thread pool, closed: CPU time of the machine](thread-pool-closed-machine.svg)",
    ] {
        assert!(markdown.contains(part), "`{part}` is missing in\n{markdown}");
    }
    assert!(!markdown.contains("could not be taken"), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 8);
    assert_eq!(json["pairs"].as_array().unwrap().len(), 4, "two pairs, two loads");
    let row = &json["rows"][0];
    let samples: Vec<_> = records(results, "sample")
        .into_iter()
        .filter(|sample| sample["target"] == row["target"] && sample["load"] == row["load"])
        .collect();
    let elapsed: Vec<f64> = samples.iter().map(|sample| sample["elapsed"].as_f64().unwrap()).collect();
    let mean = row["elapsed"]["mean"].as_f64().unwrap();
    assert!((mean - (elapsed[0] + elapsed[1]) / 2.0).abs() < 1e-12);
    assert_eq!(read("samples.csv").lines().count(), 17);
    assert_eq!(json["versions"]["C compiler"], serde_json::json!(["cc 1, \"old\"", "cc 2"]));
    let versions = read("versions.csv");
    for line in
        ["tool,,C compiler,\"cc 1, \"\"old\"\"\"\r\n", "server,server,cores,", "command,server,test,test server 1.2.3"]
    {
        assert!(versions.contains(line), "`{line}` is missing in\n{versions}");
    }
    let svg = read("steady-poisson-machine.svg");
    assert_eq!(svg.matches("data-series").count(), 2, "{svg}");
    let page = read("report.html");
    assert!(
        page.contains("<p>Others are &lt;absent&gt;.</p>") && page.contains("<td class=\"text\">C compiler</td>"),
        "{page}"
    );
    assert!(page.contains("<svg") && page.contains("<table>") && page.contains("addEventListener"));
    let links = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!links.contains("http:") && !links.contains("https:") && !links.contains("src="), "it loads nothing");
}

#[test]
fn an_interrupted_run_goes_on_where_it_ended() {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    let plan = plan(&site, SAMPLES, 50, &format!("live = 0.01\n{SERVER}"));
    let results = site.path("plan.jsonl");
    let mut supervisor = ChildProcess::start(run(&site, &plan).stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until("two samples", || records(&results, "sample").len() >= 2);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    let before = keys(&results);
    assert!((1..SAMPLES as usize).contains(&before.len()), "{before:?}");
    // A line that the interrupted supervisor has not finished.
    let mut file = fs::OpenOptions::new().append(true).open(&results).unwrap();
    file.write_all(b"{\"record\":\"sample\",\"target\":\"test/st").unwrap();
    let done = output(&mut run(&site, &plan));
    assert!(done.status.success(), "{}", text(&done));
    let after = keys(&results);
    assert_eq!(after[..before.len()], before, "earlier samples remain");
    let all: BTreeSet<_> = after.iter().cloned().collect();
    assert_eq!([after.len(), all.len()], [SAMPLES as usize; 2], "each sample once: {after:?}");
    assert_eq!(records(&results, "plan").len(), 2);
    for sample in records(&results, "sample") {
        let live = sample["live"].as_array().unwrap();
        assert!(!live.is_empty() && live[0]["processes"].as_u64().unwrap() >= 1, "{sample}");
    }
}

#[test]
fn the_death_of_an_agent_is_recorded_and_its_samples_are_taken_later() {
    let site = Site::new();
    let (mut server, _load) = (site.agent("server"), site.agent("load"));
    let plan = plan(&site, SAMPLES, 50, &format!("agent_wait = 0.0\n{SERVER}"));
    let results = site.path("plan.jsonl");
    let supervisor = ChildProcess::start(run(&site, &plan).stdout(Stdio::piped()).stderr(Stdio::piped()));
    wait_until("a sample", || !records(&results, "sample").is_empty());
    server.kill();
    let done = supervisor.wait_with_output();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(text(&done).contains("samples are missing"), "{}", text(&done));
    let failures = records(&results, "failure");
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0]["lost_agent"], "server");
    assert!(failures[0]["reason"].as_str().unwrap().contains("server"), "{failures:?}");

    let server = site.agent("server");
    let done = output(&mut run(&site, &plan));
    assert!(done.status.success(), "{}{}", text(&done), server.errors());
    let keys = keys(&results);
    assert_eq!([keys.len(), keys.iter().collect::<BTreeSet<_>>().len()], [SAMPLES as usize; 2]);
    let report = output(orchestra().arg("report").arg(&results).arg("--output").arg(site.path("report")));
    assert!(text(&report).contains("Samples that could not be taken at first"), "{}", text(&report));
}

/// A load of this many seconds at a low rate.
fn load(seconds: u32) -> String {
    format!(
        "{SERVER}[[load]]\nname = \"long\"\nrequests = 1000000\nseconds = {seconds}\n\
         think_time = {{ kind = \"constant\", mean = 0.01 }}\n"
    )
}

#[test]
fn an_interrupted_run_ends_its_server_and_its_loads() {
    assert!(is_sooner_than_a_wait(time_of_an_interruption));
}

/// Interrupts a run, and checks its end; the time that this took.
fn time_of_an_interruption() -> Duration {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    let (harness, team) = (site.harness("server"), site.team("load"));
    let plan = plan(&site, 1, 1, &load(600));
    let supervisor = ChildProcess::start(run(&site, &plan).stdout(Stdio::piped()).stderr(Stdio::piped()));
    wait_until("a load", || team.current_progress().unwrap().answered > 0);
    let process = rustix::process::Pid::from_child(&supervisor);
    let begin = Instant::now();
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let done = supervisor.wait_with_output();
    let time = begin.elapsed();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(text(&done).contains("the same command continues it"), "{}", text(&done));
    assert!(harness.server_address(0).is_err(), "the server has ended");
    assert!(matches!(team.take_result(0.0), Err(TakeResultError::NoLoad(_))), "the load is cancelled");
    let results = site.path("plan.jsonl");
    assert_eq!(records(&results, "failure").len() + records(&results, "sample").len(), 0);
    time
}

#[test]
fn a_sample_that_another_supervisor_disturbs_is_a_failure() {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    let (harness, team) = (site.harness("server"), site.team("load"));
    let other = Server { name: "test".to_owned(), architecture: "steady".to_owned(), workers: 0, greeting: true };
    type Disturb<'d> = &'d dyn Fn();
    let disturbances: [(u32, &str, Disturb<'_>); 2] = [
        (600, "the load was cancelled", &|| team.cancel().unwrap()),
        (2, "another supervisor has started a server", &|| drop(harness.start_server(&other, &[]).unwrap())),
    ];
    for (seconds, reason, disturb) in disturbances {
        let plan = plan(&site, 1, 1, &load(seconds));
        let results = site.path("plan.jsonl");
        let failures = || {
            let mut supervisor = ChildProcess::start(run(&site, &plan).stdout(Stdio::null()).stderr(Stdio::null()));
            wait_until("a load", || team.current_progress().unwrap().answered > 0);
            disturb();
            wait_until("its end", || ["failure", "sample"].iter().any(|kind| !records(&results, kind).is_empty()));
            supervisor.kill().unwrap();
            supervisor.wait().unwrap();
            team.cancel().unwrap();
            let failures = records(&results, "failure");
            fs::remove_file(&results).unwrap();
            failures
        };
        // On a busy machine, a short load may end before it is disturbed.
        let failures = (0..5).map(|_| failures()).find(|failures| !failures.is_empty()).expect("a failed sample");
        assert!(failures[0]["reason"].as_str().unwrap().contains(reason), "{failures:?}");
        assert!(failures[0]["lost_agent"].is_null(), "{failures:?}");
    }
}

#[test]
fn a_file_that_has_no_results_is_not_overwritten() {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    let plan = plan(&site, 1, 1, SERVER);
    let letter = site.write("letter.txt", "a text of one line without its end");
    let done = output(run(&site, &plan).arg("--results").arg(&letter));
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(text(&done).contains("its last line is no record"), "{}", text(&done));
    assert_eq!(fs::read_to_string(letter).unwrap(), "a text of one line without its end");
    let device = output(run(&site, &plan).args(["--results", "/dev/full"]));
    assert!(text(&device).contains("cannot use the results /dev/full (--results): it is no regular file"));
    let cut = site.write("cut.jsonl", "{\"record\":\"sample\",\"target\":\"te\n");
    let done = output(run(&site, &plan).arg("--results").arg(&cut));
    let expected = "line 1 is no record (column 31: EOF while parsing a string); if it is removed, its sample is taken";
    assert!(text(&done).contains(expected), "{}", text(&done));
}

#[test]
fn a_report_without_a_plan_or_samples_names_the_file() {
    let site = Site::new();
    let failure = "{\"record\":\"failure\",\"target\":\"t\",\"load\":\"l\",\"round\":0,\"at\":0.0,\"lost_agent\":null,\"reason\":\"r\"}\n";
    for lines in ["", failure] {
        let file = site.write("without.jsonl", lines);
        let done = output(orchestra().arg("report").arg(&file));
        assert_eq!(done.status.code(), Some(1), "{}", text(&done));
        let expected = format!("error: cannot report {}: the results have no plan\n", file.display());
        assert_eq!(text(&done), expected);
    }
}

#[test]
fn a_plan_without_its_agents_does_not_begin() {
    let site = Site::new();
    let plan = plan(&site, 1, 1, SERVER);
    let done = output(&mut run(&site, &plan));
    assert_eq!(done.status.code(), Some(1));
    assert!(
        text(&done).contains("/orchestrator/servers/server/Harness is not in the naming service"),
        "{}",
        text(&done)
    );
    let order = output(run(&site, &plan).arg("--dry-run"));
    assert_eq!(text(&order), "1 test/steady closed\n");
    // A reader such as `head` ends before all is written.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let unread = run(&site, &plan).arg("--dry-run").stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert!(unread.status.success(), "{}", text(&unread));
}

#[test]
fn a_wrong_plan_is_explained() {
    let site = Site::new();
    let load = |values: &str| format!("{SERVER}[[load]]\nname = \"l\"\n{values}\n");
    for (more, reason) in [
        ("", "missing field `server`"),
        (
            "requsts = 1\n[[server]]\n",
            "plan.toml is malformed: line 7: unknown field `requsts`, expected one of `name`",
        ),
        ("[[server]]\nhost = \"h\"\ncommand = \"c\"\n", "missing field `architectures`"),
        ("workers = 0\n[[server]]\nhost = \"h\"\ncommand = \"c\"\narchitectures = [\"a\"]\n", "the number of workers"),
        (
            "[[server]]\nhost = \"h\"\ncommand = \"c\"\nname = \"n\"\narchitectures = [\"a\", \"a\"]\n",
            "the name `n/a` occurs twice",
        ),
        (
            "[[server]]\nhost = \"h\"\ncommand = \"c\"\narchitectures = [\"a\"]\n[[pair]]\nfirst = \"c/a\"\nsecond = \"b\"\n",
            "a pair names `b`, which is none of its servers: c/a",
        ),
        (
            &*load("think_time = { kind = \"exponential\", mean = 1e300 }"),
            "load `l`: the think time is not from 0 s to an hour",
        ),
        (
            &*load("think_time = { kind = \"normal\", mean = 1, spread = inf }"),
            "load `l`: the spread of the think time is not from 0 s to an hour",
        ),
        (
            &*load("think_time = { kind = \"uniform\", mean = 3000, spread = 3000 }"),
            "load `l`: the greatest think time (mean + spread) exceeds an hour",
        ),
        (
            &*load("arrival = \"open-poisson\"\nrate = 1e300"),
            "load `l`: the rate of an open loop is not from 0.001 to 10,000,000 per second",
        ),
    ] {
        let done = output(&mut run(&site, &plan(&site, 1, 10, more)));
        assert_eq!(done.status.code(), Some(2), "{}", text(&done));
        assert!(text(&done).contains(reason), "`{reason}` is missing in: {}", text(&done));
        assert_eq!(text(&done).lines().count(), 1, "{}", text(&done));
    }
}

#[test]
fn a_command_that_an_agent_does_not_have_is_no_plan() {
    let site = Site::new();
    let (_server, _load) = (site.agent("server"), site.agent("load"));
    for (word, other, reason) in [
        ("test", "tset", "the agent of server has no command `tset` in its configuration, but: test"),
        ("steady", "stedy", "has no architecture `stedy` of the command `test`, but: steady, pool, fails, dies"),
    ] {
        let done = output(&mut run(&site, &plan(&site, 1, 1, &SERVER.replace(word, other))));
        assert_eq!(done.status.code(), Some(1), "{}", text(&done));
        assert!(text(&done).contains(reason), "`{reason}` is missing in: {}", text(&done));
    }
    assert_eq!(records(&site.path("plan.jsonl"), "failure").len(), 0);
}

#[test]
fn clients_pools_and_samples_are_bounded() {
    let site = tempfile::tempdir().unwrap();
    let file = site.path().join("plan.toml");
    let server = "[[server]]\nhost = \"h\"\ncommand = \"c\"\narchitectures = [\"a\"]\n";
    for (values, reason) in [
        ("clients = [\"b\", \"b\"]", "the client `b` occurs twice"),
        ("clients = [\"b\"]\npools = [5, 0]", "a pool has at least one worker"),
        ("clients = [\"b\"]\nsamples = 4000000000", "at most 100000 samples"),
        (
            "clients = [\"b\"]\npools = []\n[[server]]\nhost = \"h\"\ncommand = \"p\"\narchitectures = [\"a\"]\npooled = true",
            "`pools` is empty, so that the command `p` has no server",
        ),
        (
            "clients = [\"b\"]\n[[server]]\nhost = \"h\"\ncommand = \"p\"\narchitectures = []",
            "`architectures` is empty, so that the command `p` has no server",
        ),
        (
            "clients = [\"b\"]\n[[server]]\nhost = \"h\"\ncommand = \"p\"\narchitectures = [\"a\"]\ngreetings = []",
            "`greetings` is empty, so that the command `p` has no server",
        ),
        ("clients = [\"b\"]\n[[pair]]\nfirst = \"c/a\"\nsecond = \"c/a\"", "a pair compares `c/a` with itself"),
        (
            "clients = [\"b\"]\n[[server]]\nhost = \"h\"\ncommand = \"p\"\narchitectures = [\"a\"]\n\
             [[pair]]\nfirst = \"c/a\"\nsecond = \"p/a\"\n[[pair]]\nfirst = \"c/a\"\nsecond = \"p/a\"",
            "the pair of `c/a` and `p/a` occurs twice",
        ),
        (
            "clients = [\"b\", \"d\", \"e\"]\nrequests = 2",
            "load `closed`: 2 requests are fewer than one of each of 3 clients",
        ),
    ] {
        fs::write(&file, format!("name = \"n\"\n{values}\n{server}")).unwrap();
        let error = format!("{:#}", Plan::read(&file).unwrap_err());
        assert!(error.contains(reason), "`{reason}` is missing in: {error}");
    }
}

#[test]
fn servers_are_compared_with_those_of_the_base_command() {
    let text = "name = \"n\"\nclients = [\"c\"]\nbase = \"native\"\n\
                [[server]]\nhost = \"h\"\ncommand = \"ours\"\narchitectures = [\"iterative\", \"own\"]\n\
                [[server]]\nhost = \"h\"\ncommand = \"ours\"\narchitectures = [\"pool\"]\npooled = true\n\
                [[server]]\nhost = \"h\"\ncommand = \"native\"\narchitectures = [\"pool\"]\npooled = true\n\
                [[server]]\nhost = \"h\"\ncommand = \"native\"\narchitectures = [\"iterative\"]\n";
    let site = tempfile::tempdir().unwrap();
    let file = site.path().join("plan.toml");
    fs::write(&file, text).unwrap();
    let plan = Plan::read(&file).unwrap();
    let pairs: Vec<_> = plan.all_pairs().into_iter().map(|pair| (pair.first, pair.second)).collect();
    let expected = ["iterative", "pool-5", "pool-10"].map(|name| (format!("ours/{name}"), format!("native/{name}")));
    assert_eq!(pairs, expected, "the paper's pools are the default");
    let own = "[[pair]]\nfirst = \"ours/iterative\"\nsecond = \"native/iterative\"\n";
    fs::write(&file, format!("{text}{own}")).unwrap();
    assert_eq!(Plan::read(&file).unwrap().all_pairs().len(), 3, "a pair of its own that is one of the base, too");
    assert_eq!((plan.requests, plan.octets, plan.workers, plan.samples), (20_000, 4000, 5, 50));
    assert_eq!(plan.steps().len(), 50 * 7);
    assert_ne!(
        plan.steps()[..7].iter().flat_map(|step| step.targets.clone()).collect::<Vec<_>>(),
        (0..7).collect::<Vec<_>>()
    );
}
