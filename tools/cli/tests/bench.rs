//! `spandrel bench` from its command line to the files that it writes.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::{check_code, spandrel, stderr, stdout};

fn json(folder: &Path, name: &str) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

#[test]
fn the_help_of_every_subject_has_examples() {
    for subject in ["connections", "demux", "inflight", "reactor", "rt", "timers"] {
        let output = spandrel(&["bench", subject, "--help"]);
        check_code(&output, 0);
        let example = format!("Examples:\n  spandrel bench {subject} --quick");
        assert!(stdout(&output).contains(&example), "{}", stdout(&output));
    }
}

/// The executable beside the command is used if it was built, and else the one in `PATH`; both print their name.
#[cfg(unix)]
#[test]
fn stacks_are_measured_by_another_executable() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("spandrel-stacks");
    fs::write(&program, "#!/bin/sh\necho Usage: spandrel bench stacks \"$@\"\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = assert_cmd::Command::cargo_bin("spandrel").unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output =
        command.args(["bench", "stacks", "--help"]).env("PATH", path).timeout(support::LIMIT).output().unwrap();
    check_code(&output, 0);
    assert!(stdout(&output).contains("Usage: spandrel bench stacks"), "{}", stdout(&output));
}

#[test]
fn timers_are_measured_by_strategy_and_number() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let args = ["bench", "timers", "--timers", "100,20000", "--rounds", "2", "--placement", "free", "--out", out];
    let output = spandrel(&args);
    check_code(&output, 0);
    let text = stdout(&output);
    for words in [
        "20,000 timers (ns per timer)",
        "| wheel ",
        "| hashed-wheel ",
        "reschedule",
        "list is absent: scheduling takes",
    ] {
        assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    }
    let json = json(folder.path(), "timers.json");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 4);
    for row in rows.iter().filter(|row| row["absent"].is_null()) {
        for nanos in row["nanos"].as_array().unwrap() {
            assert!(nanos["median"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    let summary = fs::read_to_string(folder.path().join("summary.csv")).unwrap();
    assert_eq!(
        summary.lines().count(),
        1 + 7 * 4,
        "four operations of each strategy and number, but for the long list"
    );
}

#[test]
fn lookups_are_measured_by_strategy_number_and_order() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let args = ["bench", "demux", "--objects", "1,100", "--operations", "10,100", "--rounds", "2", "--micros", "50"];
    let output = spandrel(&[&args[..], &["--calls", "100", "--placement", "free", "--out", out]].concat());
    check_code(&output, 0);
    let text = stdout(&output);
    for words in [
        "worst-case, 100 operations",
        "| perfect-hash ",
        "(table 6.1): 100 objects",
        "| request caching ",
        "Goal: active",
    ] {
        assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    }
    let json = json(folder.path(), "demux.json");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 4 * 6);
    let linear = rows.iter().filter(|row| row["strategy"] == "linear" && row["objects"] == 100);
    for row in linear.filter(|row| row["algorithm"] == "worst-case") {
        assert!(row["figures"][2]["nanos"]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert!(fs::read_to_string(folder.path().join("random.svg")).unwrap().contains("Demultiplexing overhead"));
}

#[test]
fn calls_within_an_orb_are_measured_by_path() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let args = ["bench", "collocation", "--rounds", "2", "--calls", "100", "--placement", "free", "--out", out];
    let output = spandrel(&args);
    check_code(&output, 0);
    let text = stdout(&output);
    for words in ["| virtual ", "| direct ", "| through-poa ", "| socket ", "128 doubles"] {
        assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    }
    let json = json(folder.path(), "collocation.json");
    assert_eq!(json["measured"].as_array().unwrap().len(), 2 * 4);
    check_code(&spandrel(&["bench", "collocation", "--paths", "elsewhere"]), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn absent_echo_servers_have_rows_with_the_reason() {
    let (folder, nowhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let out = folder.path().to_str().unwrap();
    let peers = nowhere.path().to_str().unwrap();
    let args = ["bench", "reactor", "--connections", "0+1,10+4", "--seconds", "0.02", "--rounds", "2"];
    let output = spandrel(&[&args[..], &["--placement", "free", "--peers", peers, "--out", out]].concat());
    check_code(&output, 0);
    let text = stdout(&output);
    assert!(
        text.contains("asio is absent: ")
            && text.contains("has no asio")
            && text.contains("4 active and 10 idle connections"),
        "{text}"
    );
    let json = json(folder.path(), "reactor.json");
    for row in json["rows"].as_array().unwrap() {
        let is_ours = !["c", "ace", "asio"].contains(&row["contender"].as_str().unwrap());
        assert_eq!(row["absent"].is_null(), is_ours, "{row}");
        assert!(!is_ours || row["events_per_second"]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
}

/// Tests run below the source tree, so the plain C server is built and compared with ours, or its row has the
/// reason.
#[cfg(target_os = "linux")]
#[test]
fn our_servers_are_compared_with_the_plain_c_server() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let args =
        ["bench", "reactor", "--servers", "c,epoll,acceptor,shards", "--connections", "20+3", "--octets", "3000"];
    let rest = ["--seconds", "0.02", "--rounds", "2", "--placement", "free", "--out", out];
    let output = spandrel(&[&args[..], &rest].concat());
    check_code(&output, 0);
    let json = json(folder.path(), "reactor.json");
    let rows = json["rows"].as_array().unwrap();
    let base_is_here = match rows[0]["absent"].as_str() {
        None => true,
        Some(reason) => {
            assert!(reason.starts_with("cannot be built: "), "{reason}");
            false
        }
    };
    for row in &rows[1..] {
        assert_eq!(row["ratio"]["count"] == 2, base_is_here, "{row}");
        assert!(row["p50_us"]["median"].as_f64().unwrap() <= row["p99_us"]["median"].as_f64().unwrap(), "{row}");
    }
    let runs = fs::read_to_string(folder.path().join("runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 1 + 2 * if base_is_here { 4 } else { 3 });
}

/// The run itself compares the server's count of calls with that of the load.
#[cfg(target_os = "linux")]
#[test]
fn busy_connections_are_served_by_ours_and_by_plain_c() {
    let (folder, nowhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (out, nowhere) = (folder.path().to_str().unwrap(), nowhere.path().to_str().unwrap());
    let servers =
        ["epoll", "threads", "spandrel", "reactive", "leader-followers:2", "thread-pool:2:8", "omniorb", "tonic"];
    let args = ["bench", "connections", "--connections", "1,5,500", "--servers", &servers.join(","), "--work", "20"];
    let rest = ["--seconds", "0.05", "--rounds", "1", "--placement", "free", "--omniorb", nowhere, "--out", out];
    // 500 connections need more descriptors.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 600 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_spandrel")]).args(args).args(rest);
    let output = command.output().unwrap();
    check_code(&output, 0);
    for words in ["omniorb is absent: ", "tonic is absent: not built: ", "spandrel is absent: 500 connections need"] {
        assert!(stdout(&output).contains(words), "`{words}` is missing in:\n{}", stdout(&output));
    }
    let json = json(folder.path(), "connections.json");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * servers.len());
    for row in rows {
        if let Some(reason) = row["absent"].as_str() {
            let is_plain = row["contender"] == "epoll" || row["contender"] == "threads";
            let is_other = row["contender"] == "omniorb" || row["contender"] == "tonic";
            let is_cut = row["number"] == 500 && reason.contains("the limit is 600");
            assert!(is_other || is_cut || is_plain && reason.starts_with("cannot be built: "), "{row}");
            continue;
        }
        assert!(row["calls_per_second"]["median"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["server_us"]["median"].as_f64().unwrap() >= 20.0, "less than the servant computes: {row}");
        assert!(row["p50_us"]["median"].as_f64().unwrap() <= row["p999_us"]["median"].as_f64().unwrap(), "{row}");
        assert_eq!(row["fairness"].is_null(), row["number"] == 1, "{row}");
    }
    for chart in ["rate-free.svg", "cost-free.svg", "p99-free.svg"] {
        assert!(fs::read_to_string(folder.path().join(chart)).unwrap().contains("thread-pool:2:8"), "{chart}");
    }
}

/// The run itself compares the server's count of calls with that of the client.
#[cfg(target_os = "linux")]
#[test]
fn calls_in_flight_are_measured_beside_sequential_calls() {
    let (folder, nowhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (out, nowhere) = (folder.path().to_str().unwrap(), nowhere.path().to_str().unwrap());
    let contenders = "c,threads,spandrel,spandrel-async,omniorb,jacorb,tonic";
    let args = ["bench", "inflight", "--in-flight", "1,7", "--contenders", contenders, "--seconds", "0.05"];
    let rest = ["--rounds", "1", "--placement", "free", "--omniorb", nowhere, "--jacorb", nowhere, "--out", out];
    let output = spandrel(&[&args[..], &rest].concat());
    check_code(&output, 0);
    let text = stdout(&output);
    for words in ["Number of calls in flight: sequential;", "Number of calls in flight: 7;", "jacorb is absent: "] {
        assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    }
    let json = json(folder.path(), "inflight.json");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 7);
    for row in rows {
        if let Some(reason) = row["absent"].as_str() {
            let is_other = ["omniorb", "jacorb", "tonic"].iter().any(|other| row["contender"] == *other);
            let is_plain = row["contender"] == "c" || row["contender"] == "threads";
            assert!(is_other || is_plain && reason.starts_with("cannot be built: "), "{row}");
            continue;
        }
        for figure in ["calls_per_second", "to_first", "p50_us", "p99_us", "server_us", "load_us"] {
            assert!(row[figure]["median"].as_f64().unwrap() > 0.0, "{figure}: {row}");
        }
    }
    assert!(fs::read_to_string(folder.path().join("rate-free.svg")).unwrap().contains("sequential"));
}

/// Two runs of each server: the figures of a loaded machine mean nothing, but each kind of request has its reply.
#[cfg(target_os = "linux")]
#[test]
fn an_urgent_client_is_measured_beside_a_flood_and_a_servant_that_spins() {
    let (folder, nowhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (out, nowhere) = (folder.path().to_str().unwrap(), nowhere.path().to_str().unwrap());
    let args = ["bench", "rt", "--floods", "2", "--seconds", "0.05", "--period", "5000", "--rounds", "2"];
    let rest = ["--placement", "free", "--omniorb", nowhere, "--jacorb", nowhere, "--out", out];
    let output = spandrel(&[&args[..], &rest].concat());
    check_code(&output, 0);
    let text = stdout(&output);
    let expected =
        ["flood of 2; tcp, placed as the system likes", "spin; unix,", "jacorb is absent: ", "nested, flood of 2;"];
    for words in expected {
        assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    }
    let json = json(folder.path(), "rt.json");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 6 * 6);
    for row in rows {
        if let Some(reason) = row["absent"].as_str() {
            let is_other = row["contender"] == "omniorb" || row["contender"] == "jacorb";
            let is_unbuilt = row["contender"] == "c" && reason.starts_with("cannot be built: ");
            let is_spin = row["load"] == "spin" && reason == "its threads have no priorities";
            // Without omniORB's programs.
            let is_foreign = row["load"]["foreign"] == 2;
            assert!(is_other || is_unbuilt || is_spin || is_foreign, "{row}");
            continue;
        }
        for figure in ["min_us", "median_us", "mean_us", "deviation_us", "p99_us", "p999_us", "worst_us"] {
            assert_eq!(row[figure]["count"], 2, "{figure}: {row}");
        }
        // The upcall takes 100 µs of processor time.
        assert!(row["min_us"]["low"].as_f64().unwrap() >= 100.0, "{row}");
    }
    let (mut others, mut loaded) = (0, 0);
    for run in json["measured"].as_array().unwrap() {
        assert_eq!(run["periods"], 10, "{run}");
        // On a busy machine the others may come to nothing in a single run of 50 ms.
        let calls = run["others"].as_u64().unwrap();
        if run["load"] == "alone" || run["load"]["nested"] == 0 {
            assert_eq!(calls, 0, "{run}");
        } else {
            (others, loaded) = (others + calls, loaded + 1);
        }
    }
    assert!(loaded > 0 && others > 0, "{others} calls in {loaded} runs");
    for chart in ["median-tcp-free.svg", "p99-unix-free.svg", "worst-tcp-free.svg"] {
        assert!(fs::read_to_string(folder.path().join(chart)).unwrap().contains("spandrel-watched"), "{chart}");
    }
}

/// `select` refuses the connections beyond 1,024 handles. The series continues, and with fewer connections
/// the server takes part again.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_cannot_hold_so_many_connections_is_absent_for_that_load_alone() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let args = ["bench", "reactor", "--servers", "poll,select", "--connections", "1100+2,10+2", "--seconds", "0.02"];
    let output = spandrel(&[&args[..], &["--rounds", "2", "--placement", "free", "--out", out]].concat());
    check_code(&output, 0);
    for row in json(folder.path(), "reactor.json")["rows"].as_array().unwrap() {
        let too_many = row["contender"] == "select" && row["load"]["idle"] == 1100;
        let reason = row["absent"].as_str().unwrap_or_default();
        assert_eq!(reason.starts_with("it does not hold 1,102 connections: "), too_many, "{row}");
        assert_eq!(row["events_per_second"]["count"] == 2, !too_many, "{row}");
    }
}

/// The smallest client, built for size as in docs/performance.md: less than a minute of processor time, and some
/// seconds if none of its sources has changed.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_smallest_client_has_not_grown() {
    use spandrel_lab::bench::footprint::{MAX_GROWTH, Minimum, RECORDED};

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("smallest-client");
    let mut command = assert_cmd::Command::cargo_bin("spandrel").unwrap();
    command.args(["bench", "footprint", "--parts", "minimum", "--out"]).arg(&folder);
    // Cargo builds, which takes time on a busy machine.
    let output = command.timeout(Duration::from_secs(900)).output().unwrap();
    check_code(&output, 0);
    let minimum: Minimum = serde_json::from_value(json(&folder, "footprint.json")["minimum"].clone()).unwrap();
    assert!(
        minimum.growth() <= MAX_GROWTH,
        "the smallest client adds {} octets to a program with a socket, {:.1} % more than the {RECORDED} that are recorded ({MAX_GROWTH} % pass).\n\
         Keep new code out of it: behind a Cargo feature that it does not name, or out of what a plain call reaches. What it consists of: set\n\
         `strip = false` in {}/built/minimum/Cargo.toml, build there, and compare `nm --size-sort --print-size --demangle` with the last commit's.\n\
         If it has to grow, say so: the new figure in RECORDED (tools/lab/src/bench/footprint/minimum.rs), in docs/performance.md, in docs/experiments.md and in\n\
         CHANGELOG.md.",
        minimum.added(),
        minimum.growth(),
        folder.display(),
    );
}

#[test]
fn pages_say_how_large_the_smallest_client_is() {
    let message = format!("{:.0} KiB more", spandrel_lab::bench::footprint::RECORDED as f64 / 1024.0);
    for page in ["docs/performance.md", "docs/experiments.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
        assert!(
            fs::read_to_string(&path).unwrap().contains(&message),
            "{page} does not have the recorded figure `{message}`"
        );
    }
}

#[test]
fn invalid_arguments_are_wrong_usage() {
    for (args, words) in [
        (&["bench"][..], "Usage: spandrel bench"),
        (&["bench", "reactor", "--servers", "inetd"], "not an echo server; there are c, "),
        (&["bench", "reactor", "--connections", "10"], "write IDLE+ACTIVE"),
        (&["bench", "reactor", "--octets", "1000000", "--placement", "free"], "a message has between"),
        (&["bench", "connections", "--servers", "inetd"], "values of -ORBConcurrency"),
        (&["bench", "connections", "--connections", "8,0"], "must be between 1 and 28,000, not 0"),
        (&["bench", "inflight", "--in-flight", "20000"], "must be between 0 and 10,000, not 20000"),
        (&["bench", "inflight", "--contenders", "carrier-pigeon"], "is not a client and server; there are c, "),
        (&["bench", "rt", "--servers", "tao"], "`tao` is not a server; there are c, spandrel, spandrel-rt, "),
        (
            &["bench", "rt", "--floods", "1001", "--placement", "free"],
            "a flood has between 1 and 1000 clients, not 1001",
        ),
        (&["bench", "timers", "--strategies", "hourglass"], "no timer queue is called `hourglass`"),
        (&["bench", "timers", "--timers", "0"], "not 0"),
    ] {
        let output = spandrel(args);
        check_code(&output, 2);
        assert!(stderr(&output).contains(words), "{args:?}: `{words}` is missing in:\n{}", stderr(&output));
    }
}
