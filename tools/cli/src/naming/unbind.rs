//! `spandrel unbind`: removes a binding.

use anyhow::{Context as _, bail};
use spandrel::services::cos_naming::naming_context::DestroyError;

use super::{Place, bind::failure};
use crate::client_args::ClientArgs;
use crate::common;
use crate::json::JsonObject;

const EXAMPLES: &str = "\
Examples:
  spandrel unbind Bank/alice
  spandrel unbind --destroy corbaname::names.example#Bank

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// Remove the binding of a name.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The name, such as Bank/alice, or corbaname::host#Bank/alice
    name: String,
    /// Destroy the context of the name, too, which must be empty
    #[arg(short, long)]
    destroy: bool,
    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.client.reported(self.unbind())
    }

    fn unbind(&self) -> anyhow::Result<()> {
        let orb = self.client.orb()?;
        let place = Place::resolve(&orb, &self.name)?;
        let name = place.name()?;
        if self.destroy {
            let context = place.context()?;
            match context.destroy() {
                Ok(()) => {}
                Err(DestroyError::NotEmpty(_)) => bail!("cannot destroy `{}`: the context is not empty", place.path),
                Err(DestroyError::System(exception)) => {
                    return Err(exception).with_context(|| format!("cannot destroy `{}`", place.path));
                }
            }
        }
        let outcome = place.root.unbind(&name).map_err(|error| failure(&place, error));
        outcome.with_context(|| format!("cannot unbind `{}`", place.path))?;
        if self.client.json {
            common::print(&format!("{}\n", JsonObject::new().value("unbound", place.path).finish()))?;
        }
        Ok(())
    }
}
