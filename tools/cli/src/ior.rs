//! `spandrel ior`: the contents of a reference.

use std::io::Read;

use anyhow::Context;
use spandrel_giop::ObjectUrl;
use spandrel_lab::reference::dump;

use crate::common;

const EXAMPLES: &str = "\
Examples:
  spandrel ior IOR:010000000f00000049444c3a...
  spandrel ior corbaloc:iiop:1.2@server.example:2809/NameService
  some-server | head -1 | spandrel ior -";

/// Show the contents of an object reference.
///
/// Prints its type, and for each profile the protocol version, host, port, object key and components.
/// Undecodable parts are shown as octets.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The reference, as IOR: or corbaloc:, or - to read it from standard input
    reference: String,
}

/// The longest text that is read as a reference.
const MAX_TEXT_OCTETS: u64 = 16 << 20;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let text = reference_text(self.reference)?;
        let url: ObjectUrl = text.parse().context("cannot read the reference")?;
        common::print(&dump::describe(&url))
    }
}

/// The reference itself, or the text of standard input.
pub(crate) fn reference_text(given: String) -> anyhow::Result<String> {
    if given != "-" {
        return Ok(given);
    }
    let mut text = String::new();
    std::io::stdin().lock().take(MAX_TEXT_OCTETS).read_to_string(&mut text).context("cannot read standard input")?;
    Ok(text.trim().to_owned())
}
