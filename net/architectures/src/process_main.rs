//! The tasks of a process that a server has started.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc; // of the standard library, as the crate requires it
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use spandrel_ipc::{inet, unix};

use crate::http::Http;
use crate::process_protocol::{FOLDER, PARAMETERS, is_started_process, parameters};
use crate::transfer::Transfer;
use crate::{Port, Service, Settings, pre_forked, process_per_connection};

/// In a process that a server has started as one of its processes: serves until the server ends it, and returns true.
/// In all others, returns false at once.
///
/// For the first line of `main` in a program with [`pre_forked`] or [`process_per_connection`] servers, before it starts
/// any thread.
///
/// # Errors
/// Any error of the operating system.
pub fn serve_as_process() -> io::Result<bool> {
    if !is_started_process() {
        return Ok(false);
    }
    // Without its server this process must not become another one.
    let Some(text) = parameters() else { return Ok(true) };
    // A terminal or a service manager signals all processes of a server. These end by the server's order, after they
    // have served their connections; the handler does nothing, and is that of forked processes, too.
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
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
    // Processes that this one forks keep the standard handles, and must not read or answer its orders.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let acceptor: inet::Acceptor = control.recv_handle()?;
    let port = Port::inherited(acceptor, is_shared == "true");
    match role {
        pre_forked::ROLE => pre_forked::serve(&port, service, &settings, &control)?,
        process_per_connection::ROLE => process_per_connection::serve(&port, &service, &settings, &control)?,
        _ => return Err(wrong()),
    }
    Ok(true)
}
