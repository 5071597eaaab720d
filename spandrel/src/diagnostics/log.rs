//! A log of the ORB on standard error (feature `log`).
//!
//! The libraries only emit `tracing` events and spans; a program with its own subscriber does not need this
//! module. For other programs [`init`] creates a subscriber, configured by two environment variables:
//!
//! - `SPANDREL_LOG`: the filter, in the syntax of `tracing-subscriber`'s `Targets`: a level (`error`, `warn`,
//!   `info`, `debug`, `trace`, `off`), or levels by target, as in `info,spandrel=debug` or
//!   `warn,spandrel::request=debug`.
//! - `SPANDREL_LOG_FORMAT`: `human` (the default), or `json`, one object per line.
//!
//! | level | events |
//! | --- | --- |
//! | `error` | failures of the ORB or the program: a servant panicked, a thread could not be started, a reply could not be marshaled |
//! | `warn` | a peer was rejected or disconnected, or its message was not understood, with the reason |
//! | `info` | single events: the endpoints of the ORB, the addresses in references, the address of the metrics |
//! | `debug` | each connection, opened and closed, with the reason; each call and request with its outcome (targets `spandrel::call`, `spandrel::request`); retransmissions |
//! | `trace` | steps inside of these |
//!
//! The texts of peers are [escaped](spandrel_error::escape), C1 control characters too, in both formats. A field has at most
//! 1,024 characters in the format `human`, and a line at most 8 KiB in the format `json`.
//!
//! At `debug` every call has a span with its connection, request id, object, operation and outcome, and so has
//! every request; events of servants carry them. At `info` and above the log adds no cost to calls.

use std::{
    collections::VecDeque,
    env,
    fmt::{self, Debug},
    io::{self, IsTerminal},
    sync::{Arc, Mutex, PoisonError},
};

use spandrel_error::{escape, escape_lines};
use tracing_subscriber::{
    field::MakeExt as _,
    filter::Targets,
    fmt::format::{self, Writer},
    prelude::*,
};

/// The environment variable with the filter.
pub const VARIABLE: &str = "SPANDREL_LOG";
/// The environment variable with the format: `human` or `json`.
pub const FORMAT_VARIABLE: &str = "SPANDREL_LOG_FORMAT";

/// The most characters of a field in the format `human`.
const MAX_FIELD: usize = 1024;

/// An error of [`init`].
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The filter is invalid.
    #[error("`{0}` is not a filter for {VARIABLE}: expected a level, or levels by target as in `info,spandrel=debug`")]
    Filter(String, #[source] tracing_subscriber::filter::ParseError),
    /// The format is unknown.
    #[error("`{0}` is not a value of {FORMAT_VARIABLE}: expected human or json")]
    Format(String),
    /// The program has a subscriber already.
    #[error("the program already has a `tracing` subscriber")]
    Taken(#[source] Box<dyn std::error::Error + Send + Sync>),
}
spandrel_error::debug_as_report!(LogError);

/// Starts the log on standard error, with the filter of `SPANDREL_LOG`; the default is level `info`.
///
/// # Errors
/// If a variable is invalid, or the program has a `tracing` subscriber already.
pub fn init() -> Result<(), LogError> {
    init_or("info")
}

/// As [`init`], with another default filter.
///
/// # Errors
/// As [`init`].
pub fn init_or(default: &str) -> Result<(), LogError> {
    start(default, None)
}

/// As [`init_or`], and keeps the last lines in memory also: those that `SPANDREL_LOG` selects, or from level `info` on
/// without it.
///
/// # Errors
/// As [`init`].
pub fn init_with_tail(default: &str, tail: &LogTail) -> Result<(), LogError> {
    start(default, Some(tail))
}

fn start(default: &str, tail: Option<&LogTail>) -> Result<(), LogError> {
    let nonempty = |variable: &str| env::var(variable).ok().filter(|text| !text.is_empty());
    let variable = nonempty(VARIABLE);
    let filter = |default: &str| -> Result<Targets, LogError> {
        let text = variable.clone().unwrap_or_else(|| default.to_owned());
        text.parse().map_err(|error| LogError::Filter(text, error))
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let is_coloured = io::stderr().is_terminal() && nonempty("NO_COLOR").is_none();
    let tail = tail.cloned().map(|tail| -> Result<_, LogError> {
        let layer = tracing_subscriber::fmt::layer().json().with_writer(move || tail.clone());
        Ok(layer.with_filter(filter("info")?))
    });
    let log = tracing_subscriber::registry().with(tail.transpose()?);
    let filter = filter(default)?;
    match nonempty(FORMAT_VARIABLE).as_deref() {
        None | Some("human") => {
            let lines = lines
                .fmt_fields(format::debug_fn(|out, field, value| write_field(out, field.name(), value)).delimited(" "));
            log.with(lines.with_ansi(is_coloured).with_filter(filter)).try_init()
        }
        Some("json") => log.with(lines.json().with_writer(|| JsonLines(io::stderr())).with_filter(filter)).try_init(),
        Some(other) => return Err(LogError::Format(other.to_owned())),
    }
    .map_err(|error| LogError::Taken(error.into()))
}

/// Writes a field for people, in one line without characters that have an effect on a terminal.
fn write_field(out: &mut Writer<'_>, field: &str, value: &dyn Debug) -> fmt::Result {
    let text = format!("{value:?}");
    let text = escape(&text).at_most(MAX_FIELD);
    match field {
        "message" => write!(out, "{text}"),
        name => write!(out, "{name}={text}"),
    }
}

/// The form of a line in JSON, without its line feed.
fn json_line(octets: &[u8]) -> String {
    if octets.len() > LogTail::MAX_LINE {
        return format!(
            r#"{{"level":"WARN","fields":{{"message":"a line of {} octets was left out"}}}}"#,
            octets.len()
        );
    }
    escape_lines(String::from_utf8_lossy(octets).trim_end()).into_owned()
}

/// Writes events in JSON, which the formatter writes at once.
struct JsonLines<W>(W);

impl<W: io::Write> io::Write for JsonLines<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let line = json_line(octets) + "\n";
        self.0.write_all(line.as_bytes())?;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The last lines of a log in memory, each as a JSON object (`timestamp`, `level`, `target`, `fields`, `span`). All
/// clones have the same lines.
#[derive(Clone, Debug, Default)]
pub struct LogTail(Arc<Mutex<TailLines>>);

#[derive(Debug, Default)]
struct TailLines {
    lines: VecDeque<String>,
    /// The number of all lines so far.
    written: u64,
}

impl LogTail {
    /// The most lines that are kept.
    pub const MAX_LINES: usize = 1_000;
    /// The most octets of a line. Longer ones are replaced by a line that states their length.
    pub const MAX_LINE: usize = 8 << 10;

    /// The lines after the first `seen` ones of the log, oldest first, and the number of all lines so far.
    #[must_use]
    pub fn after(&self, seen: u64) -> (Vec<String>, u64) {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The count of another process may be larger: its reader gets all lines.
        let new = if seen > tail.written { tail.written } else { tail.written - seen };
        let new = usize::try_from(new).unwrap_or(usize::MAX).min(tail.lines.len());
        (tail.lines.range(tail.lines.len() - new..).cloned().collect(), tail.written)
    }
}

/// Appends an event, which the formatter writes at once.
impl io::Write for LogTail {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let text = json_line(octets);
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.lines.len() == Self::MAX_LINES {
            tail.lines.pop_front();
        }
        tail.lines.push_back(text);
        tail.written += 1;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
