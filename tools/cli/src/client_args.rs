//! The options of commands that call objects.

use std::time::Duration;

use anyhow::bail;
use spandrel::net::sync::time::Deadline;
use spandrel::types::Ior;
use spandrel::{ObjectRef, Orb, OrbBuilder};

use crate::orb_args::ClientOrbArgs;
use crate::{common, json};

/// A time limit, and the options of the ORB.
#[derive(Debug, clap::Args)]
pub(crate) struct CallArgs {
    /// The time limit of each call, and of a whole listing of names, as seconds or a number with ms, s or min
    #[arg(short, long, value_name = "SECONDS", default_value = "30", value_parser = common::positive_time)]
    timeout: Duration,
    #[command(flatten)]
    pub(crate) options: ClientOrbArgs,
}

impl CallArgs {
    pub(crate) fn orb(&self) -> anyhow::Result<Orb> {
        self.options.orb(self.timeout)
    }
}

/// The options of calls, and the form of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    call: CallArgs,
}

/// The object with the time that is left for a call, until the end of the time for several.
///
/// # Errors
/// The time is over.
pub(crate) fn bound(object: &ObjectRef, deadline: Deadline) -> anyhow::Result<ObjectRef> {
    if deadline.is_over() {
        let limit = deadline.limit().unwrap_or_default();
        bail!("the answers do not end within {} s (--timeout)", limit.as_secs_f64());
    }
    Ok(object.with_timeout(deadline.remaining()))
}

impl ClientArgs {
    /// The end of the time limit, from now on.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::after(self.call.timeout)
    }

    pub(crate) fn orb(&self) -> anyhow::Result<Orb> {
        self.call.orb()
    }

    /// As [`ClientArgs::orb`], with settings of the command, which options may replace.
    pub(crate) fn orb_with(&self, set: impl FnOnce(OrbBuilder) -> OrbBuilder) -> anyhow::Result<Orb> {
        self.call.options.orb_with(self.call.timeout, set)
    }

    /// Whether options of the ORB were given.
    pub(crate) fn has_orb_options(&self) -> bool {
        self.call.options.has_options()
    }

    /// TLS with the certificates and authorities of the options, for connections beside the ORB.
    pub(crate) fn tls(&self) -> anyhow::Result<Option<spandrel::ssliop::Ssliop>> {
        self.call.options.tls()
    }

    /// Adds a remedy to the error of a call, if the reference shows one.
    pub(crate) fn explained(&self, error: anyhow::Error, ior: &Ior) -> anyhow::Error {
        self.call.options.explained(error, ior)
    }

    /// Prints a failure as JSON, too, if that is wanted.
    pub(crate) fn reported<T>(&self, done: anyhow::Result<T>) -> anyhow::Result<T> {
        if let (true, Err(error)) = (self.json, &done) {
            common::print(&format!("{}\n", json::failure(error)))?;
        }
        done
    }
}
