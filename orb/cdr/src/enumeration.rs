//! IDL enums: on the wire an `unsigned long` that counts the enumerators from zero (CORBA 3.3 Part 2, 9.3.2.6).

use crate::{CdrError, Decode, Decoder, FixedSize, decode_fixed_vec};

/// An IDL enum, as generated code declares it to the engines.
pub trait Enumeration: Copy {
    /// The enum's IDL name, for errors.
    const NAME: &'static str;

    /// The enumerator's number on the wire, from 0 in the order of the declaration.
    fn ordinal(self) -> u32;

    /// The enumerator with this number, if there is one.
    fn from_ordinal(ordinal: u32) -> Option<Self>;
}

/// An [`Enumeration`] that is decoded by compiled code, not by a table.
pub trait CompiledEnumeration: Enumeration {}

/// The enumerator with this number.
///
/// # Errors
/// [`CdrError::BadEnum`] if there is none.
#[inline]
pub fn enumerator<E: Enumeration>(ordinal: u32) -> Result<E, CdrError> {
    E::from_ordinal(ordinal).ok_or(CdrError::BadEnum { name: E::NAME, value: ordinal })
}

impl<E: Enumeration> FixedSize for E {
    const FIRST_ALIGN: usize = 4;
    const ALIGN: usize = 4;
    const SIZE: usize = 4;

    #[inline]
    fn put<const SWAP: bool>(&self, out: &mut [u8]) {
        self.ordinal().put::<SWAP>(out);
    }

    #[inline]
    fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError> {
        enumerator(u32::get::<SWAP>(input)?)
    }
}

impl<E: CompiledEnumeration> Decode for E {
    const MIN_OCTETS: usize = 4;

    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        enumerator(input.u32()?)
    }

    #[inline]
    fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
        decode_fixed_vec(input, len)
    }
}
