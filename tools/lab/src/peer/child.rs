//! Roles of child processes, and the messages of their parent.

use std::time::Duration;

#[cfg(target_os = "linux")]
use super::EchoServer;
use super::{FromChild, Outcome, unexpected};
use crate::LabError;
pub use crate::child_process::ChildHandle;
use crate::mechanism::Job;

/// The role of a child. The parent's program converts it to its own command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildRole {
    /// The part of the child: it receives or transmits.
    pub kind: ChildKind,
    /// The core that it pins itself to.
    pub core: Option<usize>,
}

/// The work of a child process, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// Listens for control connections at this address.
    Receive(String),
    /// Carries out jobs against the receiver at this address.
    Transmit(String),
    /// Serves that many objects; prints a reference to their directory.
    ServantsServer {
        /// The number of objects.
        servants: u32,
        /// Whether through a dynamic skeleton.
        is_dynamic: bool,
    },
    /// Calls the objects of the directory with this reference, by commands on standard input.
    ServantsClient {
        /// The stringified reference of the directory.
        reference: String,
        /// Whether each reference has a connection of its own.
        is_private: bool,
    },
    /// Serves a soak run; prints a reference to its object.
    SoakServer {
        /// Options of its ORB.
        options: Vec<String>,
    },
    /// Serves one object that counts its calls; prints its reference.
    #[cfg(target_os = "linux")]
    CallsServer {
        /// Options of its ORB.
        options: Vec<String>,
        /// Processor time of each upcall in microseconds.
        work_micros: u32,
        /// Whether its servant is asynchronous.
        is_asynchronous: bool,
    },
    /// Keeps calls in flight to the object with this reference, by commands on standard input.
    #[cfg(target_os = "linux")]
    InFlightClient {
        /// The stringified reference of the object.
        reference: String,
    },
    /// Serves one object with requests of several priorities; prints its reference.
    #[cfg(target_os = "linux")]
    PrioritiesServer {
        /// The name of a contender of our ORB.
        contender: String,
        /// The path of a UNIX-domain socket to listen at as well.
        path: Option<String>,
        /// The reference of the server that it calls, as an intermediary.
        next: Option<String>,
        /// Processor time of an upcall of high and of low priority in microseconds.
        work_micros: [u32; 2],
        /// Processor time of a servant that spins, in milliseconds.
        spin_millis: u64,
    },
    /// Echoes its input; prints its port and nothing else.
    #[cfg(target_os = "linux")]
    Echo(EchoServer),
}

/// Waits until a child, a receiver, listens; returns the address.
///
/// # Errors
/// If it fails, or does not within `limit`.
pub(super) fn listening(child: &mut ChildHandle, limit: Duration) -> Result<String, LabError> {
    match read_message(child, limit)? {
        FromChild::Listening(addr) => Ok(addr),
        other => Err(failure(child, other)),
    }
}

/// Waits until a child, a transmitter, is connected.
///
/// # Errors
/// If it fails, or is not within `limit`.
pub(super) fn connected(child: &mut ChildHandle, limit: Duration) -> Result<(), LabError> {
    match read_message(child, limit)? {
        FromChild::Connected => Ok(()),
        other => Err(failure(child, other)),
    }
}

/// Makes a child, a transmitter, carry out a job.
///
/// # Errors
/// If it fails, or takes longer than `limit`.
pub(super) fn carry_out(child: &mut ChildHandle, job: &Job, limit: Duration) -> Result<Outcome, LabError> {
    child.send_line(&serde_json::to_string(job).expect("a job has a text form"))?;
    match read_message(child, limit)? {
        FromChild::Done(outcome) => Ok(outcome),
        other => Err(failure(child, other)),
    }
}

fn read_message(child: &mut ChildHandle, limit: Duration) -> Result<FromChild, LabError> {
    let line = child.line(limit)?;
    serde_json::from_str(&line).map_err(|_| LabError::Protocol { role: child.role().to_owned(), found: line })
}

fn failure(child: &ChildHandle, message: FromChild) -> LabError {
    match message {
        FromChild::Failed(detail) => LabError::Peer { role: child.role().to_owned(), detail },
        other => unexpected(child.role(), &other),
    }
}
