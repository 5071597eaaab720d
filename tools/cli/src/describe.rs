//! `spandrel describe`: the interface of an object, with its documentation.

use std::time::Duration;

use spandrel::services::repository;

use crate::call::interface::InterfaceArgs;
use crate::call::listing;
use crate::orb_args::{OrbArgs, reference_text};
use crate::{common, json, naming};

const EXAMPLES: &str = "\
Examples:
  spandrel describe Bank/alice
  spandrel describe corbaname::bank.example#Bank/alice --json
  spandrel describe --idl bank.idl IOR:0100...

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// Describe the interface of an object: operations, attributes, exceptions and comments.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The reference, as IOR:, corbaloc: or corbaname:, or a name such as Bank/alice, or - to read it from standard input
    reference: String,
    #[command(flatten)]
    interface: InterfaceArgs,
    /// The time limit of a call in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "30", value_parser = common::positive_seconds)]
    timeout: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    orb: OrbArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let done = self.describe();
        if let (true, Err(error)) = (self.json, &done) {
            common::print(&format!("{}\n", json::failure(error)))?;
        }
        done
    }

    fn describe(&self) -> anyhow::Result<()> {
        let orb = self.orb.orb(self.timeout)?;
        let object = naming::object(&orb, &reference_text(&self.reference)?)?;
        let found = self.interface.find(&orb, &object).map_err(|error| self.orb.explained(error, object.ior()))?;
        let mut interface = found.interface;
        if self.interface.is_of_repository() {
            // Other repositories than ours keep no comments.
            let repository = repository::repository_of(&orb, &object);
            if let Ok(comments) = repository.and_then(|repository| repository::documentation(&repository, &interface)) {
                interface = interface.with_documentation(&comments);
            }
        }
        common::print(&if self.json { listing::json(&interface) } else { listing::documented(&interface) })
    }
}
