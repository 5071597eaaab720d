//! `spandrel bench`: experiments with single components.

#[cfg(target_os = "linux")]
mod by_number;
mod collocation;
#[cfg(target_os = "linux")]
mod connections;
mod demux;
#[cfg(target_os = "linux")]
mod footprint;
mod functions;
#[cfg(target_os = "linux")]
mod growth;
#[cfg(target_os = "linux")]
mod inflight;
mod marshal;
#[cfg(target_os = "linux")]
mod reactor;
#[cfg(target_os = "linux")]
mod rt;
mod series;
mod stacks;
mod timers;

use clap::Subcommand;

const EXAMPLES: &str = "\
Examples:
  spandrel bench reactor --quick
  spandrel bench timers --quick
  spandrel bench marshal --quick
  spandrel bench collocation --quick
  spandrel bench connections --quick
  spandrel bench demux --quick
  spandrel bench footprint --parts sizes,minimum
  spandrel bench functions --quick
  spandrel bench growth --calls 10000000
  spandrel bench inflight --quick
  spandrel bench rt --quick
  spandrel bench stacks --quick";

/// Measure single components, compared with those of other projects.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    Collocation(collocation::Args),
    #[cfg(target_os = "linux")]
    Connections(connections::Args),
    Demux(demux::Args),
    #[cfg(target_os = "linux")]
    Footprint(footprint::Args),
    Functions(functions::Args),
    #[cfg(target_os = "linux")]
    Growth(growth::Args),
    #[cfg(target_os = "linux")]
    Inflight(inflight::Args),
    Marshal(marshal::Args),
    #[cfg(target_os = "linux")]
    Reactor(reactor::Args),
    #[cfg(target_os = "linux")]
    Rt(rt::Args),
    Stacks(stacks::Args),
    Timers(timers::Args),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.experiment {
            Experiment::Collocation(args) => args.run(),
            #[cfg(target_os = "linux")]
            Experiment::Connections(args) => args.run(),
            Experiment::Demux(args) => args.run(),
            #[cfg(target_os = "linux")]
            Experiment::Footprint(args) => args.run(),
            Experiment::Functions(args) => args.run(),
            #[cfg(target_os = "linux")]
            Experiment::Growth(args) => args.run(),
            #[cfg(target_os = "linux")]
            Experiment::Inflight(args) => args.run(),
            Experiment::Marshal(args) => args.run(),
            #[cfg(target_os = "linux")]
            Experiment::Reactor(args) => args.run(),
            #[cfg(target_os = "linux")]
            Experiment::Rt(args) => args.run(),
            Experiment::Stacks(args) => args.run(),
            Experiment::Timers(args) => args.run(),
        }
    }
}
