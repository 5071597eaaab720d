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
//! At `debug` every call has a span with its connection, request id, object, operation and outcome, and so has
//! every request; events of servants carry them. At `info` and above the log adds no cost to calls.

use std::{
    env,
    io::{self, IsTerminal},
};

use tracing_subscriber::{filter::Targets, prelude::*};

/// The environment variable with the filter.
pub const VARIABLE: &str = "SPANDREL_LOG";
/// The environment variable with the format.
pub const FORMAT_VARIABLE: &str = "SPANDREL_LOG_FORMAT";

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
    let nonempty = |variable: &str| env::var(variable).ok().filter(|text| !text.is_empty());
    let text = nonempty(VARIABLE).unwrap_or_else(|| default.to_owned());
    let filter: Targets = text.parse().map_err(|error| LogError::Filter(text, error))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let is_coloured = io::stderr().is_terminal() && nonempty("NO_COLOR").is_none();
    let log = tracing_subscriber::registry().with(filter);
    match nonempty(FORMAT_VARIABLE).as_deref() {
        None | Some("human") => log.with(lines.with_ansi(is_coloured)).try_init(),
        Some("json") => log.with(lines.json()).try_init(),
        Some(other) => return Err(LogError::Format(other.to_owned())),
    }
    .map_err(|error| LogError::Taken(error.into()))
}
