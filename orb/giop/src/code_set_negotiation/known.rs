//! The code sets supported by a program: all of CDR's table, or the few that need no table.

use std::fmt;

use spandrel_cdr::{CharSet, WcharSet};

use crate::osf_registry;

/// The code sets supported by a program, and the relations between code sets for negotiation.
///
/// A value is [`ALL_CODE_SETS`] or [`BASIC_CODE_SETS`]. A program that names only the latter does not contain
/// the tables.
pub struct KnownCodeSets {
    pub(super) char_set: fn(u32) -> Option<CharSet>,
    pub(super) wchar_set: fn(u32) -> Option<WcharSet>,
    /// The code set in its standard meaning ([`CharSet::standard`]).
    pub(super) standard: fn(CharSet) -> CharSet,
    /// Whether two code sets of the OSF registry have characters in common.
    pub(super) are_compatible: fn(u32, u32) -> bool,
}

/// All supported code sets, with the OSF registry.
pub static ALL_CODE_SETS: KnownCodeSets = KnownCodeSets {
    char_set: CharSet::from_number,
    wchar_set: WcharSet::from_number,
    standard: CharSet::standard,
    are_compatible: osf_registry::are_compatible,
};

/// ISO 8859-1, ASCII, UTF-8 and UTF-16. Any two code sets are assumed to have characters in common; a server
/// rejects text that it cannot convert.
pub static BASIC_CODE_SETS: KnownCodeSets = KnownCodeSets {
    char_set: CharSet::basic,
    wchar_set: WcharSet::basic,
    standard: |set| set,
    are_compatible: |_, _| true,
};

impl PartialEq for KnownCodeSets {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for KnownCodeSets {}

impl fmt::Debug for KnownCodeSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownCodeSets").finish_non_exhaustive()
    }
}
