//! Endpoints where datagrams are read: requests that nobody answers, one to each.

use std::{io, time::Duration};

use spandrel_giop::{
    IiopProfile,
    datagram::{DatagramAddress, MAX_DATAGRAM},
};
use spandrel_ipc::inet;
use spandrel_sync::Arc;

use super::Endpoint;
use super::{Listener, Place, PlaceError, Protocol, Published, SocketSettings, Transport, host_name};

/// The scheme of endpoints that read datagrams.
pub(crate) const SCHEME: &str = "diop";

/// What a datagram may have on Ethernet without being cut on the way.
const DEFAULT_MAX_OCTETS: u32 = 1472;

/// One-ways by UDP (TAO calls it DIOP). Listens only: what is sent is the business of [`datagrams`](crate::datagrams), since no connection
/// is made for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagrams;

impl Protocol for Datagrams {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn parse_place(&self, text: &str) -> Result<Place, PlaceError> {
        Err(PlaceError::new(SCHEME, text, "there are no connections to it"))
    }

    fn places(&self, _profile: &IiopProfile) -> Vec<Place> {
        Vec::new()
    }

    fn connect(
        &self,
        _place: &Place,
        _timeout: Option<Duration>,
        _settings: &SocketSettings,
    ) -> io::Result<Arc<dyn Transport>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        if let Some((option, _)) = endpoint.options().find(|(option, _)| *option != "max") {
            return Err(
                endpoint.invalid(format_args!("`{option}` is no option of datagrams; there is `max`, in octets"))
            );
        }
        let max_octets = match endpoint.option("max").map(str::parse) {
            None => DEFAULT_MAX_OCTETS,
            Some(Ok(octets @ 64..)) if octets as usize <= MAX_DATAGRAM => octets,
            Some(_) => return Err(endpoint.invalid(format_args!("`max` is between 64 and {MAX_DATAGRAM} octets"))),
        };
        let (host, port) = endpoint.host_and_port()?;
        let host = match host {
            "" => "127.0.0.1",
            "*" => "0.0.0.0",
            host => host,
        };
        let addr = inet::Addr::resolve(host, port)?.first().copied();
        let addr = addr.ok_or_else(|| endpoint.invalid("the name has no address"))?;
        let mut options = inet::DgramOptions::default();
        if let Some(octets) = settings.recv_queue {
            options = options.recv_queue(octets);
        }
        let socket = inet::Dgram::open_with(&addr, &options)?;
        let bound = socket.local_addr()?;
        let host = if addr.ip().is_unspecified() { host_name() } else { host.to_owned() };
        let address = DatagramAddress { host, port: bound.port(), max_octets };
        let component = address.encode().map_err(|error| endpoint.invalid(error))?;
        let published = Published { components: vec![component], ..Published::default() };
        Ok(Listener::of_datagrams(Place::new(SCHEME, bound.to_string()), published, socket, max_octets))
    }
}
