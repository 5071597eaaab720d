//! Report of the footprint experiment, in tables like 7.1 to 7.9 of paper 001.

use std::fmt::Write as _;

use spandrel_measure::stats::Summary;
use spandrel_measure::table;
use spandrel_measure::units::grouped;

use super::calls::{Operation, Step};
use super::fixtures::{Definitions, definitions};
use super::minimum::{MAX_GROWTH, RECORDED};
use super::results::Results;
use super::settings::{Engine, Optimisation, Part, Side};
use crate::LabError;
use crate::output::Directory;

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    _ = writeln!(text, "{}", results.machine.summary());
    let parts = &results.settings.parts;
    if parts.contains(&Part::Latency) {
        latencies(&mut text, results);
    }
    if parts.contains(&Part::Sizes) {
        for optimisation in Optimisation::ALL {
            for side in Side::ALL {
                let (item, built) = (side.name(), optimisation.name());
                _ = writeln!(
                    text,
                    "\nOctets of the {item} of each operation, built for {built} (own code + helpers + tables)"
                );
                _ = writeln!(text, "{}", operations(results, side, optimisation));
            }
            let built = optimisation.name();
            _ = writeln!(text, "\nOctets of all stubs and skeletons of an interface or service, built for {built}");
            _ = writeln!(text, "{}", services(results, optimisation));
        }
    }
    if parts.contains(&Part::Sizes)
        && let Ok(table) = service_definitions(results)
    {
        _ = writeln!(
            text,
            "\nDefinitions in the IDL of the services, in parentheses those of the paper (table 7.9), and octets of their stubs and skeletons together, built for size"
        );
        _ = writeln!(text, "{table}");
    }
    if parts.contains(&Part::Latency) || parts.contains(&Part::Sizes) {
        _ = writeln!(
            text,
            "\nThe interpretive engine in percent of the compiled one (speed: over 100 is quicker; sizes: built for size)"
        );
        _ = writeln!(text, "{}", comparison(results));
    }
    if parts.contains(&Part::Latency) && parts.contains(&Part::Sizes) {
        _ = writeln!(
            text,
            "\nWhat the adaptive engine costs and when it pays: octets more than the interpretive one, stub and skeleton built for size, and nanoseconds that marshaling one call saves by the compiled code that a type goes over to"
        );
        _ = writeln!(text, "{}", adaptive(results));
    }
    if let Some(minimum) = results.minimum {
        let added = minimum.added() as f64;
        _ = writeln!(
            text,
            "\nThe smallest client, compiled stubs: {} octets; the same with only a TcpStream: {}. A CORBA client adds {} octets ({:.1} KiB).",
            grouped(minimum.client as f64),
            grouped(minimum.socket as f64),
            grouped(added),
            added / 1024.0,
        );
        _ = writeln!(
            text,
            "Recorded for x86-64 Linux: {} octets ({:.1} KiB); this is {:+.1} % more, and a test lets {MAX_GROWTH} % pass.",
            grouped(RECORDED as f64),
            RECORDED as f64 / 1024.0,
            minimum.growth(),
        );
    }
    if let Some(warning) = results.machine.warning() {
        _ = write!(text, "\n{warning}");
    }
    text
}

fn latencies(text: &mut String, results: &Results) {
    let settings = &results.settings;
    _ = writeln!(
        text,
        "\nNanoseconds of a two-way call, and of its marshaling alone; two ORBs of one process{}, medians of {} interleaved rounds of {} calls ± half the range",
        settings.core.map_or("", |_| " on one core"),
        settings.rounds,
        grouped(f64::from(settings.calls)),
    );
    let header = ["operation"]
        .into_iter()
        .map(str::to_owned)
        .chain(Engine::ALL.iter().flat_map(|engine| [format!("{}: call", engine.name()), "marshaling".to_owned()]));
    let mut table = table::with_header(header.collect());
    for operation in Operation::ALL {
        let cells = Engine::ALL.iter().flat_map(|engine| match results.latency(operation.name(), *engine) {
            Some(latency) => [ranged(&latency.two_way), ranged(&latency.marshaling)],
            None => ["absent".to_owned(), String::new()],
        });
        table.add_row([operation.name().to_owned()].into_iter().chain(cells));
    }
    _ = writeln!(text, "{table}");
    _ = writeln!(
        text,
        "\nNanoseconds to marshal and to demarshal the values of one call, by role (table 7.4, there of {} calls together)",
        grouped(2_000.0)
    );
    _ = writeln!(text, "{}", steps(results));
}

