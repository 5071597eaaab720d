//! GIOP over UNIX-domain sockets, as omniORB speaks it, too.

use std::{io, path::Path, time::Duration};

use spandrel_giop::{
    IiopProfile,
    local_address::{LocalAddress, UnixTransport},
};
use spandrel_ipc::unix;
use spandrel_sync::Arc;

use super::{addresses, host, is_here};
use crate::transport::{Place, PlaceError, Protocol, SocketSettings, Transport, cost};
#[cfg(feature = "server")]
use crate::{
    Endpoint,
    transport::{Listener, Published},
};

const SCHEME: &str = "uds";

/// GIOP over UNIX-domain sockets: `uds:///path`, or `giop:unix:/path`.
///
/// References carry TAG_OMNIORB_UNIX_TRANS for omniORB, which goes by the host's name, and a component of ours, which goes by the socket's
/// file. Of references that have only the former the path must be that of a socket here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uds;

impl Protocol for Uds {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn parse_place(&self, text: &str) -> Result<Place, PlaceError> {
        super::parse(SCHEME, text)
    }

    fn places(&self, profile: &IiopProfile) -> Vec<Place> {
        let ours = addresses(SCHEME, profile);
        let addresses: Vec<String> = if ours.is_empty() {
            omniorbs(profile).collect()
        } else {
            ours.into_iter().filter(is_here).map(|offered: LocalAddress| offered.address).collect()
        };
        addresses.into_iter().filter_map(|address| self.parse_place(&address).ok()).collect()
    }

    fn connect(
        &self,
        place: &Place,
        timeout: Option<Duration>,
        settings: &SocketSettings,
    ) -> io::Result<Arc<dyn Transport>> {
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
        Ok(Arc::new(connector.open(&place.address().parse()?)?))
    }

    fn cost(&self, _: &Place) -> u32 {
        cost::SAME_HOST
    }

    #[cfg(feature = "server")]
    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        endpoint.check_options(&["mode"])?;
        let (addr, options) = (super::locate(endpoint)?, super::socket_options(endpoint, settings)?);
        let opened = unix::Acceptor::open_with(&addr, &options);
        let acceptor = opened.map_err(|error| super::cannot_open(endpoint, &addr, &error))?;
        let addr = acceptor.local_addr()?;
        let place = Place::new(SCHEME, addr.to_string());
        let mut components = Vec::new();
        if let Some(address) = super::describe(SCHEME, &addr, true)? {
            components.push(address.encode().map_err(|error| endpoint.invalid(error))?);
        }
        if let Some(path) = addr.as_path().and_then(Path::to_str) {
            let address = UnixTransport { host: host::host_name(), path: path.to_owned() };
            components.push(address.encode().map_err(|error| endpoint.invalid(error))?);
        }
        let published = Published { components, places: vec![place.clone()], ..Published::default() };
        Ok(Listener::over::<unix::Unix>(place, acceptor, published, |stream, _| from(stream)))
    }
}

/// Paths of sockets of this host, in components of omniORB's.
fn omniorbs(profile: &IiopProfile) -> impl Iterator<Item = String> {
    let offered = profile.components.iter().filter_map(|component| UnixTransport::decode(component).ok().flatten());
    offered
        .filter(|offered| offered.host == host::host_name() && host::socket_at(Path::new(&offered.path)).is_ok())
        .map(|offered| offered.path)
}

#[cfg(all(feature = "server", target_os = "linux"))]
fn from(stream: &unix::Stream) -> io::Result<Place> {
    Ok(super::from(SCHEME, stream.peer_credentials()?))
}

#[cfg(all(feature = "server", not(target_os = "linux")))]
fn from(stream: &unix::Stream) -> io::Result<Place> {
    Ok(Place::new(SCHEME, stream.remote_addr()?.to_string()))
}
