//! Several calls, one after the other or at the same time.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use spandrel::dynamic::{DynamicObject, Outcome, Request, RequestError};
use spandrel::types::Any;
use spandrel::{Orb, SystemException};

use super::exception::explain;
use super::interface::{self, Found};
use super::values::{shown, with_context};
use crate::common;

/// The greatest number of deferred calls that wait for their replies.
const MAX_DEFERRED: usize = 256;
/// The most octets of a file of calls.
const MAX_FILE: u64 = 64 << 20;

/// The options of a series of calls.
#[derive(Debug, clap::Args)]
pub(crate) struct SeriesArgs {
    /// The file of the calls, one in each line; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "rate", help_heading = "Options of a series of calls")]
    calls: Option<PathBuf>,
    /// Make the call, or the calls of the file, this many times
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "rate",
        help_heading = "Options of a series of calls", value_parser = common::whole(1..=1_000_000_000_u64))]
    repeat: u64,
    /// The pause between two calls: seconds, or a number with ms, s or min
    #[arg(long, value_name = "TIME", value_parser = common::positive_time, conflicts_with = "rate",
        help_heading = "Options of a series of calls")]
    interval: Option<Duration>,
    /// Send calls without waiting for the replies of earlier ones (up to 256); results are printed in the order of the calls
    #[arg(long, conflicts_with = "rate", help_heading = "Options of a series of calls")]
    deferred: bool,
}

/// A line of a file of calls.
pub(super) struct CallText {
    /// Where it stands, for errors.
    place: String,
    operation: String,
    arguments: String,
}

/// A call that can be made.
pub(super) struct Call {
    /// The operation's name on the wire.
    pub(super) operation: String,
    pub(super) arguments: Vec<Any>,
}

/// Some calls of a series have failed; their failures were printed.
#[derive(Debug, thiserror::Error)]
#[error("{failed} of {all} calls failed")]
pub(super) struct FailedCalls {
    failed: u64,
    all: u64,
}

impl SeriesArgs {
    /// Whether more than a single call is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.repeat > 1 || self.deferred
    }

    /// The lines of the file, if there is one.
    pub(super) fn calls(&self) -> anyhow::Result<Option<Vec<CallText>>> {
        let Some(file) = &self.calls else { return Ok(None) };
        let (name, text) = if file.as_os_str() == "-" {
            (
                "standard input".to_owned(),
                std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?,
            )
        } else {
            let octets = fs::metadata(file).map_err(|error| common::unreadable(file, &error))?.len();
            if octets > MAX_FILE {
                return Err(anyhow!("{} has {octets} octets, and the limit is {MAX_FILE}", file.display()));
            }
            let text = fs::read_to_string(file).map_err(|error| common::unreadable(file, &error))?;
            (file.display().to_string(), text)
        };
        let lines = text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let calls = lines.map(|(line, number): (&str, usize)| {
            let (operation, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let place = format!("{name}:{number}");
            CallText { place, operation: operation.to_owned(), arguments: arguments.trim().to_owned() }
        });
        Ok(Some(calls.collect()))
    }

    /// Makes the calls, and prints a result or a failure for each.
    pub(super) fn run(&self, object: &DynamicObject, calls: &[Call], is_json: bool) -> anyhow::Result<()> {
        let (mut failed, mut all) = (0, 0);
        let mut report = |call: &Call, outcome: Result<Outcome, RequestError>| -> anyhow::Result<()> {
            all += 1;
            let operation = object.interface().find(&call.operation).context("the operation is known")?;
            match outcome {
                Ok(outcome) => common::print(&shown(operation, &outcome, is_json)?),
                Err(error) => {
                    failed += 1;
                    if is_json {
                        return common::print(&format!("{}\n", error.to_json()));
                    }
                    common::print_error(&explain(error).context(format!("`{}` failed", call.operation)));
                    Ok(())
                }
            }
        };
        let mut waiting = Waiting::new(object);
        let mut is_first = true;
        for call in (0..self.repeat).flat_map(|_| calls) {
            if let (Some(interval), false) = (self.interval, is_first) {
                thread::sleep(interval);
            }
            is_first = false;
            if !self.deferred {
                report(call, object.call(&call.operation, &call.arguments))?;
                continue;
            }
            if waiting.requests.len() >= MAX_DEFERRED {
                let (call, outcome) = waiting.next();
                report(call, outcome)?;
            }
            waiting.send(call);
        }
        while !waiting.requests.is_empty() {
            let (call, outcome) = waiting.next();
            report(call, outcome)?;
        }
        if failed == 0 { Ok(()) } else { Err(anyhow!(FailedCalls { failed, all })) }
    }
}

impl CallText {
    /// Finds the operation, and reads the arguments as its types.
    pub(super) fn prepare(&self, orb: &Orb, found: &Found) -> anyhow::Result<Call> {
        let is_set = !matches!(self.arguments.as_str(), "" | "{}" | "[]");
        let operation = interface::operation(&found.interface, &self.operation, usize::from(is_set));
        let operation = operation.with_context(|| self.place.clone())?;
        let arguments = with_context(orb, found, |context| operation.read_arguments(&self.arguments, context));
        let arguments = arguments.with_context(|| self.place.clone())?;
        Ok(Call { operation: operation.name.clone(), arguments })
    }
}

/// Deferred calls in their order.
struct Waiting<'c> {
    object: &'c DynamicObject,
    requests: std::collections::VecDeque<(&'c Call, Result<Request, SystemException>)>,
}

impl<'c> Waiting<'c> {
    fn new(object: &'c DynamicObject) -> Self {
        Self { object, requests: std::collections::VecDeque::new() }
    }

    fn send(&mut self, call: &'c Call) {
        let request = self.object.prepare(&call.operation, &call.arguments);
        let is_oneway = self.object.interface().find(&call.operation).is_some_and(|operation| operation.is_oneway);
        let sent = request.and_then(|mut request| {
            if is_oneway { request.send_oneway() } else { request.send_deferred() }.map(|()| request)
        });
        self.requests.push_back((call, sent));
    }

    /// Waits for the reply of the first call.
    fn next(&mut self) -> (&'c Call, Result<Outcome, RequestError>) {
        let (call, sent) = self.requests.pop_front().expect("a call waits");
        let outcome = sent.map_err(RequestError::System).and_then(|mut request| {
            if !request.is_response_expected() {
                let result = Any::write(spandrel::types::TypeCode::VOID, |_| Ok(()))?;
                return Ok(Outcome { result, outs: Vec::new() });
            }
            request.get_response()?;
            self.object.outcome(&request)
        });
        (call, outcome)
    }
}
