//! The protocol between a server and its processes: the parameters of a process, in its environment, and the orders over
//! the socket that is its standard input.

use std::io;
use std::process::Command;
use std::time::Duration;

use rustix::process::getppid;
use spandrel_ipc::{TransferError, unix};
use spandrel_sync::time::Deadline;

use crate::transfer::Transfer;
use crate::{Service, Settings};

/// The first argument of a process of a server. Processes that a program starts in turn inherit the environment, but not
/// this.
pub(crate) const ARGUMENT: &str = "server-process";
/// Environment variable: the parameters of a process of a server, separated by spaces. The first is the process ID of
/// the server.
pub(crate) const PARAMETERS: &str = "SPANDREL_SERVER_PROCESS";
/// Environment variable: the folder of the HTTP service.
pub(crate) const FOLDER: &str = "SPANDREL_SERVER_FOLDER";

/// The kinds of orders to a process of a server.
///
/// An order is its kind, a number that its answer repeats, and milliseconds as a `u32`. An answer is the number of the
/// order, and its value as a `u32`. So a process that answers too late is not misunderstood. The least significant
/// octet comes first.
pub(crate) mod order {
    /// Stop accepting. Has no answer.
    pub(crate) const RETIRE: u8 = b'r';
    /// Answer the number of open connections.
    pub(crate) const COUNT: u8 = b'c';
    /// Drain within the milliseconds, answer the number of connections that were cut, and end.
    pub(crate) const DRAIN: u8 = b'd';
}

/// The number of the answer without an order: the process serves.
pub(crate) const READY: u8 = 0;

/// The octets of an order.
const ORDER: usize = 6;
/// The octets of an answer.
const ANSWER: usize = 5;

/// The parameters of a process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessStart {
    /// The architecture that the process is a part of.
    pub(crate) role: &'static str,
    pub(crate) settings: Settings,
    pub(crate) is_shared: bool,
}

impl ProcessStart {
    /// Writes the parameters into the environment of a command.
    pub(crate) fn write(&self, service: &Service, command: &mut Command) {
        let Self { role, settings, is_shared } = self;
        let protocol = match service {
            Service::Transfer(Transfer { has_greeting: true }) => "transfer",
            Service::Transfer(Transfer { has_greeting: false }) => "transfer-without-greeting",
            Service::Http(http) => {
                command.env(FOLDER, http.folder());
                "http"
            }
        };
        let parameters = format!(
            "{} {role} {is_shared} {protocol} {} {} {}",
            std::process::id(),
            settings.max_connections,
            milliseconds(settings.idle),
            milliseconds(settings.request),
        );
        command.args([ARGUMENT, role]).env(PARAMETERS, parameters);
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether this process was started by a server as one of its processes.
pub(crate) fn is_started_process() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT) && std::env::var_os(PARAMETERS).is_some()
}

/// The parameters without the process ID; none if the server has ended in the meantime, so that another process is the
/// parent.
pub(crate) fn parameters() -> Option<String> {
    let text = std::env::var(PARAMETERS).ok()?;
    let (server, rest) = text.split_once(' ')?;
    let is_child = server.parse() == Ok(getppid()?.as_raw_nonzero().get());
    is_child.then(|| rest.to_owned())
}

/// An order of the server, with the number of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Retire,
    Count(u8),
    Drain(u8, Duration),
}

/// The time that connections have when the server has ended without an order.
const ORPHAN_DRAIN: Duration = Duration::from_secs(1);

/// Waits for an order. The end of the socket is the order to end.
pub(crate) fn next_order(control: &unix::Stream) -> Order {
    let mut octets = [0; ORDER];
    let is_received = control.recv_n(&mut octets).is_ok();
    let [kind, number, milliseconds @ ..] = octets;
    match kind {
        order::RETIRE if is_received => Order::Retire,
        order::COUNT if is_received => Order::Count(number),
        order::DRAIN if is_received => {
            Order::Drain(number, Duration::from_millis(u32::from_le_bytes(milliseconds).into()))
        }
        _ => Order::Drain(READY, ORPHAN_DRAIN),
    }
}

/// Answers the order with a number.
pub(crate) fn answer(control: &unix::Stream, number: u8, value: usize) {
    // Fails only if the server has ended.
    let _ = send_answer(control, number, value);
}

fn send_answer(control: &unix::Stream, number: u8, value: usize) -> Result<(), TransferError> {
    let [a, b, c, d] = u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
    control.send_n(&[number, a, b, c, d])
}

/// Tells the server that this process serves.
pub(crate) fn report_ready(control: &unix::Stream) -> io::Result<()> {
    send_answer(control, READY, 0).map_err(Into::into)
}

/// Sends an order to a process. A process that takes none for so long does not get it.
pub(crate) fn send_order(
    control: &unix::Stream,
    kind: u8,
    number: u8,
    time: Duration,
    timeout: Duration,
) -> Result<(), TransferError> {
    let [a, b, c, d] = u32::try_from(time.as_millis()).unwrap_or(u32::MAX).to_le_bytes();
    control.send_n_within(&[kind, number, a, b, c, d], timeout)
}

/// Waits for the answer with a number, and skips late ones; none if the process does not answer in time.
pub(crate) fn receive_answer(control: &unix::Stream, number: u8, timeout: Duration) -> Option<usize> {
    let deadline = Deadline::after(timeout);
    loop {
        let mut octets = [0; ANSWER];
        control.recv_n_within(&mut octets, deadline.remaining()?).ok()?;
        let [answered, value @ ..] = octets;
        if answered == number {
            return usize::try_from(u32::from_le_bytes(value)).ok();
        }
    }
}
