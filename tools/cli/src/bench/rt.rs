//! `spandrel bench rt`: options of the experiment with priorities.

use std::path::PathBuf;

use spandrel_lab::bench::rt::{self, Contender, Load, Settings, Sockets, report};
use spandrel_lab::placement::Placement;

use super::series::or;
use crate::common::{self, PlacementArg, whole};
use spandrel_lab::child_command::launch;

const EXAMPLES: &str = "\
Examples:
  spandrel bench rt --quick
  spandrel bench rt --servers c,spandrel,spandrel-rt --floods 10 --placement one,two --seconds 10 --rounds 7";

/// Measure priorities: the response times of an urgent client while others flood the server, or one servant spins.
///
/// The client calls once in each period. The others are plain clients, clients of omniORB, and those of an intermediary
/// through which all calls go. Servers: plain C with native priorities, our ORB with and without lanes and
/// with watched servants, omniORB and JacORB. Reports response times, missed deadlines and the ratio to the times without
/// a flood. The same figures are written as JSON, CSV and charts. Real-time scheduling needs CAP_SYS_NICE; the report
/// says what was in force.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Servers: c, spandrel, spandrel-rt, spandrel-watched, omniorb, jacorb [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    servers: Vec<Contender>,
    /// Numbers of clients that flood the server, 1,000 at most [default: 1,10,50]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = whole(1..=u32::MAX))]
    floods: Vec<u32>,
    /// Leave out the servant that spins at a priority above that of the client
    #[arg(long)]
    without_spin: bool,
    /// Leave out the calls through an intermediary
    #[arg(long)]
    without_nested: bool,
    /// Leave out the flood by clients of omniORB, whose requests carry no priority
    #[arg(long)]
    without_foreign: bool,
    /// Sockets: tcp, unix [default: both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    sockets: Vec<Sockets>,
    /// Cores of clients and server, measured one after the other [default: one and two, as far as there are cores]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,..")]
    placement: Vec<PlacementArg>,
    /// Microseconds between two calls, and their deadline
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 1_000, value_parser = whole(0..=u32::MAX))]
    period: u32,
    /// Processor time of a measured upcall in microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 100, value_parser = whole(0..=u32::MAX))]
    work: u32,
    /// Processor time of an upcall of the flood in microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 2_000, value_parser = whole(0..=u32::MAX))]
    flood_work: u32,
    /// Interleaved rounds [default: 7; with --quick: up to 2, as time allows]
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    rounds: Option<u32>,
    /// Duration of a run in seconds [default: 2; with --quick: 0.2]
    #[arg(long, value_name = "SECONDS", value_parser = common::above_zero("a number of seconds above zero, such as 0.5"))]
    seconds: Option<f64>,
    /// A folder with the program priorities-c [default: built from the source tree]
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Folder with omniORB's programs [default: target/interop/omniorb]
    #[arg(long, value_name = "DIR")]
    omniorb: Option<PathBuf>,
    /// Folder with JacORB's programs [default: target/interop/jacorb]
    #[arg(long, value_name = "DIR")]
    jacorb: Option<PathBuf>,
    /// Folder for JSON and CSV files and charts [default: target/bench-rt in a Cargo workspace, otherwise
    /// spandrel-bench-rt]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Finish within a minute: shorter runs and fewer rounds
    #[arg(long)]
    quick: bool,
    /// The longest response time of a server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = whole(1..=1_000_000_u32))]
    timeout: u32,
}

/// Seconds after which a quick series begins no further round.
const QUICK_BUDGET_SECONDS: u64 = 30;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = self.settings();
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "bench-rt")?;
        let results = rt::run(&settings, &launch)?;
        common::print(&report::text(&results))?;
        report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: rt.json, runs.csv, report.txt and charts\n",
            directory.path().display()
        ))
    }

    fn settings(&self) -> Settings {
        let floods = or(&self.floods, &[1, 10, 50]);
        // Calls through an intermediary, and clients of another ORB, with the middle number of clients alone.
        let clients = floods[floods.len() / 2];
        let nested = (!self.without_nested).then_some([Load::Nested(0), Load::Nested(clients)]);
        let foreign = (!self.without_foreign).then_some(Load::Foreign(clients));
        let floods = floods.into_iter().map(Load::Flood);
        let spin = (!self.without_spin).then_some(Load::Spin);
        let seconds = self.seconds.unwrap_or(if self.quick { 0.2 } else { 2.0 });
        let placements: Vec<Placement> = self.placement.iter().copied().map(Placement::from).collect();
        Settings {
            placements: or(&placements, &common::pinned_placements()),
            sockets: or(&self.sockets, &[Sockets::Tcp, Sockets::Unix]),
            loads: [Load::Alone]
                .into_iter()
                .chain(floods)
                .chain(spin)
                .chain(nested.into_iter().flatten())
                .chain(foreign)
                .collect(),
            contenders: or(&self.servers, &Contender::ALL),
            run_millis: (seconds * 1000.0) as u64,
            rounds: self.rounds.unwrap_or(if self.quick { 2 } else { 7 }),
            period_micros: self.period,
            high_work_micros: self.work,
            low_work_micros: self.flood_work,
            peers: self.peers.clone(),
            omniorb: self.omniorb.clone(),
            jacorb: self.jacorb.clone(),
            limit_seconds: self.timeout,
            budget_seconds: self.quick.then_some(QUICK_BUDGET_SECONDS),
        }
    }
}
