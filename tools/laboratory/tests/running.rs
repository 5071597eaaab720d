//! `lab run`: short forms, resumption, and files that are not results.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use spandrel_laboratory::{Folder, Inventory, Point, Row, State};

use crate::support::{check_code, copy_of_results, expects_links, lab, results, stderr, stdout, text};

/// Series of profiles that the short form leaves out: it has one style of calls for each row.
const ONLY_IN_FULL: [&str; 3] = ["dii-reused sender ", "dii-reused receiver ", "dsi receiver "];

#[test]
fn every_row_that_runs_has_figures_of_its_short_form() {
    let folder = Folder::open(results()).unwrap();
    let inventory = Inventory::of_the_papers();
    let runs: Vec<_> = inventory.rows().iter().filter(|row| row.state == State::Runs).collect();
    assert!(runs.len() >= 130, "{}", runs.len());
    let mut missing: Vec<(&str, &str)> = Vec::new();
    for row in runs {
        let points = row.short_points();
        let is_link = |point: &Point| point.is_at("atm") || point.is_at("ethernet");
        let is_possible = |point: &&Point| expects_links() || !is_link(point) || folder.result(point).is_some();
        let points: Vec<&Point> = points.iter().filter(is_possible).collect();
        if points.is_empty() {
            continue;
        }
        let results: Vec<_> = points.iter().map(|point| folder.result(point).expect(&row.name)).collect();
        for pattern in &row.series {
            let only = Row { series: vec![pattern.clone()], ..row.clone() };
            let is_shown = results.iter().flat_map(|result| &result.series).any(|series| only.shows(&series.name));
            // Peers may be absent; the reason is there then.
            let is_absent =
                results.iter().flat_map(|result| &result.absent).any(|(name, _)| only.shows_contender(name));
            if !is_shown && !is_absent {
                missing.push((row.name.as_str(), pattern.as_str()));
            }
        }
        for result in &results {
            for series in &result.series {
                let is_positive = series.values.iter().all(|value| value.is_finite() && *value >= 0.0);
                assert!(!series.values.is_empty() && is_positive, "{}: {series:?}", row.name);
            }
        }
    }
    missing.retain(|(_, pattern)| !ONLY_IN_FULL.iter().any(|part| pattern.contains(part)));
    assert_eq!(missing, [], "series of rows that no point measures");
}

#[test]
fn what_was_sent_and_called_is_counted() {
    let folder = Folder::open(results()).unwrap();
    let counted = |kind: &str, series: &str, counted: &str| {
        let result = folder.results().find(|result| result.point.to_string().starts_with(kind)).unwrap();
        let series = result.series.iter().find(|one| one.name == series).unwrap();
        series.counted.iter().find(|(name, _)| name == counted).unwrap().1
    };
    assert!(counted("throughput/loopback", "orb", "octets received") > 0);
    assert_eq!(
        counted("servants/twoway/round-robin/void", "orb static", "servants reached in each round, at least"),
        100
    );
    assert_eq!(counted("lookups/random", "active request", "requests"), 40);
    assert_eq!(counted("predictions", "request caching request-train", "calls"), 100);
    assert_eq!(counted("servers", "reactive elapsed", "answers"), 100);
    let datagrams = |series, name| counted("datagrams/oneway/struct/1K", series, name);
    let sent = datagrams("orb", "octets received");
    let arrived = datagrams("orb-datagrams", "octets received");
    assert_eq!(arrived + datagrams("orb-datagrams lost", "octets lost"), sent, "each octet arrives or is lost");
    assert!(arrived > 0);
    assert_eq!(counted("stacks", "message adaptive Mbit/s", "messages"), 400);
}

#[test]
fn definitions_are_those_of_the_standard() {
    let folder = Folder::open(results()).unwrap();
    let result = folder.results().find(|result| result.point.to_string() == "definitions").unwrap();
    let count = |name: &str| result.series.iter().find(|series| series.name == name).unwrap().values[0];
    // CosNaming 1.3 has NameComponent and Binding, Istring apart; Name and BindingList; ten operations of NamingContext,
    // three of BindingIterator, four of NamingContextExt.
    assert_eq!((count("structs CosNaming"), count("sequences CosNaming")), (2.0, 2.0));
    assert_eq!(count("operations CosNaming"), 17.0);
}

