//! Strings on the wire: ISO 8859-1, as both sides must assume without code-set negotiation.
//!
//! ASCII is a subset of both UTF-8 and ISO 8859-1, so it is borrowed in both directions; the rest is transcoded.

use std::borrow::Cow;

use crate::{CdrError, Encoder};

/// Writes length, text and NUL; `ascii` decides whether ASCII text is copied or lent.
pub(crate) fn encode<'a, 's>(
    out: &mut Encoder<'a>,
    value: &'s str,
    ascii: impl FnOnce(&mut Encoder<'a>, &'s [u8]),
) -> Result<(), CdrError> {
    if value.as_bytes().contains(&0) {
        return Err(CdrError::NulInString);
    }
    if value.is_ascii() {
        out.len(value.len() + 1)?;
        ascii(out, value.as_bytes());
    } else {
        let octets: Vec<u8> = value
            .chars()
            .map(|c| u8::try_from(c).map_err(|_| CdrError::NotRepresentable(c)))
            .collect::<Result<_, _>>()?;
        out.len(octets.len() + 1)?;
        out.octets(&octets);
    }
    out.u8(0);
    Ok(())
}

/// Reads text without its NUL.
pub(crate) fn decode(octets: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(octets) {
        Ok(text) if octets.is_ascii() => Cow::Borrowed(text),
        _ => Cow::Owned(octets.iter().copied().map(char::from).collect()),
    }
}
