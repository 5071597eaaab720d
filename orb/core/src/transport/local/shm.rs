//! GIOP through shared memory.

use std::{io, time::Duration};

use spandrel_giop::{IiopProfile, local_address::LocalAddress};
use spandrel_ipc::{Family, shm};
use spandrel_sync::Arc;

use super::{addresses, host, is_here};
use crate::transport::{Place, PlaceError, Protocol, SocketSettings, Transport, cost};
#[cfg(feature = "server")]
use crate::{
    Endpoint,
    transport::{Listener, Published},
};

const SCHEME: &str = "shm";

/// GIOP through memory that both processes map: `shm://name`. Only processes of one user share memory unless the endpoint says otherwise
/// (`shm://name|any-user=yes`).
///
/// The sizes of sockets' queues are those of the rings, rounded up to powers of two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shm;

impl Protocol for Shm {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn parse_place(&self, text: &str) -> Result<Place, PlaceError> {
        super::parse(SCHEME, text)
    }

    fn places(&self, profile: &IiopProfile) -> Vec<Place> {
        // Whom the server would refuse must not try: a refusal shows only after the request is written.
        let may = |offered: &LocalAddress| offered.any_user || offered.user == host::user() || host::user() == 0;
        let offered = addresses(SCHEME, profile).into_iter().filter(|offered| may(offered) && is_here(offered));
        offered.filter_map(|offered| self.parse_place(&offered.address).ok()).collect()
    }

    fn connect(
        &self,
        place: &Place,
        timeout: Option<Duration>,
        settings: &SocketSettings,
    ) -> io::Result<Arc<dyn Transport>> {
        let mut family = shm::Shm::default();
        if let Some(octets) = settings.send_queue {
            family.connector = family.connector.send_queue(octets);
        }
        if let Some(octets) = settings.recv_queue {
            family.connector = family.connector.recv_queue(octets);
        }
        Ok(Arc::new(family.connect(&place.address().parse()?, timeout)?))
    }

    fn cost(&self, _: &Place) -> u32 {
        cost::SHARED_MEMORY
    }

    #[cfg(feature = "server")]
    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        endpoint.check_options(&["mode", "any-user"])?;
        let any_user = match endpoint.option("any-user") {
            None | Some("no") => false,
            Some("yes") => true,
            Some(_) => return Err(endpoint.invalid("`any-user` is yes or no")),
        };
        let (addr, socket) = (super::locate(endpoint)?, super::socket_options(endpoint, settings)?);
        let options = shm::AcceptorOptions::default().socket(socket).any_user(any_user);
        let opened = shm::Acceptor::open_with(&addr, &options);
        let acceptor = opened.map_err(|error| super::cannot_open(endpoint, &addr, &error))?;
        let addr = acceptor.local_addr()?;
        let place = Place::new(SCHEME, addr.to_string());
        let address = super::describe(SCHEME, &addr, any_user)?
            .ok_or_else(|| endpoint.invalid("the system does not say which host this is (/proc is not there)"))?;
        let components = vec![address.encode().map_err(|error| endpoint.invalid(error))?];
        let published = Published { components, places: vec![place.clone()], ..Published::default() };
        Ok(Listener::over::<shm::Shm>(place, acceptor, published, |stream, _| {
            Ok(super::from(SCHEME, stream.peer_credentials()?))
        }))
    }
}
