//! Wide characters and strings: `char`, [`WString`] and their UTF-16 on the wire (CORBA 3.3 Part 2, 9.3.1.6 and 9.3.2.7).
//!
//! | GIOP | `wchar` | `wstring` |
//! | --- | --- | --- |
//! | 1.0 | none | none |
//! | 1.1 | one code unit in the message's byte order | length in code units with the NUL, code units, NUL |
//! | 1.2 | an octet with the length in octets, octets | length in octets, octets without NUL |
//!
//! In 1.2, UTF-16 without a byte order mark is big-endian whatever the message's order is. We write as omniORB does:
//! strings in the message's order behind a mark, characters big-endian without one. Both forms of both are read.

use std::{borrow::Borrow, fmt, ops::Deref};

use crate::{
    BoundedString, ByteOrder, CdrError, Decode, Decoder, Encode, Encoder, GiopVersion, OverBound, WcharSet, Wire,
};

/// The byte order mark, and how it looks in the wrong order.
const BOM: u16 = 0xfeff;
const SWAPPED_BOM: u16 = 0xfffe;

/// How wide characters look in the version in force.
#[derive(Clone, Copy)]
enum Form {
    /// Code units of two octets, aligned, in the message's order.
    Units,
    /// Counted octets.
    Octets,
}

fn form(wire: Wire) -> Result<Form, CdrError> {
    match wire.wchar_set {
        _ if wire.version < GiopVersion::V1_1 => Err(CdrError::WideInGiop10),
        WcharSet::Unknown => Err(CdrError::NoWcharSet),
        WcharSet::Utf16 if wire.version == GiopVersion::V1_1 => Ok(Form::Units),
        WcharSet::Utf16 => Ok(Form::Octets),
    }
}

pub(crate) fn encode(out: &mut Encoder<'_>, value: &str) -> Result<(), CdrError> {
    let form = form(out.wire())?;
    out.note_code_sets();
    if value.contains('\0') {
        return Err(CdrError::NulInString);
    }
    let units = value.encode_utf16().count();
    match form {
        Form::Units => {
            out.len(units + 1)?;
            value.encode_utf16().chain([0]).for_each(|unit| out.u16(unit));
        }
        Form::Octets if units == 0 => out.len(0)?,
        Form::Octets => {
            out.len((units + 1).checked_mul(2).ok_or(CdrError::TooLong { len: units })?)?;
            std::iter::once(BOM).chain(value.encode_utf16()).for_each(|unit| out.u16(unit));
        }
    }
    Ok(())
}

pub(crate) fn encode_char(out: &mut Encoder<'_>, value: char) -> Result<(), CdrError> {
    let form = form(out.wire())?;
    out.note_code_sets();
    let units = &mut [0; 2];
    let units = value.encode_utf16(units);
    match (form, &*units) {
        (Form::Units, [unit]) => out.u16(*unit),
        (Form::Units, _) => return Err(CdrError::NotRepresentable(value)),
        (Form::Octets, units) => {
            out.u8(if units.len() == 1 { 2 } else { 4 });
            units.iter().for_each(|unit| out.octets(&unit.to_be_bytes()));
        }
    }
    Ok(())
}

pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<String, CdrError> {
    let text = match form(input.wire())? {
        Form::Units => terminated_units(input)?,
        Form::Octets => {
            let octets = input.octet_sequence()?;
            let (octets, order) = split_mark(pairs(octets)?);
            join(octets.iter().map(|octets| unit(*octets, order)))?
        }
    };
    if text.contains('\0') { Err(CdrError::StrayNul) } else { Ok(text) }
}

/// The text of a GIOP 1.1 string. A length of zero is accepted as the empty string, as for narrow strings.
fn terminated_units(input: &mut Decoder<'_>) -> Result<String, CdrError> {
    let len = input.sequence_len(2)?;
    let order = input.wire().order;
    if len == 0 {
        return Ok(String::new());
    }
    input.align(2)?;
    let (last, units) = pairs(input.take(len * 2)?)?.split_last().expect("the length is not zero");
    if *last != [0, 0] {
        return Err(CdrError::UnterminatedString);
    }
    join(units.iter().map(|octets| unit(*octets, order)))
}

