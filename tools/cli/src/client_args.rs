//! The options of commands that call objects.

use std::time::Duration;

use spandrel::types::Ior;
use spandrel::{Orb, OrbBuilder};

use crate::orb_args::OrbArgs;
use crate::{common, json};

/// A time limit, the form of the output, and the options of the ORB.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// The time limit of each call in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "30", value_parser = common::positive_seconds)]
    timeout: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    orb: OrbArgs,
}

impl ClientArgs {
    pub(crate) fn orb(&self) -> anyhow::Result<Orb> {
        self.orb.orb(self.timeout)
    }

    /// As [`ClientArgs::orb`], with settings of the command, which options may replace.
    pub(crate) fn orb_with(&self, set: impl FnOnce(OrbBuilder) -> OrbBuilder) -> anyhow::Result<Orb> {
        self.orb.orb_with(self.timeout, set)
    }

    /// Whether options of the ORB were given.
    pub(crate) fn has_orb_options(&self) -> bool {
        self.orb.has_options()
    }

    /// Adds a remedy to the error of a call, if the reference shows one.
    pub(crate) fn explained(&self, error: anyhow::Error, ior: &Ior) -> anyhow::Error {
        self.orb.explained(error, ior)
    }

    /// Prints a failure as JSON, too, if that is wanted.
    pub(crate) fn reported<T>(&self, done: anyhow::Result<T>) -> anyhow::Result<T> {
        if let (true, Err(error)) = (self.json, &done) {
            common::print(&format!("{}\n", json::failure(error)))?;
        }
        done
    }
}
