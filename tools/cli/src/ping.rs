//! `spandrel ping`: reachability of an object.

use std::time::Duration;

use spandrel_lab::reference::ping::{self, Settings};

use crate::{common, ior};

const EXAMPLES: &str = "\
Examples:
  spandrel ping IOR:010000000f00000049444c3a...
  spandrel ping --count 1 --timeout 0.5 corbaloc:iiop:1.2@server.example:2809/NameService

Exit codes: 0 the object exists, 1 it does not, or nothing was answered, 2 wrong usage.";

/// Check whether an object exists and answers.
///
/// Sends LocateRequests and calls `_non_existent`, and prints the round-trip times.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The reference, as IOR: or corbaloc:, or - to read it from standard input
    reference: String,
    /// Number of rounds
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Seconds between rounds
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Time limit of connecting, and of each answer, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "5", value_parser = positive_seconds)]
    timeout: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds, such as 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| if time.is_zero() { Err("must be above zero".to_owned()) } else { Ok(time) })
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let reference = ior::reference_text(self.reference)?;
        let settings = Settings { reference, count: self.count, interval: self.interval, timeout: self.timeout };
        let mut printed = Ok(());
        ping::run(&settings, |line| {
            if printed.is_ok() {
                printed = common::print(&format!("{line}\n"));
            }
        })?;
        printed
    }
}
