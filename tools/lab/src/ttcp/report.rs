//! Shows a series as the papers do: Mbit/s per buffer size, then the highest and lowest of each mechanism.

use std::fmt::Write as _;

use comfy_table::Table;

use super::results::{Cell, Results};
use crate::LabError;
use crate::mechanism::MechanismName;
use crate::output::Directory;
use crate::table;
use crate::units::{Octets, grouped};
use crate::workload::{CallKind, DataType};

/// The whole report as text.
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
        "{} of user data per run, socket queues: {queues}, TCP_NODELAY {}, {}; medians of {} interleaved rounds",
        settings.bytes,
        if settings.sockets.no_delay { "on" } else { "off" },
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
            "\nHighest and lowest throughput, {} (Mbit/s), and the ratio to c (median, range)",
            words(*call)
        );
        _ = writeln!(text, "{}", summary(results, *call));
    }
    text
}

fn words(call: CallKind) -> &'static str {
    match call {
        CallKind::OneWay => "one-way",
        CallKind::TwoWay => "two-way",
    }
}

/// What a table or plot of this kind of call and type shows.
pub(super) fn heading(call: CallKind, data: DataType) -> String {
    let element = if data == DataType::Struct { "BinStruct" } else { data.name() };
    format!("{} sequences, {} (Mbit/s of user data)", element, words(call))
}

fn throughput(results: &Results, call: CallKind, data: DataType) -> Table {
    let mut header = vec!["buffer".to_owned()];
    for mechanism in &results.settings.mechanisms {
        header.push(mechanism.to_string());
        header.push("±".to_owned());
        if shows_ratio(results, *mechanism) {
            header.push(format!("{mechanism}/c"));
        }
    }
    let mut table = table::with_header(header);
    for size in &results.settings.sizes {
        let mut row = vec![size.to_string()];
        for mechanism in &results.settings.mechanisms {
            let cell = results.cell(call, data, size.0 as usize, *mechanism);
            row.push(cell.map_or("-".to_owned(), |cell| grouped(cell.mbps.median)));
            row.push(cell.map_or("-".to_owned(), |cell| format!("{:.0} %", cell.mbps.spread_percent())));
            if shows_ratio(results, *mechanism) {
                let ratio = cell.and_then(|cell| cell.ratio);
                row.push(ratio.map_or("-".to_owned(), |ratio| format!("{:.2}", ratio.median)));
            }
        }
        table.add_row(row);
    }
    table
}

fn shows_ratio(results: &Results, mechanism: MechanismName) -> bool {
    mechanism != MechanismName::C && results.settings.mechanisms.contains(&MechanismName::C)
}

/// The form of table 2.1 of "Design Principles and Optimizations for High-performance, Real-time CORBA".
fn summary(results: &Results, call: CallKind) -> Table {
    let header = ["mechanism", "scalars hi", "lo", "struct hi", "lo", "scalars/c", "struct/c"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
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
    match crate::stats::Summary::of(ratios) {
        Some(ratio) => format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.low, ratio.high),
        None => "-".to_owned(),
    }
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
