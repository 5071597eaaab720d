//! Discard (RFC 863): throws away what it gets.

use std::io;

use spandrel::net::ipc::Family;
use spandrel::net::reactor::{Peer, ServiceHandler};
use spandrel_configurator::ServiceObject;

use crate::small_service::SmallService;

struct Discard;

impl<F: Family> ServiceHandler<F> for Discard {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        if peer.recv(&mut [0; 16 * 1024])? == 0 {
            peer.close();
        }
        Ok(())
    }
}

/// The service; its port is 9.
pub(crate) fn service() -> impl ServiceObject {
    SmallService::new("discard", 9, || Discard, Some(|_| None))
}
