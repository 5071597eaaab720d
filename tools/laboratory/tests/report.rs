//! `lab report`: all formats have the same figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use spandrel_laboratory::report::{Entry, Figure, Report, markdown};
use spandrel_laboratory::{Inventory, Unit};
use spandrel_test_support::browser::{Page, in_browser};

use crate::support::{check_code, lab, results, text};

/// The folder of a report on the shared results.
fn report() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("report");
    check_code(&lab(&["report", text(results()), "--out", text(&out)]), 0);
    (root, out)
}

/// The records of a CSV file (RFC 4180).
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut cell, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            other => cell.push(other),
        }
    }
    assert!(record.is_empty() && cell.is_empty(), "the last line ends");
    records
}

/// The cells of each figure by row, point and series.
type Figures = BTreeMap<(String, String, String), Vec<String>>;

fn figures_of_csv(text: &str) -> Figures {
    let mut records = records(text).into_iter();
    let header = records.next().unwrap().join(",");
    assert_eq!(header, "row,title,point,series,unit,median,low,high,rounds,counted,cut,state");
    let mut figures = Figures::new();
    for record in records {
        let [row, _, point, series, unit, median, low, high, rounds, counted, cut, state] = &record[..] else {
            panic!("{record:?}")
        };
        if state != "measured" {
            assert!([series, unit, median, low, high].iter().all(|cell| cell.is_empty()), "{record:?}");
            continue;
        }
        let cells = [median, unit, low, high, rounds, counted, cut].map(Clone::clone).to_vec();
        let earlier = figures.insert((row.clone(), point.clone(), series.clone()), cells);
        assert!(earlier.is_none(), "{row} {point} {series} comes twice");
    }
    figures
}

/// The figures that the page in the browser shows.
async fn figures_of_page(page: &Page) -> Figures {
    let script = "return [...document.querySelectorAll('tr[data-row]')].map((row) =>
        [row.dataset.row, ...[...row.children].map((cell) => cell.textContent)]);";
    let rows = page.run(script, vec![]).await;
    let mut figures = Figures::new();
    for row in rows.as_array().unwrap() {
        let mut cells = row.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap().to_owned());
        let mut next = || cells.next().unwrap();
        let key = (next(), next(), next());
        figures.insert(key, cells.collect());
    }
    figures
}

#[test]
fn each_figure_of_the_page_is_that_of_the_csv() {
    let (_root, out) = report();
    let expected = figures_of_csv(&fs::read_to_string(out.join("figures.csv")).unwrap());
    assert!(expected.len() > 200, "{}", expected.len());
    in_browser(async |page| {
        page.open(&format!("file://{}", out.join("index.html").display())).await;
        page.wait("document.querySelectorAll('#entries details').length === 242").await;
        assert_eq!(figures_of_page(&page).await, expected);

        // It is interactive: the search hides entries, and an opened one has its chart and sorts by a click.
        page.set("#search", "demultiplexing by strategy").await;
        let visible = "[...document.querySelectorAll('#entries details')].filter((entry) => !entry.hidden).length";
        page.wait(&format!("{visible} === 2")).await;
        page.set("#search", "").await;
        page.set("#state", "not-built").await;
        page.wait(&format!("{visible} > 0 && {visible} < 20")).await;
        page.set("#state", "").await;
        page.set("#measured", "true").await;
        page.set("#search", "p1.fig4.3").await;
        page.wait(&format!("{visible} === 1")).await;
        page.click("#open").await;
        page.wait("document.querySelector('details[open] table')").await;
        page.click("details[open] table:last-of-type th:nth-child(3)").await;
        let script = "return [...document.querySelectorAll('details[open] tr[data-row]')].map((row) =>
            parseFloat(row.children[2].textContent))";
        let medians = page.run(script, vec![]).await;
        let medians: Vec<f64> = medians.as_array().unwrap().iter().map(|median| median.as_f64().unwrap()).collect();
        assert!(medians.len() > 1 && medians.is_sorted(), "{medians:?}");
        assert_eq!(page.messages().await, Vec::<String>::new(), "no error, and nothing that cannot be loaded");

        // One other figure in the page is one difference.
        let text = fs::read_to_string(out.join("index.html")).unwrap();
        let (before, rest) = text.split_once("\"median\":").unwrap();
        let (median, after) = rest.split_once(',').unwrap();
        let other = format!("{before}\"median\":{},{after}", median.parse::<f64>().unwrap() + 1.0);
        fs::write(out.join("other.html"), other).unwrap();
        page.open(&format!("file://{}", out.join("other.html").display())).await;
        page.wait("document.querySelectorAll('#entries details').length === 242").await;
        let figures = figures_of_page(&page).await;
        let differences = expected.iter().filter(|(key, cells)| figures.get(key) != Some(cells)).count();
        assert_eq!((differences, figures.len()), (1, expected.len()));
    });
}

