//! `spandrel bench connections`: options of the experiment with busy connections.

use spandrel_lab::bench::by_number::Experiment as _;
use spandrel_lab::bench::connections::{self, Connections, Contender, Settings, report};
use spandrel_lab::child_command::launch;

use super::by_number::ByNumberArgs;
use crate::common::{self, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel bench connections --quick
  spandrel bench connections --servers epoll,spandrel,reactive --connections 1,64,1000 --rounds 4
  spandrel bench connections --servers thread-pool:1,thread-pool:2 --work 50 --placement free";

/// Measure servers with many busy connections, each with one call in flight: ours with every concurrency
/// strategy, plain C, omniORB, JacORB and tonic.
///
/// The load comes from one thread over plain sockets, the same for all servers but tonic, which has a client of its own. Reports calls per second, the
/// server's processor time of a call, response times, and the slowest connection. A server that cannot be run
/// has a row with the reason. The same figures are written as JSON, CSV and charts.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Numbers of busy connections, 28,000 at most [default: 1,8,64,1000,10000; with --quick: 1,64]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = whole(0..=u32::MAX))]
    connections: Vec<u32>,
    /// Servers: plain C: epoll, threads; ours: spandrel (by default), or a value of -ORBConcurrency; omniorb,
    /// omniorb-pool, jacorb; tonic [default: all, ours with reactive, leader-followers:2, thread-pool:2 and
    /// thread-per-connection]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    servers: Vec<Contender>,
    #[command(flatten)]
    by_number: ByNumberArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let numbers = if self.by_number.quick { &[1, 64][..] } else { &[1, 8, 64, 1000, 10_000] };
        let settings: Settings = self.by_number.settings(
            super::series::or(&self.connections, numbers),
            super::series::or(&self.servers, &Contender::usual()),
        );
        Connections::check(&settings)?;
        let mut directory = self.by_number.directory("bench-connections")?;
        let results = connections::run(&settings, &launch)?;
        common::print(&report::text::<Connections>(&results))?;
        report::write::<Connections>(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: connections.json, runs.csv, report.txt and charts\n",
            directory.path().display()
        ))
    }
}
