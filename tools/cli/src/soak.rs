//! `spandrel soak`: options of the long run of mixed traffic.

use std::path::PathBuf;

use anyhow::bail;
use spandrel_lab::soak::{self, Settings};

use crate::common;
use crate::peer::launch;

const EXAMPLES: &str = "\
Examples:
  spandrel soak
  spandrel soak --seconds 36000 --clients 16
  spandrel soak --seed 42 --orb '-ORBConcurrency leader-followers'";

/// Drive mixed traffic between two processes for a while, check every octet, and see whether anything grows.
///
/// Octets, structs, unions and anys of many sizes go there and back; exceptions, one-ways, futures (some of them given up), objects that come
/// and go, call-backs, connections for one call, and peers that vanish inside a message are mixed in by chance. The run is cut into twelve
/// cycles; after each the traffic rests, and memory, threads, descriptors and objects of both processes are noted. If an answer was
/// wrong, or anything grew after the first cycles, the command fails.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How long there is traffic
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    seconds: f64,
    /// How many threads call at once; two share an ORB
    #[arg(long, value_name = "N", default_value_t = 4)]
    clients: u32,
    /// What the drawing by chance begins with [default: another each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The longest data of a call, in octets
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    max_octets: u32,
    /// Options of both ORBs, in one text
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    orb: String,
    /// Where JSON and text go [default: target/soak in a Cargo workspace, otherwise spandrel-soak]
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
