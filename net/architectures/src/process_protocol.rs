//! The protocol between a server and its processes: the parameters of a process, in its environment, and the orders over
//! the socket that is its standard input.

use std::io;
use std::process::Command;
use std::time::Duration;

use rustix::process::getppid;
use spandrel_ipc::unix;

use crate::transfer::Transfer;
use crate::{Service, Settings};

/// Environment variable: the parameters of a process of a server, separated by spaces. The first is the process ID of
/// the server: processes that a program starts in turn inherit the variable, but are not meant.
pub(crate) const PARAMETERS: &str = "SPANDREL_SERVER_PROCESS";
/// Environment variable: the folder of the HTTP service.
pub(crate) const FOLDER: &str = "SPANDREL_SERVER_FOLDER";

/// Orders to a process of a server, of one octet each.
pub(crate) mod order {
    /// The process serves; sent by the process itself.
    pub(crate) const READY: u8 = b'R';
    /// Stop accepting.
    pub(crate) const RETIRE: u8 = b'r';
    /// Answer the number of open connections as a `u32`, least significant octet first.
    pub(crate) const COUNT: u8 = b'c';
    /// Drain within the milliseconds that follow as a `u32`, answer the number of connections that were cut, and end.
    pub(crate) const DRAIN: u8 = b'd';
}

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
            settings.idle.as_millis(),
            settings.request.as_millis(),
        );
        command.env(PARAMETERS, parameters);
    }
}

/// Whether this process was started by a server as one of its processes.
pub(crate) fn is_started_process() -> bool {
    parameters().is_some()
}

/// The parameters without the process ID, if this process is meant.
pub(crate) fn parameters() -> Option<String> {
    let text = std::env::var(PARAMETERS).ok()?;
    let (server, rest) = text.split_once(' ')?;
    let is_meant = server.parse() == Ok(getppid()?.as_raw_nonzero().get());
    is_meant.then(|| rest.to_owned())
}

/// An order of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Retire,
    Count,
    Drain(Duration),
}

/// The time that connections have when the server has ended without an order.
const ORPHAN_DRAIN: Duration = Duration::from_secs(1);

/// Waits for an order. The end of the socket is the order to end.
pub(crate) fn next_order(control: &unix::Stream) -> Order {
    let mut kind = [0];
    let mut milliseconds = [0; 4];
    let received = control.recv_n(&mut kind).and_then(|()| match kind {
        [order::DRAIN] => control.recv_n(&mut milliseconds),
        _ => Ok(()),
    });
    match kind {
        [order::RETIRE] if received.is_ok() => Order::Retire,
        [order::COUNT] if received.is_ok() => Order::Count,
        [order::DRAIN] if received.is_ok() => {
            Order::Drain(Duration::from_millis(u64::from(u32::from_le_bytes(milliseconds))))
        }
        _ => Order::Drain(ORPHAN_DRAIN),
    }
}

/// Answers an order with a number.
pub(crate) fn answer(control: &unix::Stream, number: usize) {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let _ = control.send_n(&number.to_le_bytes()); // fails only if the server has ended
}

/// Tells the server that this process serves.
pub(crate) fn report_ready(control: &unix::Stream) -> io::Result<()> {
    control.send_n(&[order::READY]).map_err(Into::into)
}
