//! The start of a process of a server: the parameters in its environment, and its tasks.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::getppid;
use spandrel_ipc::{inet, unix};

use crate::http::Http;
use crate::processes::order;
use crate::transfer::Transfer;
use crate::{Port, Service, Settings, pre_forked, process_per_connection};

/// Environment variable: the parameters of a process of a server, separated by spaces. The first is the process ID of
/// the server: processes that a program starts in turn inherit the variable, but are not meant.
const PARAMETERS: &str = "SPANDREL_SERVER_PROCESS";
/// Environment variable: the folder of the HTTP service.
const FOLDER: &str = "SPANDREL_SERVER_FOLDER";

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
fn parameters() -> Option<String> {
    let text = std::env::var(PARAMETERS).ok()?;
    let (server, rest) = text.split_once(' ')?;
    let is_meant = server.parse() == Ok(getppid()?.as_raw_nonzero().get());
    is_meant.then(|| rest.to_owned())
}

/// In a process that a server has started as one of its processes: serves until the server ends it, and returns true.
/// In all others, returns false at once.
///
/// For the first line of `main` in a program with [`pre_forked`] or [`process_per_connection`] servers, before it starts
/// any thread.
///
/// # Errors
/// Any error of the operating system.
pub fn serve_as_process() -> io::Result<bool> {
    let Some(text) = parameters() else { return Ok(false) };
    let parameters: Vec<&str> = text.split(' ').collect();
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("{PARAMETERS} is not valid: `{text}`"));
    let [role, is_shared, protocol, max_connections, idle, request] = parameters[..] else { return Err(wrong()) };
    let milliseconds = |text: &str| text.parse().map(Duration::from_millis).map_err(|_| wrong());
    let settings = Settings {
        max_connections: max_connections.parse().map_err(|_| wrong())?,
        idle: milliseconds(idle)?,
        request: milliseconds(request)?,
        ..Settings::default()
    };
    let service = match protocol {
        "transfer" => Service::Transfer(Transfer { has_greeting: true }),
        "transfer-without-greeting" => Service::Transfer(Transfer { has_greeting: false }),
        "http" => Service::Http(Http::open(&PathBuf::from(std::env::var_os(FOLDER).ok_or_else(wrong)?))?),
        _ => return Err(wrong()),
    };
    let control = unix::Stream::try_from(io::stdin().as_fd().try_clone_to_owned()?)?;
    let acceptor: inet::Acceptor = control.recv_handle()?;
    let port = Port::inherited(acceptor, is_shared == "true");
    match role {
        pre_forked::ROLE => pre_forked::serve(&port, service, &settings, &control)?,
        process_per_connection::ROLE => process_per_connection::serve(&port, &service, &settings, &control)?,
        _ => return Err(wrong()),
    }
    Ok(true)
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
