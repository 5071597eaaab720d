//! One-ways by datagram: the client's side.
//!
//! The sender does not learn whether a datagram arrives. So datagrams are only used if the program enables
//! them ([`OrbBuilder::datagrams`](crate::OrbBuilder::datagrams)), and only for requests without a reply. A
//! request that does not fit into a datagram, or that the system does not accept, is sent over a connection.

use std::io::IoSlice;

use spandrel_cdr::Encoder;
use spandrel_giop::{
    HEADER_LEN, IiopProfile,
    datagram::{DatagramAddress, LIGHT_HEADER_LEN, MAX_DATAGRAM, light_header},
};
use spandrel_ipc::inet;
use spandrel_sync::{Arc, Mutex, Weak};

use crate::client::transport::ClientProtocols;

/// The address at which a server reads datagrams, and a socket for it.
#[derive(Debug)]
struct DatagramPeer {
    address: DatagramAddress,
    /// `None` if it could not be opened.
    socket: Option<inet::ConnectedDgram>,
}

/// The sockets of references, one for each address.
#[derive(Debug, Default)]
pub(crate) struct DatagramPeers(Mutex<Vec<Weak<DatagramPeer>>>);

/// Sends requests by datagram.
pub(crate) trait DatagramSender: Send + Sync + std::fmt::Debug {
    /// Sends an encoded request; returns false if it must be sent over a connection.
    fn send(&self, request: &Encoder<'_>) -> bool;
}

/// Returns the sender for a profile that offers an address for datagrams. An ORB has the function if datagrams
/// are enabled; other programs do not contain it.
pub(crate) type OpenDatagrams = fn(&DatagramPeers, &ClientProtocols, &IiopProfile) -> Option<Arc<dyn DatagramSender>>;

impl DatagramPeers {
    /// The sender for a profile, if the profile offers an address that the rules permit.
    pub(crate) fn open(&self, protocols: &ClientProtocols, profile: &IiopProfile) -> Option<Arc<dyn DatagramSender>> {
        Some(self.peer_at(protocols.datagrams(profile)?))
    }

    /// Returns the peer at an address, the same for all references with it.
    fn peer_at(&self, address: DatagramAddress) -> Arc<DatagramPeer> {
        if let Some(peer) = self.find(&address) {
            return peer;
        }
        // A name is resolved outside of the lock. Two threads that do so at once make two sockets.
        let peer = Arc::new(DatagramPeer::new(address));
        self.0.lock().push(Arc::downgrade(&peer));
        peer
    }

    fn find(&self, address: &DatagramAddress) -> Option<Arc<DatagramPeer>> {
        let mut peers = self.0.lock();
        peers.retain(|peer| peer.strong_count() > 0);
        peers.iter().filter_map(Weak::upgrade).find(|peer| peer.address == *address)
    }
}

impl DatagramPeer {
    fn new(address: DatagramAddress) -> Self {
        let open = || {
            let resolved =
                *inet::Addr::resolve(&address.host, address.port)?.first().ok_or(std::io::ErrorKind::NotFound)?;
            inet::ConnectedDgram::connect(&resolved)
        };
        let socket = open().inspect_err(|error| {
            tracing::warn!(host = address.host, port = address.port, %error, "a socket for datagrams could not be opened");
        });
        Self { socket: socket.ok(), address }
    }
}

impl DatagramSender for DatagramPeer {
    fn send(&self, request: &Encoder<'_>) -> bool {
        let most = (self.address.max_octets as usize).min(MAX_DATAGRAM);
        let Some(socket) = &self.socket else { return false };
        if request.position() - HEADER_LEN + LIGHT_HEADER_LEN > most {
            return false;
        }
        let parts = request.parts();
        let Some((first, more)) = parts.split_first() else { return false };
        // The header was written by the encoder and not borrowed, so that it is in the first part.
        let Some((header, rest)) = first.split_first_chunk::<HEADER_LEN>() else { return false };
        let Some(light) = light_header(header) else { return false };
        let mut slices = vec![IoSlice::new(&light), IoSlice::new(rest)];
        slices.extend(more.iter().map(|part| IoSlice::new(part)));
        socket.try_send_v(&slices).is_ok()
    }
}
