//! The servers of a machine that were started and not stopped, by their numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use super::config::CommandConfig;
use super::group::Groups;
use super::server::RunningServer;
use crate::idl::orchestra::harness::StartServerError;
use crate::idl::orchestra::{NoServer, Refused, Server, StartedServer};

/// The most servers at one time.
pub(crate) const MAX_SERVERS: usize = 16;
/// The time until servers end that a start or the agent's end replaces.
const GRACE: Duration = Duration::from_secs(5);

/// The servers that were started and not stopped. Some may have ended by themselves.
#[derive(Debug, Default)]
pub(super) struct Servers {
    by_number: BTreeMap<u32, RunningServer>,
    /// The number of the server that was started last.
    last: u32,
}

impl Servers {
    /// Starts a server, and ends all others but those of these numbers.
    ///
    /// # Errors
    /// One of these was stopped, or they are too many; then all others go on. The server does not start.
    pub(super) fn start(
        &mut self,
        config: &CommandConfig,
        server: &Server,
        groups: Option<&Groups>,
        beside: &[u32],
    ) -> Result<StartedServer, StartServerError> {
        if let Some(stopped) = beside.iter().find(|number| !self.by_number.contains_key(number)) {
            return Err(self.stopped(*stopped).into());
        }
        if beside.len() >= MAX_SERVERS {
            return Err(Refused { reason: format!("at most {MAX_SERVERS} servers run at one time") }.into());
        }
        let others = self.by_number.extract_if(.., |number, _| !beside.contains(number));
        RunningServer::stop_all(others.map(|(_, server)| server).collect(), GRACE);
        let started = RunningServer::start(config, server, groups)?;
        let listens_at = started.address().clone();
        self.last += 1;
        self.by_number.insert(self.last, started);
        Ok(StartedServer { number: self.last, listens_at })
    }

    /// A server that runs; the one that was started last for the number 0.
    pub(super) fn running(&mut self, number: u32) -> Result<&mut RunningServer, NoServer> {
        let number = self.number(number);
        if !self.by_number.contains_key(&number) {
            return Err(self.stopped(number));
        }
        let server = self.by_number.get_mut(&number).expect("it was found");
        match server.exit_status() {
            Some(status) => Err(NoServer { reason: format!("the server has ended: {status}") }),
            None => Ok(server),
        }
    }

    /// Takes a server out, which is then the caller's to stop.
    pub(super) fn take(&mut self, number: u32) -> Result<RunningServer, NoServer> {
        let number = self.number(number);
        self.by_number.remove(&number).ok_or_else(|| self.stopped(number))
    }

    /// Ends all servers together, within the grace.
    pub(super) fn end(&mut self) {
        let all = std::mem::take(&mut self.by_number);
        RunningServer::stop_all(all.into_values().collect(), GRACE);
    }

    fn number(&self, number: u32) -> u32 {
        if number == 0 { self.last } else { number }
    }

    /// The error of a server that is not there.
    fn stopped(&self, number: u32) -> NoServer {
        let reason = if self.last > number { "another supervisor has started a server" } else { "no such server runs" };
        NoServer { reason: reason.to_owned() }
    }
}