#[test]
fn a_run_goes_on_where_it_was() {
    let copy = copy_of_results();
    let out = text(copy.path());
    let output = lab(&["run", "p1.6", "--short", "--out", out]);
    check_code(&output, 0);
    assert!(
        stdout(&output).starts_with("0 points measured, 2 had results already; 3 of 6 selected"),
        "{}",
        stdout(&output)
    );
    // A run that was killed while it wrote leaves a part of a file, which is no result.
    let file = copy.path().join("lookups.random.500.100.json");
    fs::rename(&file, copy.path().join("lookups.random.500.100.json.unfinished")).unwrap();
    let output = lab(&["run", "p1.6", "--short", "--out", out]);
    check_code(&output, 0);
    assert!(stdout(&output).starts_with("1 points measured, 1 had results already"), "{}", stdout(&output));
    assert!(stderr(&output).contains("[1/1] lookups/random/500/100, "), "{}", stderr(&output));
    assert!(file.is_file());
    // A full run does not mix with a short one.
    let output = lab(&["run", "p1.6", "--out", out]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("it is of a run in the other form"), "{}", stderr(&output));
}

#[test]
fn sources_of_tao_that_are_none_end_the_run() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("results");
    let output = lab(&["run", "p1.6", "--short", "--tao", text(root.path()), "--out", text(&out)]);
    check_code(&output, 1);
    let folder = root.path().display();
    assert_eq!(
        stderr(&output),
        format!("error: programs over TAO: cannot be built: {folder} has no sources of ACE and TAO with bin/tao_idl\n")
    );
    assert!(!out.exists(), "nothing is measured");
}

/// The processes below this one, with their children.
fn descendants(process: u32) -> Vec<u32> {
    let children = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> =
        children.flat_map(|line| line.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<u32>>()).collect();
    let below = children.iter().flat_map(|child| descendants(*child)).collect::<Vec<u32>>();
    [children, below].concat()
}

/// Whether a process is there and has not ended.
fn is_running(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_killed_run_leaves_nothing_behind_and_can_be_resumed() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("results");
    let names = ["run", "p2", "p1.6", "m3.1", "m3.4", "--short", "--out", text(&out)];
    let count = || {
        let files = fs::read_dir(&out).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|end| end == "json")).count()
    };
    let deadline = Instant::now() + Duration::from_secs(120);
    let wait = |condition: &mut dyn FnMut() -> bool, subject: &str| {
        while !condition() {
            assert!(Instant::now() < deadline, "{subject}");
            thread::sleep(Duration::from_millis(5));
        }
    };
    for expected in 1..=2 {
        let mut run = Command::new(env!("CARGO_BIN_EXE_spandrel-lab"));
        let mut run = run.args(names).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut children = Vec::new();
        wait(
            &mut || {
                children.extend(descendants(run.id()));
                count() >= expected || run.try_wait().unwrap().is_some()
            },
            "no further result",
        );
        run.kill().unwrap();
        run.wait().unwrap();
        wait(&mut || !children.iter().any(|child| is_running(*child)), "children of a killed run go on");
    }
    let before = count();
    let output = lab(&names);
    check_code(&output, 0);
    let line = stdout(&output);
    assert!(line.contains(&format!("points measured, {before} had results already; ")), "{line}");
    assert!(before >= 2 && !line.starts_with("0 points"), "it was killed in the middle: {line}");
    let unfinished = |file: fs::DirEntry| file.path().extension().is_some_and(|end| end == "unfinished");
    assert!(!fs::read_dir(&out).unwrap().flatten().any(unfinished), "a point that was cut off is measured anew");
}

