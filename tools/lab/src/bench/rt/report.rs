//! Report of the experiment with priorities: a table per placement, sockets and load, a row per contender, and charts.

use std::fmt::Write as _;

use spandrel_measure::plot::{Line, Picture, Scale};
use spandrel_measure::stats::Summary;
use spandrel_measure::table;

use super::results::{Results, Row};
use super::settings::{Contender, Load, Sockets};
use super::steal;
use crate::LabError;
use crate::output::Directory;
use crate::placement::Placement;

const HEADER: [&str; 11] =
    ["server", "min", "median", "mean", "deviation", "p99", "p99.9", "worst", "missed", "p99 to alone", "worst to C"];

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    _ = writeln!(text, "{}", results.machine.summary());
    let runtime = results.rt_runtime_us.map_or("unknown".to_owned(), |micros| micros.to_string());
    _ = writeln!(
        text,
        "A call each {} µs (upcall {} µs), others with upcalls of {} µs; {}, sched_rt_runtime_us {runtime}",
        settings.period_micros, settings.high_work_micros, settings.low_work_micros, results.scheduling,
    );
    _ = writeln!(
        text,
        "Response times in µs, medians of the rounds; missed deadlines in 100 periods. A run with more than {} % steal is repeated, {} runs at most; {} of {} runs were above that to the end",
        steal::MOST * 100.0,
        steal::ATTEMPTS,
        results.measured.iter().filter(|run| run.figures.steal.is_some_and(|steal| steal > steal::MOST)).count(),
        results.measured.len(),
    );
    for (placement, sockets) in all_surroundings(results) {
        for load in &settings.loads {
            _ = writeln!(text, "\n{load}; {sockets}, {}", placement.description());
            let is_here = |row: &&Row| {
                (row.configuration.placement, row.configuration.sockets, row.configuration.load)
                    == (placement, sockets, *load)
            };
            let rows: Vec<&Row> = results.rows.iter().filter(is_here).collect();
            _ = writeln!(text, "{}", table(&rows));
            for (contender, reason) in
                rows.iter().filter_map(|row| Some((row.configuration.contender, row.absent.as_ref()?)))
            {
                _ = writeln!(text, "{contender} is absent: {reason}");
            }
        }
    }
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn all_surroundings(results: &Results) -> impl Iterator<Item = (Placement, Sockets)> {
    let settings = &results.settings;
    settings.placements.iter().flat_map(|placement| settings.sockets.iter().map(move |sockets| (*placement, *sockets)))
}

fn table(rows: &[&Row]) -> table::Table {
    let mut table = table::with_header(HEADER.map(str::to_owned).to_vec());
    let number = |summary: &Option<Summary>, digits: usize| {
        summary.map_or(String::new(), |summary| format!("{:.digits$}", summary.median))
    };
    for row in rows {
        let mut cells = vec![row.configuration.contender.to_string()];
        if row.median_us.is_none() {
            cells.push("absent".to_owned());
        } else {
            let times =
                [row.min_us, row.median_us, row.mean_us, row.deviation_us, row.p99_us, row.p999_us, row.worst_us];
            cells.extend(times.iter().map(|time| number(time, 0)));
            cells.extend([number(&row.missed_percent, 1), number(&row.inflation, 2), number(&row.worst_ratio, 2)]);
        }
        cells.resize(HEADER.len(), String::new());
        table.add_row(cells);
    }
    table
}

/// Writes the series as JSON, CSV (the single runs), text and charts.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("rt.json", results)?;
    directory.write("runs.csv", &runs_csv(results))?;
    directory.write("report.txt", &text(results))?;
    for (placement, sockets) in all_surroundings(results) {
        for (file, title, value) in CHARTS {
            let picture = Picture {
                title: format!("{title}, by the load beside the measured client"),
                subtitle: format!("{sockets}, {}; medians and ranges of rounds", placement.description()),
                x_title: "other clients".to_owned(),
                x_labels: results.settings.loads.iter().map(Load::to_string).collect(),
                y_title: "µs".to_owned(),
                // Contenders differ by magnitudes.
                scale: Scale::Logarithmic,
                lines: lines(results, (placement, sockets), value),
            };
            directory.write(&format!("{file}-{sockets}-{placement}.svg"), &picture.svg())?;
        }
    }
    Ok(())
}

/// A chart's file name and title, and the value of a row.
type Chart = (&'static str, &'static str, fn(&Row) -> Option<Summary>);

const CHARTS: [Chart; 3] = [
    ("median", "Median response time", |row| row.median_us),
    ("p99", "99th percentile of the response time", |row| row.p99_us),
    ("worst", "Longest response time", |row| row.worst_us),
];

