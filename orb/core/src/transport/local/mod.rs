//! Transports inside of one host: UNIX-domain sockets ([`Uds`]) and shared memory (`Shm`, Linux only).
//!
//! A server says in its references on which host, and by which file, it is reached so; a client that finds the same file on the same host
//! goes there, and everybody else goes by IIOP. Numbers tell hosts and files apart, because containers of one host, and copies of one
//! machine, share names and paths. Who may connect is decided by the permissions of the file.

#[cfg(feature = "server")]
mod folder;
mod host;
#[cfg(target_os = "linux")]
mod shm;
mod uds;

#[cfg(target_os = "linux")]
pub use shm::Shm;
pub use uds::Uds;

#[cfg(feature = "server")]
pub(crate) use host::host_name;

use std::io;

use spandrel_giop::{IiopProfile, local_address::LocalAddress};
use spandrel_ipc::unix::Addr;

#[cfg(feature = "server")]
use super::Endpoint;
use super::{Place, PlaceError};

/// Where a profile says that its server is inside of this host, by this transport. What is malformed is as if it were not there.
fn addresses(scheme: &str, profile: &IiopProfile) -> Vec<LocalAddress> {
    let offered = profile.components.iter().filter_map(|component| LocalAddress::decode(component).ok().flatten());
    offered.filter(|offered| offered.scheme == scheme).collect()
}

/// Whether what is at this address on this host is what is meant.
fn is_here(offered: &LocalAddress) -> bool {
    if host::host_id() != Some(&offered.host) {
        return false;
    }
    let file = offered.address.parse().and_then(|addr| host::file_of(&addr));
    file.is_ok_and(|file| file == offered.file)
}

/// What references say of an acceptor at this address.
#[cfg(feature = "server")]
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

/// Reads an address: an absolute path, or `@` and an abstract name.
fn parse(scheme: &'static str, text: &str) -> Result<Place, PlaceError> {
    if !text.starts_with(['/', '@']) {
        return Err(PlaceError::new(scheme, text, "expected an absolute path, or `@` and a name"));
    }
    let addr: io::Result<Addr> = text.parse();
    addr.map(|_| Place::new(scheme, text)).map_err(|error| PlaceError::new(scheme, text, error.to_string()))
}

/// Where an endpoint is to be: a path or an abstract name as it stands, a mere name in this user's own folder, where there is also a place
/// for an endpoint without any.
#[cfg(feature = "server")]
fn locate(endpoint: &Endpoint) -> io::Result<Addr> {
    let name = match endpoint.address() {
        address if address.starts_with(['/', '@']) => return address.parse().map_err(|error| endpoint.invalid(error)),
        "" => folder::fresh_name(),
        name if name.contains('/') => return Err(endpoint.invalid("a path is absolute, and a name has no slash")),
        name => name.to_owned(),
    };
    let path = folder::own_folder()?.join(format!("{name}.{}", endpoint.scheme()));
    Addr::path(path).map_err(|error| endpoint.invalid(format_args!("{error} (say a shorter path)")))
}

/// The options of an endpoint's socket file.
#[cfg(feature = "server")]
fn socket_options(
    endpoint: &Endpoint,
    settings: &super::SocketSettings,
) -> io::Result<spandrel_ipc::unix::AcceptorOptions> {
    let mut options = spandrel_ipc::unix::AcceptorOptions::default().replace_stale(true);
    if let Some(octets) = settings.send_queue {
        options = options.send_queue(octets);
    }
    if let Some(octets) = settings.recv_queue {
        options = options.recv_queue(octets);
    }
    if let Some(mode) = endpoint.option("mode") {
        let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o777);
        options = options.mode(mode.ok_or_else(|| endpoint.invalid("`mode` is permissions in octal, such as 660"))?);
    }
    Ok(options)
}

/// An error of opening, with the address and what can be done.
#[cfg(feature = "server")]
fn cannot_open(endpoint: &Endpoint, addr: &Addr, error: &io::Error) -> io::Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => " (somebody listens there: choose another path)",
        io::ErrorKind::NotFound => " (the folder must exist)",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot listen at {}://{addr}: {error}{advice}", endpoint.scheme()))
}

/// Where a connection comes from: the process, and the user that it runs as, where the system tells.
#[cfg(all(feature = "server", target_os = "linux"))]
fn from(scheme: &'static str, peer: spandrel_ipc::unix::Credentials) -> Place {
    Place::new(scheme, format!("uid={},pid={}", peer.uid, peer.pid))
}