/// Table 7.4: the steps of marshaling.
fn steps(results: &Results) -> table::Table {
    let header = ["operation", "role", "step", "values"].into_iter().chain(Engine::ALL.iter().map(|it| it.name()));
    let mut table = table::with_header(header.map(str::to_owned).collect());
    for operation in Operation::ALL {
        for (nth, step) in Step::ALL.into_iter().enumerate() {
            let [role, item] = step.name();
            let words = [operation.name().to_owned(), role.to_owned(), item.to_owned(), step.values().to_string()];
            let cell = |engine: &Engine| {
                let latency = results.latency(operation.name(), *engine);
                latency.map_or("absent".to_owned(), |latency| ranged(&latency.steps[nth]))
            };
            table.add_row(words.into_iter().chain(Engine::ALL.iter().map(cell)));
        }
    }
    table
}

fn ranged(summary: &Summary) -> String {
    format!("{} ±{:.0}%", grouped(summary.median.round()), summary.spread_percent())
}

fn operations(results: &Results, side: Side, optimisation: Optimisation) -> table::Table {
    let mut table = table::with_header(
        ["operation"].into_iter().chain(Engine::ALL.iter().map(|engine| engine.name())).map(str::to_owned).collect(),
    );
    for operation in Operation::ALL {
        let cell = |engine: &Engine| {
            let size = results.size(operation.name(), *engine, side, optimisation);
            size.map_or("absent".to_owned(), |it| {
                format!("{} ({} + {} + {})", grouped(it.total() as f64), it.code, it.helpers, it.tables)
            })
        };
        table.add_row([operation.name().to_owned()].into_iter().chain(Engine::ALL.iter().map(cell)));
    }
    table
}

fn services(results: &Results, optimisation: Optimisation) -> table::Table {
    let header =
        ["service", "stubs: compiled", "interpretive", "ratio", "skeletons: compiled", "interpretive", "ratio"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    let mut names: Vec<&str> = results.services.iter().map(|it| it.service.as_str()).collect();
    names.dedup();
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let total = |side, engine| results.service_size(name, engine, side, optimisation).unwrap_or(0) as f64;
        let cells = Side::ALL.into_iter().flat_map(|side| {
            let (compiled, interpretive) = (total(side, Engine::Compiled), total(side, Engine::Interpretive));
            [grouped(compiled), grouped(interpretive), format!("{:.2}", interpretive / compiled)]
        });
        table.add_row([name.to_owned()].into_iter().chain(cells));
    }
    table
}

