//! The report: a table per placement and number, a row per contender; and the files.

use std::fmt::{Display, Write as _};

use serde::Serialize;
use spandrel_measure::stats::Summary;
use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::experiment::Experiment;
use super::plot;
use super::results::{Results, Row};
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text<E: Experiment>(results: &Results<E::Contender>) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    let rounds = results.rows.iter().filter_map(|row| row.calls_per_second).map(|rate| rate.count).min().unwrap_or(0);
    _ = writeln!(text, "{}", results.machine.summary());
    let servants = match settings.work_micros {
        0 => "servants that answer at once".to_owned(),
        micros => format!("servants that compute for {micros} µs"),
    };
    _ = writeln!(
        text,
        "Calls without parameters, {servants}, {} ms per run; medians of {rounds} interleaved rounds, in parentheses from lowest to highest",
        settings.run_millis
    );
    for placement in &settings.placements {
        for number in &settings.numbers {
            let here = |row: &&Row| row.placement == *placement && row.number == *number;
            let rows: Vec<&Row> = results.rows.iter().filter(here).collect();
            let number = E::label(*number);
            _ = writeln!(text, "\nNumber of {}: {number}; load and server {}", E::UNIT, placement.description());
            _ = writeln!(text, "{}", table(results, &rows));
            for (contender, reason) in rows.iter().filter_map(|row| Some((&row.contender, row.absent.as_ref()?))) {
                _ = writeln!(text, "{contender} is absent: {reason}");
            }
        }
    }
    _ = writeln!(
        text,
        "\nCPU: processor time of the server per call. Load: processor time of the load or client per call, which \
         bounds the rate of each contender. Ratios to {}: calls above 1, and times below 1, are better. To first: to \
         the calls of the same contender with the first number.",
        results.base
    );
    if results.rows.iter().any(|row| row.fairness.is_some()) {
        _ = writeln!(text, "Fairness: calls on the slowest connection to those of the median one.");
    }
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn table<C>(results: &Results<C>, rows: &[&Row]) -> table::Table {
    let is_fairness_known = results.rows.iter().any(|row| row.fairness.is_some());
    let ratio = format!("ratio to {}", results.base);
    let mut header = vec![
        "contender",
        "calls/s",
        &ratio,
        "CPU µs",
        "CPU ratio",
        "p50 µs",
        "p99 µs",
        "p99 ratio",
        "p99.9 µs",
        "load µs",
        "to first",
    ];
    if is_fairness_known {
        header.push("fairness");
    }
    let columns = header.len();
    let mut table = table::with_header(header.into_iter().map(str::to_owned).collect());
    for row in rows {
        let mut cells = vec![row.contender.clone()];
        match row.absent {
            Some(_) => {
                cells.push("absent".to_owned());
                cells.resize(columns, String::new());
            }
            None => {
                cells.extend([
                    shown(row.calls_per_second, |rate| {
                        format!("{} ±{:>3.0} %", grouped(rate.median), rate.spread_percent())
                    }),
                    shown(row.ratio, ranged),
                    shown(row.server_us, |us| format!("{:.3}", us.median)),
                    shown(row.server_ratio, ranged),
                    shown(row.p50_us, |us| format!("{:.2}", us.median)),
                    shown(row.p99_us, |us| format!("{:.2}", us.median)),
                    shown(row.p99_ratio, ranged),
                    shown(row.p999_us, |us| format!("{:.2}", us.median)),
                    shown(row.load_us, |us| format!("{:.3}", us.median)),
                    shown(row.to_first, |ratio| format!("{:.2}", ratio.median)),
                ]);
                if is_fairness_known {
                    cells.push(shown(row.fairness, |fairness| format!("{:.2}", fairness.median)));
                }
            }
        }
        table.add_row(cells);
    }
    table
}

fn shown(summary: Option<Summary>, form: impl Fn(Summary) -> String) -> String {
    summary.map_or_else(|| "-".to_owned(), form)
}

fn ranged(summary: Summary) -> String {
    format!("{:.2} ({:.2} to {:.2})", summary.median, summary.low, summary.high)
}

/// Writes the series as JSON, CSV (the runs), text and charts.
///
/// # Errors
/// If a file cannot be written.
pub fn write<E: Experiment>(results: &Results<E::Contender>, directory: &mut Directory) -> Result<(), LabError>
where
    E::Contender: Serialize,
{
    directory.write_json(&format!("{}.json", E::NAME), results)?;
    directory.write("runs.csv", &runs_csv(results))?;
    directory.write("report.txt", &text::<E>(results))?;
    plot::write::<E>(results, directory)
}

