//! Report of the marshaling experiment: a table per size and direction with a row per rung, and the calls of
//! each rung.

use std::fmt::Write as _;

use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::contender::{DIRECTIONS, Direction};
use super::results::{Counted, Results, Row};
use crate::LabError;
use crate::output::Directory;
use crate::workload::DataType;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let settings = &results.settings;
    let rounds = results.rows.iter().map(|row| row.rate.count).min().unwrap_or(0);
    _ = writeln!(text, "{}", results.machine.summary());
    _ = writeln!(
        text,
        "Sequences in one thread, {}; MiB of user data per second, medians of {rounds} interleaved rounds ± half the range; in parentheses as a multiple of the original interpreter",
        settings.core.map_or("not pinned", |_| "pinned to a core"),
    );
    for &octets in &settings.sizes {
        for direction in DIRECTIONS {
            let done = match direction {
                Direction::Write => "written",
                Direction::Read => "read",
            };
            _ = writeln!(text, "\nSequences of {} octets, {done}", grouped(octets as f64));
            _ = writeln!(text, "{}", rates(results, octets, direction));
        }
    }
    for &data_type in settings.types.iter().filter(|data_type| counts(results, **data_type).next().is_some()) {
        _ = writeln!(text, "\nCalls per element of {data_type}, as the paper's profiles count them");
        _ = writeln!(text, "{}", calls(results, data_type));
    }
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn rates(results: &Results, octets: usize, direction: Direction) -> table::Table {
    let types = &results.settings.types;
    let mut table = table::with_header(
        ["engine".to_owned()].into_iter().chain(types.iter().map(|data_type| data_type.to_string())).collect(),
    );
    for contender in &results.settings.contenders {
        let cell = |data_type: &DataType| {
            let row = results.rows.iter().find(|row| {
                (row.octets, row.direction, row.contender, row.data_type) == (octets, direction, *contender, *data_type)
            });
            row.map_or(String::new(), ranged)
        };
        table.add_row([contender.to_string()].into_iter().chain(types.iter().map(cell)));
    }
    table
}

fn ranged(row: &Row) -> String {
    let rate = format!("{} ±{:.0}%", grouped(row.rate.median.round()), row.rate.spread_percent());
    match &row.over_original {
        Some(ratio) => format!("{rate} ({:.1})", ratio.median),
        None => rate,
    }
}

fn counts(results: &Results, data_type: DataType) -> impl Iterator<Item = &Counted> {
    results.counted.iter().filter(move |counted| counted.data_type == data_type)
}

fn calls(results: &Results, data_type: DataType) -> table::Table {
    let here: Vec<&Counted> = counts(results, data_type).collect();
    let mut methods: Vec<&str> = Vec::new();
    for (method, _) in here.iter().flat_map(|counted| &counted.calls) {
        if !methods.contains(&method.as_str()) {
            methods.push(method);
        }
    }
    let mut table =
        table::with_header(["engine", "way"].into_iter().chain(methods.iter().copied()).map(str::to_owned).collect());
    for counted in here {
        let way = match counted.direction {
            Direction::Write => "write",
            Direction::Read => "read",
        };
        let cell = |method: &&str| {
            let found = counted.calls.iter().find(|(name, _)| name == method);
            found
                .map_or(String::new(), |(_, calls)| if *calls < 0.05 { "0+".to_owned() } else { format!("{calls:.1}") })
        };
        let cells = methods.iter().map(cell);
        table.add_row([counted.contender.to_string(), way.to_owned()].into_iter().chain(cells));
    }
    table
}

/// Writes the series as JSON, as CSV (the runs and the summaries) and as text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("marshal.json", results)?;
    directory.write("runs.csv", &runs_csv(results))?;
    directory.write("summary.csv", &summary_csv(results))?;
    directory.write("report.txt", &text(results))
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "write",
        Direction::Read => "read",
    }
}

fn runs_csv(results: &Results) -> String {
    let mut csv = "octets,type,direction,round,engine,mib_per_second\n".to_owned();
    for run in &results.measured {
        let (data_type, way, who) = (run.data_type, way(run.direction), run.contender);
        _ = writeln!(csv, "{},{data_type},{way},{},{who},{:.1}", run.octets, run.round, run.rate);
    }
    csv
}

fn summary_csv(results: &Results) -> String {
    let mut csv = "octets,type,direction,engine,median,low,high,over_original\n".to_owned();
    for row in &results.rows {
        let (data_type, way, who, rate) = (row.data_type, way(row.direction), row.contender, &row.rate);
        let over = row.over_original.map_or(String::new(), |ratio| format!("{:.3}", ratio.median));
        let (octets, median, low, high) = (row.octets, rate.median, rate.low, rate.high);
        _ = writeln!(csv, "{octets},{data_type},{way},{who},{median:.1},{low:.1},{high:.1},{over}");
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::super::{Contender, Measurement, Settings};
    use super::*;
    use crate::machine::Machine;

    fn results() -> Results {
        let settings = Settings {
            contenders: Contender::all(),
            types: vec![DataType::Double, DataType::Struct],
            sizes: vec![65_536],
            rounds: 3,
            run_micros: 1_000,
            core: Some(0),
            budget_seconds: None,
        };
        let mut measured = Vec::new();
        for round in 0..3 {
            for (index, contender) in Contender::all().into_iter().enumerate() {
                for (data_type, direction) in [
                    (DataType::Double, Direction::Write),
                    (DataType::Double, Direction::Read),
                    (DataType::Struct, Direction::Write),
                    (DataType::Struct, Direction::Read),
                ] {
                    let rate = f64::from(128 << index) + f64::from(round) * f64::from(1 << index);
                    measured.push(Measurement { octets: 65_536, data_type, direction, round, contender, rate });
                }
            }
        }
        Results::from_measurements(Machine::example(), settings, measured)
    }

    #[test]
    fn each_engine_has_its_row_and_each_rung_its_calls() {
        insta::assert_snapshot!(text(&results()));
    }

    #[test]
    fn the_runs_and_summaries_as_csv() {
        insta::assert_snapshot!(summary_csv(&results()));
        assert_eq!(runs_csv(&results()).lines().count(), 1 + 3 * 4 * Contender::all().len());
    }

    #[test]
    fn measurements_are_parsed_from_their_json() {
        let text = serde_json::to_string(&results()).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results());
    }
}
