//! `cargo xtask queues`: our message queues beside a plain queue, a channel and ACE's message queue, in one
//! interleaved run.
//!
//! Two programs run a round for each line of their input, and answer with the nanoseconds a message of each
//! block: `net/stream/benches/streams.rs`, and `peers/ace/queue.cc`. Both pass the same number of messages of
//! the same size by pointer, from as many threads to one, with the same limits.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use spandrel_measure::stats::{Moments, Summary, percentile};
use spandrel_measure::table::{Align, with_columns};
use xtask::workspace;

use crate::bounded::Bounded;
use crate::packages;

/// The time that one round may take; the first waits for Cargo.
const ROUND_TIMEOUT: Duration = Duration::from_secs(60);
const BUILD_TIMEOUT: Duration = Duration::from_secs(600);

/// The numbers of producers; one thread consumes.
const PRODUCERS: [usize; 2] = [1, 4];

/// A queue of one of the two programs.
struct Queue {
    title: &'static str,
    /// Its name in the requests to its program.
    name: &'static str,
    /// The queue with which it is compared, and the ratio that it shall not exceed.
    goal: Option<(&'static str, f64)>,
}

const PLAIN: &str = "plain";
const CHANNEL: &str = "channel";
const ACE: &str = "ace";

const QUEUES: [Queue; 6] = [
    Queue { title: "`Mutex<VecDeque>` and two conditions", name: PLAIN, goal: None },
    Queue { title: "`MessageQueue<Mutex>`", name: "mutex", goal: Some((PLAIN, 1.1)) },
    Queue { title: "`MessageQueue<AdaptiveMutex>`", name: "adaptive", goal: None },
    Queue { title: "`crossbeam-channel`, bounded", name: CHANNEL, goal: None },
    Queue { title: "`LockFreeQueue`", name: "lock-free", goal: Some((CHANNEL, 1.3)) },
    Queue { title: "`ACE_Message_Queue`", name: ACE, goal: None },
];

/// Runs so many rounds of each queue in turn, and prints a table.
pub(crate) fn run(rounds: usize) -> Result<()> {
    ensure!(rounds > 0, "the number of rounds must be at least 1");
    packages::require(packages::ACE)?;
    let peers = workspace::target().join("peers");
    let mut make = Command::new("make");
    make.args(["--silent", "-C", "peers/ace"]).arg(format!("OUT={}", peers.display()));
    workspace::run(make.current_dir(workspace::root()))?;
    let mut bench = Command::new(workspace::cargo_program());
    bench.args(["bench", "--quiet", "--package", "spandrel-stream", "--bench", "streams", "--", "serve"]);
    let mut ours = Bounded::start("the benchmark of net/stream", bench.current_dir(workspace::root()))?;
    let mut ace = Bounded::start("ace-queue", &mut Command::new(peers.join("ace-queue")))?;
    round(&mut ours, PLAIN, PRODUCERS[0], BUILD_TIMEOUT)?; // when it is built

    let numbers = ["median", "fastest to slowest", "p99", "to plain", "to channel", "to ACE"];
    let columns = [("producers", Align::Right), ("queue", Align::Left)];
    let mut table = with_columns(&[&columns[..], &numbers.map(|name| (name, Align::Right))].concat());
    let mut unmet = Vec::new();
    for producers in PRODUCERS {
        let mut times: [Times; QUEUES.len()] = Default::default();
        for _ in 0..rounds {
            for (queue, times) in QUEUES.iter().zip(&mut times) {
                let program = if queue.name == ACE { &mut ace } else { &mut ours };
                times.add(round(program, queue.name, producers, ROUND_TIMEOUT)?);
            }
        }
        let times = times.map(Times::summary);
        let median = |name: &str| {
            let at = QUEUES.iter().position(|queue| queue.name == name).expect("it is one of them");
            times[at].0.median
        };
        for (queue, (rounds, p99)) in QUEUES.iter().zip(&times) {
            let ratio = |name: &str| format!("{:.2}", rounds.median / median(name));
            let Summary { median: time, low, high, .. } = rounds;
            table.add_row([
                producers.to_string(),
                queue.title.to_owned(),
                format!("{time:.0} ns"),
                format!("{low:.0} to {high:.0} ns"),
                format!("{p99:.0} ns"),
                ratio(PLAIN),
                ratio(CHANNEL),
                ratio(ACE),
            ]);
            let beside_ace = queue.goal.map(|_| (ACE, 1.0));
            for (other, most) in queue.goal.into_iter().chain(beside_ace) {
                if *time > most * median(other) {
                    unmet.push(format!("{} beside {other}, {producers} producers: more than {most}", queue.name));
                }
            }
        }
    }
    println!("{table:#}\n\n{}", if unmet.is_empty() { "All goals are met.".to_owned() } else { unmet.join("\n") });
    let finished = [ours.finish(ROUND_TIMEOUT)?, ace.finish(ROUND_TIMEOUT)?];
    ensure!(finished.iter().all(|status| status.success()), "a program failed at its end");
    Ok(())
}

/// The nanoseconds a message, of rounds and of blocks.
#[derive(Default)]
struct Times {
    rounds: Vec<f64>,
    blocks: Vec<f64>,
}

impl Times {
    fn add(&mut self, blocks: Vec<f64>) {
        self.rounds.extend(Moments::from_values(blocks.iter().copied()).map(|moments| moments.mean));
        self.blocks.extend(blocks);
    }

    /// The means of the rounds, and the time that 99 % of the blocks do not exceed.
    fn summary(mut self) -> (Summary, f64) {
        self.blocks.sort_by(f64::total_cmp);
        let p99 = percentile(&self.blocks, 99).expect("there is a block");
        (Summary::from_values(self.rounds).expect("there is a round"), p99)
    }
}

/// Runs one round; returns the nanoseconds a message of each block.
fn round(program: &mut Bounded, queue: &str, producers: usize, timeout: Duration) -> Result<Vec<f64>> {
    program.send(&format!("{queue} {producers}"))?;
    let line = program.line(Instant::now() + timeout)?;
    let Some(line) = line else {
        anyhow::bail!("the program of `{queue}` ended:\n{}", program.stderr());
    };
    let blocks: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
    let blocks = blocks.with_context(|| format!("no times of `{queue}`: {line}"))?;
    ensure!(!blocks.is_empty(), "no times of `{queue}`");
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up_by_rounds_and_blocks() {
        let mut times = Times::default();
        for round in [[30.0, 10.0], [1.0, 3.0], [5.0, 5.0]] {
            times.add(round.to_vec());
        }
        assert_eq!(times.rounds, [20.0, 2.0, 5.0]);
        let (rounds, p99) = times.summary();
        assert_eq!((rounds.median, rounds.low, rounds.high, p99), (5.0, 2.0, 20.0, 10.0));
    }

    #[test]
    fn an_answer_that_is_no_time_is_an_error() {
        let answer = |script: &str| {
            let mut program = Bounded::start("sh", Command::new("sh").args(["-c", script])).unwrap();
            round(&mut program, "plain", 1, ROUND_TIMEOUT)
        };
        assert_eq!(answer("read line; echo 1.5 2; read line").unwrap(), [1.5, 2.0]);
        assert!(
            answer("read line; echo fast; read line").unwrap_err().to_string().contains("no times of `plain`: fast")
        );
        assert!(answer("read line; echo broken >&2").unwrap_err().to_string().contains("ended:\nbroken"));
    }
}
