//! `spandrel bench`: experiments with single components.

mod marshal;
#[cfg(target_os = "linux")]
mod reactor;
mod timers;

use clap::Subcommand;

const EXAMPLES: &str = "\
Examples:
  spandrel bench reactor --quick
  spandrel bench timers --quick
  spandrel bench marshal --quick";

/// Measure single components, beside other people's.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Marshal(marshal::Args),
    #[cfg(target_os = "linux")]
    Reactor(reactor::Args),
    Timers(timers::Args),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Marshal(args) => args.run(),
            #[cfg(target_os = "linux")]
            What::Reactor(args) => args.run(),
            What::Timers(args) => args.run(),
        }
    }
}
