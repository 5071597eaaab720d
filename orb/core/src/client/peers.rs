//! The peers of an ORB's client side: one for each address and code set agreement.

use spandrel_giop::IiopProfile;
use spandrel_giop::TransmissionCodeSets;
use spandrel_sync::{Arc, Mutex};
use spandrel_transport::{Address, SocketSettings};

use super::{ClientConnection, ClientSettings, ConnectionCache, Peer};
use crate::{
    client::{
        datagrams::{DatagramPeers, DatagramSender},
        transport::{ClientProtocol, ClientProtocols},
    },
    diagnostics::statistics::Statistics,
};

/// The address and the code sets chosen from a reference: a connection has one agreement all its life. The last part is
/// the number of a group of references with connections of their own; zero for the connections that all share.
type PeerKey = (Address, Option<TransmissionCodeSets>, u64);

/// The peers that references of one ORB name, sorted by key. Insertions are rare, and the table is small.
#[derive(Debug)]
pub struct PeerTable {
    settings: Arc<ClientSettings>,
    protocols: ClientProtocols,
    statistics: Statistics,
    peers: Mutex<Vec<(PeerKey, Arc<Peer>)>>,
    cache: Arc<ConnectionCache>,
    datagrams: DatagramPeers,
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
            datagrams: DatagramPeers::default(),
        }
    }

    /// The peer of one-way requests by datagram, if they are enabled and the profile offers an address.
    pub(crate) fn datagrams(&self, profile: &IiopProfile) -> Option<Arc<dyn DatagramSender>> {
        (self.settings.open_datagrams?)(&self.datagrams, &self.protocols, profile)
    }

    /// The protocols that reach peers.
    pub(crate) fn protocols(&self) -> &ClientProtocols {
        &self.protocols
    }

    /// Returns the peer at this address and with this agreement, which all references with both share.
    pub(crate) fn peer(
        &self,
        address: Address,
        protocol: &Arc<ClientProtocol>,
        code_sets: Option<TransmissionCodeSets>,
    ) -> Arc<Peer> {
        self.find_or_insert((address, code_sets, 0), protocol, || Arc::clone(&self.settings))
    }

    /// Returns the peer at the address of a shared one with the connections of a group, whose sockets may have other
    /// settings. Calls share one connection.
    pub(crate) fn own_peer(
        &self,
        shared: &Peer,
        code_sets: Option<TransmissionCodeSets>,
        group: u64,
        sockets: Option<&SocketSettings>,
    ) -> Arc<Peer> {
        let sockets = *sockets.unwrap_or(&self.settings.sockets);
        let settings = || Arc::new(ClientSettings { connections_per_peer: 1, sockets, ..(*self.settings).clone() });
        let peer = self.find_or_insert((shared.address().clone(), code_sets, group), shared.protocol(), settings);
        peer.copy_server_version(shared);
        peer
    }

    /// The settings of the sockets of shared connections.
    pub(crate) fn socket_settings(&self) -> SocketSettings {
        self.settings.sockets
    }

    /// Removes the peers of a group; connections close when their last call ends.
    pub(crate) fn remove_group(&self, group: u64) {
        let removed: Vec<_> = self.peers.lock().extract_if(.., |((_, _, number), _)| *number == group).collect();
        // Their connections end outside of the lock.
        drop(removed);
    }

    fn find_or_insert(
        &self,
        key: PeerKey,
        protocol: &Arc<ClientProtocol>,
        settings: impl FnOnce() -> Arc<ClientSettings>,
    ) -> Arc<Peer> {
        let search = |peers: &[(PeerKey, Arc<Peer>)]| peers.binary_search_by(|(known, _)| known.cmp(&key));
        let mut peers = self.peers.lock();
        if let Ok(at) = search(&peers) {
            return Arc::clone(&peers[at].1);
        }
        // Peers without a reference are removed here, so that the table is bounded by its use.
        let removed: Vec<_> =
            peers.extract_if(.., |(_, peer)| Arc::strong_count(peer) == 1 && !peer.accepts_callbacks()).collect();
        let (protocol, settings, cache) = (Arc::clone(protocol), settings(), Arc::clone(&self.cache));
        let peer = Arc::new(Peer::new(key.0.clone(), protocol, settings, cache, self.statistics.clone()));
        if let Err(at) = search(&peers) {
            peers.insert(at, (key, Arc::clone(&peer)));
        }
        drop(peers);
        // Their connections end outside of the lock.
        drop(removed);
        if let Some(limits) = self.settings.limits {
            (limits.join)(&self.cache, &peer);
        }
        peer
    }

    /// The number of asynchronous calls that wait for connections.
    pub(crate) fn parked(&self) -> usize {
        self.all().iter().map(|peer| peer.parked()).sum()
    }

    /// Removes all peers; connections close when their last call ends.
    pub(crate) fn clear(&self) {
        self.cache.maintenance_thread().close();
        let peers = std::mem::take(&mut *self.peers.lock());
        // Their connections end outside of the lock.
        peers.iter().for_each(|(_, peer)| peer.forget_connections());
    }

    /// Has the listen points sent again on all connections, because there are new ones.
    pub(crate) fn resend_contexts(&self) {
        self.connections().iter().for_each(|connection| connection.resend_listen_points());
    }

    /// The servers that the ORB has called and not yet forgotten.
    pub(crate) fn all(&self) -> Vec<Arc<Peer>> {
        self.peers.lock().iter().map(|(_, peer)| Arc::clone(peer)).collect()
    }

    /// The connections to all servers, idle ones included.
    pub fn connections(&self) -> Vec<Arc<ClientConnection>> {
        self.all().iter().flat_map(|peer| peer.connections()).collect()
    }
}

impl Drop for PeerTable {
    fn drop(&mut self) {
        self.cache.maintenance_thread().close();
    }
}
