//! Connecting to the first of several addresses that answers (RFC 8305, "Happy Eyeballs").

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use super::{Addr, Connecting, Connector, Stream};
use crate::deadline::Deadline;
use crate::pollable::wait_any;
use crate::{Connecting as _, Interest};

/// How long an attempt is given before the next is started beside it (RFC 8305, section 5: recommended 250 ms).
pub(super) const STAGGER: Duration = Duration::from_millis(250);

/// However many addresses a name has, no more attempts than these are under way at once.
const MOST_AT_ONCE: usize = 16;

/// Connects to whichever of `addrs` answers first, all attempts together within `timeout`.
pub(super) fn connect(connector: &Connector, addrs: &[Addr], timeout: Option<Duration>) -> io::Result<Stream> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let deadline = Deadline::after(timeout);
    let mut race = Race { waiting: interleave(addrs).into(), running: Vec::new(), failure: None };
    loop {
        if race.running.len() < MOST_AT_ONCE {
            race.start_next(connector);
        }
        let goes_on = !race.waiting.is_empty() && race.running.len() < MOST_AT_ONCE;
        let pause = Deadline::after(goes_on.then_some(connector.stagger_time()));
        // Until it is time for the next attempt, or the last one started has failed.
        loop {
            if race.running.is_empty() {
                if race.waiting.is_empty() {
                    return Err(race.failure());
                }
                break;
            }
            let (left, pause_left) = (deadline.left(), pause.left());
            let least = left.into_iter().chain(pause_left).min();
            wait_any(&race.running, Interest::OUTPUT, least)?;
            match race.look()? {
                Looked::Connected(stream) => return Ok(stream),
                Looked::Failed => break,
                Looked::Nothing => {}
            }
            if deadline.left().is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if pause.left().is_some_and(|left| left.is_zero()) {
                break;
            }
        }
    }
}

struct Race {
    waiting: VecDeque<Addr>,
    running: Vec<Connecting>,
    /// The first, as it is about the address that was liked best.
    failure: Option<io::Error>,
}

enum Looked {
    Connected(Stream),
    Failed,
    Nothing,
}

impl Race {
    fn start_next(&mut self, connector: &Connector) {
        while let Some(addr) = self.waiting.pop_front() {
            match connector.start(&addr) {
                Ok(connecting) => return self.running.push(connecting),
                Err(error) => self.failed(error),
            }
        }
    }

    /// What has become of the attempts.
    fn look(&mut self) -> io::Result<Looked> {
        let mut outcome = Looked::Nothing;
        let mut at = 0;
        while at < self.running.len() {
            match self.running[at].try_complete() {
                Ok(Some(stream)) => return Ok(Looked::Connected(stream)),
                Ok(None) => at += 1,
                Err(error) => {
                    self.running.remove(at);
                    self.failed(error);
                    outcome = Looked::Failed;
                }
            }
        }
        Ok(outcome)
    }

    fn failed(&mut self, error: io::Error) {
        self.failure.get_or_insert(error);
    }

    fn failure(self) -> io::Error {
        self.failure.unwrap_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "there is no address to connect to"))
    }
}

/// The addresses in their order, but IP versions in turn, beginning with that of the first.
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
        let given = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"].map(addr);
        let expected = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"].map(addr);
        assert_eq!(interleave(&given), expected);
        let given = ["1.1.1.1:1", "2.2.2.2:1", "[::1]:1"].map(addr);
        assert_eq!(interleave(&given), ["1.1.1.1:1", "[::1]:1", "2.2.2.2:1"].map(addr));
        assert!(interleave(&[]).is_empty());
    }
}
