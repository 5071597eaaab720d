//! Report of a series in the form of the papers: Mbit/s per buffer size, then the highest and lowest of each
//! mechanism.

use std::fmt::Write as _;

use spandrel_measure::stats::Summary;
use spandrel_measure::table::{self, Table};
use spandrel_measure::units::{Octets, grouped};

use super::results::{Cell, Results};
use crate::LabError;
use crate::mechanism::MechanismName;
use crate::output::Directory;
use crate::workload::{CallKind, DataType};

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    let queues = settings
        .sockets
        .queue_octets
        .map_or("the system's choice".to_owned(), |octets| Octets(u64::from(octets)).to_string());
    _ = writeln!(text, "{}", results.machine.summary());
    _ = writeln!(
        text,
        "{} of user data per run, socket queues: {queues}, TCP_NODELAY on, {}; medians of {} interleaved rounds",
        settings.bytes,
        settings.placement.description(),
        results.rounds(),
    );
    for call in &settings.calls {
        for data in &settings.types {
            _ = writeln!(text, "\n{}", heading(*call, *data));
            _ = writeln!(text, "{}", throughput(results, *call, *data));
        }
        _ = writeln!(
            text,
            "\nHighest and lowest throughput, {} (Mbit/s), and the ratio to {} (median, range)",
            words(*call),
            results.base()
        );
        _ = writeln!(text, "{}", summary(results, *call));
    }
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn words(call: CallKind) -> &'static str {
    match call {
        CallKind::OneWay => "one-way",
        CallKind::TwoWay => "two-way",
    }
}

/// The heading of a table or plot of this kind of call and type.
pub(super) fn heading(call: CallKind, data: DataType) -> String {
    let element = if data == DataType::Struct { "BinStruct" } else { data.name() };
    format!("{} sequences, {} (Mbit/s of user data)", element, words(call))
}

fn throughput(results: &Results, call: CallKind, data: DataType) -> Table {
    let mut header = vec!["buffer".to_owned()];
    for mechanism in &results.settings.mechanisms {
        header.push(mechanism.to_string());
        if shows_ratio(results, *mechanism) {
            header.push(format!("{mechanism}/{}", results.base()));
        }
    }
    let mut table = table::with_header(header);
    // With several columns there is room for the ratio; its range is in the files.
    let many = results.settings.mechanisms.len() > 4;
    let shown = |ratio: Summary| if many { format!("{:.2}", ratio.median) } else { ranged(&ratio) };
    for size in &results.settings.sizes {
        let mut row = vec![size.to_string()];
        for mechanism in &results.settings.mechanisms {
            let cell = results.cell(call, data, size.0 as usize, *mechanism);
            row.push(cell.map_or("-".to_owned(), |cell| rate(&cell.mbps)));
            if shows_ratio(results, *mechanism) {
                row.push(cell.and_then(|cell| cell.ratio).map_or("-".to_owned(), shown));
            }
        }
        table.add_row(row);
    }
    table
}

/// A throughput and the spread of its rounds.
fn rate(mbps: &Summary) -> String {
    format!("{} ±{:>3.0} %", grouped(mbps.median), mbps.spread_percent())
}

fn ranged(ratio: &Summary) -> String {
    format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.low, ratio.high)
}

fn shows_ratio(results: &Results, mechanism: MechanismName) -> bool {
    mechanism != results.base()
}

/// The form of table 2.1 of "Design Principles and Optimizations for High-performance, Real-time CORBA".
fn summary(results: &Results, call: CallKind) -> Table {
    let header = ["mechanism", "scalars hi", "lo", "struct hi", "lo"].map(str::to_owned).into_iter();
    let ratios = ["scalars", "struct"].map(|what| format!("{what}/{}", results.base()));
    let mut table = table::with_header(header.chain(ratios).collect());
    for mechanism in &results.settings.mechanisms {
        let of = |scalar: bool| {
            let wanted = move |cell: &&Cell| {
                cell.call == call && cell.mechanism == *mechanism && cell.data.is_scalar() == scalar
            };
            results.cells.iter().filter(wanted).collect::<Vec<_>>()
        };
        let (scalars, structs) = (of(true), of(false));
        let mut row = vec![mechanism.to_string()];
        for cells in [&scalars, &structs] {
            row.push(extreme(cells, f64::max));
            row.push(extreme(cells, f64::min));
        }
        row.push(ratio_range(&scalars));
        row.push(ratio_range(&structs));
        table.add_row(row);
    }
    table
}

fn extreme(cells: &[&Cell], choose: fn(f64, f64) -> f64) -> String {
    let rates = cells.iter().map(|cell| cell.mbps.median);
    rates.reduce(choose).map_or("-".to_owned(), grouped)
}

fn ratio_range(cells: &[&Cell]) -> String {
    let ratios = cells.iter().filter_map(|cell| cell.ratio).map(|ratio| ratio.median);
    Summary::from_values(ratios).map_or("-".to_owned(), |ratio| ranged(&ratio))
}

/// Writes the series as JSON, as CSV (the runs and the summaries) and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("ttcp.json", results)?;
    directory.write("runs.csv", &runs_csv(results))?;
    directory.write("summary.csv", &summary_csv(results))?;
    directory.write("report.txt", &text(results))
}

