//! Type codes that a thread has decoded recently, by their octets.
//!
//! Messages repeat the types of their `any` values. A type code with the same octets in the same wire form is the same one: it
//! needs no other validation, and no memory. Only those are held that refer to nothing before them, and are short.

use std::cell::RefCell;

use crate::{Decoder, TcKind, TypeCode, Wire};

/// The type codes of a thread: those of the properties and the body of an event.
const ENTRIES: usize = 8;

/// The longest octets of a type code, from its kind on.
const MAX_OCTETS: usize = 256;

/// The octets of the kind, and of the length of the parameters.
const HEADER: usize = 8;

struct Entry {
    octets: Box<[u8]>,
    wire: Wire,
    /// The nesting around it, where it was within the limit.
    depth: u16,
    type_code: TypeCode,
}

/// A ring; the next entry takes the place of the oldest one.
struct Recent {
    entries: [Option<Entry>; ENTRIES],
    next: usize,
}

thread_local! {
    static RECENT: RefCell<Recent> =
        const { RefCell::new(Recent { entries: [const { None }; ENTRIES], next: 0 }) };
}

/// The octets at the decoder's position, from the kind on, if they may be those of a short type code with encapsulated
/// parameters.
pub(super) fn octets<'m>(input: &Decoder<'m>) -> Option<&'m [u8]> {
    let octets = input.rest().get(input.gap(4)..)?;
    let (header, _) = octets.split_first_chunk::<HEADER>()?;
    let [kind, length] = [0, 4].map(|at| {
        let number = u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if input.wire().order.is_swapped() { number.swap_bytes() } else { number }
    });
    // Some of these kinds have other parameters: their octets are never held.
    let is_encapsulated = kind >= TcKind::ObjRef as u32;
    let length = usize::try_from(length).ok().filter(|length| is_encapsulated && (1..=MAX_OCTETS).contains(length))?;
    octets.get(..HEADER + length)
}

/// The type code with these octets, if it was decoded at this depth of nesting or a greater one.
pub(super) fn find(octets: &[u8], input: &Decoder<'_>) -> Option<TypeCode> {
    RECENT.with_borrow(|recent| {
        let is_same =
            |entry: &&Entry| *entry.octets == *octets && entry.wire == input.wire() && input.depth() <= entry.depth;
        recent.entries.iter().flatten().find(is_same).map(|entry| entry.type_code.clone())
    })
}

/// Holds a type code that was decoded from these octets, at this wire form and depth.
pub(super) fn hold(octets: &[u8], (wire, depth): (Wire, u16), type_code: &TypeCode) {
    let entry = Entry { octets: octets.into(), wire, depth, type_code: type_code.clone() };
    let replaced = RECENT.with_borrow_mut(|recent| {
        let at = recent.next;
        recent.next = (at + 1) % ENTRIES;
        recent.entries[at].replace(entry)
    });
    drop(replaced);
}
