//! The options of commands that call objects.

use std::time::{Duration, Instant};

use anyhow::bail;
use spandrel::types::Ior;
use spandrel::{ObjectRef, Orb, OrbBuilder};

use crate::orb_args::OrbArgs;
use crate::{common, json};

/// A time limit, the form of the output, and the options of the ORB.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// The time limit in seconds of each call, and of a whole listing of names
    #[arg(short, long, value_name = "SECONDS", default_value = "30", value_parser = common::positive_seconds)]
    timeout: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    orb: OrbArgs,
}

/// The end of the time for several calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    end: Instant,
    limit: Duration,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        Self { end: Instant::now() + limit, limit }
    }

    /// The object with the time that is left for a call.
    ///
    /// # Errors
    /// The time is over.
    pub(crate) fn bound(&self, object: &ObjectRef) -> anyhow::Result<ObjectRef> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            bail!("the answers do not end within {} s (--timeout)", self.limit.as_secs_f64());
        }
        Ok(object.with_timeout(Some(left)))
    }
}

impl ClientArgs {
    /// The end of the time limit, from now on.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

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
