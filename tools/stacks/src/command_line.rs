//! The command line of the executable behind `spandrel bench stacks`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use crate::architecture::{Architecture, Locks, Protocol, Queues, Settings};
use crate::bench::{self, Plan, Results};
use crate::device::Faults;
use crate::{costs, ttcp};
#[cfg(target_os = "linux")]
use crate::{relay, tap};
use clap::Parser;
use clap::builder::TypedValueParser;
use spandrel_error::{escape, output};
use spandrel_lab::machine::Machine;

const EXAMPLES: &str = "\
Examples:
  spandrel bench stacks --quick
  spandrel bench stacks --protocols udp --architectures message --threads 1,2 --rounds 9
  spandrel bench stacks --protocols tcp --architectures task --queues locked,lock-free
  spandrel bench stacks --protocols tcp --connections 8 --loss 2 --reordering 5 --json
  spandrel bench stacks ttcp --windows 8192,65536 --applications 1,4
  spandrel bench stacks ttcp --architectures task --threads 4 --applications 4";

/// Measure parallel protocol stacks: throughput, context switches and lock waiting by process architecture.
///
/// Frames are prepared; pseudo-devices copy each once into the receiving stack. Every run checks all messages.
#[derive(Debug, Parser)]
#[command(name = "spandrel-stacks", bin_name = "spandrel bench stacks", after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Process architecture: task, message [default: both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    architectures: Vec<Architecture>,
    /// Protocol of the transport layer: tcp, udp [default: both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    protocols: Vec<Protocol>,
    /// Locks: sleeping, adaptive [default: both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    locks: Vec<Locks>,
    /// Queues of the task-based architecture: locked, lock-free (with the last of the locks) [default: both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    queues: Vec<Queues>,
    /// Numbers of threads (processing elements)
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,3,4", value_parser = within(1, 64))]
    threads: Vec<usize>,
    /// Number of TCP connections, which take turns; each stream of the task-based architecture has one at least
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = within(1, 256))]
    connections: usize,
    /// Number of messages of all connections [default: 10000; with --quick: 1000]
    #[arg(long, value_name = "N", value_parser = within(8, 1_000_000))]
    messages: Option<usize>,
    /// Octets of a message
    #[arg(long, value_name = "OCTETS", default_value_t = 4096, value_parser = within(16, 60_000))]
    size: usize,
    /// Octets of data in a TCP segment
    #[arg(long, value_name = "OCTETS", default_value_t = 4096, value_parser = within(64, 60_000))]
    segment: usize,
    /// Window of the receiver in octets, a segment at least
    #[arg(long, value_name = "OCTETS", default_value_t = 64 << 10, value_parser = within(64, 1 << 30))]
    window: usize,
    /// Percent of frames that the device loses
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=50))]
    loss: u8,
    /// Percent of frames that come twice
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    duplication: u8,
    /// Percent of frames that come after later ones
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    reordering: u8,
    /// Seed of the faults
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Rounds, in each of which every run has its turn [default: 9; with --quick: 2]
    #[arg(long, value_name = "N", value_parser = within(1, 1000))]
    rounds: Option<usize>,
    /// Leave the placement of threads to the system, instead of one core for each processing element
    #[arg(long)]
    free: bool,
    /// Few messages and rounds
    #[arg(long)]
    quick: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// A parser of whole numbers in a range.
fn within(least: u32, most: u32) -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(i64::from(least)..=i64::from(most)).map(|number| number as usize)
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Ttcp(TtcpArgs),
    #[cfg(target_os = "linux")]
    Tap(TapArgs),
    #[cfg(target_os = "linux")]
    Relay(RelayArgs),
}

/// Transfer messages between two stacks: applications, XDR, TCP and a link that holds a limited number of frames.
#[derive(Debug, clap::Args)]
struct TtcpArgs {
    /// Process architecture of both stacks: task, message [default: both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    architectures: Vec<Architecture>,
    /// Windows of the receiver, in octets
    #[arg(long, value_name = "OCTETS,..", value_delimiter = ',', default_value = "8192,32768,65536,262144",
        value_parser = within(1, 1 << 30))]
    windows: Vec<usize>,
    /// Numbers of applications, each with a connection
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,4", value_parser = within(1, 256))]
    applications: Vec<usize>,
    /// Locking strategy: sleeping, adaptive
    #[arg(long, value_name = "NAME", default_value = "adaptive")]
    locks: Locks,
    /// Queues of the task-based architecture: locked, lock-free
    #[arg(long, value_name = "NAME", default_value = "locked")]
    queues: Queues,
    /// Messages of all applications together
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = within(1, 1_000_000))]
    messages: usize,
    /// Octets of a message
    #[arg(long, value_name = "OCTETS", default_value_t = 4096, value_parser = within(16, 60_000))]
    size: usize,
    /// Octets of data in a segment
    #[arg(long, value_name = "OCTETS", default_value_t = 4096, value_parser = within(64, 60_000))]
    segment: usize,
    /// Threads of the receiving side; task-based, each two have a stack and a link [default: 1; task-based: 2]
    #[arg(long, value_name = "N", value_parser = within(1, 64))]
    threads: Option<usize>,
    /// Frames that a link holds in each direction; more are lost
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = within(1, 1_000_000))]
    link: usize,
    /// Rounds, in which each run has its turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = within(1, 1000))]
    rounds: usize,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// Exchange data with the kernel's TCP over a TAP device; `cargo xtask stacks` sets one up.
