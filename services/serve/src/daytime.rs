//! Daytime (RFC 867): sends the time as text, and closes the connection. The text is that of RFC 3339, in UTC.

use std::io;
use std::time::SystemTime;

use spandrel::net::ipc::Family;
use spandrel::net::reactor::{Peer, ServiceHandler};
use spandrel_configurator::ServiceObject;

use crate::small_service::SmallService;

struct Daytime;

impl<F: Family> ServiceHandler<F> for Daytime {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.put(text().as_bytes())?;
        peer.close();
        Ok(())
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 64]).map(drop)
    }
}

/// The time as `2026-11-25T12:34:56Z`, with an end of line.
fn text() -> String {
    format!("{}\r\n", humantime::format_rfc3339_seconds(SystemTime::now()))
}

/// The service; its port is 13.
pub(crate) fn service() -> impl ServiceObject {
    SmallService::new("daytime", 13, || Daytime, Some(|_| Some(text().into_bytes())))
}
