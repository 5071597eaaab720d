//! `spandrel ior`: the contents of a reference.

use anyhow::Context as _;
use spandrel_giop::ObjectUrl;
use spandrel_lab::reference::{dump, json};

use crate::client_args::ClientArgs;
use crate::common;
use crate::naming;
use crate::orb_args::reference_text;

const EXAMPLES: &str = "\
Examples:
  spandrel ior IOR:010000000f00000049444c3a...
  spandrel ior corbaloc:iiop:1.2@server.example:2809/NameService
  spandrel ior --json corbaname::server.example#bank/account
  spandrel ior Bank/alice
  some-server | head -1 | spandrel ior -

A name, a corbaname: and an initial reference (corbaloc:rir:) are resolved first; the options of the ORB are for that.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// Show the contents of an object reference.
///
/// Prints its type, and for each profile the protocol version, host, port, object key and components.
/// Undecodable parts are shown as octets.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The object: a reference as IOR:, corbaloc: or corbaname:, a name in the naming service, or - to read one of them from
    /// standard input
    reference: String,
    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let url = self.client.reported(self.url())?;
        common::print(&if self.client.json { format!("{}\n", json::describe(&url)) } else { dump::describe(&url) })
    }

    fn url(&self) -> anyhow::Result<ObjectUrl> {
        let text = reference_text(&self.reference)?;
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        let is_initial = text.get(..13).is_some_and(|start| start.eq_ignore_ascii_case("corbaloc:rir:"));
        let is_name = !naming::is_url(&text);
        if is_name || matches!(&*scheme, "corbaname" | "file") || (is_initial && self.client.has_orb_options()) {
            let orb = self.client.orb()?;
            return Ok(ObjectUrl::Ior(naming::object(&orb, &text)?.ior().clone()));
        }
        text.parse().context("cannot read the reference")
    }
}