fn runs_csv<C: Display>(results: &Results<C>) -> String {
    let mut csv = "placement,number,round,contender,calls,calls_per_second,p50_us,p99_us,p999_us,server_us_per_call,load_us_per_call,fairness\n".to_owned();
    let decimal = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
    for run in &results.measured {
        let figures = run.figures;
        _ = write!(csv, "{},{},{},{},", run.placement, run.number, run.round, run.contender);
        _ = write!(csv, "{},{:.1},{:.3},", figures.calls, figures.calls_per_second, figures.p50_us);
        _ = write!(csv, "{:.3},{:.3},{},", figures.p99_us, figures.p999_us, decimal(figures.server_us));
        _ = writeln!(csv, "{},{}", decimal(figures.load_us), decimal(figures.fairness));
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::super::results::{Absent, Figures, Measurement};
    use super::super::{Settings, Subject};
    use super::*;
    use crate::machine::Machine;
    use crate::peer::pair::Launch;
    use crate::placement::Placement;

    struct Example;

    impl Experiment for Example {
        type Contender = &'static str;
        const NAME: &str = "example";
        const UNIT: &str = "busy connections";
        const MOST: u32 = 2_000;
        const BASE: &'static str = "epoll";

        fn start(
            _: &'static str,
            _: &Settings<&'static str>,
            _: Launch<'_>,
            _: Placement,
        ) -> Result<Result<Box<dyn Subject>, String>, LabError> {
            Ok(Err("only its report is tested".to_owned()))
        }
    }

    fn settings() -> Settings<&'static str> {
        Settings {
            placements: vec![Placement::Two],
            numbers: vec![1, 1000],
            contenders: vec!["epoll", "spandrel", "jacorb"],
            run_millis: 500,
            rounds: 3,
            work_micros: 0,
            peers: None,
            omniorb: None,
            jacorb: None,
            limit_seconds: 10,
            budget_seconds: None,
        }
    }

    fn results() -> Results<&'static str> {
        let mut measured = Vec::new();
        for (round, rate) in [100_000.0, 50_000.0, 90_000.0].into_iter().enumerate() {
            for (contender, part) in [("epoll", 1.0), ("spandrel", 0.8)] {
                let figures = Figures {
                    calls: 1_000,
                    calls_per_second: rate * part,
                    p50_us: 10.0 / part,
                    p99_us: 15.0 / part,
                    p999_us: 90.0 / part,
                    server_us: Some(5.0 / part),
                    load_us: Some(6.0),
                    fairness: None,
                };
                let (round, contender) = (round as u32, contender.to_owned());
                let one = Measurement { placement: Placement::Two, number: 1, round, contender, figures };
                if part == 1.0 {
                    let figures = Figures { calls_per_second: 4.0 * rate, fairness: Some(0.75), ..figures };
                    measured.push(Measurement { number: 1000, figures, ..one.clone() });
                }
                measured.push(one);
            }
        }
        let absent = [
            Absent { contender: "jacorb".to_owned(), number: None, reason: "its programs are not built".to_owned() },
            Absent {
                contender: "spandrel".to_owned(),
                number: Some(1000),
                reason: "it does not serve them".to_owned(),
            },
        ];
        Results::from_measurements(Example::NAME, Example::BASE, Machine::example(), settings(), measured, &absent)
    }

    #[test]
    fn each_contender_has_its_row_present_or_not() {
        insta::assert_snapshot!(text::<Example>(&results()));
    }

    #[test]
    fn runs_and_charts_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut directory = Directory::create(folder.path()).unwrap();
        write::<Example>(&results(), &mut directory).unwrap();
        let runs = std::fs::read_to_string(folder.path().join("runs.csv")).unwrap();
        let columns: Vec<usize> = runs.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [columns[0]; 1 + 3 * 3], "{runs}");
        let chart = std::fs::read_to_string(folder.path().join("cost-two.svg")).unwrap();
        assert!(chart.contains("1,000") && chart.contains("spandrel") && !chart.contains("jacorb"), "{chart}");
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        type Change = fn(&mut Settings<&'static str>);
        let refused: [(Change, &str); 4] = [
            (|settings| settings.numbers.push(0), "between 1 and 2,000, not 0"),
            (|settings| settings.contenders.clear(), "nothing to run"),
            (|settings| settings.rounds = 0, "nothing to run"),
            (|settings| settings.work_micros = 2_000_000, "up to 1,000,000 µs, not 2000000"),
        ];
        Example::check(&settings()).unwrap();
        for (change, words) in refused {
            let mut settings = settings();
            change(&mut settings);
            let error = Example::check(&settings).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
