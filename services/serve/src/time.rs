//! Time (RFC 868): sends the seconds since 1900 as four octets, the highest first, and closes the connection.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use spandrel::net::ipc::Family;
use spandrel::net::reactor::{Peer, ServiceHandler};
use spandrel_configurator::ServiceObject;

use crate::small_service::SmallService;

/// Seconds from 1900 to 1970.
const SINCE_1900: u64 = 2_208_988_800;

struct Time;

impl<F: Family> ServiceHandler<F> for Time {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.put(&octets(SystemTime::now()))?;
        peer.close();
        Ok(())
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 64]).map(drop)
    }
}

/// The lowest 32 bits: the number begins again in 2036.
fn octets(time: SystemTime) -> [u8; 4] {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() + SINCE_1900;
    (seconds as u32).to_be_bytes()
}

/// The service; its port is 37.
pub(crate) fn service() -> impl ServiceObject {
    SmallService::new("time", 37, || Time, Some(|_| Some(octets(SystemTime::now()).to_vec())))
}
