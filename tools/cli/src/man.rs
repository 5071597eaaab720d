//! `spandrel man`: the man pages, one for each command.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;

/// Write the man pages, for a package: spandrel.1 and one for each command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  spandrel man share/man/man1")]
pub(crate) struct Args {
    /// The folder, which is created
    folder: PathBuf,
}

impl Args {
    /// `command`: the whole command line.
    pub(crate) fn run(self, command: clap::Command) -> anyhow::Result<()> {
        fs::create_dir_all(&self.folder).with_context(|| format!("cannot create {}", self.folder.display()))?;
        let pages = clap_mangen::generate_to(command, &self.folder);
        pages.with_context(|| format!("cannot write to {}", self.folder.display()))
    }
}