/// Table 7.9: the definitions of the services that the daemons serve, with the sizes of what is generated from them.
fn service_definitions(results: &Results) -> Result<table::Table, LabError> {
    let header = ["service", "structures", "sequences", "operations, attributes", "compiled", "interpretive", "ratio"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    for row in definitions()? {
        let size = |engine| {
            let side = |side| results.service_size(row.service, engine, side, Optimisation::Size);
            Some((side(Side::Stub)? + side(Side::Skeleton)?) as f64)
        };
        let [compiled, interpretive] = [Engine::Compiled, Engine::Interpretive].map(size);
        let octets = |size: Option<f64>| size.map_or("absent".to_owned(), grouped);
        let count = |number: fn(&Definitions) -> usize| match &row.paper {
            Some(paper) => format!("{} ({})", number(&row.here), number(paper)),
            None => number(&row.here).to_string(),
        };
        let ratio =
            interpretive.zip(compiled).map(|(interpretive, compiled)| format!("{:.2}", interpretive / compiled));
        table.add_row([
            row.service.to_owned(),
            count(|definitions| definitions.structures),
            count(|definitions| definitions.sequences),
            count(|definitions| definitions.operations),
            octets(compiled),
            octets(interpretive),
            ratio.unwrap_or_default(),
        ]);
    }
    Ok(table)
}

/// Table 7.8: performance, stub and skeleton in percent, and their means.
fn comparison(results: &Results) -> table::Table {
    let header = ["operation", "speed of calls", "speed of marshaling", "stub size", "skeleton size"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    let mut columns: [Vec<f64>; 4] = Default::default();
    for operation in Operation::ALL {
        let speed = results.speed(operation.name(), Engine::Interpretive);
        let size = |side: Side| {
            let of = |engine| results.size(operation.name(), engine, side, Optimisation::Size);
            Some(of(Engine::Interpretive)?.total() as f64 / of(Engine::Compiled)?.total() as f64)
        };
        let values = [
            speed.map(|(calls, _)| calls.median),
            speed.map(|(_, marshaling)| marshaling.median),
            size(Side::Stub),
            size(Side::Skeleton),
        ];
        for (column, value) in columns.iter_mut().zip(values) {
            column.extend(value);
        }
        table.add_row([operation.name().to_owned()].into_iter().chain(values.map(percent)));
    }
    let mean = |column: &Vec<f64>| (!column.is_empty()).then(|| column.iter().sum::<f64>() / column.len() as f64);
    table.add_row(["mean".to_owned()].into_iter().chain(columns.iter().map(|column| percent(mean(column)))));
    table
}

/// A type with the adaptive engine pays the memory of both engines; each use saves some time, or none.
fn adaptive(results: &Results) -> table::Table {
    let header = ["operation", "octets more", "ns saved per call", "pays"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    for operation in Operation::ALL {
        let name = operation.name();
        let both = |engine| {
            let size = |side| results.size(name, engine, side, Optimisation::Size).map(|sizes| sizes.total() as f64);
            Some(size(Side::Stub)? + size(Side::Skeleton)?)
        };
        let more = both(Engine::Adaptive).zip(both(Engine::Interpretive)).map(|(adaptive, tables)| adaptive - tables);
        let time = |engine| results.latency(name, engine).map(|latency| latency.marshaling);
        let (tables, code) = (time(Engine::Interpretive), time(Engine::Compiled));
        let saved = tables.zip(code).map(|(tables, code)| tables.median - code.median);
        // No conclusion within the spread of the rounds.
        let clear = tables.zip(code).map(|(tables, code)| tables.low > code.high || tables.high < code.low);
        let verdict = match (saved, clear) {
            (Some(saved), Some(true)) if saved > 0.0 => "from the first use after it",
            (Some(_), Some(true)) => "never: tables are quicker",
            (Some(_), Some(false)) => "cannot be told",
            _ => "absent",
        };
        let number = |value: Option<f64>| value.map_or("absent".to_owned(), |value| grouped(value.round()));
        table.add_row([name.to_owned(), number(more), number(saved), verdict.to_owned()]);
    }
    table
}

fn percent(ratio: Option<f64>) -> String {
    ratio.map_or(String::new(), |ratio| format!("{:.1}", ratio * 100.0))
}

/// Writes everything as JSON, sizes and calls as CSV, and the text.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &mut Directory) -> Result<(), LabError> {
    directory.write_json("footprint.json", results)?;
    directory.write("sizes.csv", &sizes_csv(results))?;
    directory.write("calls.csv", &calls_csv(results))?;
    directory.write("report.txt", &text(results))
}

fn sizes_csv(results: &Results) -> String {
    let mut csv = "what,engine,side,optimisation,code,helpers,tables,type_codes\n".to_owned();
    let operations = results.footprints.iter().map(|it| (&it.operation, it.engine, it.side, it.optimisation, it.sizes));
    let services = results.services.iter().map(|it| (&it.service, it.engine, it.side, it.optimisation, it.sizes));
    for (item, engine, side, optimisation, sizes) in operations.chain(services) {
        let (engine, side, built) = (engine.name(), side.name(), optimisation.name());
        let [code, helpers, tables, type_codes] = [sizes.code, sizes.helpers, sizes.tables, sizes.type_codes];
        _ = writeln!(csv, "{item},{engine},{side},{built},{code},{helpers},{tables},{type_codes}");
    }
    csv
}

fn calls_csv(results: &Results) -> String {
    let mut csv = "operation,engine,round,two_way_ns,client_marshal_ns,server_demarshal_ns,server_marshal_ns,client_demarshal_ns\n"
        .to_owned();
    for call in &results.calls {
        let (operation, engine, round) = (&call.operation, call.engine.name(), call.round);
        let [client, server, reply, results] = call.marshaling;
        _ = write!(csv, "{operation},{engine},{round},{:.1},", call.two_way);
        _ = writeln!(csv, "{client:.1},{server:.1},{reply:.1},{results:.1}");
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::super::results::{Call, Footprint, Minimum, Service};
    use super::super::settings::Settings;
    use super::super::sizes::Sizes;
    use super::*;
    use crate::machine::Machine;

    fn results() -> Results {
        let settings = Settings { parts: Part::ALL.to_vec(), rounds: 3, calls: 2_000, core: Some(0) };
        let mut results = Results::new(Machine::example(), settings);
        for (nth, operation) in Operation::ALL.into_iter().enumerate() {
            for (factor, engine) in [4, 1, 5].into_iter().zip(Engine::ALL) {
                for round in 0..3 {
                    let two_way = f64::from(1 << nth) * 256.0 + f64::from(round);
                    let operation = operation.name().to_owned();
                    let marshaling = [2.0, 3.0, 4.0, 7.0].map(|part| f64::from(factor) * 4.0 * part);
                    results.calls.push(Call { operation, engine, round, two_way, marshaling });
                }
                for (side, optimisation) in
                    Side::ALL.into_iter().flat_map(|side| Optimisation::ALL.map(|it| (side, it)))
                {
                    let sizes = Sizes { code: 100 * factor as u64, helpers: 10 + nth as u64, tables: 5, type_codes: 7 };
                    let operation = operation.name().to_owned();
                    results.footprints.push(Footprint { operation, engine, side, optimisation, sizes });
                    let service = "CosNaming".to_owned();
                    if nth == 0 {
                        results.services.push(Service { service, engine, side, optimisation, sizes });
                    }
                }
            }
        }
        results.minimum = Some(Minimum { socket: 300_000, client: 400_000 });
        results
    }

    #[test]
    fn the_tables_of_the_paper() {
        // The recorded figure changes with the client.
        let (text, recorded) = (text(&results()), grouped(RECORDED as f64));
        assert!(text.contains(&format!("Recorded for x86-64 Linux: {recorded} octets")), "{text}");
        insta::assert_snapshot!(
            text.lines().filter(|line| !line.starts_with("Recorded for")).collect::<Vec<_>>().join("\n")
        );
    }

    #[test]
    fn sizes_and_calls_as_csv() {
        assert_eq!(sizes_csv(&results()).lines().count(), 1 + 7 * 3 * 4 + 3 * 4);
        assert_eq!(calls_csv(&results()).lines().count(), 1 + 7 * 3 * 3);
    }

    #[test]
    fn results_are_parsed_from_their_json() {
        let text = serde_json::to_string(&results()).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results());
    }
}
