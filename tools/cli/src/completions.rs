//! `spandrel completions`: completion of commands and options in a shell.

use clap_complete::Shell;

use crate::common;

const EXAMPLES: &str = "\
Examples:
  spandrel completions bash > ~/.local/share/bash-completion/completions/spandrel
  spandrel completions zsh > ~/.zfunc/_spandrel
  spandrel completions fish > ~/.config/fish/completions/spandrel.fish";

/// Print a script that completes commands and options in a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    /// `command`: the whole command line.
    pub(crate) fn run(self, mut command: clap::Command) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "spandrel", &mut script);
        common::print(&String::from_utf8(script)?)
    }
}
