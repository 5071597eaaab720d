//! Connecting to the first of several addresses that answers (RFC 8305, "Happy Eyeballs").

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use spandrel_sync::time::Deadline;

use super::{Addr, Connecting, Stream};
use crate::pollable::wait_any;
use crate::{Connecting as _, Interest};

/// The delay before the next attempt starts concurrently (RFC 8305, section 5: recommended 250 ms).
pub(super) const STAGGER: Duration = Duration::from_millis(250);

/// The maximum number of concurrent attempts.
const MAX_CONCURRENT: usize = 16;

/// Starts one attempt to connect.
type Start<'a> = dyn Fn(&Addr) -> io::Result<Connecting> + 'a;

/// Connects to the first of `addrs` that answers, all attempts together within `timeout`. The next attempt
/// starts after `stagger` at the latest.
pub(super) fn connect(
    addrs: &[Addr],
    stagger: Duration,
    timeout: Option<Duration>,
    start: &Start<'_>,
) -> io::Result<Stream> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let deadline = Deadline::after(timeout);
    let mut race = Race { waiting: interleave(addrs).into(), running: Vec::new(), failure: None };
    loop {
        if race.running.len() < MAX_CONCURRENT {
            race.start_next(start);
        }
        let goes_on = !race.waiting.is_empty() && race.running.len() < MAX_CONCURRENT;
        let pause = Deadline::after(goes_on.then_some(stagger));
        // Until the next attempt is due, or the latest one has failed.
        loop {
            if race.running.is_empty() {
                if race.waiting.is_empty() {
                    return Err(race.failure());
                }
                break;
            }
            let (left, pause_left) = (deadline.remaining(), pause.remaining());
            let least = left.into_iter().chain(pause_left).min();
            wait_any(&race.running, Interest::OUTPUT, least)?;
            match race.poll()? {
                PollResult::Connected(stream) => return Ok(stream),
                PollResult::Failed => break,
                PollResult::Pending => {}
            }
            if deadline.is_over() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if pause.is_over() {
                break;
            }
        }
    }
}

struct Race {
    waiting: VecDeque<Addr>,
    running: Vec<Connecting>,
    /// The first error, as it is about the preferred address.
    failure: Option<io::Error>,
}

enum PollResult {
    Connected(Stream),
    Failed,
    Pending,
}

impl Race {
    fn start_next(&mut self, start: &Start<'_>) {
        while let Some(addr) = self.waiting.pop_front() {
            match start(&addr) {
                Ok(connecting) => return self.running.push(connecting),
                Err(error) => self.failed(error),
            }
        }
    }

    /// Polls the running attempts until one is connected.
    fn poll(&mut self) -> io::Result<PollResult> {
        let mut outcome = PollResult::Pending;
        let mut at = 0;
        while at < self.running.len() {
            match self.running[at].try_complete() {
                Ok(Some(stream)) => return Ok(PollResult::Connected(stream)),
                Ok(None) => at += 1,
                Err(error) => {
                    self.running.remove(at);
                    self.failed(error);
                    outcome = PollResult::Failed;
                }
            }
        }
        Ok(outcome)
    }

    fn failed(&mut self, error: io::Error) {
        self.failure.get_or_insert(error);
    }

    fn failure(self) -> io::Error {
        self.failure.unwrap_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the list of addresses to connect to is empty")
        })
    }
}

/// The addresses in their order, but with alternating IP versions, beginning with that of the first.
fn interleave(addrs: &[Addr]) -> Vec<Addr> {
    let is_first = |addr: &&Addr| is_v6(addr) == addrs.first().is_some_and(is_v6);
    let (mut ours, mut others) = (addrs.iter().filter(is_first), addrs.iter().filter(|addr| !is_first(addr)));
    let mut turns = Vec::with_capacity(addrs.len());
    loop {
        let (one, other) = (ours.next(), others.next());
        turns.extend(one.into_iter().chain(other));
        if one.is_none() && other.is_none() {
            return turns;
        }
    }
}

fn is_v6(addr: &Addr) -> bool {
    matches!(addr.ip(), IpAddr::V6(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_versions_take_turns() {
        let addr = |text: &str| text.parse::<Addr>().unwrap();
        let addrs = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"].map(addr);
        let expected = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"].map(addr);
        assert_eq!(interleave(&addrs), expected);
        let addrs = ["1.1.1.1:1", "2.2.2.2:1", "[::1]:1"].map(addr);
        assert_eq!(interleave(&addrs), ["1.1.1.1:1", "[::1]:1", "2.2.2.2:1"].map(addr));
        assert!(interleave(&[]).is_empty());
    }
}
