//! Report of the latency experiment: a table per placement and kind of call, a row per contender.

use std::fmt::Write as _;

use spandrel_measure::Times;
use spandrel_measure::stats::Summary;
use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::contender::Contender;
use super::results::{Results, Row};
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    let rounds = results.rows.iter().filter_map(|row| row.median_us).map(|median| median.count).min().unwrap_or(0);
    _ = writeln!(text, "{}", results.machine.summary());
    let base = Contender::base(&settings.contenders);
    let calls = grouped(f64::from(settings.calls));
    _ = writeln!(text, "{calls} calls per round, each timed; medians of {rounds} interleaved rounds;");
    _ = writeln!(text, "ratios to {base} in the same round, in parentheses from lowest to highest");
    for placement in &settings.placements {
        for case in &settings.cases {
            let rows: Vec<&Row> =
                results.rows.iter().filter(|row| row.placement == *placement && row.case == *case).collect();
            let octets = rows.iter().find_map(|row| row.wire);
            let octets = octets.map_or(String::new(), |(request, reply)| format!(" ({request} + {reply} octets)"));
            _ = writeln!(text, "\n{}{octets}, {}", case.description(), placement.description());
            _ = writeln!(text, "{}", table(&rows));
            for row in rows {
                if let Some(reason) = &row.absent {
                    _ = writeln!(text, "{} is absent: {reason}", row.contender);
                }
            }
        }
    }
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn table(rows: &[&Row]) -> table::Table {
    let header = ["", "p50 µs", "p99 µs", "p99.9 µs", "calls/s", "p50 ratio", "p99 ratio", "p99.9 ratio"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    for row in rows {
        let mut cells = vec![row.contender.to_string()];
        let missing = || "-".to_owned();
        for time in [row.median_us, row.p99_us, row.p999_us] {
            cells.push(time.map_or_else(missing, |us| format!("{:.2}", us.median)));
        }
        cells.push(row.calls_per_second.map_or_else(missing, |rate| grouped(rate.median)));
        for ratio in [row.ratio, row.p99_ratio] {
            cells.push(ratio.map_or_else(missing, |ratio| ranged(&ratio)));
        }
        cells.push(row.p999_ratio.map_or_else(missing, |ratio| format!("{:.2}", ratio.median)));
        table.add_row(cells);
    }
    table
}

fn ranged(summary: &Summary) -> String {
    format!("{:.2} ({:.2}-{:.2})", summary.median, summary.low, summary.high)
}

/// Writes the series as JSON, as CSV (the rounds and the summaries) and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("latency.json", results)?;
    directory.write("rounds.csv", &rounds_csv(results))?;
    directory.write("summary.csv", &summary_csv(results))?;
    directory.write("report.txt", &text(results))
}

/// Writes the series as JSON and as text beside the files of another experiment.
///
/// # Errors
/// If a file cannot be written.
pub fn write_beside(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("calls.json", results)?;
    directory.write("calls.txt", &text(results))
}

fn rounds_csv(results: &Results) -> String {
    let mut csv =
        "placement,case,round,mechanism,calls,min_us,median_us,p90_us,p99_us,p999_us,max_us,mean_us,calls_per_second\n"
            .to_owned();
    for one in &results.measured {
        let times = &one.times;
        _ = write!(csv, "{},{},{},{},{},", one.placement, one.case, one.round, one.contender, times.calls);
        let Times { min, median, p90, p99, p999, max, mean } = times.each;
        _ = write!(csv, "{min:.3},{median:.3},{p90:.3},{p99:.3},{p999:.3},");
        _ = writeln!(csv, "{max:.3},{mean:.3},{:.1}", times.calls_per_second());
    }
    csv
}

fn summary_csv(results: &Results) -> String {
    let mut csv =
        "placement,case,mechanism,present,median_us,median_low_us,median_high_us,p99_us,p999_us,calls_per_second,\
        ratio,ratio_low,ratio_high,p99_ratio,p99_ratio_low,p99_ratio_high,p999_ratio,p999_ratio_low,p999_ratio_high\n"
            .to_owned();
    let three = |summary: Option<Summary>| {
        summary.map_or(",,".to_owned(), |s| format!("{:.3},{:.3},{:.3}", s.median, s.low, s.high))
    };
    let one = |summary: Option<Summary>| summary.map_or(String::new(), |s| format!("{:.3}", s.median));
    for row in &results.rows {
        let present = if row.absent.is_some() { "no" } else { "yes" };
        _ = write!(csv, "{},{},{},{present},", row.placement, row.case, row.contender);
        _ = writeln!(
            csv,
            "{},{},{},{},{},{},{}",
            three(row.median_us),
            one(row.p99_us),
            one(row.p999_us),
            one(row.calls_per_second),
            three(row.ratio),
            three(row.p99_ratio),
            three(row.p999_ratio)
        );
    }
    csv
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::call_times::CallTimes;
    use crate::latency::{Contender, Measurement, Settings};
    use crate::machine::Machine;
    use crate::mechanism::MechanismName;
    use crate::placement::Placement;
    use crate::workload::PingCase;

    fn times(median: f64) -> CallTimes {
        CallTimes {
            calls: 100,
            seconds: 0.001,
            each: Times {
                min: 1.0,
                median,
                p90: median * 1.5,
                p99: median * 2.0,
                p999: median * 4.0,
                max: 99.0,
                mean: median,
            },
        }
    }

    pub(crate) fn results() -> Results {
        let orb = Contender::Mechanism(MechanismName::Orb);
        let settings = Settings {
            placements: vec![Placement::One],
            cases: vec![PingCase::Void],
            contenders: vec![Contender::BASE, orb, Contender::OmniOrb],
            calls: 10_000,
            rounds: 3,
            remote: None,
            omniorb: None,
            limit_seconds: 10,
            budget_seconds: None,
        };
        let mut measured = Vec::new();
        for (round, (base, ratio)) in [(4.0, 1.25), (8.0, 1.0), (5.0, 1.2)].into_iter().enumerate() {
            for (contender, median) in [(Contender::BASE, base), (orb, base * ratio)] {
                let (case, placement) = (PingCase::Void, Placement::One);
                let round = round as u32;
                measured.push(Measurement {
                    placement,
                    case,
                    round,
                    contender,
                    times: times(median),
                    wire: Some((60, 24)),
                });
            }
        }
        let absent = [(Contender::OmniOrb, "its programs are not built".to_owned())];
        Results::from_measurements(Machine::example(), settings, measured, &absent)
    }

    #[test]
    fn each_contender_has_its_row_present_or_not() {
        insta::assert_snapshot!(text(&results()));
    }

    #[test]
    fn the_summaries_and_rounds_as_csv() {
        insta::assert_snapshot!(summary_csv(&results()));
        let rounds = rounds_csv(&results());
        assert_eq!(rounds.lines().count(), 1 + 3 * 2);
        let columns: Vec<usize> = rounds.lines().map(|line| line.split(',').count()).collect();
        assert!(columns.iter().all(|count| *count == columns[0]), "{rounds}");
    }

    #[test]
    fn measurements_are_parsed_from_their_json() {
        let text = serde_json::to_string(&results()).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results());
    }
}