fn runs_csv(results: &Results) -> String {
    let mut csv = "round,mechanism,call,type,buffer_octets,buffers,octets,seconds,mbps,transmitter_cpu_seconds,receiver_cpu_seconds\n".to_owned();
    for run in &results.runs {
        let (flood, outcome) = (&run.flood, &run.outcome);
        _ = write!(
            csv,
            "{},{},{},{},{},{},",
            run.round, run.mechanism, flood.call, flood.data, flood.buffer_octets, flood.buffers
        );
        _ = write!(csv, "{},{:.6},{:.1},", outcome.octets, outcome.seconds, outcome.mbps());
        _ = writeln!(csv, "{:.6},{:.6}", outcome.transmitter_cpu, outcome.receiver_cpu);
    }
    csv
}

fn summary_csv(results: &Results) -> String {
    let mut csv = "call,type,buffer_octets,mechanism,rounds,mbps_median,mbps_low,mbps_high,ratio_median,ratio_low,ratio_high,cpu_ms_per_mib\n".to_owned();
    for cell in &results.cells {
        let (rate, ratio) = (&cell.mbps, cell.ratio);
        let ratio =
            ratio.map_or(",,".to_owned(), |ratio| format!("{:.4},{:.4},{:.4}", ratio.median, ratio.low, ratio.high));
        let cpu = cell.cpu_ms_per_mib.map_or(String::new(), |cpu| format!("{:.4}", cpu.median));
        _ = write!(csv, "{},{},{},{},{},", cell.call, cell.data, cell.buffer_octets, cell.mechanism, rate.count);
        _ = writeln!(csv, "{:.1},{:.1},{:.1},{ratio},{cpu}", rate.median, rate.low, rate.high);
    }
    csv
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::mechanism::SocketOptions;
    use crate::peer::Outcome;
    use crate::placement::Placement;
    use crate::ttcp::{Run, Settings};
    use crate::workload::Flood;

    /// Three rounds in which `orb` reaches 80, 50 and 60 percent of `c`, whatever the speed of the machine.
    pub(crate) fn results() -> Results {
        let settings = Settings {
            types: vec![DataType::Octet, DataType::Struct],
            sizes: vec![Octets(1024), Octets(65536)],
            calls: vec![CallKind::OneWay],
            mechanisms: vec![MechanismName::C, MechanismName::Orb],
            bytes: Octets(1 << 20),
            repetitions: 3,
            sockets: SocketOptions { queue_octets: Some(65536) },
            placement: Placement::Two,
            remote: None,
            limit_seconds: 10,
            budget_seconds: None,
        };
        let mut runs = Vec::new();
        for (round, (speed, ratio)) in [(1.0, 0.8), (0.5, 0.5), (0.9, 0.6)].into_iter().enumerate() {
            for data in &settings.types {
                for size in &settings.sizes {
                    for mechanism in &settings.mechanisms {
                        let flood = Flood::with_total(*data, CallKind::OneWay, size.0 as usize, settings.bytes.0);
                        let ratio = if *mechanism == MechanismName::C { 1.0 } else { ratio };
                        let (octets, rate) = (flood.total_octets(), size.0 as f64 * 1e5 * speed * ratio);
                        let seconds = octets as f64 / rate;
                        let outcome = Outcome {
                            octets,
                            transmitter_cpu: seconds,
                            receiver_cpu: 0.0,
                            ..Outcome::in_seconds(seconds)
                        };
                        runs.push(Run { round: round as u32, mechanism: *mechanism, flood, outcome });
                    }
                }
            }
        }
        Results::from_measurements(Machine::example(), settings, runs)
    }

    #[test]
    fn the_report_has_the_papers_tables_and_the_ratio_to_c() {
        insta::assert_snapshot!(text(&results()));
    }

    #[test]
    fn the_summaries_and_runs_as_csv() {
        insta::assert_snapshot!(summary_csv(&results()));
        let runs = runs_csv(&results());
        assert_eq!(runs.lines().count(), 1 + 3 * 2 * 2 * 2);
        let columns: Vec<usize> = runs.lines().map(|line| line.split(',').count()).collect();
        assert!(columns.iter().all(|count| *count == columns[0]), "{runs}");
    }

    #[test]
    fn measurements_are_parsed_from_their_json() {
        let results = results();
        let folder = tempfile::tempdir().unwrap();
        let mut directory = Directory::create(folder.path()).unwrap();
        write(&results, &mut directory).unwrap();
        let text = std::fs::read_to_string(folder.path().join("ttcp.json")).unwrap();
        let read: Results = serde_json::from_str(&text).unwrap();
        assert_eq!((read.runs.len(), read.cells.len(), &read.settings), (24, 8, &results.settings));
    }

    #[test]
    fn a_missing_cell_is_a_dash() {
        let mut results = results();
        results.cells.retain(|cell| cell.data == DataType::Octet);
        let text = text(&results);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(words.contains(&vec!["|", "1K", "|", "-", "|", "-", "|", "-", "|"]), "{text}");
    }
}
