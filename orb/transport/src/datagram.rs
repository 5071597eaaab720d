//! DIOP: endpoints that receive datagrams, each with one one-way request.

use std::io;

use spandrel_giop::datagram::{DatagramAddress, MAX_DATAGRAM};
use spandrel_ipc::inet;

use crate::{
    address::Address,
    endpoint::Endpoint,
    host_name::host_name,
    listener::{Listener, ListenerSource, PublishedAddresses},
    protocol::{ServerProtocol, SocketSettings},
};

/// The scheme of endpoints that receive datagrams.
pub const DIOP: &str = "diop";

/// The default limit of a datagram, in octets: the most that Ethernet carries unfragmented.
const DEFAULT_MAX_OCTETS: u32 = 1472;

/// One-way requests over UDP, in TAO called DIOP. The client's side makes no connection, so it is not a
/// [`Protocol`](crate::Protocol).
#[derive(Clone, Copy, Debug, Default)]
pub struct Diop;

impl ServerProtocol for Diop {
    fn scheme(&self) -> &'static str {
        DIOP
    }

    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        if let Some((option, _)) = endpoint.options().find(|(option, _)| *option != "max") {
            return Err(
                endpoint.invalid(format_args!("`{option}` is not an option of datagrams: expected `max`, in octets"))
            );
        }
        let max_octets = match endpoint.option("max").map(str::parse) {
            None => DEFAULT_MAX_OCTETS,
            Some(Ok(octets @ 64..)) if octets as usize <= MAX_DATAGRAM => octets,
            Some(_) => return Err(endpoint.invalid(format_args!("`max` must be between 64 and {MAX_DATAGRAM} octets"))),
        };
        let (host, port) = endpoint.host_and_port()?;
        let host = match host {
            "" => "127.0.0.1",
            "*" => "0.0.0.0",
            host => host,
        };
        let addr = inet::Addr::resolve(host, port)?.first().copied();
        let addr = addr.ok_or_else(|| endpoint.invalid("the host name has no address"))?;
        let mut options = inet::DgramOptions::default();
        if let Some(octets) = settings.recv_queue {
            options = options.recv_queue(octets);
        }
        let socket = inet::Dgram::open_with(&addr, &options)?;
        let bound = socket.local_addr()?;
        let host = if addr.ip().is_unspecified() { host_name() } else { host.to_owned() };
        let address = DatagramAddress { host, port: bound.port(), max_octets };
        let component = address.encode().map_err(|error| endpoint.invalid(error))?;
        let published = PublishedAddresses { components: vec![component], ..PublishedAddresses::default() };
        let source = ListenerSource::Datagrams(socket, max_octets);
        Ok(Listener::new(Address::new(DIOP, bound.to_string()), published, source))
    }
}
