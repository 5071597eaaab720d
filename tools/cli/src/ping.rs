//! `spandrel ping`: reachability of an object.

use std::time::Duration;

use spandrel_lab::reference::ping::{self, Settings};

use crate::common::{self, positive_time, time, whole};
use crate::json::failure;
use crate::naming;
use crate::orb_args::{ClientOrbArgs, reference_text};

const EXAMPLES: &str = "\
Examples:
  spandrel ping IOR:010000000f00000049444c3a...
  spandrel ping --count 1 --timeout 0.5 corbaloc:iiop:1.2@server.example:2809/NameService
  spandrel ping Bank/alice
  spandrel ping --ca authority.pem --json corbaname::server.example#bank/account

Exit codes: 0 the object exists, 1 it does not, or `_non_existent` failed, 2 wrong usage.";

/// Check whether an object exists and answers.
///
/// Sends LocateRequests and calls `_non_existent`, and prints the round-trip times.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The object: a reference as IOR:, corbaloc: or corbaname:, a name in the naming service, or - to read one of them from
    /// standard input
    reference: String,
    /// Number of rounds
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = whole(1..=u32::MAX))]
    count: u32,
    /// The time between rounds: seconds, or a number with ms, s or min
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = time)]
    interval: Duration,
    /// Time limit of connecting, and of each answer, as seconds or a number with ms, s or min
    #[arg(short, long, value_name = "SECONDS", default_value = "5", value_parser = positive_time)]
    timeout: Duration,
    /// Print one JSON object for each round, and one at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    orb: ClientOrbArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let outcome = self.ping();
        if let (true, Err(error)) = (self.json, &outcome) {
            common::print(&format!("{}\n", failure(error)))?;
        }
        outcome
    }

    fn ping(&self) -> anyhow::Result<()> {
        let orb = self.orb.orb(self.timeout)?;
        let object = naming::object(&orb, &reference_text(&self.reference)?)?;
        let settings = Settings { count: self.count, interval: self.interval };
        let mut printed = Ok(());
        let done = ping::run(&object, &settings, |event| {
            if printed.is_ok() {
                printed = common::print(&if self.json { format!("{}\n", event.json()) } else { event.to_string() });
            }
        });
        done.map_err(|error| self.orb.explained(error.into(), object.ior()))?;
        printed
    }
}
