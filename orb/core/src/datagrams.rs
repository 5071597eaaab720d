//! One-ways by datagram: what a client does where a server reads them.
//!
//! Nobody learns whether a datagram arrives, so that this is done only where the program has chosen it ([`OrbBuilder::datagrams`](crate::OrbBuilder::datagrams)),
//! and for requests that nobody answers. What does not fit into a datagram, and what the system does not take, goes by a connection.

use std::io::IoSlice;

use spandrel_cdr::Encoder;
use spandrel_giop::{
    HEADER_LEN,
    datagram::{DatagramAddress, LIGHT_HEADER_LEN, MAX_DATAGRAM, light_header},
};
use spandrel_ipc::inet;
use spandrel_sync::{Arc, Mutex, Weak};

/// Where a server reads datagrams, and a socket that sends there.
#[derive(Debug)]
pub(crate) struct DatagramPeer {
    address: DatagramAddress,
    /// None once it was found that there can be none.
    socket: Option<inet::ConnectedDgram>,
}

/// The sockets that references need, one for each address.
#[derive(Debug, Default)]
pub(crate) struct DatagramPeers(Mutex<Vec<Weak<DatagramPeer>>>);

impl DatagramPeers {
    /// The peer at an address, the same for all that name it.
    pub(crate) fn of(&self, address: DatagramAddress) -> Arc<DatagramPeer> {
        if let Some(peer) = self.find(&address) {
            return peer;
        }
        // A name is looked up outside of the lock. Who does so at the same time has a socket more.
        let peer = Arc::new(DatagramPeer::new(address));
        self.0.lock().push(Arc::downgrade(&peer));
        peer
    }

    fn find(&self, address: &DatagramAddress) -> Option<Arc<DatagramPeer>> {
        let mut known = self.0.lock();
        known.retain(|peer| peer.strong_count() > 0);
        known.iter().filter_map(Weak::upgrade).find(|peer| peer.address == *address)
    }
}

impl DatagramPeer {
    fn new(address: DatagramAddress) -> Self {
        let open = || {
            let there =
                *inet::Addr::resolve(&address.host, address.port)?.first().ok_or(std::io::ErrorKind::NotFound)?;
            inet::ConnectedDgram::connect(&there)
        };
        let socket = open().inspect_err(|error| {
            tracing::warn!(host = address.host, port = address.port, %error, "no datagrams can be sent there");
        });
        Self { socket: socket.ok(), address }
    }

    /// Sends a request; false if it must go another way.
    pub(crate) fn send(&self, request: &Encoder<'_>) -> bool {
        let most = (self.address.max_octets as usize).min(MAX_DATAGRAM);
        let Some(socket) = &self.socket else { return false };
        if request.position() - HEADER_LEN + LIGHT_HEADER_LEN > most {
            return false;
        }
        let parts = request.parts();
        let Some((first, more)) = parts.split_first() else { return false };
        // Headers are written and never lent, so that they stand in the first part.
        let Some((header, rest)) = first.split_first_chunk::<HEADER_LEN>() else { return false };
        let Some(light) = light_header(header) else { return false };
        let mut slices = vec![IoSlice::new(&light), IoSlice::new(rest)];
        slices.extend(more.iter().map(|part| IoSlice::new(part)));
        socket.try_send_v(&slices).is_ok()
    }
}
