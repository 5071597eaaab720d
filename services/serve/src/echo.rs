//! Echo (RFC 862): sends back what it gets.

use std::io;

use spandrel::net::ipc::Family;
use spandrel::net::reactor::{Peer, ServiceHandler};
use spandrel_configurator::ServiceObject;

use crate::small_service::SmallService;

struct Echo;

impl<F: Family> ServiceHandler<F> for Echo {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut octets = [0; 16 * 1024];
        match peer.recv(&mut octets)? {
            0 => peer.close(),
            count => peer.put(&octets[..count])?,
        }
        Ok(())
    }
}

/// The service; its port is 7.
pub(crate) fn service() -> impl ServiceObject {
    SmallService::new("echo", 7, || Echo, Some(|octets| Some(octets.to_vec())))
}