#[test]
fn all_formats_have_the_same_figures() {
    let (_root, out) = report();
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let expected = figures_of_csv(&read("figures.csv"));
    let json: Value = serde_json::from_str(&read("report.json")).unwrap();
    // The page is whole by itself: the same data are in it, and no address of another file.
    let page = read("index.html");
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    assert_eq!(serde_json::from_str::<Value>(data).unwrap(), json);
    assert!(!page.contains(" src=") && !page.contains("<link") && !page.contains("@import"), "nothing is loaded");
    let mut figures = Figures::new();
    for entry in json["entries"].as_array().unwrap() {
        for figure in entry["figures"].as_array().unwrap() {
            let text = |name: &str| match &figure[name] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.as_f64().unwrap().to_string(),
            };
            let cells = ["median", "unit", "low", "high", "rounds", "counted", "cut"].map(text).to_vec();
            figures.insert((entry["name"].as_str().unwrap().to_owned(), text("point"), text("series")), cells);
        }
    }
    assert_eq!(figures, expected);
    let markdown = read("report.md");
    for ((_, point, series), cells) in &expected {
        let line = format!("| {point} | {series} | {} {} |", cells[0], cells[1]);
        assert!(markdown.contains(&line), "{line}");
    }
}

#[test]
fn ratios_of_the_papers_stand_beside_todays() {
    let (_root, out) = report();
    let json: Value = serde_json::from_str(&fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
    let entry = |name: &str| {
        json["entries"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["name"] == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    let table = entry("p1.table6.1");
    let ratio = &table["ratios"][0];
    assert_eq!((&ratio["title"], &ratio["paper"]), (&"object, linear over active".into(), &43.2.into()));
    let median = |series: &str| {
        let figures = table["figures"].as_array().unwrap();
        figures.iter().find(|figure| figure["series"] == series).unwrap()["median"].as_f64().unwrap()
    };
    let here = median("linear object") / median("active object");
    assert!((ratio["here"].as_f64().unwrap() / here - 1.0).abs() < 1e-3, "{ratio}: {here}");
    // Nothing is made up where nothing was measured.
    assert_eq!(entry("p1.fig5.5")["figures"], Value::Array(Vec::new()));
}

#[test]
fn a_folder_without_results_has_no_report() {
    let empty = tempfile::tempdir().unwrap();
    let output = lab(&["report", text(empty.path())]);
    check_code(&output, 1);
    let output = lab(&["report", text(&empty.path().join("nowhere"))]);
    check_code(&output, 1);
}

#[test]
fn queues_of_both_sizes_stand_in_one_table() {
    let inventory = Inventory::of_the_papers();
    let row = inventory.select("p0.table2").unwrap()[0].clone();
    let figure = |queue: &str, size: &str, series: &str, median: f64| Figure {
        point: format!("throughput/ethernet/{queue}/oneway/octet/{size}"),
        series: series.to_owned(),
        unit: Unit::MbitPerSecond,
        median,
        low: median,
        high: median,
        rounds: 1,
        counted: String::new(),
        cut: None,
    };
    let figures = vec![
        figure("64K", "1K", "c", 9.1),
        figure("64K", "8K", "c", 9.4),
        figure("64K", "1K", "orb", 7.5),
        figure("8K", "1K", "c", 8.2),
        figure("8K", "8K", "c", 8.6),
    ];
    let entry = Entry { row, command: None, figures, ratios: Vec::new(), missing: Vec::new(), absent: Vec::new() };
    let report = Report { machines: Vec::new(), form: None, entries: vec![entry] };
    let table = "| series | queue | 1K | 8K |\n| --- | ---: | ---: | ---: |\n| c | 64K | 9.1 | 9.4 |\n| c | 8K | 8.2 | 8.6 |\n\
                 | orb | 64K | 7.5 |  |\n| orb | 8K |  |  |\n";
    let text = markdown(&report);
    assert!(text.contains(table), "{text}");
    let one_queue = Report {
        entries: vec![Entry { figures: report.entries[0].figures[..3].to_vec(), ..report.entries[0].clone() }],
        ..report
    };
    assert!(!markdown(&one_queue).contains("| queue |"));
}
