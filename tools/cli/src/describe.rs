//! `spandrel describe`: the interface of an object, with its documentation.

use spandrel::services::repository;

use crate::call::interface::InterfaceArgs;
use crate::call::listing;
use crate::client_args::ClientArgs;
use crate::orb_args::reference_text;
use crate::{common, naming};

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
    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.client.reported(self.describe())
    }

    fn describe(&self) -> anyhow::Result<()> {
        let orb = self.client.orb()?;
        let object = naming::object(&orb, &reference_text(&self.reference)?)?;
        let description =
            self.interface.find(&orb, &object).map_err(|error| self.client.explained(error, object.ior()))?;
        let mut interface = description.interface;
        if self.interface.is_of_repository() {
            // Other repositories than ours keep no comments.
            let repository = repository::repository_of(&orb, &object);
            if let Ok(comments) = repository.and_then(|repository| repository::documentation(&repository, &interface)) {
                interface = interface.with_documentation(&comments);
            }
        }
        common::print(&if self.client.json { listing::json(&interface) } else { listing::documented(&interface) })
    }
}
