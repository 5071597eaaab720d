//! Bounds of sets and services.

/// The most that one set holds. More is IMP_LIMIT.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The number of properties, also in a request that changes several (default 10,000).
    pub properties: usize,
    /// The longest name of a property, in octets (default 1,024).
    pub name: usize,
    /// The octets of all names and values, and of the constraints, with their types as CDR (default 16 MiB).
    pub octets: usize,
    /// The types and properties in the constraints of a set, each (default 1,000).
    pub constraints: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { properties: 10_000, name: 1_024, octets: 16 << 20, constraints: 1_000 }
    }
}

/// The most that a property service holds. More is IMP_LIMIT.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServiceLimits {
    /// The number of sets (default 100,000).
    pub sets: usize,
    /// The number of sets that peers with one address create (default 50,000).
    pub sets_of_client: usize,
    /// The octets of all sets (default 1 GiB), counted as [`Limits::octets`].
    pub octets: usize,
    /// The most that one property set holds.
    pub set: Limits,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self { sets: 100_000, sets_of_client: 50_000, octets: 1 << 30, set: Limits::default() }
    }
}
