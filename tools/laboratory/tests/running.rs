//! `lab run`: short forms, resumption, and files that are not results.

use std::fs;
use std::path::Path;

use serde_json::Value;
use spandrel_laboratory::{Folder, Inventory, Point, State};

use crate::support::{check_code, copy_of_results, expects_links, lab, results, stderr, stdout, text};

#[test]
fn every_row_that_runs_has_figures_of_its_short_form() {
    let folder = Folder::open(results()).unwrap();
    let inventory = Inventory::of_the_papers();
    let runs: Vec<_> = inventory.rows().iter().filter(|row| row.state == State::Runs).collect();
    assert!(runs.len() >= 129, "{}", runs.len());
    for row in runs {
        let points = row.short_points();
        let is_link = |point: &Point| point.is_at("atm") || point.is_at("ethernet");
        let is_possible = |point: &&Point| expects_links() || !is_link(point) || folder.result(point).is_some();
        let points: Vec<&Point> = points.iter().filter(is_possible).collect();
        if points.is_empty() {
            continue;
        }
        let results: Vec<_> = points.iter().map(|point| folder.result(point).expect(&row.name)).collect();
        let shown = results.iter().flat_map(|result| &result.series).filter(|series| row.shows(&series.name));
        // Peers may be absent; the reason is there then.
        let is_absent = results.iter().flat_map(|result| &result.absent).any(|(name, _)| row.shows_contender(name));
        let names: Vec<&str> = shown.map(|series| series.name.as_str()).collect();
        assert!(!names.is_empty() || is_absent, "{} has no figure", row.name);
        for result in &results {
            for series in &result.series {
                let is_positive = series.values.iter().all(|value| value.is_finite() && *value >= 0.0);
                assert!(!series.values.is_empty() && is_positive, "{}: {series:?}", row.name);
            }
        }
    }
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
