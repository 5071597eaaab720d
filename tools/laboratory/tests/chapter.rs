//! `lab report --chapter`: the chapter of the book on the papers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use spandrel_laboratory::{Folder, Inventory, State};

use crate::support::{check_code, lab, results, stderr, text};

/// A point of a full run with made values.
struct MadePoint {
    point: Value,
    file: &'static str,
    series: &'static [(&'static str, &'static str, &'static [f64])],
}

fn write(folder: &Path, measurement: &MadePoint) {
    let series: Vec<Value> = measurement
        .series
        .iter()
        .map(|(name, unit, values)| json!({ "name": name, "unit": unit, "values": values }))
        .collect();
    let machine = json!({ "system": "linux x86_64", "kernel": "6.1", "processor": "Example 9000", "cores": 2,
        "load": 0.1, "program": "spandrel 0.0.0" });
    let result = json!({ "format": "spandrel-lab point 1", "point": measurement.point, "form": "full", "machine": machine,
        "ended": 0, "seconds": 1.0, "cut": null, "absent": [], "series": series });
    fs::write(folder.join(measurement.file), result.to_string()).unwrap();
}

fn chapter_of(folder: &Path) -> String {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("chapter.md");
    let output = lab(&["report", text(folder), "--chapter", text(&file)]);
    check_code(&output, 0);
    fs::read_to_string(file).unwrap()
}

/// The lines between a heading and the next one.
fn section<'t>(chapter: &'t str, heading: &str) -> &'t str {
    let rest = chapter.split_once(&format!("\n## {heading}")).unwrap_or_else(|| panic!("{heading}: {chapter}")).1;
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

const OCTETS_8K: &str = "throughput.loopback.64K.oneway.octet.8K.json";

fn flood(series: &'static [(&'static str, &'static str, &'static [f64])]) -> MadePoint {
    let point = json!({ "kind": "throughput", "link": "loopback", "queue_octets": 65536, "data": "octet",
        "buffer_octets": 8192 });
    MadePoint { point, file: OCTETS_8K, series }
}

#[test]
fn what_peers_and_goals_beat_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &flood(&[
            ("c", "Mbit/s", &[200.0, 201.0, 199.0, 200.0]),
            ("orb", "Mbit/s", &[100.0, 101.0, 99.0, 100.0]),
            ("omniorb", "Mbit/s", &[125.0, 126.0, 124.0, 125.0]),
            ("rpc", "Mbit/s", &[101.0, 102.0, 100.0, 101.0]),
            ("ipc", "Mbit/s", &[200.0, 201.0, 199.0, 200.0]),
            ("ace", "Mbit/s", &[150.0, 151.0, 149.0, 150.0]),
        ]),
    );
    let call = |style: &str| {
        json!({ "kind": "call-profile", "style": style, "call": "twoway", "algorithm": "round-robin",
        "case": "void", "servants": 1 })
    };
    write(
        folder.path(),
        &MadePoint {
            point: json!({ "kind": "servants", "call": "twoway", "algorithm": "round-robin", "case": "void", "servants": 1 }),
            file: "servants.twoway.round-robin.void.1.json",
            series: &[
                ("orb static", "µs", &[10.0, 10.1, 9.9, 10.0]),
                ("omniorb static", "µs", &[8.0, 8.1, 7.9, 8.0]),
                ("orb dii", "µs", &[12.0, 12.1, 11.9, 12.0]),
            ],
        },
    );
    write(
        folder.path(),
        &MadePoint {
            point: call("static"),
            file: "call-profile.static.twoway.round-robin.void.1.json",
            series: &[
                ("orb static sender marshaling share", "%", &[20.0]),
                ("orb static sender copying share", "%", &[70.0]),
                ("orb static receiver dispatch share", "%", &[55.0]),
            ],
        },
    );
    let chapter = chapter_of(folder.path());
    assert!(!chapter.contains("still to be made") && chapter.contains("are not run"), "{chapter}");
    let peers = section(&chapter, "Peers that are ahead");
    let row = |begin: &str| peers.lines().find(|line| line.starts_with(begin)).map(str::to_owned);
    let flood = row("| `throughput/loopback/64K/oneway/octet` | omniorb |").expect(peers);
    assert!(flood.contains("rate 8K: 0.8 |") && flood.ends_with("| not profiled |"), "{flood}");
    let calls = row("| `servants/twoway/round-robin/void` | omniorb static |").expect(peers);
    assert!(calls.contains("time 1: 1.25 |") && calls.contains("sender: copying 70 %, marshaling 20 %;"), "{calls}");
    // Behind by less than 3 %, ahead, and without a rival: no row.
    assert_eq!(peers.lines().filter(|line| line.starts_with("| `")).count(), 2, "{peers}");
    let goals = section(&chapter, "Goals that are missed");
    let missed = "| one-way sequences of octets, from 8 K, over C sockets | ≥ 0.98 | 0.5 | \
                  `throughput/loopback/64K/oneway/octet/8K` | 1 of 5 |";
    assert!(goals.contains(missed), "{goals}");
    assert!(!goals.contains("dynamic calls"), "1.2 is within 1.3: {goals}");
    assert!(goals.contains(" goals of the design: 2 are measured, 1 of these are missed."), "{goals}");
    // The first sections stand above all papers, and a finding is decided by its bound.
    assert!(chapter.find("## Peers").unwrap() < chapter.find("## Paper 000").unwrap());
    let paper = section(&chapter, "Paper 001");
    let begin = "| p1.fig2.10 | ";
    assert!(paper.lines().any(|line| line.starts_with(begin) && line.contains("| 1 | ")), "{paper}");
    assert!(section(&chapter, "Paper 000").contains("| not run | open |"));
}