pub(crate) fn decode_char(input: &mut Decoder<'_>) -> Result<char, CdrError> {
    if let Form::Units = form(input.wire())? {
        return char::from_u32(u32::from(input.u16()?)).ok_or(CdrError::NotText("UTF-16"));
    }
    let len = usize::from(input.u8()?);
    let units = pairs(input.take(len)?)?;
    // A mark alone is the character U+FEFF: there is nothing that it could mark.
    let (units, order) = if units.len() > 1 { split_mark(units) } else { (units, ByteOrder::Big) };
    if units.is_empty() || units.len() > 2 {
        return Err(CdrError::Malformed("a wide character must have 2, 4 or 6 octets"));
    }
    let mut chars = char::decode_utf16(units.iter().map(|octets| unit(*octets, order)));
    match (chars.next(), chars.next()) {
        (Some(Ok(value)), None) => Ok(value),
        _ => Err(CdrError::NotText("UTF-16")),
    }
}

fn pairs(octets: &[u8]) -> Result<&[[u8; 2]], CdrError> {
    match octets.as_chunks() {
        (pairs, []) => Ok(pairs),
        _ => Err(CdrError::Malformed("UTF-16 has an odd number of octets")),
    }
}

fn unit(octets: [u8; 2], order: ByteOrder) -> u16 {
    match order {
        ByteOrder::Big => u16::from_be_bytes(octets),
        ByteOrder::Little => u16::from_le_bytes(octets),
    }
}

/// What follows the byte order mark, and the order that it says: big-endian without one.
fn split_mark(units: &[[u8; 2]]) -> (&[[u8; 2]], ByteOrder) {
    match units.split_first() {
        Some((first, rest)) if unit(*first, ByteOrder::Big) == BOM => (rest, ByteOrder::Big),
        Some((first, rest)) if unit(*first, ByteOrder::Big) == SWAPPED_BOM => (rest, ByteOrder::Little),
        _ => (units, ByteOrder::Big),
    }
}

fn join(units: impl Iterator<Item = u16>) -> Result<String, CdrError> {
    char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| CdrError::NotText("UTF-16"))
}

impl Encode for char {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.wchar(*self)
    }
}

impl Decode for char {
    // Two octets in GIOP 1.1; in 1.2 never fewer than three.
    const MIN_OCTETS: usize = 2;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        input.wchar()
    }
}

/// An IDL `wstring`: text that travels as wide characters. It derefs to `str`.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WString(String);

impl WString {
    /// The empty string.
    #[must_use]
    pub const fn new() -> Self {
        Self(String::new())
    }

    /// The text.
    #[must_use]
    pub fn into_inner(self) -> String {
        self.0
    }
}

impl From<String> for WString {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<WString> for String {
    fn from(text: WString) -> Self {
        text.0
    }
}

impl Encode for WString {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.wstr(&self.0)
    }
}

impl Decode for WString {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        input.wstr().map(Self)
    }
}

/// An IDL `wstring<N>`: at most `N` characters.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct BoundedWString<const N: usize>(BoundedString<N>);

impl<const N: usize> BoundedWString<N> {
    /// The text without its bound.
    #[must_use]
    pub fn into_inner(self) -> String {
        self.0.into_inner()
    }
}

impl<const N: usize> TryFrom<String> for BoundedWString<N> {
    type Error = OverBound;

    fn try_from(text: String) -> Result<Self, OverBound> {
        text.try_into().map(Self)
    }
}

impl<const N: usize> TryFrom<&str> for BoundedWString<N> {
    type Error = OverBound;

    fn try_from(text: &str) -> Result<Self, OverBound> {
        text.try_into().map(Self)
    }
}

impl<const N: usize> Encode for BoundedWString<N> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.wstr(&self.0)
    }
}

impl<const N: usize> Decode for BoundedWString<N> {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self(input.wstr()?.try_into()?))
    }
}

macro_rules! text {
    ($type:ty $(, $($generics:tt)*)?) => {
        impl $(<$($generics)*>)? Deref for $type {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl $(<$($generics)*>)? AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                self
            }
        }

        impl $(<$($generics)*>)? Borrow<str> for $type {
            fn borrow(&self) -> &str {
                self
            }
        }

        impl $(<$($generics)*>)? PartialEq<str> for $type {
            fn eq(&self, other: &str) -> bool {
                **self == *other
            }
        }

        impl $(<$($generics)*>)? PartialEq<&str> for $type {
            fn eq(&self, other: &&str) -> bool {
                **self == **other
            }
        }

        impl $(<$($generics)*>)? fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&**self, f)
            }
        }
    };
}

text!(WString);
text!(BoundedWString<N>, const N: usize);

/// A borrowed text that is written as a `wstring`: how generated stubs pass `in` parameters of that type.
#[derive(Clone, Copy, Debug)]
pub struct Wide<'t>(
    /// The text.
    pub &'t str,
);

impl Encode for Wide<'_> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.wstr(self.0)
    }
}
