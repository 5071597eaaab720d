//! IDL `char` on the wire: one octet of the transmission code set.
//!
//! In ISO 8859-1, and between Spandrel ORBs, it is the octet of a [`Char`]; in other code sets it is another
//! octet, or none.

use std::borrow::Cow;

use zerocopy::{FromBytes, IntoBytes};

use crate::{CdrError, Char, CharSet, Decode, Decoder, Encode, Encoder, FixedSize};

impl Char {
    #[inline]
    pub(crate) fn write(self, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        let set = out.wire().char_set;
        let octet = if set.converts_chars() { set.octet_of(self)? } else { self.0 };
        out.u8(octet);
        Ok(())
    }
}

impl CharSet {
    /// Whether the octet of a `char` may differ from that in ISO 8859-1.
    #[inline]
    pub(crate) fn converts_chars(self) -> bool {
        matches!(self, Self::Other(_))
    }

    /// The octet of a `char` in this code set.
    #[cold]
    pub(crate) fn octet_of(self, value: Char) -> Result<u8, CdrError> {
        let (Self::Other(set), 0x80..) = (self, value.0) else { return Ok(value.0) };
        let character = char::from(value);
        match set.encode(character.encode_utf8(&mut [0; 4])).as_deref() {
            Ok([octet]) => Ok(*octet),
            _ => Err(CdrError::NotOneOctet { character, code_set: set.named().name() }),
        }
    }

    /// The `char` of an octet in this code set.
    #[cold]
    pub(crate) fn char_of(self, octet: u8) -> Result<Char, CdrError> {
        let (Self::Other(set), 0x80..) = (self, octet) else { return Ok(Char(octet)) };
        let text = set.decode(&[octet]).ok_or(CdrError::NotText(set.named().name()))?;
        let character = text.chars().next().expect("an octet is a character");
        Char::try_from(character).map_err(|_| CdrError::CharBeyondLatin1 { character })
    }
}

impl Encode for Char {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.write(out)
    }

    #[inline]
    fn encode_slice<'a>(items: &'a [Self], out: &mut Encoder<'a>) -> Result<(), CdrError> {
        if out.wire().char_set.converts_chars() {
            return items.iter().try_for_each(|item| item.encode(out));
        }
        out.lend(items.as_bytes());
        Ok(())
    }
}

impl Decode for Char {
    const MIN_OCTETS: usize = 1;

    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let (octet, set) = (input.u8()?, input.wire().char_set);
        if set.converts_chars() { set.char_of(octet) } else { Ok(Self(octet)) }
    }

    #[inline]
    fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
        let set = input.wire().char_set;
        let octets = input.take(len)?;
        if set.converts_chars() {
            return octets.iter().map(|octet| set.char_of(*octet)).collect();
        }
        Ok(chars(octets).to_vec())
    }

    #[inline]
    fn lend<'m>(input: &mut Decoder<'m>) -> Result<Cow<'m, [Self]>, CdrError> {
        if input.wire().char_set.converts_chars() {
            let len = input.sequence_len(1)?;
            return Self::decode_vec(input, len).map(Cow::Owned);
        }
        Ok(Cow::Borrowed(chars(input.octet_sequence()?)))
    }
}

impl FixedSize for Char {
    const FIRST_ALIGN: usize = 1;
    const ALIGN: usize = 1;
    const SIZE: usize = 1;
    const HAS_CHARS: bool = true;

    #[inline]
    fn put<const SWAP: bool>(&self, out: &mut [u8]) {
        out.copy_from_slice(&[self.0]);
    }

    #[inline]
    fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError> {
        Ok(Self(input[0]))
    }
}

#[inline]
fn chars(octets: &[u8]) -> &[Char] {
    <[Char]>::ref_from_bytes(octets).expect("one octet has no alignment and no invalid value")
}
