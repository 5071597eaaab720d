//! GIOP over UNIX-domain sockets, compatible with omniORB.

use std::{io, path::Path, time::Duration};

use spandrel_giop::{
    IiopProfile,
    local_address::{LocalAddress, UnixTransport},
};
use spandrel_ipc::unix;
use spandrel_sync::Arc;

use super::{host, is_here, offered_addresses};
use crate::{
    address::Address,
    endpoint::Endpoint,
    host_name::host_name,
    listener::{Listener, PublishedAddresses},
    protocol::{Protocol, ServerProtocol, SocketSettings, cost},
};

const SCHEME: &str = "uds";

/// GIOP over UNIX-domain sockets: `uds:///path`, or `giop:unix:/path`.
///
/// References carry TAG_OMNIORB_UNIX_TRANS for omniORB, which compares host names, and a component of
/// Spandrel's, which compares socket files. For references with the former only, a socket must exist at the
/// path on this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uds;

impl Protocol for Uds {
    type Stream = unix::Stream;

    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn addresses(&self, profile: &IiopProfile) -> Vec<Address> {
        let ours = offered_addresses(SCHEME, profile);
        let addresses: Vec<String> = if ours.is_empty() {
            omniorb_paths(profile).collect()
        } else {
            ours.into_iter().filter(is_here).map(|offered: LocalAddress| offered.address).collect()
        };
        addresses.into_iter().filter_map(|address| super::parse(SCHEME, &address)).collect()
    }

    fn connect(
        &self,
        address: &Address,
        timeout: Option<Duration>,
        settings: &SocketSettings,
    ) -> io::Result<unix::Stream> {
        let mut connector = unix::Connector::new();
        if let Some(octets) = settings.send_queue {
            connector = connector.send_queue(octets);
        }
        if let Some(octets) = settings.recv_queue {
            connector = connector.recv_queue(octets);
        }
        if let Some(timeout) = timeout {
            connector = connector.timeout(timeout);
        }
        connector.open(&address.address().parse()?)
    }

    fn cost(&self, _: &Address) -> u32 {
        cost::SAME_HOST
    }

    fn server(protocol: &Arc<Self>) -> Option<Arc<dyn ServerProtocol>> {
        Some(Arc::<Self>::clone(protocol))
    }
}

impl ServerProtocol for Uds {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        endpoint.check_options(&["mode"])?;
        let (addr, options) = (super::locate(endpoint)?, super::socket_options(endpoint, settings, false)?);
        let opened = unix::Acceptor::open_with(&addr, &options);
        let acceptor = opened.map_err(|error| super::cannot_open(endpoint, &addr, &error))?;
        let addr = acceptor.local_addr()?;
        let address = Address::new(SCHEME, addr.to_string());
        let mut components = Vec::new();
        if let Some(component) = super::describe(SCHEME, &addr, true)? {
            components.push(component.encode().map_err(|error| endpoint.invalid(error))?);
        }
        if let Some(path) = addr.as_path().and_then(Path::to_str) {
            let component = UnixTransport { host: host_name(), path: path.to_owned() };
            components.push(component.encode().map_err(|error| endpoint.invalid(error))?);
        }
        let published =
            PublishedAddresses { components, addresses: vec![address.clone()], ..PublishedAddresses::default() };
        Listener::over::<unix::Unix>(address, acceptor, published, |stream, _| from(stream))
    }
}

/// The socket paths on this host from omniORB's components.
fn omniorb_paths(profile: &IiopProfile) -> impl Iterator<Item = String> {
    let offered = profile.components.iter().filter_map(|component| UnixTransport::decode(component).ok().flatten());
    offered
        .filter(|offered| offered.host == host_name() && host::socket_at(Path::new(&offered.path)).is_ok())
        .map(|offered| offered.path)
}

#[cfg(target_os = "linux")]
fn from(stream: &unix::Stream) -> io::Result<Address> {
    Ok(super::from(SCHEME, stream.peer_credentials()?))
}

#[cfg(not(target_os = "linux"))]
fn from(stream: &unix::Stream) -> io::Result<Address> {
    Ok(Address::new(SCHEME, stream.remote_addr()?.to_string()))
}
