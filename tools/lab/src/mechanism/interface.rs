//! The interface of all mechanisms.

use std::net::IpAddr;
use std::time::Duration;

use super::job::Job;
use crate::LabError;
use crate::call_times::CallTimes;
use crate::workload::{Flood, PingCase, PingPong};

/// A way to transfer data between two processes, such as plain sockets or the ORB.
pub trait Mechanism: Sync {
    /// Starts to listen at an address of this machine, and serves one job in the background.
    ///
    /// # Errors
    /// If it cannot listen there.
    fn listen(&self, host: IpAddr, job: &Job) -> Result<Box<dyn Receiver>, LabError>;

    /// Connects to the address of a [`Receiver`] of the same mechanism and job.
    ///
    /// # Errors
    /// If no receiver answers there.
    fn connect(&self, endpoint: &str, job: &Job) -> Result<Box<dyn Transmitter>, LabError>;
}

/// The receiving end of one job.
pub trait Receiver {
    /// The address at which it listens, in the syntax of its mechanism's [`Mechanism::connect`].
    fn endpoint(&self) -> String;

    /// Ends it, once the transmitter has closed, and returns the number of octets of user data received.
    ///
    /// # Errors
    /// If receiving failed.
    fn finish(self: Box<Self>) -> Result<u64, LabError>;
}

/// The sending end of one job.
pub trait Transmitter {
    /// Sends the flood and waits for the acknowledgement of its end. Returns the time from the first send to
    /// that.
    ///
    /// # Errors
    /// If sending failed, or no acknowledgement came.
    fn flood(&mut self, flood: &Flood) -> Result<Duration, LabError>;

    /// Makes the calls and returns their times.
    ///
    /// # Errors
    /// If a call failed.
    fn ping_pong(&mut self, work: &PingPong) -> Result<CallTimes, LabError>;

    /// The number of octets of a request and its reply on the wire; none if the mechanism sends exactly the
    /// given octets.
    ///
    /// # Errors
    /// If a call failed.
    fn wire_octets(&mut self, _case: PingCase) -> Result<Option<(u64, u64)>, LabError> {
        Ok(None)
    }
}
