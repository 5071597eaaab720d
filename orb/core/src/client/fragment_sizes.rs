//! From which length on messages are sent in fragments: to whom.

use spandrel_transport::Address;

/// Octets from which on messages are sent in fragments, for all peers and for some.
#[derive(Clone, Debug)]
pub(crate) struct FragmentSizes {
    usual: usize,
    /// By host, or by host and port; who was named last counts.
    #[cfg(feature = "fragments")]
    of_peers: Vec<(String, usize)>,
}

impl Default for FragmentSizes {
    fn default() -> Self {
        Self {
            usual: usize::MAX,
            #[cfg(feature = "fragments")]
            of_peers: Vec::new(),
        }
    }
}

impl FragmentSizes {
    #[cfg(feature = "fragments")]
    pub(crate) fn set(&mut self, octets: usize) {
        self.usual = octets;
    }

    #[cfg(feature = "fragments")]
    pub(crate) fn set_for(&mut self, peer: String, octets: usize) {
        self.of_peers.push((peer, octets));
    }

    /// That of a peer.
    pub(crate) fn of(&self, address: &Address) -> usize {
        #[cfg(feature = "fragments")]
        if let Some((_, octets)) = self.of_peers.iter().rev().find(|(peer, _)| is_named(address, peer)) {
            return *octets;
        }
        #[cfg(not(feature = "fragments"))]
        let _ = address;
        self.usual
    }
}

#[cfg(feature = "fragments")]
fn is_named(address: &Address, peer: &str) -> bool {
    address.address() == peer || address.host_and_port().is_some_and(|(host, _)| host == peer)
}

#[cfg(all(test, feature = "fragments"))]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_size_is_found_by_address_or_by_host() {
        let mut sizes = FragmentSizes::default();
        sizes.set(1000);
        sizes.set_for("host".into(), 100);
        sizes.set_for("host:2".into(), 200);
        sizes.set_for("::1".into(), usize::MAX);
        let of = |host, port| sizes.of(&Address::at_port("iiop", host, port));
        assert_eq!([of("host", 1), of("host", 2), of("other", 2), of("::1", 2)], [100, 200, 1000, usize::MAX]);
        assert_eq!(sizes.of(&Address::new("uds", "/run/host")), 1000);
        sizes.set_for("/run/host".into(), 50);
        assert_eq!(sizes.of(&Address::new("uds", "/run/host")), 50);
    }
}
