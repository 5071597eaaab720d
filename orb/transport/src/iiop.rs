//! IIOP: GIOP over TCP.

use std::{io, time::Duration};

use spandrel_giop::{IiopProfile, component::Component};
use spandrel_ipc::inet;
use spandrel_sync::Arc;

use crate::{
    address::{Address, IIOP},
    bidirectional::is_bidirectional_only,
    endpoint::Endpoint,
    inet_endpoint::{INET_OPTIONS, listen_inet},
    listener::{Listener, PublishedAddresses},
    protocol::{Protocol, ServerProtocol, SocketSettings},
};

/// The number of addresses of one profile that are tried: its own, and alternate ones.
const MAX_ADDRESSES: usize = 16;

/// GIOP over TCP, which every ORB supports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Iiop;

impl Protocol for Iiop {
    type Stream = inet::Stream;

    fn scheme(&self) -> &'static str {
        IIOP
    }

    fn addresses(&self, profile: &IiopProfile) -> Vec<Address> {
        let mut addresses = Vec::new();
        // Port 0: only components have an address of the server.
        if profile.port != 0 {
            addresses.push(Address::at_port(IIOP, &profile.host, profile.port));
        }
        for component in &profile.components {
            if addresses.len() < MAX_ADDRESSES
                && let Ok(Some((host, port @ 1..))) = Component::read_alternate_address(component)
            {
                addresses.push(Address::at_port(IIOP, &host, port));
            }
        }
        addresses
    }

    fn connect(
        &self,
        address: &Address,
        timeout: Option<Duration>,
        settings: &SocketSettings,
    ) -> io::Result<inet::Stream> {
        connect_inet(address, timeout, settings)
    }

    fn server(protocol: &Arc<Self>) -> Option<Arc<dyn ServerProtocol>> {
        Some(Arc::<Self>::clone(protocol))
    }
}

impl ServerProtocol for Iiop {
    fn scheme(&self) -> &'static str {
        IIOP
    }

    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        endpoint.check_options(&INET_OPTIONS)?;
        let (acceptor, hosts) = listen_inet(endpoint, settings)?;
        let addresses = hosts.iter().map(|(host, port)| Address::at_port(IIOP, host, *port)).collect();
        let published = PublishedAddresses { addresses, hosts, ..PublishedAddresses::default() };
        let bound = Address::new(IIOP, acceptor.local_addr()?.to_string());
        let SocketSettings { keep_alive, tuning, .. } = *settings;
        Listener::over::<inet::Inet>(bound, acceptor, published, move |stream, from| {
            stream.set_no_delay(true)?;
            keep_alive.apply(stream)?;
            if let Some(tuning) = &tuning {
                tuning.apply(stream)?;
            }
            Ok(Address::new(IIOP, from.to_string()))
        })
    }
}

/// Connects by TCP to an address with a host and a port, for IIOP and other protocols over TCP.
///
/// # Errors
/// The errors of the system; [`io::ErrorKind::TimedOut`] when the time ran out;
/// [`io::ErrorKind::AddrNotAvailable`] for a host [without a listening socket](is_bidirectional_only).
pub fn connect_inet(
    address: &Address,
    timeout: Option<Duration>,
    settings: &SocketSettings,
) -> io::Result<inet::Stream> {
    let (host, port) = address.host_and_port().ok_or(io::ErrorKind::InvalidInput)?;
    if is_bidirectional_only(host) {
        return Err(io::ErrorKind::AddrNotAvailable.into());
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
        // An unreachable address delays the next one by its stagger only, not by its time-out.
        addrs => connector.open_any(addrs)?,
    };
    settings.keep_alive.apply(&stream)?;
    if let Some(tuning) = &settings.tuning {
        tuning.apply(&stream)?;
    }
    Ok(stream)
}
