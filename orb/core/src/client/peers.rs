//! All peers of an ORB's client side: whoever names the same place gets the same peer.

#[cfg(feature = "server")]
use std::time::Duration;

use spandrel_giop::TransmissionCodeSets;
use spandrel_sync::{Arc, Mutex};
use spandrel_transport::Address;
#[cfg(any(feature = "asynchronous", feature = "server"))]
use spandrel_transport::Deadline;

#[cfg(feature = "server")]
use super::ClientConnection;
#[cfg(feature = "asynchronous")]
use super::{CallFailure, all};
use super::{ClientSettings, ConnectionCache, Peer};
use crate::{
    statistics::Statistics,
    transport::{ClientProtocol, ClientProtocols},
};

/// Where it is, and what was chosen from the code sets that a reference names: a connection has one agreement all its life.
type PeerKey = (Address, Option<TransmissionCodeSets>);

/// All peers that references of one ORB name, in the order of their keys: a table that is seldom added to, and small in every sense.
#[derive(Debug)]
pub(crate) struct PeerTable {
    settings: Arc<ClientSettings>,
    protocols: ClientProtocols,
    statistics: Statistics,
    peers: Mutex<Vec<(PeerKey, Arc<Peer>)>>,
    cache: Arc<ConnectionCache>,
    #[cfg(feature = "server")]
    datagrams: crate::datagrams::DatagramPeers,
}

impl PeerTable {
    pub(crate) fn new(settings: ClientSettings, protocols: ClientProtocols, statistics: Statistics) -> Self {
        let cache = ConnectionCache::new(settings.cache);
        Self {
            settings: Arc::new(settings),
            protocols,
            statistics,
            peers: Mutex::default(),
            cache,
            #[cfg(feature = "server")]
            datagrams: crate::datagrams::DatagramPeers::default(),
        }
    }

    /// Where requests that nobody answers may go by datagram, if that is wanted.
    #[cfg(feature = "server")]
    pub(crate) fn datagrams(
        &self,
        profile: &spandrel_giop::IiopProfile,
    ) -> Option<Arc<crate::datagrams::DatagramPeer>> {
        let address = self.settings.sends_datagrams.then(|| self.protocols.datagrams(profile))??;
        Some(self.datagrams.of(address))
    }

    /// The ways there are to reach peers.
    pub(crate) fn protocols(&self) -> &ClientProtocols {
        &self.protocols
    }

    /// The peer at this place and with this agreement, the same for everybody who names it so.
    pub(crate) fn peer(
        &self,
        address: Address,
        protocol: &Arc<ClientProtocol>,
        code_sets: Option<TransmissionCodeSets>,
    ) -> Arc<Peer> {
        let key = (address, code_sets);
        let mut peers = self.peers.lock();
        if let Ok(at) = peers.binary_search_by(|(known, _)| known.cmp(&key)) {
            return Arc::clone(&peers[at].1);
        }
        // Peers that no reference names any more are forgotten here, so that the table is bounded by what is in use.
        let forgotten: Vec<_> =
            peers.extract_if(.., |(_, peer)| Arc::strong_count(peer) == 1 && !peer.may_call()).collect();
        let (protocol, settings, cache) = (Arc::clone(protocol), Arc::clone(&self.settings), Arc::clone(&self.cache));
        let peer = Arc::new(Peer::new(key.0.clone(), protocol, settings, cache, self.statistics.clone()));
        let at = peers.partition_point(|(known, _)| *known < key);
        peers.insert(at, (key, Arc::clone(&peer)));
        drop(peers);
        // Their connections end outside of the lock.
        drop(forgotten);
        if let Some(limits) = self.settings.limits {
            (limits.join)(&self.cache, &peer);
        }
        peer
    }

    /// How many asynchronous calls wait for connections.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn parked(&self) -> usize {
        self.peers.lock().iter().map(|(_, peer)| peer.parked()).sum()
    }

    /// Forgets all peers; connections close when their last call ends.
    pub(crate) fn clear(&self) {
        self.cache.maintenance_thread().close();
        let peers = std::mem::take(&mut *self.peers.lock());
        // Their connections end outside of the lock.
        peers.iter().for_each(|(_, peer)| peer.forget_connections());
    }

    /// Tells those that may call this side that they may no longer, and gives them so long to hear it.
    #[cfg(feature = "server")]
    pub(crate) fn send_close(&self, patience: Duration) {
        let mut receiver = self.connections();
        receiver.retain(|connection| connection.send_close());
        let deadline = Deadline::after(patience);
        receiver.iter().for_each(|connection| connection.await_end(&deadline));
    }

    /// There is something to say on all connections that there was not before.
    #[cfg(feature = "server")]
    pub(crate) fn resend_contexts(&self) {
        self.connections().iter().for_each(|connection| connection.resend_listen_points());
    }

    #[cfg(feature = "server")]
    fn connections(&self) -> Vec<Arc<ClientConnection>> {
        self.peers.lock().iter().flat_map(|(_, peer)| peer.connections()).collect()
    }
}

impl Drop for PeerTable {
    fn drop(&mut self) {
        self.cache.maintenance_thread().close();
    }
}

#[cfg(feature = "asynchronous")]
impl PeerTable {
    /// Has everything written that is buffered.
    pub(crate) fn flush(&self, deadline: Option<&Deadline>) -> Result<(), CallFailure> {
        let peers: Vec<_> = self.peers.lock().iter().map(|(_, peer)| Arc::clone(peer)).collect();
        all(peers.iter().map(|peer| peer.flush(deadline)))
    }
}
