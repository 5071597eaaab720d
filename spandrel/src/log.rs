//! What the ORB says of itself while it works, on standard error (feature `log`).
//!
//! The libraries only emit `tracing` events and spans; a program that has a subscriber of its own needs nothing of this. For others,
//! [`init`] makes one from two variables of the environment:
//!
//! - `SPANDREL_LOG`: what is shown, in the syntax of `tracing-subscriber`'s `EnvFilter`: a level (`error`, `warn`, `info`, `debug`,
//!   `trace`, `off`), or levels by target, as in `info,spandrel=debug` or `warn,spandrel::request=debug`.
//! - `SPANDREL_LOG_FORMAT`: `human` (the default), or `json`, one object in a line.
//!
//! | level | what it says |
//! | --- | --- |
//! | `error` | something of ours or of the program's is broken: a servant panicked, a thread could not be started, an answer could not be marshaled |
//! | `warn` | a peer was turned away, cut off or not understood, and why |
//! | `info` | what happens once: where the ORB listens, what references say, where metrics are told |
//! | `debug` | each connection, opened and closed and why; each call and each request with its outcome (targets `spandrel::call`, `spandrel::request`); what was sent again |
//! | `trace` | steps inside of these |
//!
//! At `debug` every call has a span with its connection, request id, object, operation and outcome, and so has every request; events of
//! servants carry them. At `info` and above calls cost what they cost without any log.

use std::{
    env,
    io::{self, IsTerminal},
};

use tracing_subscriber::EnvFilter;

/// The variable that says what is shown.
pub const VARIABLE: &str = "SPANDREL_LOG";
/// The variable that says how.
pub const FORMAT_VARIABLE: &str = "SPANDREL_LOG_FORMAT";

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The filter cannot be read.
    #[error("`{0}` is no filter for {VARIABLE}: expected a level, or levels by target as in `info,spandrel=debug`")]
    Filter(String, #[source] tracing_subscriber::filter::ParseError),
    /// There is no such format.
    #[error("`{0}` is no value for {FORMAT_VARIABLE}: expected human or json")]
    Format(String),
    /// The program has a subscriber already.
    #[error("the program has a log already")]
    Taken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Shows on standard error what `SPANDREL_LOG` says, or without it what is of level `info` and above.
///
/// # Errors
/// If a variable cannot be read, or the program has a `tracing` subscriber already.
pub fn init() -> Result<(), LogError> {
    init_or("info")
}

/// The same with another filter for want of `SPANDREL_LOG`.
///
/// # Errors
/// As [`init`].
pub fn init_or(default: &str) -> Result<(), LogError> {
    let said = |variable: &str| env::var(variable).ok().filter(|text| !text.is_empty());
    let text = said(VARIABLE).unwrap_or_else(|| default.to_owned());
    let filter = EnvFilter::builder().parse(&text).map_err(|error| LogError::Filter(text, error))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let is_coloured = io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none();
    match said(FORMAT_VARIABLE).as_deref() {
        None | Some("human") => log.with_ansi(is_coloured).try_init(),
        Some("json") => log.json().try_init(),
        Some(other) => return Err(LogError::Format(other.to_owned())),
    }
    .map_err(LogError::Taken)
}