#[cfg(target_os = "linux")]
#[derive(Debug, clap::Args)]
struct TapArgs {
    /// The name of the TAP device
    device: String,
    /// Octets in each direction
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    octets: usize,
    /// Folder for the captured frames
    #[arg(long, value_name = "FOLDER")]
    captures: std::path::PathBuf,
}

/// Relay frames between two TAP devices, with delay, loss, duplication and another order, until standard input ends.
///
/// Prints `ready`, and at the end the numbers of frames as JSON.
#[cfg(target_os = "linux")]
#[derive(Debug, clap::Args)]
struct RelayArgs {
    /// The name of one TAP device
    one: String,
    /// The name of the other TAP device
    other: String,
    /// Delay of each frame
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    delay: humantime::Duration,
    /// Percent of frames that are lost
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    loss: u8,
    /// Percent of frames that come twice
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    duplication: u8,
    /// Percent of frames that are late
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    reordering: u8,
    /// Additional delay of late frames
    #[arg(long, value_name = "TIME", default_value = "5ms")]
    lateness: humantime::Duration,
    /// Seed of the faults
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write all frames that come from a device to this file (pcap)
    #[arg(long, value_name = "FILE")]
    capture: Option<std::path::PathBuf>,
}

impl TtcpArgs {
    fn run(&self) -> anyhow::Result<()> {
        let rows = bench::ttcp(self.rounds, &self.transfers())?;
        let machine = Machine::here();
        Ok(output::print(&if self.json {
            format!("{}\n", serde_json::to_string_pretty(&serde_json::json!({ "machine": machine, "rows": rows }))?)
        } else {
            format!("{}\n{}\n{}", machine.summary(), machine.warning().unwrap_or_default(), bench::ttcp_text(&rows))
        })?)
    }
}

impl TtcpArgs {
    fn transfers(&self) -> Vec<ttcp::Settings> {
        let mut transfers = Vec::new();
        for architecture in or_all(&self.architectures, Architecture::ALL) {
            let is_task = architecture == Architecture::Task;
            for window in self.windows.iter().copied() {
                transfers.extend(self.applications.iter().map(|applications| ttcp::Settings {
                    architecture,
                    applications: *applications,
                    window,
                    messages: self.messages.div_ceil(*applications),
                    octets: self.size,
                    segment: self.segment,
                    threads: self.threads.unwrap_or(if is_task { 2 } else { 1 }),
                    locks: self.locks,
                    queues: if is_task { self.queues } else { Queues::Locked },
                    link: self.link,
                }));
            }
        }
        transfers
    }
}

#[cfg(target_os = "linux")]
impl TapArgs {
    fn run(&self) -> anyhow::Result<()> {
        for we_open in [true, false] {
            for lose in [0, 50] {
                let opener = if we_open { "own" } else { "kernel" };
                let capture = self.captures.join(format!("{opener}-opens-loses-{lose}.pcap"));
                let exchange = tap::exchange(&self.device, self.octets, we_open, lose, &capture)?;
                output::print(&exchange_line(opener, lose, &exchange))?;
            }
        }
        Ok(())
    }
}

/// The result of an exchange over a TAP device, in which each `lose`th frame was lost (0: none).
#[cfg(target_os = "linux")]
fn exchange_line(opener: &str, lose: u64, exchange: &tap::Exchange) -> String {
    let lost = if lose == 0 { "no frames are lost".to_owned() } else { format!("each {lose}th frame is lost") };
    format!(
        "{opener} TCP opens, {lost}: {} octets in each direction in {:.3} s; {} segments received, {} sent, {} again, \
         {} time-outs\n",
        exchange.octets,
        exchange.elapsed.as_secs_f64(),
        exchange.statistics.received,
        exchange.statistics.sent,
        exchange.statistics.retransmitted,
        exchange.statistics.timeouts,
    )
}

#[cfg(target_os = "linux")]
impl RelayArgs {
    fn run(&self) -> anyhow::Result<()> {
        let settings = relay::Settings {
            faults: Faults { loss: self.loss, duplication: self.duplication, reordering: self.reordering },
            delay: *self.delay,
            lateness: *self.lateness,
            seed: self.seed,
        };
        let ready = || output::print("ready\n");
        let counts = relay::run([&self.one, &self.other], settings, self.capture.as_deref(), ready)?;
        Ok(output::print(&format!("{}\n", serde_json::to_string(&counts)?))?)
    }
}

