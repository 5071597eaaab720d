//! The sizes of stubs or skeletons.

use serde::{Deserialize, Serialize};

/// Octets of the compiled code of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// The functions of the stubs, or the skeleton's.
    pub code: u64,
    /// Other functions that they need: marshaling and drop code of their types, and instantiations of
    /// generics for them.
    pub helpers: u64,
    /// Constants of both: tables, and texts such as the names of operations.
    pub tables: u64,
    /// Functions and constants that make TypeCodes, which every engine has alike and the paper does not
    /// count.
    pub type_codes: u64,
}

impl Sizes {
    /// The counted total, without TypeCodes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.code + self.helpers + self.tables
    }
}
