//! The costs on this machine of which paper 002 gives those of its own: a context switch, a mutex, a condition.

use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::time::Instant;

use spandrel_lab::placement;
use spandrel_sync::{AdaptiveMutex, Condition, Mutex};

/// The repetitions of which the median is taken.
const ROUNDS: usize = 9;
const LOCKS: u32 = 200_000;
const SIGNALS: u32 = 20_000;

/// The measured time of one operation, beside that in the paper.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Cost {
    /// The name of the operation in reports.
    pub operation: &'static str,
    /// Microseconds of one operation: the median, the least and the greatest of the repetitions.
    pub micros: spandrel_measure::stats::Summary,
    /// Microseconds in the paper, if it has the operation.
    pub paper: Option<f64>,
}

/// Measures all costs.
///
/// # Errors
/// If a pipe or a thread cannot be made, or threads cannot be pinned to a core.
pub fn measure() -> io::Result<Vec<Cost>> {
    let mut costs = Vec::new();
    let mut add = |operation, paper, measure: &mut dyn FnMut() -> io::Result<f64>| -> io::Result<()> {
        let micros = (0..ROUNDS).map(|_| measure()).collect::<io::Result<Vec<f64>>>()?;
        costs.extend(spandrel_measure::stats::Summary::from_values(micros).map(|micros| Cost {
            operation,
            micros,
            paper,
        }));
        Ok(())
    };
    add("context switch (pipe between two threads of one core)", Some(30.0), &mut context_switch)?;
    add("sleeping mutex, free: acquire and release", Some(3.0), &mut || Ok(mutex(&Mutex::new(0))))?;
    add("adaptive mutex, free: acquire and release", None, &mut || Ok(adaptive(&AdaptiveMutex::new(0))))?;
    let cores = placement::cores();
    let pin = |index: usize| _ = cores.get(index).or(cores.first()).map(|core| placement::pin(*core));
    add("condition: signal until the thread on another core runs", Some(90.0), &mut || Ok(condition(pin)))?;
    add("condition: the same with both threads on one core", None, &mut || Ok(condition(|_| pin(0))))?;
    Ok(costs)
}

fn per_operation(begin: Instant, operations: u32) -> f64 {
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(operations)
}

fn mutex(mutex: &Mutex<u32>) -> f64 {
    let begin = Instant::now();
    (0..LOCKS).for_each(|_| *black_box(mutex).lock() += 1);
    per_operation(begin, LOCKS)
}

fn adaptive(mutex: &AdaptiveMutex<u32>) -> f64 {
    let begin = Instant::now();
    (0..LOCKS).for_each(|_| *black_box(mutex).lock() += 1);
    per_operation(begin, LOCKS)
}

/// Two threads of one core write to each other. Each octet is a write, a switch and a read.
fn context_switch() -> io::Result<f64> {
    let core = placement::cores().first().copied();
    let ((mut ping_in, mut ping_out), (mut pong_in, mut pong_out)) = (io::pipe()?, io::pipe()?);
    let pin = move || core.map_or(Ok(()), placement::pin).map_err(|error| io::Error::other(error.to_string()));
    std::thread::scope(|scope| {
        let other = scope.spawn(move || -> io::Result<()> {
            pin()?;
            let mut octet = [0];
            for _ in 0..SIGNALS {
                ping_in.read_exact(&mut octet)?;
                pong_out.write_all(&octet)?;
            }
            Ok(())
        });
        let own = scope.spawn(move || -> io::Result<f64> {
            pin()?;
            let mut octet = [0];
            let begin = Instant::now();
            for _ in 0..SIGNALS {
                ping_out.write_all(&octet)?;
                pong_in.read_exact(&mut octet)?;
            }
            Ok(per_operation(begin, SIGNALS * 2))
        });
        let panicked = |_| io::Error::other("a thread has panicked");
        other.join().map_err(panicked)??;
        own.join().map_err(panicked)?
    })
}

/// Two threads take turns by a condition.
fn condition(prepare: impl Fn(usize) + Sync) -> f64 {
    let (turn, changed) = (Mutex::new(0u32), Condition::new());
    let take_turns = |first: u32| {
        prepare(first as usize);
        let begin = Instant::now();
        for number in 0..SIGNALS {
            let mut turn = turn.lock();
            while *turn != number * 2 + first {
                changed.wait(&mut turn);
            }
            *turn += 1;
            drop(turn);
            changed.notify_one();
        }
        per_operation(begin, SIGNALS * 2)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| take_turns(1));
        let own = scope.spawn(|| take_turns(0));
        drop(other);
        own.join().unwrap_or(f64::NAN)
    })
}