#[test]
fn the_page_of_the_book_has_only_measured_figures() {
    let empty = tempfile::tempdir().unwrap();
    let without_results = chapter_of(empty.path());
    assert!(without_results.contains("**The full run is still to be made**"));
    // No column of today has a figure.
    for line in without_results.lines().filter(|line| line.starts_with("| p")) {
        assert!(line.ends_with("| not run | open |"), "{line}");
    }
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/then-and-now.md")).unwrap();
    if page.contains("**The full run is still to be made**") {
        assert_eq!(page, without_results, "write it anew: lab report EMPTY --chapter docs/then-and-now.md");
    }
    for line in without_results.lines().filter(|line| line.starts_with("## ")) {
        assert!(page.contains(line), "the page lacks {line}");
    }
}

#[test]
fn results_of_a_short_run_make_no_chapter() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("chapter.md");
    let output = lab(&["report", text(results()), "--chapter", text(&file)]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("has results of a short run"), "{}", stderr(&output));
    assert!(!file.exists());
}

#[test]
fn goals_and_findings_name_what_is_measured() {
    let inventory = Inventory::of_the_papers();
    let points: BTreeSet<String> =
        inventory.rows().iter().flat_map(|row| row.points()).map(|point| point.to_string()).collect();
    let text = include_str!("../inventory/chapter.toml");
    let texts: toml::Table = text.parse().unwrap();
    let folder = Folder::open(results()).unwrap();
    let measured: BTreeSet<&str> =
        folder.results().flat_map(|result| &result.series).map(|series| series.name.as_str()).collect();
    for goal in texts["goal"].as_array().unwrap() {
        let title = goal["title"].as_str().unwrap();
        let at = goal.get("each-at").and_then(toml::Value::as_array).into_iter().flatten();
        let ends = ["numerator-at", "denominator-at"].into_iter().filter_map(|key| goal.get(key));
        let at: Vec<&str> = at.chain(ends).map(|at| at.as_str().unwrap()).collect();
        assert!(!at.is_empty(), "{title}");
        for point in at {
            assert!(points.contains(point), "{title}: no row has the point {point}");
        }
        assert!(goal.get("at-least").is_some() != goal.get("at-most").is_some(), "{title}: one bound");
        for key in ["numerator", "denominator"] {
            let Some(series) = goal.get(key).and_then(toml::Value::as_str) else { continue };
            // The short form has the sizes of one operation only.
            let has_short = !series.starts_with("strseq") || !series.ends_with(" stub");
            assert!(!has_short || measured.contains(series), "{title}: no series is named {series}");
        }
    }
    let findings: Vec<_> = inventory
        .rows()
        .iter()
        .flat_map(|row| row.paper.iter().map(move |ratio| (row, ratio)))
        .filter(|(_, ratio)| ratio.finding.is_some())
        .collect();
    for paper in ["p0", "p1", "p2", "p3", "p4"] {
        assert!(findings.iter().any(|(row, _)| row.paper_name() == paper), "{paper}");
    }
    for (row, ratio) in findings {
        assert!(row.state == State::Runs && (ratio.at_least.is_some() || ratio.at_most.is_some()), "{ratio:?}");
        // The paper's own figure is one with which its finding holds.
        assert!(ratio.at_least.is_none_or(|bound| ratio.ratio >= bound), "{ratio:?}");
        assert!(ratio.at_most.is_none_or(|bound| ratio.ratio <= bound), "{ratio:?}");
    }
}
