//! `spandrel bench inflight`: options of the experiment with calls in flight.

use spandrel_lab::bench::by_number::Experiment as _;
use spandrel_lab::bench::inflight::{self, Contender, InFlight, Settings, report};
use spandrel_lab::child_command::launch;

use super::by_number::ByNumberArgs;
use crate::common::{self, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel bench inflight --quick
  spandrel bench inflight --contenders c,spandrel,tonic --in-flight 100 --rounds 9";

/// Measure many calls in flight on one connection, beside sequential calls: our futures with synchronous and
/// asynchronous servants, plain C over epoll and with threads, asynchronous calls of omniORB and JacORB, and tonic.
///
/// Reports calls per second and their ratio to sequential calls, the processor time of a call at both ends, and
/// response times. A contender that cannot be run has a row with the reason. The same figures are written as
/// JSON, CSV and charts.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Numbers of calls in flight, 10,000 at most; sequential calls are always measured [default: 1,10,100,1000,10000;
    /// with --quick: 1,10,100]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = whole(1..=u32::MAX))]
    in_flight: Vec<u32>,
    /// Clients and servers: c, threads, spandrel, spandrel-async, spandrel-tokio, omniorb, jacorb, tonic [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    contenders: Vec<Contender>,
    #[command(flatten)]
    by_number: ByNumberArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let numbers = if self.by_number.quick { &[1, 10, 100][..] } else { &[1, 10, 100, 1000, 10_000] };
        let settings: Settings = self.by_number.settings(
            super::series::or(&self.in_flight, numbers),
            super::series::or(&self.contenders, &Contender::ALL),
        );
        InFlight::check(&settings)?;
        let mut directory = self.by_number.directory("bench-inflight")?;
        let results = inflight::run(&settings, &launch)?;
        common::print(&report::text::<InFlight>(&results))?;
        report::write::<InFlight>(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: inflight.json, runs.csv, report.txt and charts\n",
            directory.path().display()
        ))
    }
}
