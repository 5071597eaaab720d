//! Calls at a fixed rate: an open-loop load on one object.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use spandrel::dynamic::{DynamicObject, RequestError};
use spandrel::net::reactor::on_termination;
use spandrel_measure::load::{self, LoadReport, LoadSettings, LoadStop};

use super::exception::explain;
use crate::common;

/// The time for the rest of the requests, after the time of the load.
const DRAIN: Duration = Duration::from_secs(5);

/// The options of a load.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// Call again and again, this many times a second, whether or not earlier calls were answered; print the
    /// distribution of the times from the scheduled time of a call to its answer
    #[arg(long, value_name = "CALLS", requires = "operation", help_heading = "Options of a load",
        value_parser = common::above_zero("a number of calls each second, such as 5000"))]
    rate: Option<f64>,
    /// The time of the load: seconds, or a number with ms, s or min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = common::positive_time, requires = "rate",
        help_heading = "Options of a load")]
    duration: Duration,
    /// The number of connections, each of an ORB of its own
    #[arg(long, value_name = "N", default_value_t = 1, requires = "rate", help_heading = "Options of a load",
        value_parser = common::whole(1..=1024_u16))]
    connections: u16,
    /// The number of calls that may wait for their answers on one connection
    #[arg(long, value_name = "N", default_value_t = 16, requires = "rate", help_heading = "Options of a load",
        value_parser = common::whole(1..=256_u16))]
    in_flight: u16,
}

impl LoadArgs {
    /// The rate, if a load is wanted.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate
    }

    pub(super) fn connections(&self) -> u16 {
        self.connections
    }

    /// Applies the load to the objects, each the same one over another connection, by this call.
    ///
    /// # Errors
    /// A rate or time without a single call; the first exception, if no call was answered.
    pub(super) fn run(
        &self,
        rate: f64,
        objects: &[DynamicObject],
        call: impl Fn(&DynamicObject) -> Result<(), RequestError> + Sync,
        is_json: bool,
    ) -> anyhow::Result<()> {
        // Connected before the load, so that it begins in time; the first call shows whether there is an answer.
        for object in objects {
            call(object).map_err(explain).context("cannot begin the load: the first call failed")?;
        }
        let settings = LoadSettings { rate, duration: self.duration, drain: DRAIN };
        let workers = objects.iter().flat_map(|object| (0..self.in_flight).map(move |_| object));
        let call = &call;
        let workers: Vec<_> = workers.map(|object| move || call(object).map_err(|error| kind(&error))).collect();
        // Ctrl-C ends the load, and the second one the process.
        let stop = Arc::new(LoadStop::default());
        let (stopping, is_first) = (Arc::clone(&stop), AtomicBool::new(true));
        let handler = on_termination(move |_| {
            stopping.stop();
            is_first.swap(false, Ordering::Relaxed)
        });
        let handler = handler.context("cannot handle Ctrl-C")?;
        let report = load::run(&settings, workers, &stop);
        drop(handler);
        let Some(report) = report? else {
            return Err(common::usage(format!("--rate {rate} during {:?} is not a single call", self.duration)));
        };
        common::print(&if is_json { json(&report)? } else { report.to_string() })?;
        if report.answered == 0 {
            bail!("no call of the load was answered");
        }
        Ok(())
    }
}

fn json(report: &LoadReport) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string(report)?))
}

/// The kind of an error, by which errors are counted: without the data of a single call.
fn kind(error: &RequestError) -> String {
    match error {
        RequestError::Raised(raised) => raised.exception.type_code().id().unwrap_or_default().to_owned(),
        RequestError::System(exception) => {
            let exception = spandrel::SystemException::new(exception.kind(), exception.minor(), exception.completed());
            exception.to_string()
        }
        other => other.to_string(),
    }
}
