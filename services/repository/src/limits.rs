//! The key and the limits of a repository.

/// The plain key of the repository, and its name as an initial reference (CORBA 3.3 Part 1, 8.5.2).
pub const KEY: &str = "InterfaceRepository";

/// The limits of a repository. A definition beyond one is refused with IMP_LIMIT.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most definitions, types without a name included (default 1,000,000).
    pub max_definitions: usize,
    /// The longest repository id in octets (default 4,096).
    pub max_id: usize,
    /// The longest version in octets (default 1,024).
    pub max_name: usize,
    /// The longest documentation of a definition in octets (default 1 MiB).
    pub max_documentation: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_definitions: 1_000_000, max_id: 4_096, max_name: 1_024, max_documentation: 1 << 20 }
    }
}
