//! The lengths beyond which messages are sent in fragments, by peer.

use spandrel_transport::Address;

use super::connection::{SendFragmented, send_fragmented};

/// Looks up the size for a peer, and the function that divides longer messages.
type FindSize = fn(&FragmentSizes, &Address) -> (usize, SendFragmented);

/// The fragment sizes for all peers and for single ones.
#[derive(Clone, Debug)]
pub(crate) struct FragmentSizes {
    usual: usize,
    /// Set with the first size. A program that sets no size does not contain it.
    find: Option<FindSize>,
    /// By host, or by host and port; the last entry that matches counts.
    of_peers: Vec<(String, usize)>,
}

impl Default for FragmentSizes {
    fn default() -> Self {
        Self { usual: usize::MAX, find: None, of_peers: Vec::new() }
    }
}

impl FragmentSizes {
    pub(crate) fn set(&mut self, octets: usize) {
        self.usual = octets;
        self.find = Some(|sizes, address| (sizes.size_to(address), send_fragmented));
    }

    pub(crate) fn set_for(&mut self, peer: String, octets: usize) {
        self.of_peers.push((peer, octets));
        self.find = Some(|sizes, address| (sizes.size_to(address), send_fragmented));
    }

    /// The size for a peer, and the function that divides longer messages.
    pub(crate) fn of_peer(&self, address: &Address) -> Option<(usize, SendFragmented)> {
        self.find.map(|find| find(self, address))
    }

    fn size_to(&self, address: &Address) -> usize {
        if let Some((_, octets)) = self.of_peers.iter().rev().find(|(peer, _)| is_named(address, peer)) {
            return *octets;
        }
        self.usual
    }
}

fn is_named(address: &Address, peer: &str) -> bool {
    address.address() == peer || address.host_and_port().is_some_and(|(host, _)| host == peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_size_is_found_by_address_or_by_host() {
        let mut sizes = FragmentSizes::default();
        sizes.set(1000);
        sizes.set_for("host".into(), 100);
        sizes.set_for("host:2".into(), 200);
        sizes.set_for("::1".into(), usize::MAX);
        let size_to = |host, port| sizes.size_to(&Address::at_port("iiop", host, port));
        assert_eq!(
            [size_to("host", 1), size_to("host", 2), size_to("other", 2), size_to("::1", 2)],
            [100, 200, 1000, usize::MAX]
        );
        assert_eq!(sizes.size_to(&Address::new("uds", "/run/host")), 1000);
        sizes.set_for("/run/host".into(), 50);
        assert_eq!(sizes.size_to(&Address::new("uds", "/run/host")), 50);
    }
}
