//! `lab list` and the inventory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use spandrel_laboratory::{Form, Inventory, Row, State, planned_time};

use crate::support::{check_code, lab, stderr, stdout};

/// The numbers of captions of figures and tables in each paper, and the last ones.
const CAPTIONS: [(&str, usize, &[&str]); 5] = [
    ("p0", 21, &["p0.fig19", "p0.table2"]),
    ("p1", 134, &["p1.fig2.14", "p1.fig4.25", "p1.table5.12", "p1.fig7.6", "p1.figB.7", "p1.tableE.6"]),
    ("p2", 12, &["p2.fig12"]),
    ("p3", 6, &["p3.fig6"]),
    ("p4", 58, &["p4.fig4.21", "p4.table5.4", "p4.figA.4", "p4.figE.2"]),
];

#[test]
fn every_caption_of_the_papers_has_one_row() {
    let inventory = Inventory::of_the_papers();
    let names: BTreeSet<&str> = inventory.rows().iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.len(), inventory.rows().len(), "names are unique");
    for (paper, count, last) in CAPTIONS {
        let rows = names.iter().filter(|name| name.split('.').next() == Some(paper)).count();
        assert_eq!(rows, count, "{paper}");
        assert!(last.iter().all(|name| names.contains(name)), "{paper}: {last:?}");
    }
    // The numbers within a chapter have no gap, except where the paper itself has one: 7.3 has no caption.
    let mut numbers: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for name in &names {
        let (series, number) = name.rsplit_once(|letter: char| !letter.is_ascii_digit()).unwrap();
        let kind = format!("{series}{}", &name[series.len()..name.len() - number.len()]);
        numbers.entry(kind).or_default().insert(number.parse().unwrap());
    }
    for (kind, numbers) in numbers {
        let last = *numbers.last().unwrap();
        let missing: Vec<usize> = (1..=last).filter(|number| !numbers.contains(number)).collect();
        let expected: &[usize] = if kind == "p1.fig7." { &[3] } else { &[] };
        assert_eq!(missing, expected, "{kind}");
    }
}

#[test]
fn each_row_says_how_it_runs_or_why_it_does_not() {
    for row in Inventory::of_the_papers().rows() {
        let name = &row.name;
        assert!(!row.title.is_empty() && !row.section.is_empty(), "{name}");
        if row.state == State::Runs {
            assert!(row.command().is_some() && row.minutes() > 0, "{name}");
            assert!(!row.points().is_empty() && !row.short_points().is_empty() && !row.series.is_empty(), "{name}");
            let all: BTreeSet<String> = row.points().iter().map(ToString::to_string).collect();
            assert_eq!(all.len(), row.points().len(), "{name}: points are different");
            assert!(row.reason.is_none(), "{name}");
        } else {
            assert!(row.reason.as_ref().is_some_and(|reason| reason.len() > 10), "{name}");
            assert!(row.measure.is_none() && row.paper.is_empty() && row.command().is_none(), "{name}");
        }
        for ratio in &row.paper {
            assert!(ratio.ratio > 0.0 && !ratio.title.is_empty(), "{name}: {ratio:?}");
            for part in [&ratio.numerator_at, &ratio.denominator_at].into_iter().flatten() {
                assert!(row.points().iter().any(|point| point.is_at(part)), "{name}: no point is at {part}");
            }
        }
    }
}

#[test]
fn the_whole_inventory_runs_within_twelve_hours() {
    let inventory = Inventory::of_the_papers();
    let rows: Vec<&Row> = inventory.rows().iter().collect();
    let planned = planned_time(&rows, Form::Full);
    assert!(planned <= Duration::from_secs(12 * 3600), "{planned:?}");
}

#[test]
fn the_list_has_all_rows_of_the_inventory() {
    let output = lab(&["list", "--json"]);
    check_code(&output, 0);
    let rows: Vec<Value> = serde_json::from_str(&stdout(&output)).unwrap();
    let inventory = Inventory::of_the_papers();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    let expected: Vec<&str> = inventory.rows().iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, expected);
    let output = lab(&["list", "p1.6"]);
    check_code(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("p1.fig6.4") && text.contains("runs here") && !text.contains("p1.fig7"), "{text}");
    assert!(text.contains("6 figures and tables: 3 runs here"), "{text}");
}

#[test]
fn unknown_names_are_wrong_usage() {
    for command in ["list", "run"] {
        let output = lab(&[command, "p1.fig2.99"]);
        check_code(&output, 2);
        assert!(stderr(&output).contains("did you mean `p1.fig2.9`?"), "{}", stderr(&output));
    }
    let output = lab(&["run", "p0.fig8"]);
    check_code(&output, 1);
    assert_eq!(stderr(&output), "error: p0.fig8 does not run here: no counterpart: a drawing without figures\n");
}

#[test]
fn names_chapters_and_papers_are_selected() {
    let inventory = Inventory::of_the_papers();
    let count = |text| inventory.select(text).map(|rows| rows.len()).map_err(|error| error.to_string());
    for (text, expected) in [
        ("p1.fig2.9", 1),
        ("p1.2", 17),
        ("p1", 134),
        ("p4.A", 4),
        ("p4.5", 15),
        ("p2", 12),
        ("m1", 2),
        ("m3", 9),
        ("m3.2", 1),
        ("all", 242),
    ] {
        assert_eq!(count(text), Ok(expected), "{text}");
    }
    assert!(count("p9").is_err() && count("").is_err());
}

#[test]
fn rows_show_the_series_of_their_patterns() {
    let inventory = Inventory::of_the_papers();
    let shows = |row: &str, series: &str| inventory.select(row).unwrap()[0].shows(series);
    assert!(shows("p1.fig2.13", "orb") && !shows("p1.fig2.13", "orb-padded"), "a name");
    assert!(shows("p1.table7.1", "short compiled") && !shows("p1.table7.1", "short compiled marshaling"), "an end");
    assert!(shows("p1.table5.2", "original write calls of put_long"), "a beginning");
    assert!(!shows("p1.table5.2", "original read calls of get_long"));
}

#[test]
fn rows_share_their_points() {
    let inventory = Inventory::of_the_papers();
    let points = |name: &str| inventory.select(name).unwrap()[0].points();
    assert_eq!(points("p1.fig2.9").len(), 48, "six types and eight sizes");
    assert_eq!(points("p1.fig2.9"), points("p1.fig2.13"));
    let rows = |names: &[&str]| names.iter().map(|name| inventory.select(name).unwrap()[0]).collect::<Vec<_>>();
    let time = |names: &[&str]| planned_time(&rows(names), Form::Full);
    assert_eq!(time(&["p1.fig2.9"]), time(&["p1.fig2.9", "p1.fig2.10", "p1.fig2.13"]));
}
