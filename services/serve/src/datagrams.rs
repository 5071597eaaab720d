//! Answers to datagrams, without two services that answer each other for ever.
//!
//! A datagram may have the forged source of another service that answers. From then on, the two send each other one datagram
//! after the other. So a source gets a burst of answers, and then one each second at most: an exchange of services empties
//! its allowance, and ends with the first datagram that is not answered.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io;
use std::time::{Duration, Instant};

use spandrel::net::ipc::Pollable;
use spandrel::net::ipc::inet::{Addr, Dgram};
use spandrel::net::reactor::{Context, EventHandler};

/// The number of datagrams that are answered before other handlers are dispatched.
const BATCH: usize = 64;
/// The size of the largest datagram that is answered whole.
const DATAGRAM: usize = 8 * 1024;
/// The number of answers to one source at once.
const BURST: u32 = 64;
/// The time after which a source gets one more answer.
const REFILL: Duration = Duration::from_secs(1);
/// The number of allowances, each for the sources that a hash function gives to it: they need no memory for each source.
const ALLOWANCES: usize = 4096;

/// Answers a datagram; `None` sends nothing.
pub(crate) type Answer = fn(&[u8]) -> Option<Vec<u8>>;

/// A socket whose datagrams are answered.
pub(crate) struct Datagrams {
    socket: Dgram,
    answer: Answer,
    allowances: Allowances,
}

impl Datagrams {
    pub(crate) fn new(socket: Dgram, answer: Answer) -> Self {
        Self { socket, answer, allowances: Allowances::new(Instant::now()) }
    }
}

impl EventHandler for Datagrams {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&self.socket)
    }

    fn handle_input(&mut self, _: &Context<'_>) -> io::Result<()> {
        let mut octets = [0; DATAGRAM];
        let now = Instant::now();
        for _ in 0..BATCH {
            let (received, from) = self.socket.try_recv_from(&mut octets)?;
            // The ports of other systems' services of this kind.
            if from.port() < 1024 {
                continue;
            }
            if let Some(answer) = (self.answer)(&octets[..received.len()])
                && self.allowances.admit(&from, now)
                && let Err(error) = self.socket.try_send_to(&answer, &from)
            {
                tracing::debug!(%from, %error, "a datagram is not answered");
            }
        }
        Ok(())
    }
}

/// The answers that sources may still get.
struct Allowances {
    hasher: RandomState,
    /// For each allowance, the time at which it is whole again.
    whole_at: Vec<Instant>,
}

impl Allowances {
    fn new(now: Instant) -> Self {
        Self { hasher: RandomState::new(), whole_at: vec![now; ALLOWANCES] }
    }

    /// Whether a source gets an answer, which is counted.
    fn admit(&mut self, from: &Addr, now: Instant) -> bool {
        let index = self.hasher.hash_one(from) as usize % ALLOWANCES;
        let whole_at = self.whole_at[index].max(now) + REFILL;
        let is_admitted = whole_at <= now + BURST * REFILL;
        if is_admitted {
            self.whole_at[index] = whole_at;
        }
        is_admitted
    }
}
