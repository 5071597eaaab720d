//! The rows as tables of text.

use crate::Rows;

/// The cells of a gauge.
const GAUGE: u64 = 10;

/// A table: a title, the heads of its columns, and its rows.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) columns: &'static [Column],
    pub(crate) rows: Vec<Vec<String>>,
    /// A remark below it.
    pub(crate) remark: Option<&'static str>,
}

/// A column: its head, and whether its cells are numbers, which stand at the right.
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) is_number: bool,
}

const fn words(head: &'static str) -> Column {
    Column { head, is_number: false }
}

const fn number(head: &'static str) -> Column {
    Column { head, is_number: true }
}

const TASKS: [Column; 11] = [
    words("stream"),
    words("module"),
    words("task"),
    words("flow"),
    number("messages/s"),
    number("queued"),
    number("octets"),
    words("of high mark"),
    number("threads"),
    number("lock waits/s"),
    number("waiting"),
];
const SERVICES: [Column; 4] = [words("service"), words("kind"), words("state"), number("connections")];
const ORBS: [Column; 9] = [
    words("ORB"),
    number("accepted"),
    number("made"),
    number("requests/s"),
    number("running"),
    number("median"),
    number("p99"),
    number("calls/s"),
    number("failures/s"),
];
const CHANNELS: [Column; 8] = [
    words("channel"),
    number("consumers"),
    number("suppliers"),
    number("received/s"),
    number("delivered/s"),
    number("lost/s"),
    number("queue"),
    number("lag"),
];
const CONNECTIONS: [Column; 5] =
    [words("connection"), words("side"), words("ORB"), number("requests/s"), number("octets/s")];

/// The tables that have rows.
pub(crate) fn tables(rows: &Rows) -> Vec<Table> {
    let tasks = rows.tasks.iter().map(|row| {
        vec![
            row.stream.clone(),
            row.module.clone(),
            row.side.clone(),
            row.flow.to_owned(),
            rate(row.rate),
            row.messages.to_string(),
            quantity(row.octets as f64),
            gauge(row.octets, row.high),
            row.threads.to_string(),
            rate(row.lock_waits),
            row.lock_wait.map_or_else(none, |part| format!("{:.1} %", 100.0 * part)),
        ]
    });
    let services = rows.services.iter().map(|row| {
        let connections = row.connections.map_or_else(String::new, |number| number.to_string());
        vec![row.name.clone(), row.kind.clone(), row.state.to_owned(), connections]
    });
    let orbs = rows.orbs.iter().map(|row| {
        let measured = |value: String| if row.is_measured { value } else { none() };
        vec![
            name(&row.name),
            row.server_connections.to_string(),
            row.client_connections.to_string(),
            measured(rate(row.requests)),
            measured(row.running.to_string()),
            row.median.map_or_else(none, duration),
            row.p99.map_or_else(none, duration),
            measured(rate(row.calls)),
            measured(rate(row.failures)),
        ]
    });
    let channels = rows.channels.iter().map(|row| {
        vec![
            row.name.clone(),
            row.consumers.to_string(),
            row.suppliers.to_string(),
            rate(row.received),
            rate(row.delivered),
            rate(row.lost),
            row.queued.to_string(),
            duration(row.lag),
        ]
    });
    let connections = rows
        .connections
        .iter()
        .map(|row| vec![row.peer.clone(), row.side.clone(), name(&row.orb), rate(row.rate), rate(row.octets)]);
    let unmeasured = "Requests and calls are measured with -ORBMetrics yes.";
    let remark = rows.orbs.iter().any(|row| !row.is_measured).then_some(unmeasured);
    let all = [
        Table { title: "Streams", columns: &TASKS, rows: tasks.collect(), remark: None },
        Table { title: "ORBs", columns: &ORBS, rows: orbs.collect(), remark },
        Table { title: "Channels", columns: &CHANNELS, rows: channels.collect(), remark: None },
        Table { title: "Connections", columns: &CONNECTIONS, rows: connections.collect(), remark: None },
        Table { title: "Services", columns: &SERVICES, rows: services.collect(), remark: None },
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

impl Table {
    /// The width of each column, in characters.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let width = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().map(|row| row[at].chars().count());
            cells.max().unwrap_or_default().max(column.head.chars().count())
        };
        self.columns.iter().enumerate().map(width).collect()
    }
}

impl Column {
    /// A cell with spaces up to the width of the column.
    pub(crate) fn pad(&self, cell: &str, width: usize) -> String {
        if self.is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    }
}

/// The cell of a number that is not known.
fn none() -> String {
    "-".to_owned()
}

fn name(orb: &str) -> String {
    if orb.is_empty() { none() } else { orb.to_owned() }
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(none, quantity)
}

/// A number with three digits, in thousands (k), millions (M) or billions (G).
fn quantity(number: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = units.iter().find(|(size, _)| number >= *size);
    let (value, unit) = unit.map_or((number, ""), |(size, unit)| (number / size, *unit));
    match value {
        value if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}{unit}"),
        value if value >= 10.0 => format!("{value:.1}{unit}"),
        value => format!("{value:.2}{unit}"),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds.is_infinite() => "> 69 s".to_owned(),
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        0.0 => "0".to_owned(),
        seconds if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{:.0} µs", seconds * 1e6),
    }
}

/// The part of the high water mark that is reached.
fn gauge(octets: u64, high: u64) -> String {
    let part = if high == 0 { 0.0 } else { octets as f64 / high as f64 };
    let full = ((part * GAUGE as f64).round() as u64).min(GAUGE);
    let bar: String = (0..GAUGE).map(|cell| if cell < full { '█' } else { '·' }).collect();
    format!("{bar} {:>3.0} %", 100.0 * part)
}
