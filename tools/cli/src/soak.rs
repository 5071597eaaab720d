//! `spandrel soak`: options of the long run of mixed traffic.

use std::path::PathBuf;

use anyhow::bail;
use spandrel_lab::child_command::launch;
use spandrel_lab::soak::{self, Settings};

use crate::common::{self, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel soak
  spandrel soak --seconds 36000 --clients 16
  spandrel soak --seed 42 --orb '-ORBConcurrency leader-followers'";

/// Drive mixed traffic between two processes for a while, check every octet, and check whether anything
/// grows.
///
/// Octets, structs, unions and anys of many sizes are echoed. Exceptions, one-ways, futures (some of them
/// dropped), objects that are created and destroyed, call-backs, connections for one call, and peers that
/// close inside a message are mixed in at random. The run is cut into twelve cycles; after each the traffic
/// pauses, and memory, threads, descriptors and objects of both processes are recorded. The command fails if
/// an answer was wrong, or if anything grew after the first cycles.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Duration of the traffic
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0,
        value_parser = common::above_zero("a number of seconds, at least 0.5"))]
    seconds: f64,
    /// Number of threads that call concurrently; two share an ORB
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole(0..=u32::MAX))]
    clients: u32,
    /// Seed of the random choices [default: a new one each time]
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    seed: Option<u64>,
    /// The longest data of a call, in octets
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = whole(0..=u32::MAX))]
    max_octets: u32,
    /// Options of both ORBs, in one text
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    orb: String,
    /// Folder for JSON and text [default: target/soak in a Cargo workspace, otherwise spandrel-soak]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = Settings {
            seconds: self.seconds,
            clients: self.clients,
            seed: self.seed.unwrap_or_else(soak::any_seed),
            max_octets: self.max_octets,
            orb: self.orb.split_whitespace().map(str::to_owned).collect(),
        };
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "soak")?;
        let results = soak::run(&settings, &launch)?;
        common::print(&soak::report::text(&results))?;
        soak::report::write(&results, &mut directory)?;
        common::print(&format!("\nWritten to {}: soak.json and report.txt\n", directory.path().display()))?;
        match results.complaints() {
            complaints if complaints.is_empty() => Ok(()),
            complaints => bail!("{}", complaints.join("; ")),
        }
    }
}