fn lines(results: &Results, surroundings: (Placement, Sockets), value: fn(&Row) -> Option<Summary>) -> Vec<Line> {
    let loads = &results.settings.loads;
    let line = |contender: &Contender| {
        let is_own = |row: &&Row| {
            (row.configuration.placement, row.configuration.sockets) == surroundings
                && row.configuration.contender == *contender
        };
        let position = |row: &Row| loads.iter().position(|load| *load == row.configuration.load);
        let rows = results.rows.iter().filter(is_own);
        let points = rows.filter_map(|row| Some((position(row)? as f64, value(row)?))).collect();
        Line { label: contender.to_string(), points }
    };
    results.settings.contenders.iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

fn runs_csv(results: &Results) -> String {
    let mut csv = "placement,sockets,load,server,round,calls,periods,missed,min_us,median_us,mean_us,deviation_us,\
                   p99_us,p999_us,worst_us,others,steal,attempts\n"
        .to_owned();
    for run in &results.measured {
        let (surroundings, figures) = (run.configuration, run.figures);
        let times = [
            figures.min_us,
            figures.median_us,
            figures.mean_us,
            figures.deviation_us,
            figures.p99_us,
            figures.p999_us,
            figures.worst_us,
        ];
        let times = times.map(|time| format!("{time:.1}")).join(",");
        let steal = figures.steal.map_or(String::new(), |steal| format!("{steal:.4}"));
        _ = writeln!(
            csv,
            "{},{},{},{},{},{},{},{},{times},{},{steal},{}",
            surroundings.placement,
            surroundings.sockets,
            surroundings.load,
            surroundings.contender,
            run.round,
            figures.calls,
            figures.periods,
            figures.missed,
            figures.others,
            figures.attempts,
        );
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::super::results::{Absent, Configuration, Figures, Measurement};
    use super::super::series::tests::settings;
    use super::super::settings::Settings;
    use super::*;
    use crate::machine::Machine;

    fn results() -> Results {
        let contenders = vec![Contender::C, Contender::Spandrel, Contender::SpandrelRt, Contender::JacOrb];
        let settings = Settings {
            contenders,
            loads: vec![Load::Alone, Load::Flood(10)],
            sockets: vec![Sockets::Tcp, Sockets::Unix],
            placements: vec![Placement::Two],
            ..settings()
        };
        let mut measured = Vec::new();
        for (index, contender) in [Contender::C, Contender::Spandrel, Contender::SpandrelRt].into_iter().enumerate() {
            for round in 0..3_u32 {
                for (load, factor) in [(Load::Alone, 1), (Load::Flood(10), 1 + index as u64)] {
                    let times: Vec<u64> = (1..=1_000).map(|at| (120_000 + at * 40) * factor).collect();
                    let figures = Figures::from_nanos(&times).unwrap();
                    let figures = Figures { missed: 10 * (factor - 1), steal: Some(0.02), ..figures };
                    let (placement, sockets) = (Placement::Two, Sockets::Tcp);
                    let configuration = Configuration { placement, sockets, load, contender };
                    measured.push(Measurement { configuration, round, figures });
                }
            }
        }
        let reason = "its programs are not built".to_owned();
        let absent = Absent { contender: Contender::JacOrb, sockets: Sockets::Tcp, load: None, reason };
        let class = "SCHED_FIFO".to_owned();
        let results = Results::from_measurements(Machine::example(), class, settings, measured, &[absent]);
        Results { rt_runtime_us: Some(950_000), ..results }
    }

    #[test]
    fn each_server_has_its_row_run_or_not() {
        insta::assert_snapshot!(text(&results()));
    }

    #[test]
    fn the_runs_as_csv_and_json() {
        let results = results();
        assert_eq!(runs_csv(&results).lines().count(), 1 + 3 * 2 * 3);
        assert!(runs_csv(&results).contains("\ntwo,tcp,flood of 10,spandrel,0,1000,1000,10,240.1,"));
        let text = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results);
    }

    #[test]
    fn inflation_is_the_ratio_to_the_same_server_alone() {
        let results = results();
        let row = |contender, load| {
            let surroundings = |row: &&Row| (row.configuration.contender, row.configuration.load) == (contender, load);
            results.rows.iter().find(surroundings).unwrap().clone()
        };
        let median = |summary: Option<Summary>| summary.unwrap().median;
        assert!((median(row(Contender::C, Load::Flood(10)).inflation) - 1.0).abs() < 1e-9);
        assert!((median(row(Contender::SpandrelRt, Load::Flood(10)).inflation) - 3.0).abs() < 1e-9);
        assert!((median(row(Contender::Spandrel, Load::Flood(10)).worst_ratio) - 2.0).abs() < 1e-9);
    }
}
