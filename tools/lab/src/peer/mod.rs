//! The processes of an experiment and their protocol.
//!
//! A *receiver* listens at a control address and serves one job after the other for each connection. A
//! *transmitter* holds a control connection to a receiver and carries out jobs against it. Both exchange
//! lines of JSON. The parent decides on the jobs and reports. It starts both (or only a transmitter, when the
//! receiver runs on another machine), waits for each answer a bounded time, and ends them when it ends: a
//! child exits when its standard input closes.

pub mod child;
#[cfg(target_os = "linux")]
mod echo;
pub mod pair;
pub mod receiver;
pub mod transmitter;

use std::io::{self, BufRead, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub use echo::EchoServer;

use crate::LabError;
use crate::call_times::CallTimes;
use crate::mechanism::Job;

/// The version of the control protocol; both ends must have the same.
pub const PROTOCOL: u32 = 1;

/// The maximum length of a line.
const MAX_LINE_OCTETS: u64 = 64 << 10;

/// A message of a transmitter to a receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToReceiver {
    /// Listen for this job.
    Open(Job),
    /// The job has ended.
    Close,
}

/// A message of a receiver to a transmitter.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FromReceiver {
    /// The first message, with the protocol's version.
    Hello { protocol: u32 },
    /// The job is awaited at this endpoint.
    Opened { endpoint: String },
    /// The job has ended; with the octets received and the processor time used.
    Closed { received: u64, cpu_seconds: f64 },
    /// The job failed, with the reason.
    Failed(String),
}

/// A message of a child to its parent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromChild {
    /// A receiver listens for control connections at this address.
    Listening(String),
    /// A transmitter has its control connection.
    Connected,
    /// The job is done.
    Done(Outcome),
    /// The job, or the start, failed, with the reason.
    Failed(String),
}

/// The time and the processor time of one job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// From the first send to the acknowledgement, in seconds, by the transmitter's steady clock.
    pub seconds: f64,
    /// Octets of user data that arrived.
    pub octets: u64,
    /// Processor time that the transmitter's process used meanwhile, in seconds.
    pub transmitter_cpu: f64,
    /// Processor time that the receiver's process used for the job, in seconds.
    pub receiver_cpu: f64,
    /// The times of single calls, if the job was a ping-pong.
    pub times: Option<CallTimes>,
    /// Octets of one call of the job on the wire, if requested: request, reply.
    pub wire: Option<(u64, u64)>,
}

impl Outcome {
    /// An outcome with only the time known yet.
    pub(crate) fn in_seconds(seconds: f64) -> Self {
        Self { seconds, octets: 0, transmitter_cpu: 0.0, receiver_cpu: 0.0, times: None, wire: None }
    }

    /// Throughput of user data in Mbit/s (10⁶ bits).
    #[must_use]
    pub fn mbps(&self) -> f64 {
        if self.seconds > 0.0 { self.octets as f64 * 8.0 / self.seconds / 1e6 } else { 0.0 }
    }
}

pub(crate) fn write_line(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// Reads one line; none at the end of file.
pub(crate) fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    input.by_ref().take(MAX_LINE_OCTETS).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Processor time that this process has used so far, in seconds; zero where the platform does not report it.
fn cpu_seconds() -> f64 {
    #[cfg(target_os = "linux")]
    {
        crate::raw::processor_time::processor_time(std::process::id()).unwrap_or_default().as_secs_f64()
    }
    #[cfg(not(target_os = "linux"))]
    0.0
}

fn unexpected(role: &str, found: &impl std::fmt::Debug) -> LabError {
    LabError::Protocol { role: role.to_owned(), found: format!("{found:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_line_is_refused_at_its_limit() {
        let mut endless = io::BufReader::new(io::repeat(b'x'));
        let error = read_line::<ToReceiver>(&mut endless).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_end_of_file_is_no_message() {
        assert!(read_line::<ToReceiver>(&mut io::empty()).unwrap().is_none());
    }

    #[test]
    fn throughput_counts_bits_of_user_data() {
        let outcome = Outcome {
            seconds: 2.0,
            octets: 1_000_000,
            transmitter_cpu: 0.0,
            receiver_cpu: 0.0,
            times: None,
            wire: None,
        };
        assert_eq!(outcome.mbps(), 4.0);
    }
}
