//! An empty table of further code sets, for builds without the feature `code-sets`.

use crate::osf_registry::Named;

/// A code set of the table, which has none without the feature `code-sets`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CodeSet {}

impl CodeSet {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        std::iter::empty()
    }

    pub(crate) fn from_number(_: u32) -> Option<Self> {
        None
    }

    pub(crate) fn from_name(_: &str) -> Option<Self> {
        None
    }

    pub(crate) fn named(self) -> Named {
        match self {}
    }

    pub(crate) fn is_utf8(self) -> bool {
        match self {}
    }

    pub(crate) fn width(self) -> Option<usize> {
        match self {}
    }

    pub(crate) fn encode(self, _: &str) -> Result<Vec<u8>, char> {
        match self {}
    }

    pub(crate) fn decode(self, _: &[u8]) -> Option<String> {
        match self {}
    }
}
