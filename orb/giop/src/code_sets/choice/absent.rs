//! The choice between the few code sets that are always known, in the standard's order (CORBA 3.3 Part 2,
//! 7.10.2.6), with the common fallback at its end.
//!
//! Whether the fallback has characters in common with the server's code set is not checked: the character
//! sets of other code sets are left out.

use spandrel_cdr::{CharSet, GiopVersion, WcharSet};

use super::OwnCodeSets;
use crate::component::CodeSets;

pub(super) fn narrow(own: &OwnCodeSets, server: &CodeSets, is_ours: bool) -> Option<CharSet> {
    let knows = |set: CharSet| server.conversion.contains(&set.number()) || server.native == set.number();
    Some(match CharSet::from_number(server.native) {
        _ if server.native == 0 => CharSet::Latin1,
        _ if is_ours && knows(CharSet::Utf8) => CharSet::Utf8,
        Some(native) => native,
        None if knows(own.char_set) => own.char_set,
        None if knows(CharSet::Latin1) => CharSet::Latin1,
        None => CharSet::Utf8,
    })
}

pub(super) fn wide(own: &OwnCodeSets, server: &CodeSets, _: GiopVersion) -> WcharSet {
    if server.native == 0 { WcharSet::Unknown } else { own.wchar_set }
}