#[test]
fn a_failed_point_ends_no_run_and_is_shown() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("results");
    // Without `ip`, links between network namespaces fail.
    let run = |path: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-lab"));
        command.args(["run", "p0.table1", "p1.6", "m3.4", "--short", "--out", text(&out)]);
        path.map(|path| command.env("PATH", path));
        command.output().unwrap()
    };
    let output = run(Some(root.path()));
    check_code(&output, 1);
    assert!(stdout(&output).starts_with("3 points measured, 0 had results already"), "{}", stdout(&output));
    let point = Inventory::of_the_papers().select("p0.table1").unwrap()[0].short_points()[0].to_string();
    let failed =
        stdout(&output).lines().find(|line| line.starts_with(&format!("failed: {point}: "))).map(str::to_owned);
    let reason = failed.unwrap_or_else(|| panic!("{}", stdout(&output)));
    let reason = reason.strip_prefix(&format!("failed: {point}: ")).unwrap();
    check_code(&lab(&["report", text(&out)]), 0);
    let read = |name: &str| fs::read_to_string(root.path().join("results-report").join(name)).unwrap();
    let csv = read("figures.csv");
    assert!(
        csv.contains(&format!(",{point},,,,,,,,,\"failed: ")) || csv.contains(&format!(",{point},,,,,,,,,failed: "))
    );
    assert!(csv.contains(",not run\n"), "points of other rows");
    let report: Value = serde_json::from_str(&read("report.json")).unwrap();
    let entry = |name: &str| report["entries"].as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap();
    assert_eq!(entry("p0.table1")["missing"][0]["failure"], reason);
    assert_eq!(entry("p1.fig4.3")["missing"][0]["failure"], Value::Null);
    let markdown = read("report.md");
    assert!(markdown.contains(&format!("| {point}: failed: ")) && markdown.contains("| not run: `spandrel lab run "));
    // It is measured anew, after all others.
    let output = run(None);
    if expects_links() {
        check_code(&output, 0);
        assert!(stdout(&output).starts_with("1 points measured, 3 had results already"), "{}", stdout(&output));
        let is_failure = |file: fs::DirEntry| file.path().extension().is_some_and(|end| end == "failed");
        assert!(!fs::read_dir(&out).unwrap().flatten().any(is_failure));
    }
}

#[test]
fn damaged_and_foreign_files_are_refused_in_one_line() {
    let name = "lookups.random.500.100.json";
    let change = |change: &dyn Fn(&Path)| {
        let copy = copy_of_results();
        change(copy.path());
        let output = lab(&["run", "p1.6", "--short", "--out", text(copy.path())]);
        check_code(&output, 1);
        let report = lab(&["report", text(copy.path())]);
        check_code(&report, 1);
        assert_eq!(stderr(&report), stderr(&output));
        let line = stderr(&output);
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.starts_with("error: cannot use "), "{line}");
        line
    };
    let edit = |edit: &dyn Fn(&mut Value)| {
        change(&|folder: &Path| {
            let mut value: Value = serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap();
            edit(&mut value);
            fs::write(folder.join(name), value.to_string()).unwrap();
        })
    };
    let line = change(&|folder: &Path| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        fs::write(folder.join(name), &text[..text.len() / 2]).unwrap();
    });
    assert!(line.contains("not a result: EOF"), "{line}");
    let line = change(&|folder: &Path| fs::write(folder.join(name), [0xff, 0xfe]).unwrap());
    assert!(line.contains("it is not text"), "{line}");
    let line = change(&|folder: &Path| fs::write(folder.join("notes.txt"), "{}").unwrap());
    assert!(line.contains("notes.txt: not a result"), "{line}");
    let line = change(&|folder: &Path| fs::write(folder.join(name), vec![b' '; (16 << 20) + 1]).unwrap());
    assert!(line.contains("it is too long"), "{line}");
    let line = edit(&|value| value["format"] = "spandrel-lab point 9".into());
    assert!(line.contains("its format is not"), "{line}");
    let line = edit(&|value| value["point"]["objects"] = 501.into());
    assert!(line.contains("its name is not that of its point"), "{line}");
    let line = edit(&|value| value["extra"] = 1.into());
    assert!(line.contains("unknown field `extra`"), "{line}");
}
