//! Report of the scalability experiment: a table per placement and kind of call, with a row per contender and
//! a column per number of servants, as in the paper's figures.

use std::fmt::Write as _;

use spandrel_measure::stats::Summary;
use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::plot;
use super::results::{Results, Row};
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    _ = writeln!(text, "{}", results.machine.summary());
    _ = writeln!(
        text,
        "Microseconds of a call, medians of {} interleaved rounds: of a round's median / of its mean, in parentheses the ratios to the fewest servants",
        settings.rounds
    );
    for servants in settings.servants.iter().filter(|servants| !settings.covers(**servants)) {
        _ = writeln!(
            text,
            "A round calls a part of {} servants, another one in each round: a hundred calls on each would be more than {}",
            grouped(f64::from(*servants)),
            grouped(f64::from(settings.most_calls)),
        );
    }
    for placement in &settings.placements {
        for case in &settings.cases {
            for call in &settings.calls {
                for algorithm in &settings.algorithms {
                    let rows: Vec<&Row> = results
                        .rows
                        .iter()
                        .filter(|row| {
                            (row.placement, row.case, row.call, row.algorithm) == (*placement, *case, *call, *algorithm)
                        })
                        .collect();
                    _ = writeln!(text, "\n{}, {}", rows[0].heading(), placement.description());
                    _ = writeln!(text, "{}", times(results, &rows));
                }
            }
        }
    }
    _ = write!(text, "{}", memory(results));
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn times(results: &Results, rows: &[&Row]) -> table::Table {
    let servants = &results.settings.servants;
    let header = [String::new()].into_iter().chain(servants.iter().map(|n| grouped(f64::from(*n))));
    let mut table = table::with_header(header.chain(["to static".to_owned()]).collect());
    for contender in &results.settings.contenders {
        for style in &results.settings.styles {
            let own: Vec<&Row> =
                rows.iter().filter(|row| row.contender == *contender && row.style == *style).copied().collect();
            let name = format!("{contender} {style}");
            match absent(&own) {
                Some(reason) => table.add_row([name, format!("absent: {reason}")]),
                None => {
                    table.add_row([name].into_iter().chain(own.iter().map(|row| cell(row))).chain([to_static(&own)]))
                }
            };
        }
        let own: Vec<&Row> = rows.iter().filter(|row| row.contender == *contender).copied().collect();
        if own.iter().any(|row| row.servants_called.is_some()) {
            let name = format!("{contender}: servants called");
            table.add_row([name].into_iter().chain(servants.iter().map(|servants| called(&own, *servants))));
        }
    }
    table
}

/// The number of servants called in a round, in any style.
fn called(rows: &[&Row], servants: u32) -> String {
    let rows = || rows.iter().filter(|row| row.servants == servants).filter_map(|row| row.servants_called);
    let (low, high) =
        (Summary::from_values(rows().map(|called| called.low)), Summary::from_values(rows().map(|called| called.high)));
    match (low, high) {
        (Some(low), Some(high)) if low.low == high.high => grouped(low.low),
        (Some(low), Some(high)) => format!("{} to {}", grouped(low.low), grouped(high.high)),
        _ => "-".to_owned(),
    }
}

/// The reason for missing figures of the whole line, if it is the same in each column.
fn absent<'r>(line: &[&'r Row]) -> Option<&'r str> {
    let reason = line.first()?.absent.as_deref()?;
    line.iter().all(|row| row.absent.as_deref() == Some(reason)).then_some(reason)
}

fn cell(row: &Row) -> String {
    match (&row.median_us, &row.absent) {
        (Some(us), _) => {
            let mean =
                row.mean_us.map_or(String::new(), |mean| format!("{:.2}{}", mean.median, ratio(row.mean_to_fewest)));
            format!("{:.2}{} / {mean}", us.median, ratio(row.to_fewest))
        }
        (None, Some(reason)) => format!("absent: {reason}"),
        (None, None) => "-".to_owned(),
    }
}

fn to_static(line: &[&Row]) -> String {
    let ratios = Summary::from_values(line.iter().filter_map(|row| row.to_static).map(|ratio| ratio.median));
    ratios.map_or(String::new(), |ratio| format!("{:.2}", ratio.median))
}

fn ratio(to_fewest: Option<Summary>) -> String {
    to_fewest.map_or(String::new(), |ratio| format!(" ({:.2})", ratio.median))
}

fn memory(results: &Results) -> String {
    let mut text = String::new();
    for contender in &results.settings.contenders {
        if let Some(octets) = results.octets_per_servant(*contender) {
            _ = writeln!(text, "\n{contender}: each servant takes {octets:.0} octets of the server's memory");
        }
    }
    text
}

/// Writes the series as JSON, as CSV (the rounds and the summaries), as plots and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("servants.json", results)?;
    directory.write("servants-rounds.csv", &rounds_csv(results))?;
    directory.write("servants-summary.csv", &summary_csv(results))?;
    plot::write(results, directory)?;
    directory.write("servants.txt", &text(results))
}