/// Parses the command line, and carries it out. Returns the exit code: 0 done, 1 failed, 2 wrong usage.
#[must_use]
pub fn run() -> ExitCode {
    let args: Args = output::parse();
    if let Err(reason) = args.check() {
        output::remark(&format!("error: {reason}\n"));
        return ExitCode::from(2);
    }
    let outcome = match &args.command {
        None => args.measure(),
        Some(Command::Ttcp(args)) => args.run(),
        #[cfg(target_os = "linux")]
        Some(Command::Tap(args)) => args.run(),
        #[cfg(target_os = "linux")]
        Some(Command::Relay(args)) => args.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::remark(&format!("error: {}\n", escape(&format!("{error:#}"))));
            ExitCode::FAILURE
        }
    }
}

fn or_all<T: Copy>(chosen: &[T], all: &[T]) -> Vec<T> {
    if chosen.is_empty() { all.to_vec() } else { chosen.to_vec() }
}

impl Args {
    /// Checks what the ranges of the options do not.
    fn check(&self) -> Result<(), String> {
        let (window, segment) = (self.window, self.segment);
        match self.command {
            None if window < segment => Err(format!("--window {window} is less than --segment {segment}")),
            _ => Ok(()),
        }
    }

    fn measure(&self) -> anyhow::Result<()> {
        let (messages, rounds) = if self.quick { (1000, 2) } else { (10_000, 9) };
        let faults = Faults { loss: self.loss, duplication: self.duplication, reordering: self.reordering };
        let messages = self.messages.unwrap_or(messages);
        let base = Settings {
            connections: self.connections,
            messages,
            octets: self.size,
            segment: self.segment,
            window: self.window,
            faults,
            seed: self.seed,
            is_pinned: !self.free,
            ..Settings::default()
        };
        let plan = Plan {
            base,
            architectures: or_all(&self.architectures, Architecture::ALL),
            protocols: or_all(&self.protocols, Protocol::ALL),
            locks: or_all(&self.locks, Locks::ALL),
            queues: or_all(&self.queues, Queues::ALL),
            threads: self.threads.clone(),
            rounds: self.rounds.unwrap_or(rounds),
            with_smoltcp: true,
        };
        let machine = Machine::here();
        let rows = bench::measure(&plan, |round| {
            output::remark(&format!("round {} of {}\n", round + 1, plan.rounds));
        })?;
        let results = Results { machine, rows, costs: costs::measure()? };
        Ok(output::print(&if self.json {
            format!("{}\n", serde_json::to_string_pretty(&results)?)
        } else {
            bench::text(&results)
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_errors_of_usage_that_name_the_option() {
        for (words, expected) in [
            (&["--threads", "0"][..], "'--threads <N,..>': 0 is not in 1..=64"),
            (&["--rounds", "0"], "'--rounds <N>': 0 is not in 1..=1000"),
            (&["--connections", "0"], "'--connections <N>': 0 is not in 1..=256"),
            (&["--messages", "7"], "'--messages <N>': 7 is not in 8..=1000000"),
            (&["--size", "15"], "'--size <OCTETS>': 15 is not in 16..=60000"),
            (&["--segment", "63"], "'--segment <OCTETS>': 63 is not in 64..=60000"),
            (&["--loss", "51"], "'--loss <PERCENT>': 51 is not in 0..=50"),
            (&["--reordering", "101"], "'--reordering <PERCENT>': 101 is not in 0..=100"),
            (&["ttcp", "--rounds", "0"], "'--rounds <N>': 0 is not in 1..=1000"),
            (&["ttcp", "--link", "0"], "'--link <N>': 0 is not in 1..=1000000"),
            (&["ttcp", "--messages", "0"], "'--messages <N>': 0 is not in 1..=1000000"),
            (&["ttcp", "--threads", "0"], "'--threads <N>': 0 is not in 1..=64"),
            (&["ttcp", "--applications", "0"], "'--applications <N,..>': 0 is not in 1..=256"),
            (&["ttcp", "--windows", "0"], "'--windows <OCTETS,..>': 0 is not in 1..=1073741824"),
        ] {
            let error = Args::try_parse_from(["stacks"].iter().chain(words)).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(expected), "{words:?}: {error}");
        }
        let narrow = Args::try_parse_from(["stacks", "--segment", "4096", "--window", "4095"]).unwrap();
        assert_eq!(narrow.check(), Err("--window 4095 is less than --segment 4096".to_owned()));
    }
    #[cfg(target_os = "linux")]
    #[test]
    fn the_result_of_an_exchange_says_what_was_lost_in_words() {
        use crate::tcp::Statistics;

        let statistics =
            Statistics { received: 900, sent: 800, retransmitted: 7, timeouts: 1, ..Statistics::default() };
        let exchange = tap::Exchange { octets: 1 << 20, elapsed: std::time::Duration::from_millis(1250), statistics };
        let rest = "1048576 octets in each direction in 1.250 s; 900 segments received, 800 sent, 7 again, 1 time-outs";
        assert_eq!(exchange_line("own", 0, &exchange), format!("own TCP opens, no frames are lost: {rest}\n"));
        let lossy = exchange_line("kernel", 50, &exchange);
        assert_eq!(lossy, format!("kernel TCP opens, each 50th frame is lost: {rest}\n"));
    }
}
