//! The process of a server under load.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use spandrel_measure::units::grouped;

use super::exchange::{Exchange, REPLY_OCTETS};
use super::load::Connections;
use super::pipeline::Pipeline;
use crate::LabError;
use crate::machine::resident_octets;
use crate::peer::child::ChildHandle;
use crate::placement::on_core;
use crate::raw::processor_time::processor_time;

/// An upper bound of the open descriptors besides connections.
const OTHER_DESCRIPTORS: u64 = 128;
/// The pause between two looks at a count of calls.
const BETWEEN_COUNTS: Duration = Duration::from_millis(100);
/// The pause before a server that refused is tried again.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(1);

/// Raises the descriptor limit as far as the system permits; the servers inherit it.
///
/// # Errors
/// If that is too low for so many connections.
pub(in crate::bench) fn raise_descriptor_limit(connections: u64) -> Result<(), LabError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    raised.map_err(|errno| LabError::io("raise the limit of open descriptors")(errno.into()))?;
    descriptor_shortage(connections).map_or(Ok(()), |reason| Err(LabError::Settings(reason)))
}

/// The reason why one process cannot have so many connections, if the limit of descriptors is too low.
pub(in crate::bench) fn descriptor_shortage(connections: u64) -> Option<String> {
    use rustix::process::{Resource, getrlimit};
    let most = getrlimit(Resource::Nofile).maximum?;
    (most < connections.saturating_add(OTHER_DESCRIPTORS)).then(|| {
        format!(
            "{} connections need as many descriptors in one process, and the limit is {}; raise it (ulimit -Hn)",
            grouped(connections as f64),
            grouped(most as f64)
        )
    })
}

/// The process of a server, ended when dropped.
#[derive(Debug)]
pub(in crate::bench) struct ServerProcess {
    name: String,
    process: ChildHandle,
    /// Its first line: a port or a reference.
    line: String,
    addr: SocketAddr,
    exchange: Exchange,
    /// The longest response time.
    limit: Duration,
}

impl ServerProcess {
    /// Starts a server on a core, and waits until it listens. `plain` are the messages of a server that
    /// prints no reference.
    ///
    /// # Errors
    /// If it does not start within the limit.
    pub(in crate::bench) fn start(
        name: String,
        command: Command,
        core: Option<usize>,
        plain: &Exchange,
        limit: Duration,
    ) -> Result<Self, LabError> {
        // A child inherits the core of the thread that starts it.
        let mut process = on_core(core, || ChildHandle::start("server", command))??;
        let line = process.line(limit)?;
        let Some((port, exchange)) = Exchange::from_line(line.trim(), plain) else {
            return Err(LabError::Protocol { role: format!("{name} server"), found: line });
        };
        let line = line.trim().to_owned();
        Ok(Self { name, process, line, addr: (Ipv4Addr::LOCALHOST, port).into(), exchange, limit })
    }

    /// Opens idle and active connections, and checks that each is served.
    ///
    /// # Errors
    /// If a connection cannot be made, or is not answered within the limit.
    pub(in crate::bench) fn open(&self, idle: u32, active: u32) -> io::Result<Connections> {
        Connections::open(self.addr, (idle, active), &self.exchange, self.limit)
    }

    /// Opens a connection for plain messages in flight.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub(in crate::bench) fn pipeline(&self) -> io::Result<Pipeline> {
        Pipeline::connect(self.addr, self.exchange.message_octets(), REPLY_OCTETS, self.limit)
    }

    /// Its first line: a port or a reference.
    pub(in crate::bench) fn line(&self) -> &str {
        &self.line
    }

    /// Its memory at present in octets, where the system reports it.
    pub(in crate::bench) fn resident(&self) -> Option<u64> {
        resident_octets(self.process.id())
    }

    /// The processor time that it has used so far, where the system reports it.
    pub(in crate::bench) fn processor_time(&self) -> Option<Duration> {
        processor_time(self.process.id()).ok()
    }

    /// The number of calls that it has served so far.
    ///
    /// # Errors
    /// If it does not answer with a number.
    pub(in crate::bench) fn calls(&mut self) -> Result<u64, LabError> {
        self.process.send_line("calls")?;
        let line = self.process.line(self.limit)?;
        line.trim().parse().map_err(|_| LabError::Protocol { role: format!("{} server", self.name), found: line })
    }

    /// Checks that it has served `expected` calls since it had counted `before`; returns its count.
    ///
    /// # Errors
    /// If it has counted others.
    pub(in crate::bench) fn check_calls(&mut self, before: u64, expected: u64) -> Result<u64, LabError> {
        let now = self.calls()?;
        match now - before {
            counted if counted == expected => Ok(now),
            counted => Err(LabError::Peer {
                role: format!("{} server", self.name),
                detail: format!("it counted {counted} calls, and {expected} were made"),
            }),
        }
    }

    /// Waits until its count of calls grows no more.
    ///
    /// # Errors
    /// If it still grows at the limit.
    pub(in crate::bench) fn wait_until_idle(&mut self) -> Result<(), LabError> {
        let (start, mut before) = (Instant::now(), None);
        while start.elapsed() < self.limit {
            let calls = self.calls()?;
            if before.replace(calls) == Some(calls) {
                return Ok(());
            }
            thread::sleep(BETWEEN_COUNTS);
        }
        let seconds = self.limit.as_secs_f64();
        Err(LabError::TimedOut { role: format!("{} server", self.name), seconds })
    }

    /// Waits until the server has noticed that all connections are closed, so that this does not count in the
    /// next run.
    ///
    /// A server that had as many connections as it can hold refuses further ones until then, and is retried.
    ///
    /// # Errors
    /// If it does not serve a new connection within the limit.
    pub(in crate::bench) fn settle(&self) -> Result<(), LabError> {
        let start = Instant::now();
        loop {
            match self.open(0, 1) {
                Ok(_) => return Ok(()),
                Err(_) if start.elapsed() < self.limit => thread::sleep(BETWEEN_ATTEMPTS),
                Err(error) => return Err(LabError::io(format!("reach the {} server again", self.name))(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_connections_than_descriptors_are_refused() {
        let error = raise_descriptor_limit(u64::MAX / 2).unwrap_err();
        assert!(error.to_string().contains("descriptors"), "{error}");
    }
}
