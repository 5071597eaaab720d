//! `spandrel bench`: experiments with single components.

mod collocation;
mod demux;
#[cfg(target_os = "linux")]
mod footprint;
#[cfg(target_os = "linux")]
mod growth;
mod marshal;
#[cfg(target_os = "linux")]
mod reactor;
mod series;
mod timers;

use clap::Subcommand;

const EXAMPLES: &str = "\
Examples:
  spandrel bench reactor --quick
  spandrel bench timers --quick
  spandrel bench marshal --quick
  spandrel bench collocation --quick
  spandrel bench demux --quick
  spandrel bench footprint --parts sizes,minimum
  spandrel bench growth --calls 10000000";

/// Measure single components, beside other people's.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Collocation(collocation::Args),
    Demux(demux::Args),
    #[cfg(target_os = "linux")]
    Footprint(footprint::Args),
    #[cfg(target_os = "linux")]
    Growth(growth::Args),
    Marshal(marshal::Args),
    #[cfg(target_os = "linux")]
    Reactor(reactor::Args),
    Timers(timers::Args),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Collocation(args) => args.run(),
            What::Demux(args) => args.run(),
            #[cfg(target_os = "linux")]
            What::Footprint(args) => args.run(),
            #[cfg(target_os = "linux")]
            What::Growth(args) => args.run(),
            What::Marshal(args) => args.run(),
            #[cfg(target_os = "linux")]
            What::Reactor(args) => args.run(),
            What::Timers(args) => args.run(),
        }
    }
}
