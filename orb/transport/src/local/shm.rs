//! GIOP through shared memory.

use std::{io, time::Duration};

use spandrel_giop::{IiopProfile, local_address::LocalAddress};
use spandrel_ipc::{Family, shm};
use spandrel_sync::Arc;

use super::{host, is_here, offered_addresses};
use crate::{
    address::Address,
    endpoint::Endpoint,
    listener::{Listener, PublishedAddresses},
    protocol::{Protocol, ServerProtocol, SocketSettings, cost},
};

const SCHEME: &str = "shm";

/// GIOP over memory shared by both processes: `shm://name`. Only processes of one user share memory unless
/// the endpoint permits others (`shm://name|any-user=yes`).
///
/// The socket queue sizes set the sizes of the rings, rounded up to powers of two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shm;

impl Protocol for Shm {
    type Stream = shm::Stream;

    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn addresses(&self, profile: &IiopProfile) -> Vec<Address> {
        // A client that the server would reject must not connect: the rejection shows only after the request
        // is written.
        let may = |offered: &LocalAddress| offered.any_user || offered.user == host::user() || host::user() == 0;
        let offered = offered_addresses(SCHEME, profile).into_iter().filter(|offered| may(offered) && is_here(offered));
        offered.filter_map(|offered| super::parse(SCHEME, &offered.address)).collect()
    }

    fn connect(
        &self,
        address: &Address,
        timeout: Option<Duration>,
        settings: &SocketSettings,
    ) -> io::Result<shm::Stream> {
        let mut family = shm::Shm::default();
        if let Some(octets) = settings.send_queue {
            family.connector = family.connector.send_queue(octets);
        }
        if let Some(octets) = settings.recv_queue {
            family.connector = family.connector.recv_queue(octets);
        }
        family.connect(&address.address().parse()?, timeout)
    }

    fn cost(&self, _: &Address) -> u32 {
        cost::SHARED_MEMORY
    }

    fn server(protocol: &Arc<Self>) -> Option<Arc<dyn ServerProtocol>> {
        Some(Arc::<Self>::clone(protocol))
    }
}

impl ServerProtocol for Shm {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        endpoint.check_options(&["mode", "any-user"])?;
        let any_user = match endpoint.option("any-user") {
            None | Some("no") => false,
            Some("yes") => true,
            Some(_) => return Err(endpoint.invalid("`any-user` must be yes or no")),
        };
        let (addr, socket) = (super::locate(endpoint)?, super::socket_options(endpoint, settings, any_user)?);
        let options = shm::AcceptorOptions::default().socket(socket).any_user(any_user);
        let opened = shm::Acceptor::open_with(&addr, &options);
        let acceptor = opened.map_err(|error| super::cannot_open(endpoint, &addr, &error))?;
        let addr = acceptor.local_addr()?;
        let address = Address::new(SCHEME, addr.to_string());
        let component = super::describe(SCHEME, &addr, any_user)?
            .ok_or_else(|| endpoint.invalid("this host has no boot id (/proc is not mounted)"))?;
        let components = vec![component.encode().map_err(|error| endpoint.invalid(error))?];
        let published =
            PublishedAddresses { components, addresses: vec![address.clone()], ..PublishedAddresses::default() };
        Listener::over::<shm::Shm>(address, acceptor, published, |stream, _| {
            Ok(super::from(SCHEME, stream.peer_credentials()?))
        })
    }
}
