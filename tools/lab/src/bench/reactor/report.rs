//! Report of the reactor experiment: a table per placement and load, a row per server.

use std::fmt::Write as _;

use spandrel_measure::stats::Summary;
use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::results::{Results, Row};
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    let rounds = results.rows.iter().filter_map(|row| row.events_per_second).map(|rate| rate.count).min().unwrap_or(0);
    _ = writeln!(text, "{}", results.machine.summary());
    _ = writeln!(
        text,
        "Messages of {} octets, {} ms per run; medians of {rounds} interleaved rounds, in parentheses from lowest to highest",
        settings.octets, settings.run_millis
    );
    for placement in &settings.placements {
        for load in &settings.loads {
            let here = |row: &&Row| row.placement == *placement && row.load == *load;
            let rows: Vec<&Row> = results.rows.iter().filter(here).collect();
            _ = writeln!(text, "\n{}, load and server {}", load.description(), placement.description());
            _ = writeln!(text, "{}", table(&rows));
            for (contender, reason) in rows.iter().filter_map(|row| Some((row.contender, row.absent.as_ref()?))) {
                _ = writeln!(text, "{contender} is absent: {reason}");
            }
        }
    }
    _ = writeln!(
        text,
        "\nCPU: processor time of the server per message. Ratios to c: events above 1 and CPU below 1 are better. \
         To first: to the events of the same server with the first load. KiB each: the server's memory for each \
         connection, in the round where that was least."
    );
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn table(rows: &[&Row]) -> table::Table {
    let header =
        ["server", "events/s", "ratio to c", "p50 µs", "p99 µs", "CPU µs", "CPU ratio", "to first", "KiB each"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    for row in rows {
        let mut cells = vec![row.contender.to_string()];
        match row.absent {
            Some(_) => {
                cells.push("absent".to_owned());
                cells.resize(header.len(), String::new());
            }
            None => cells.extend([
                row.events_per_second
                    .map_or_else(missing, |rate| format!("{} ±{:>3.0} %", grouped(rate.median), rate.spread_percent())),
                row.ratio.map_or_else(missing, |ratio| ranged(&ratio)),
                row.p50_us.map_or_else(missing, |us| format!("{:.2}", us.median)),
                row.p99_us.map_or_else(missing, |us| format!("{:.2}", us.median)),
                row.cpu_us.map_or_else(missing, |us| format!("{:.3}", us.median)),
                row.cpu_ratio.map_or_else(missing, |ratio| ranged(&ratio)),
                row.to_first_load.map_or_else(missing, |ratio| ranged(&ratio)),
                // Memory that an allocator keeps from an earlier load does not belong to this one.
                row.each_octets.map_or_else(missing, |octets| format!("{:.2}", octets.low / 1024.0)),
            ]),
        }
        table.add_row(cells);
    }
    table
}

fn missing() -> String {
    "-".to_owned()
}

fn ranged(summary: &Summary) -> String {
    format!("{:.2} ({:.2} to {:.2})", summary.median, summary.low, summary.high)
}

/// Writes the series as JSON, as CSV (the runs and the summaries) and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("reactor.json", results)?;
    directory.write("runs.csv", &runs_csv(results))?;
    directory.write("summary.csv", &summary_csv(results))?;
    directory.write("report.txt", &text(results))
}

fn runs_csv(results: &Results) -> String {
    let mut csv =
        "placement,idle,active,round,server,events,seconds,events_per_second,p50_us,p99_us,max_us,server_cpu_seconds,octets_per_connection\n"
            .to_owned();
    for run in &results.measured {
        let (load, echoed) = (run.load, run.echoed);
        _ = write!(csv, "{},{},{},{},{},", run.placement, load.idle, load.active, run.round, run.contender);
        _ = write!(csv, "{},{:.6},{:.1},", echoed.events, echoed.seconds, echoed.events_per_second());
        let cpu = run.server_cpu.map_or(String::new(), |cpu| format!("{cpu:.6}"));
        let each = run.each_octets.map_or(String::new(), |octets| format!("{octets:.0}"));
        _ = writeln!(csv, "{:.3},{:.3},{:.3},{cpu},{each}", echoed.p50_us, echoed.p99_us, echoed.max_us);
    }
    csv
}

