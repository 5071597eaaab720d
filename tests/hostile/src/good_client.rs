//! A good client that calls continuously and checks each reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::AttackedServer;

/// The measurements of the good client.
#[derive(Clone, Copy, Debug)]
pub struct ClientStatistics {
    pub calls: u64,
    /// The duration of the longest call.
    pub longest: Duration,
}

/// A thread that calls the server in a loop.
pub struct GoodClient {
    stop: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    thread: JoinHandle<Result<Duration>>,
}

impl GoodClient {
    /// Starts the thread and waits for the first reply.
    pub fn start(server: &AttackedServer) -> Result<Self> {
        let (orb, target) = server.target()?;
        let (stop, calls) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stop_flag, call_count) = (Arc::clone(&stop), Arc::clone(&calls));
        let call = move || {
            let mut longest = Duration::ZERO;
            let mut rng = fastrand::Rng::with_seed(1);
            while !stop_flag.load(Ordering::Relaxed) {
                let data: Vec<u8> = (0..rng.usize(..2000)).map(|_| rng.u8(..)).collect();
                let start = Instant::now();
                let reply = target.echo(&data).inspect_err(|error| eprintln!("the good client: {error:?}"))?;
                longest = longest.max(start.elapsed());
                ensure!(reply == data, "a reply has other octets than its request");
                call_count.fetch_add(1, Ordering::Relaxed);
            }
            orb.shutdown()?;
            Ok(longest)
        };
        let client = Self { stop, calls, thread: thread::Builder::new().spawn(call)? };
        client.wait_for_calls(1)?;
        Ok(client)
    }

    /// Waits for `more` further replies.
    pub fn wait_for_calls(&self, more: u64) -> Result<()> {
        let target_count = self.calls.load(Ordering::Relaxed) + more;
        while self.calls.load(Ordering::Relaxed) < target_count {
            ensure!(!self.thread.is_finished(), "the good client has failed");
            thread::yield_now();
        }
        Ok(())
    }

    /// Stops the thread and returns its measurements.
    pub fn finish(self) -> Result<ClientStatistics> {
        self.stop.store(true, Ordering::Relaxed);
        let longest = self.thread.join().map_err(|_| anyhow!("the good client panicked"))?;
        let longest = longest.context("the good client was not served")?;
        Ok(ClientStatistics { calls: self.calls.load(Ordering::Relaxed), longest })
    }
}
