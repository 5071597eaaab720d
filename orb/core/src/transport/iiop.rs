//! IIOP: GIOP over TCP.

use std::{io, iter, time::Duration};

use spandrel_giop::{IiopProfile, component::Component};
use spandrel_ipc::inet;
use spandrel_sync::Arc;

#[cfg(feature = "server")]
use super::Endpoint;
use super::{IIOP, Place, PlaceError, Protocol, SocketSettings, Transport};
#[cfg(feature = "server")]
use super::{INET_OPTIONS, Listener, Published, listen_inet};

/// So many addresses of one profile are tried: its own, and alternate ones.
const MOST_ADDRESSES: usize = 16;

/// GIOP over TCP, which every ORB speaks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Iiop;

impl Protocol for Iiop {
    fn scheme(&self) -> &'static str {
        IIOP
    }

    fn parse_place(&self, text: &str) -> Result<Place, PlaceError> {
        Place::parse_at_port(IIOP, text)
    }

    fn places(&self, profile: &IiopProfile) -> Vec<Place> {
        let alternate = |component| match Component::decode(component) {
            Ok(Some(Component::AlternateIiopAddress { host, port })) => Some((host, port)),
            _ => None,
        };
        let alternates = profile.components.iter().filter_map(alternate);
        // Port 0: only components say how the server is reached.
        let addresses =
            iter::once((profile.host.clone(), profile.port)).chain(alternates).filter(|(_, port)| *port != 0);
        addresses.take(MOST_ADDRESSES).map(|(host, port)| Place::at_port(IIOP, &host, port)).collect()
    }

    fn connect(
        &self,
        place: &Place,
        timeout: Option<Duration>,
        settings: &SocketSettings,
    ) -> io::Result<Arc<dyn Transport>> {
        Ok(Arc::new(connect_inet(place, timeout, settings)?))
    }

    #[cfg(feature = "server")]
    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        endpoint.check_options(&INET_OPTIONS)?;
        let (acceptor, addresses) = listen_inet(endpoint, settings)?;
        let places = addresses.iter().map(|(host, port)| Place::at_port(IIOP, host, *port)).collect();
        let published = Published { places, addresses, ..Published::default() };
        let bound = Place::new(IIOP, acceptor.local_addr()?.to_string());
        let keep_alive = settings.keep_alive;
        Ok(Listener::over::<inet::Inet>(bound, acceptor, published, move |stream, from| {
            stream.set_no_delay(true)?;
            keep_alive.apply(stream)?;
            Ok(Place::new(IIOP, from.to_string()))
        }))
    }
}

/// Connects by TCP to a place that is a host and a port, for this and other protocols over TCP.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::TimedOut`] when the time ran out.
pub fn connect_inet(place: &Place, timeout: Option<Duration>, settings: &SocketSettings) -> io::Result<inet::Stream> {
    let (host, port) = place.host_and_port().ok_or(io::ErrorKind::InvalidInput)?;
    #[cfg(feature = "server")]
    if super::is_nowhere(host) {
        let reason = "its server is reached only over connections that it has opened itself, and none is open here \
            (both sides need -ORBBidirectional)";
        return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, reason));
    }
    let mut connector = inet::Connector::new().no_delay(true);
    if let Some(octets) = settings.send_queue {
        connector = connector.send_queue(octets);
    }
    if let Some(octets) = settings.recv_queue {
        connector = connector.recv_queue(octets);
    }
    if let Some(timeout) = timeout {
        connector = connector.timeout(timeout);
    }
    let stream = match &*inet::Addr::resolve(host, port)? {
        [addr] => connector.open(addr)?,
        // A dead one costs its stagger, and not its time-out.
        addrs => connector.open_any(addrs)?,
    };
    settings.keep_alive.apply(&stream)?;
    Ok(stream)
}
