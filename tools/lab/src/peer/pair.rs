//! A receiver and a transmitter, placed on their cores.

use std::process::Command;
use std::time::Duration;

use super::Outcome;
use super::child::{ChildHandle, ChildKind, ChildRole, carry_out, connected, listening};
use crate::LabError;
use crate::mechanism::Job;
use crate::placement::{self, Placement, Role};

/// The time limit for a child to start, also under a profiler.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The command that runs this program as a child of the given role.
pub type Launch<'a> = &'a dyn Fn(&ChildRole) -> Command;

/// Both sides of an experiment; the receiver may be on another machine.
#[derive(Debug)]
pub struct Pair {
    transmitter: ChildHandle, // dropped first, so that the receiver sees it close
    _receiver: Option<ChildHandle>,
}

impl Pair {
    /// Starts both, or only the transmitter if the control address of a receiver is given.
    ///
    /// # Errors
    /// If one of them does not begin, or cannot be placed.
    pub fn start(launch: Launch<'_>, placement: Placement, remote: Option<&str>) -> Result<Self, LabError> {
        let cores = placement::cores();
        let core = |role| placement.core(role, &cores);
        let (receiver, addr) = match remote {
            Some(addr) => (None, addr.to_owned()),
            None => {
                let role =
                    ChildRole { kind: ChildKind::Receive("127.0.0.1:0".to_owned()), core: core(Role::Receiver)? };
                let mut receiver = ChildHandle::start("receiver", launch(&role))?;
                let addr = listening(&mut receiver, START_LIMIT)?;
                (Some(receiver), addr)
            }
        };
        let role = ChildRole { kind: ChildKind::Transmit(addr), core: core(Role::Transmitter)? };
        let mut transmitter = ChildHandle::start("transmitter", launch(&role))?;
        connected(&mut transmitter, START_LIMIT)?;
        Ok(Self { transmitter, _receiver: receiver })
    }

    /// Carries out one job.
    ///
    /// # Errors
    /// If it fails, or takes longer than `limit`; the pair cannot be used afterwards.
    pub fn run(&mut self, job: &Job, limit: Duration) -> Result<Outcome, LabError> {
        carry_out(&mut self.transmitter, job, limit)
    }
}
