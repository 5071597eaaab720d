//! Bounds of a trader.

/// The most that a trader holds. More is IMP_LIMIT.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The number of offers (default 10,000,000).
    pub offers: usize,
    /// The number of proxy offers (default 1,000). A query may call the targets of all of them.
    pub proxies: usize,
    /// The number of service types (default 100,000).
    pub types: usize,
    /// The properties of an offer or a service type, and the supertypes of the latter (default 1,000).
    pub properties: usize,
    /// The octets of an offer's names, values and reference (default 1 MiB).
    pub offer_octets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { offers: 10_000_000, proxies: 1_000, types: 100_000, properties: 1_000, offer_octets: 1 << 20 }
    }
}
