//! A good client that calls all the while, and checks every answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::Victim;

/// What the good client has seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub calls: u64,
    /// The longest that a call has taken.
    pub longest: Duration,
}

/// A thread that calls.
pub struct Witness {
    stop: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    thread: JoinHandle<Result<Duration>>,
}

impl Witness {
    /// Begins to call, and waits for the first answer.
    pub fn of(victim: &Victim) -> Result<Self> {
        let (orb, target) = victim.target()?;
        let (stop, calls) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&calls));
        let call = move || {
            let mut longest = Duration::ZERO;
            let mut rng = fastrand::Rng::with_seed(1);
            while !stopped.load(Ordering::Relaxed) {
                let data: Vec<u8> = (0..rng.usize(..2000)).map(|_| rng.u8(..)).collect();
                let begun = Instant::now();
                let back = target.echo(&data)?;
                longest = longest.max(begun.elapsed());
                ensure!(back == data, "an answer is not what was asked for");
                counted.fetch_add(1, Ordering::Relaxed);
            }
            orb.shutdown(true)?;
            Ok(longest)
        };
        let witness = Self { stop, calls, thread: thread::Builder::new().spawn(call)? };
        witness.await_calls(1)?;
        Ok(witness)
    }

    /// Waits until it has been answered so many times more.
    pub fn await_calls(&self, more: u64) -> Result<()> {
        let wanted = self.calls.load(Ordering::Relaxed) + more;
        while self.calls.load(Ordering::Relaxed) < wanted {
            ensure!(!self.thread.is_finished(), "the good client has given up");
            thread::yield_now();
        }
        Ok(())
    }

    /// Ends it.
    pub fn finish(self) -> Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        let longest = self.thread.join().map_err(|_| anyhow!("the good client panicked"))?;
        let longest = longest.context("the good client was not served")?;
        Ok(Seen { calls: self.calls.load(Ordering::Relaxed), longest })
    }
}