fn summary_csv(results: &Results) -> String {
    let mut csv = "placement,idle,active,server,present,events_per_second,events_low,events_high,ratio,ratio_low,ratio_high,p50_us,p99_us,cpu_us,cpu_ratio,cpu_ratio_low,cpu_ratio_high,to_first_load,octets_per_connection\n".to_owned();
    let three = |summary: Option<Summary>| {
        summary.map_or(",,".to_owned(), |s| format!("{:.3},{:.3},{:.3}", s.median, s.low, s.high))
    };
    let one = |summary: Option<Summary>| summary.map_or(String::new(), |s| format!("{:.3}", s.median));
    for row in &results.rows {
        let present = if row.absent.is_some() { "no" } else { "yes" };
        _ = write!(csv, "{},{},{},{},{present},", row.placement, row.load.idle, row.load.active, row.contender);
        _ = write!(csv, "{},{},", three(row.events_per_second), three(row.ratio));
        _ = write!(csv, "{},{},{},{},", one(row.p50_us), one(row.p99_us), one(row.cpu_us), three(row.cpu_ratio));
        _ = writeln!(csv, "{},{}", one(row.to_first_load), one(row.each_octets));
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::super::results::Absent;
    use super::super::{Contender, Echoed, Load, Measurement, Settings};
    use super::*;
    use crate::machine::Machine;
    use crate::placement::Placement;

    fn results() -> Results {
        let (busy, crowded) = (Load { idle: 0, active: 64 }, Load { idle: 10_000, active: 64 });
        let settings = Settings {
            placements: vec![Placement::Two],
            loads: vec![busy, crowded],
            contenders: vec![Contender::C, Contender::Asio, Contender::Ace],
            octets: 64,
            run_millis: 500,
            rounds: 3,
            peers: None,
            limit_seconds: 10,
            budget_seconds: None,
        };
        let mut measured = Vec::new();
        for (round, events) in [100_000, 50_000, 90_000].into_iter().enumerate() {
            for (contender, part) in [(Contender::C, 10), (Contender::Asio, 8)] {
                let events = events * part / 10;
                let echoed = Echoed { events, seconds: 0.5, p50_us: 100.0, p99_us: 150.0, max_us: 900.0 };
                let placement = Placement::Two;
                let server_cpu = Some(0.25 / part as f64 * 10.0);
                measured.push(Measurement {
                    placement,
                    load: busy,
                    round: round as u32,
                    contender,
                    echoed,
                    server_cpu,
                    each_octets: Some(2560.0),
                });
            }
        }
        let absent = [
            Absent {
                contender: Contender::Ace,
                load: None,
                reason: "cannot be built: ACE is not installed".to_owned(),
            },
            Absent { contender: Contender::Asio, load: Some(crowded), reason: "it does not hold them".to_owned() },
        ];
        Results::from_measurements(Machine::example(), settings, measured, &absent)
    }

    #[test]
    fn each_server_has_its_row_present_or_not() {
        insta::assert_snapshot!(text(&results()));
    }

    #[test]
    fn the_summaries_and_runs_as_csv() {
        insta::assert_snapshot!(summary_csv(&results()));
        let runs = runs_csv(&results());
        assert_eq!(runs.lines().count(), 1 + 3 * 2);
        let columns: Vec<usize> = runs.lines().map(|line| line.split(',').count()).collect();
        assert!(columns.iter().all(|count| *count == columns[0]), "{runs}");
    }

    #[test]
    fn measurements_are_parsed_from_their_json() {
        let text = serde_json::to_string(&results()).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results());
    }
}
