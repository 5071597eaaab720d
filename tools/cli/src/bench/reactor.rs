//! `spandrel bench reactor`: options of the reactor experiment.

use std::path::PathBuf;

use spandrel_lab::bench::reactor::{self, Contender, Load, Settings};
use spandrel_lab::child_command::launch;
use spandrel_lab::placement::Placement;

use crate::common::{self, PlacementArg, whole};

const EXAMPLES: &str = "\
Examples:
  spandrel bench reactor --quick
  spandrel bench reactor --servers c,asio --connections 0+1,10000+64 --placement two
  spandrel bench reactor --servers c,orb --connections 0+100,0+10000
  spandrel bench reactor --octets 4096 --seconds 2 --rounds 9 --out results";

/// Measure event demultiplexing: echo servers over our reactor, in plain C, over ACE and over Asio, and the
/// ORB.
///
/// Keeps a number of connections busy with echoed messages, beside idle connections, and reports events per
/// second, response times, and the server's cost of an event.
///
/// The servers of other projects are built from the source tree's folder peers, if the current folder is in
/// it. A server that cannot be built has a row with the reason. The same figures are written as JSON and CSV.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Cores of load and server; several placements are measured one after the other [default: one,two as far
    /// as there are cores]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,..")]
    placement: Vec<PlacementArg>,
    /// Servers: c, ace, asio, our reactor by back end: epoll, io_uring, polling, poll, select, or by its
    /// Acceptor pattern: acceptor, in a reactor for each processor: shards (more than one with --placement
    /// free), and the ORB: orb [default: all available ones]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    servers: Vec<Contender>,
    /// Idle and active connections [default: 0+1,0+64,1000+64,10000+64; with --quick: without the last]
    #[arg(long, value_name = "IDLE+ACTIVE,..", value_delimiter = ',')]
    connections: Vec<Load>,
    /// Octets of a message
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole(0..=u32::MAX))]
    octets: u32,
    /// Duration of a run in seconds [default: 0.5; with --quick: 0.1]
    #[arg(long, value_name = "SECONDS", value_parser = common::above_zero("a number of seconds above zero, such as 0.5"))]
    seconds: Option<f64>,
    /// Interleaved rounds [default: 7; with --quick: up to 3, as time allows]
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    rounds: Option<u32>,
    /// A folder with the programs reactor-c, ace and asio [default: built from the source tree]
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Folder for JSON and CSV files [default: target/bench-reactor in a Cargo workspace, otherwise
    /// spandrel-bench-reactor]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Finish within 20 seconds: fewer connections, shorter runs, fewer rounds
    #[arg(long)]
    quick: bool,
    /// The longest response time of a server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = whole(1..=1_000_000_u32))]
    timeout: u32,
}

/// Seconds after which a quick series begins no further round.
const QUICK_BUDGET_SECONDS: u64 = 12;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let settings = self.settings();
        settings.check()?;
        let mut directory = common::results_directory(self.out.as_deref(), "bench-reactor")?;
        let results = reactor::run(&settings, &launch)?;
        common::print(&reactor::report::text(&results))?;
        reactor::report::write(&results, &mut directory)?;
        common::print(&format!(
            "\nWritten to {}: reactor.json, runs.csv, summary.csv and report.txt\n",
            directory.path().display()
        ))
    }

    fn settings(&self) -> Settings {
        let load = |idle, active| Load { idle, active };
        let mut loads = vec![load(0, 1), load(0, 64), load(1_000, 64)];
        if !self.quick {
            loads.push(load(10_000, 64));
        }
        let seconds = self.seconds.unwrap_or(if self.quick { 0.1 } else { 0.5 });
        Settings {
            placements: if self.placement.is_empty() {
                common::pinned_placements()
            } else {
                self.placement.iter().copied().map(Placement::from).collect()
            },
            loads: if self.connections.is_empty() { loads } else { self.connections.clone() },
            contenders: if self.servers.is_empty() { Contender::all() } else { self.servers.clone() },
            octets: self.octets,
            run_millis: (seconds * 1000.0) as u64,
            rounds: self.rounds.unwrap_or(if self.quick { 3 } else { 7 }),
            peers: self.peers.clone(),
            limit_seconds: self.timeout,
            budget_seconds: self.quick.then_some(QUICK_BUDGET_SECONDS),
        }
    }
}
