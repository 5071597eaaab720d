//! Character generator (RFC 864): sends lines of 72 characters as long as the client reads them. It answers no datagrams,
//! since its answers would be longer than the questions, which anyone can send in the name of another.

use std::io;

use spandrel::net::ipc::Family;
use spandrel::net::reactor::{Peer, ServiceHandler};
use spandrel_configurator::ServiceObject;

use crate::small_service::SmallService;

/// The printable characters of ASCII, from `!` to `~`.
const CHARACTERS: usize = 94;
/// The characters of a line.
const LINE: usize = 72;
/// The lines that are sent before other handlers are dispatched.
const LINES: usize = 1_000;

#[derive(Default)]
struct Chargen {
    first: usize,
}

impl Chargen {
    fn send<F: Family>(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut lines = Vec::with_capacity(LINES * (LINE + 2));
        for _ in 0..LINES {
            lines.extend((0..LINE).map(|at| b'!' + ((self.first + at) % CHARACTERS) as u8));
            lines.extend(b"\r\n");
            self.first = (self.first + 1) % CHARACTERS;
        }
        peer.put(&lines)?;
        peer.notify_sent();
        Ok(())
    }
}

impl<F: Family> ServiceHandler<F> for Chargen {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.send(peer)
    }

    fn handle_sent(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.send(peer)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        if peer.recv(&mut [0; 1024])? == 0 {
            peer.close();
        }
        Ok(())
    }
}

/// The service; its port is 19.
pub(crate) fn service() -> impl ServiceObject {
    SmallService::new("chargen", 19, Chargen::default, None)
}
