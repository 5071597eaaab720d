//! The transmitter: carries out jobs against a receiver.
//!
//! The timed loops are those of the mechanisms: `mechanism::octet_stream` over sockets, `mechanism::orb` over
//! the ORB.

use std::io::BufReader;
use std::net::TcpStream;

use super::{FromReceiver, Outcome, PROTOCOL, ToReceiver, cpu_seconds, read_line, unexpected, write_line};
use crate::LabError;
use crate::mechanism::{Job, MechanismName, Work};

const RECEIVER: &str = "receiver";

/// A control connection to a receiver.
#[derive(Debug)]
pub struct Session {
    input: BufReader<TcpStream>,
    output: TcpStream,
}

impl Session {
    /// Connects to a receiver's control address, written as `HOST:PORT`.
    ///
    /// # Errors
    /// If the peer does not answer, or is not a receiver of this version.
    pub fn connect(addr: &str) -> Result<Self, LabError> {
        let open = || {
            let output = TcpStream::connect(addr)?;
            output.set_nodelay(true)?;
            Ok((BufReader::new(output.try_clone()?), output))
        };
        let (input, output) = open().map_err(LabError::io(format!("connect to the receiver at {addr}")))?;
        let mut session = Self { input, output };
        match session.read()? {
            FromReceiver::Hello { protocol: PROTOCOL } => Ok(session),
            other => Err(unexpected(RECEIVER, &other)),
        }
    }

    /// Carries out one job.
    ///
    /// # Errors
    /// If either side fails, or the numbers of octets sent and received differ. A mechanism that may lose octets may deliver
    /// fewer, but not none.
    pub fn run(&mut self, job: &Job) -> Result<Outcome, LabError> {
        self.write(&ToReceiver::Open(*job))?;
        let endpoint = match self.read()? {
            FromReceiver::Opened { endpoint } => endpoint,
            other => return Err(failure(other)),
        };
        let transmitted = transmit(&endpoint, job);
        self.write(&ToReceiver::Close)?;
        let closed = self.read()?;
        let mut outcome = transmitted?;
        let FromReceiver::Closed { received, cpu_seconds } = closed else { return Err(failure(closed)) };
        outcome.receiver_cpu = cpu_seconds;
        match job.work {
            Work::Flood(flood) if is_wrong(job.mechanism, flood.total_octets(), received) => {
                Err(LabError::LostData { sent: flood.total_octets(), received })
            }
            _ => Ok(Outcome { octets: received, ..outcome }),
        }
    }

    fn write(&mut self, message: &ToReceiver) -> Result<(), LabError> {
        write_line(&mut self.output, message).map_err(LabError::io("speak to the receiver"))
    }

    fn read(&mut self) -> Result<FromReceiver, LabError> {
        let message = read_line(&mut self.input).map_err(LabError::io("hear the receiver"))?;
        message.ok_or_else(|| LabError::Peer {
            role: RECEIVER.to_owned(),
            detail: "it closed the control connection".to_owned(),
        })
    }
}

/// Whether the receiver's count cannot be that of the flood.
fn is_wrong(mechanism: MechanismName, sent: u64, received: u64) -> bool {
    if mechanism.may_lose() { received == 0 || received > sent } else { received != sent }
}

fn failure(message: FromReceiver) -> LabError {
    match message {
        FromReceiver::Failed(detail) => LabError::Peer { role: RECEIVER.to_owned(), detail },
        other => unexpected(RECEIVER, &other),
    }
}

/// Connects, carries out the work, and closes the data connection.
fn transmit(endpoint: &str, job: &Job) -> Result<Outcome, LabError> {
    let mut transmitter = job.mechanism.mechanism()?.connect(endpoint, job)?;
    let before = cpu_seconds();
    let mut outcome = Outcome::in_seconds(0.0);
    match &job.work {
        Work::Flood(flood) => outcome.seconds = transmitter.flood(flood)?.as_secs_f64(),
        Work::PingPong(work) => {
            let times = transmitter.ping_pong(work)?;
            outcome.seconds = times.seconds;
            outcome.times = Some(times);
        }
        Work::Wire(case) => outcome.wire = transmitter.wire_octets(*case)?,
    }
    outcome.transmitter_cpu = cpu_seconds() - before;
    Ok(outcome)
}
