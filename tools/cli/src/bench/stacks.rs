//! `spandrel bench stacks`: runs the executable `spandrel-stacks`, since its dependencies are heavy.

use std::ffi::OsString;

use anyhow::Context as _;

use crate::external;

/// Measure parallel protocol stacks: throughput, context switches and lock waiting by process architecture.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments of the executable `spandrel-stacks`
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let words = [vec![OsString::from("stacks")], self.arguments].concat();
        let run = external::run(&words, &[]);
        run.context("cannot run spandrel-stacks; `cargo build --release -p spandrel-stacks` builds it")?;
        Ok(())
    }
}
