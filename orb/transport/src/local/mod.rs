//! Transports inside one host: UNIX-domain sockets ([`Uds`]) and shared memory (`Shm`, Linux only).
//!
//! References name the host and the socket file of such a server. A client that finds the same file on the
//! same host connects to it; other clients use IIOP. Hosts and files are identified by numbers, because
//! containers of one host, and copies of one machine, share names and paths. The permissions of the file
//! decide which clients may connect.

mod folder;
mod host;
#[cfg(target_os = "linux")]
mod shm;
mod uds;

#[cfg(target_os = "linux")]
pub use shm::Shm;
pub use uds::Uds;

use std::io;

use spandrel_giop::{IiopProfile, local_address::LocalAddress};
use spandrel_ipc::unix::Addr;

use crate::{address::Address, endpoint::Endpoint, protocol::SocketSettings};

/// The addresses inside a host that a profile offers for this transport. Malformed ones are ignored.
fn offered_addresses(scheme: &str, profile: &IiopProfile) -> Vec<LocalAddress> {
    let offered = profile.components.iter().filter_map(|component| LocalAddress::decode(component).ok().flatten());
    offered.filter(|offered| offered.scheme == scheme).collect()
}

/// Whether the address is on this host, and the file at its path is the offered one.
fn is_here(offered: &LocalAddress) -> bool {
    if host::host_id() != Some(&offered.host) {
        return false;
    }
    let file = offered.address.parse().and_then(|addr| host::file_of(&addr));
    file.is_ok_and(|file| file == offered.file)
}

/// The component of references to an acceptor at this address.
fn describe(scheme: &str, addr: &Addr, any_user: bool) -> io::Result<Option<LocalAddress>> {
    let Some(host) = host::host_id() else { return Ok(None) };
    Ok(Some(LocalAddress {
        scheme: scheme.to_owned(),
        address: addr.to_string(),
        host: host.to_owned(),
        file: host::file_of(addr)?,
        user: host::user(),
        any_user,
    }))
}

/// Parses an address: an absolute path, or `@` and an abstract name. `None` for other text.
fn parse(scheme: &'static str, text: &str) -> Option<Address> {
    let is_valid = text.starts_with(['/', '@']) && text.parse::<Addr>().is_ok();
    is_valid.then(|| Address::new(scheme, text))
}

/// The path of an endpoint's socket. A path or an abstract name is used unchanged, a plain name is in the
/// user's own folder, and an endpoint without an address gets a new name there.
fn locate(endpoint: &Endpoint) -> io::Result<Addr> {
    let name = match endpoint.address() {
        address if address.starts_with(['/', '@']) => return address.parse().map_err(|error| endpoint.invalid(error)),
        "" => folder::fresh_name(),
        name if name.contains('/') => {
            return Err(endpoint.invalid("a path must be absolute, and a name must not contain a slash"));
        }
        name => name.to_owned(),
    };
    let path = folder::own_folder()?.join(format!("{name}.{}", endpoint.scheme()));
    Addr::path(path).map_err(|error| endpoint.invalid(format_args!("{error} (choose a shorter path)")))
}

/// The options of an endpoint's socket file. Without `mode`, its permissions let the owner alone connect, or any user,
/// whatever the umask of the process is.
fn socket_options(
    endpoint: &Endpoint,
    settings: &SocketSettings,
    any_user: bool,
) -> io::Result<spandrel_ipc::unix::AcceptorOptions> {
    let mode = if any_user { 0o666 } else { 0o600 };
    let mut options = spandrel_ipc::unix::AcceptorOptions::default().replace_stale(true).mode(mode);
    if let Some(octets) = settings.send_queue {
        options = options.send_queue(octets);
    }
    if let Some(octets) = settings.recv_queue {
        options = options.recv_queue(octets);
    }
    if let Some(mode) = endpoint.option("mode") {
        let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o777);
        options =
            options.mode(mode.ok_or_else(|| endpoint.invalid("`mode` must be permissions in octal, such as 660"))?);
    }
    Ok(options)
}

/// The error of opening an endpoint, with its address and advice.
fn cannot_open(endpoint: &Endpoint, addr: &Addr, error: &io::Error) -> io::Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => " (another program listens there: choose another path)",
        io::ErrorKind::NotFound => " (the folder must exist)",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot listen at {}://{addr}: {error}{advice}", endpoint.scheme()))
}

/// The address of a client: its process and user ids.
#[cfg(target_os = "linux")]
fn from(scheme: &'static str, peer: spandrel_ipc::unix::Credentials) -> Address {
    Address::new(scheme, format!("uid={},pid={}", peer.uid, peer.pid))
}
