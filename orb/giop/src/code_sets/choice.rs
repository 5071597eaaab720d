//! The standard's choice of code sets in full (CORBA 3.3 Part 2, 7.10.2.6).

use spandrel_cdr::{CharSet, GiopVersion, WcharSet};

use super::OwnCodeSets;
use crate::component::CodeSets;

pub(super) fn narrow(own: &OwnCodeSets, server: &CodeSets, is_ours: bool) -> Option<CharSet> {
    let converts = |set: CharSet| own.char_conversion.as_ref().is_none_or(|sets| sets.contains(&set));
    let knows = |set: u32| server.conversion.contains(&set) || server.native == set;
    if server.native == 0 {
        // The server's reference names no code set.
        return Some(CharSet::Latin1);
    }
    if is_ours && converts(CharSet::Utf8) && knows(CharSet::Utf8.number()) {
        return Some(CharSet::Utf8);
    }
    let convertible = |set: u32| (own.known.char_set)(set).filter(|set| converts(*set));
    agree(own, (own.char_set, own.char_set.number()), server, convertible, CharSet::Utf8).map(own.known.standard)
}

pub(super) fn wide(own: &OwnCodeSets, server: &CodeSets, version: GiopVersion) -> WcharSet {
    let fits = |set: &WcharSet| version > GiopVersion::V1_1 || set.is_of_two_octets();
    if server.native == 0 || own.wchar_set == WcharSet::Unknown {
        return WcharSet::Unknown;
    }
    let converts = |set: &WcharSet| own.wchar_conversion.as_ref().is_none_or(|sets| sets.contains(set));
    let convertible =
        |set: u32| (own.known.wchar_set)(set).filter(|set| set.number() != 0 && converts(set) && fits(set));
    // In GIOP 1.1 a native code set of another width cannot be used.
    let native = Some(own.wchar_set).filter(fits).unwrap_or_default();
    agree(own, (native, native.number()), server, convertible, WcharSet::Utf16).unwrap_or(WcharSet::Unknown)
}

/// The first that applies:
/// - the native code set that both sides have;
/// - the server's native code set, if the client converts to it;
/// - the client's native code set, if the server converts to it;
/// - the first that both convert to, in the server's order;
/// - the common fallback, if the two native code sets have characters in common.
///
/// `native` and `number` are the client's native code set and its number.
fn agree<S: Copy>(
    own: &OwnCodeSets,
    (native, number): (S, u32),
    server: &CodeSets,
    convertible: impl Fn(u32) -> Option<S>,
    fallback: S,
) -> Option<S> {
    if number == server.native {
        return Some(native);
    }
    convertible(server.native)
        .or_else(|| server.conversion.contains(&number).then_some(native))
        .or_else(|| server.conversion.iter().find_map(|set| convertible(*set)))
        .or_else(|| (own.known.are_compatible)(number, server.native).then_some(fallback))
}