fn rounds_csv(results: &Results) -> String {
    let mut csv =
        "placement,servants,algorithm,call,case,style,round,mechanism,begin,calls,servants_called,min_us,median_us,p99_us,mean_us\n"
            .to_owned();
    for one in &results.measured {
        let (job, times) = (&one.job, &one.times);
        _ = write!(
            csv,
            "{},{},{},{},{},{},",
            one.placement, one.servants, job.algorithm, job.call, job.case, job.style
        );
        _ = write!(csv, "{},{},{},{},{},", one.round, one.contender, one.begin, times.calls, one.servants_called);
        _ = writeln!(
            csv,
            "{:.3},{:.3},{:.3},{:.3}",
            times.each.min, times.each.median, times.each.p99, times.each.mean
        );
    }
    csv
}

fn summary_csv(results: &Results) -> String {
    let mut csv =
        "placement,algorithm,call,case,style,mechanism,servants,median_us,median_low_us,median_high_us,mean_us,mean_low_us,mean_high_us,to_static,to_fewest,mean_to_fewest,servants_called\n"
            .to_owned();
    let three = |summary: Option<Summary>| {
        summary.map_or(",,".to_owned(), |s| format!("{:.3},{:.3},{:.3}", s.median, s.low, s.high))
    };
    for row in &results.rows {
        _ = write!(csv, "{},{},{},{},", row.placement, row.algorithm, row.call, row.case);
        _ = write!(csv, "{},{},{},{},", row.style, row.contender, row.servants, three(row.median_us));
        let one = |ratio: Option<Summary>| ratio.map_or(String::new(), |ratio| format!("{:.3}", ratio.median));
        let called = row.servants_called.map_or(String::new(), |called| called.median.to_string());
        let (mean, to_static, to_fewest) = (three(row.mean_us), one(row.to_static), one(row.to_fewest));
        _ = writeln!(csv, "{mean},{to_static},{to_fewest},{},{called}", one(row.mean_to_fewest));
    }
    csv
}

#[cfg(test)]
mod tests {
    use spandrel_measure::Times;

    use super::super::results::{Absent, Measurement, Memory};
    use super::super::{Algorithm, Contender, Settings, Style};
    use super::*;
    use crate::call_times::CallTimes;
    use crate::machine::Machine;
    use crate::placement::Placement;
    use crate::workload::CallKind;

    fn results() -> Results {
        let settings = Settings {
            servants: vec![1, 10_000],
            placements: vec![Placement::One],
            algorithms: vec![Algorithm::Random],
            calls: vec![CallKind::TwoWay],
            cases: vec![crate::scalability::CallData::Void],
            styles: vec![Style::Static, Style::Dynamic],
            contenders: vec![Contender::Orb, Contender::OmniOrb, Contender::JacOrb],
            calls_per_round: 1_000,
            most_calls: 2_000,
            rounds: 3,
            omniorb: None,
            jacorb: None,
            limit_seconds: 10,
            budget_seconds: None,
        };
        let mut measured = Vec::new();
        for servants in [1, 10_000] {
            for round in 0..3 {
                for job in settings.jobs() {
                    for contender in [Contender::Orb, Contender::OmniOrb] {
                        if contender == Contender::OmniOrb && servants > 1 {
                            continue;
                        }
                        let slower = if job.style == Style::Static { 1.0 } else { 1.25 };
                        let median = (10.0 + f64::from(round)) * slower * if servants > 1 { 1.125 } else { 1.0 };
                        let (min, p90, p99, p999, max, mean) = (median, median, median * 2.0, 98.0, 99.0, median + 0.5);
                        let each = Times { min, median, p90, p99, p999, max, mean };
                        let times = CallTimes { calls: 1_000, seconds: 0.01, each };
                        let placement = Placement::One;
                        let (begin, servants_called) = (round, servants.min(980 + round));
                        measured.push(Measurement {
                            placement,
                            servants,
                            job,
                            round,
                            contender,
                            begin,
                            servants_called,
                            times,
                        });
                    }
                }
            }
        }
        let resident = |servants, resident| Memory { contender: Contender::Orb, servants, resident };
        let absent = [
            Absent {
                contender: Contender::JacOrb,
                servants: None,
                style: None,
                reason: "its programs are not built".to_owned(),
            },
            Absent {
                contender: Contender::OmniOrb,
                servants: Some(10_000),
                style: None,
                reason: "too many".to_owned(),
            },
        ];
        let memory = vec![resident(1, 4_000_000), resident(10_000, 5_999_800)];
        Results::from_measurements(Machine::example(), settings, measured, memory, &absent)
    }

    #[test]
    fn each_contender_and_style_has_its_row_present_or_not() {
        insta::assert_snapshot!(text(&results()));
    }

    #[test]
    fn the_summaries_and_rounds_as_csv() {
        insta::assert_snapshot!(summary_csv(&results()));
        let rounds = rounds_csv(&results());
        let columns: Vec<usize> = rounds.lines().map(|line| line.split(',').count()).collect();
        assert!(columns.iter().all(|count| *count == columns[0]), "{rounds}");
    }

    #[test]
    fn measurements_are_parsed_from_their_json() {
        let text = serde_json::to_string(&results()).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results());
    }
}
