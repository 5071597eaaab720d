//! Strings on the wire: ISO 8859-1, as both sides must assume without code-set negotiation.
//!
//! ASCII is a subset of both UTF-8 and ISO 8859-1, so it is borrowed in both directions; the rest is transcoded.

use std::borrow::Cow;

use crate::{CdrError, Encoder};

/// True if every octet is ASCII and none is NUL: the text then is its own encoding.
#[inline]
fn is_plain(octets: &[u8]) -> bool {
    // One pass without a way out: short names are the usual case, and for long texts it vectorises.
    octets.iter().fold(true, |plain, octet| plain & (octet.wrapping_sub(1) < 0x7f))
}

/// Writes length, text and NUL; `plain` decides whether ASCII text is copied or lent.
#[inline]
pub(crate) fn encode<'a, 's>(
    out: &mut Encoder<'a>,
    value: &'s str,
    plain: impl FnOnce(&mut Encoder<'a>, &'s [u8]),
) -> Result<(), CdrError> {
    if !is_plain(value.as_bytes()) {
        return transcode(out, value);
    }
    out.len(value.len() + 1)?;
    plain(out, value.as_bytes());
    out.u8(0);
    Ok(())
}

#[cold]
fn transcode(out: &mut Encoder<'_>, value: &str) -> Result<(), CdrError> {
    let octet = |c| match c {
        '\0' => Err(CdrError::NulInString),
        c => u8::try_from(c).map_err(|_| CdrError::NotRepresentable(c)),
    };
    let octets: Vec<u8> = value.chars().map(octet).collect::<Result<_, _>>()?;
    out.len(octets.len() + 1)?;
    out.octets(&octets);
    out.u8(0);
    Ok(())
}

/// Reads text without its NUL.
///
/// # Errors
/// [`CdrError::StrayNul`].
#[inline]
pub(crate) fn decode(octets: &[u8]) -> Result<Cow<'_, str>, CdrError> {
    if !is_plain(octets) {
        return widen(octets);
    }
    Ok(Cow::Borrowed(std::str::from_utf8(octets).expect("ASCII is UTF-8")))
}

#[cold]
fn widen(octets: &[u8]) -> Result<Cow<'_, str>, CdrError> {
    check_nul(octets)?;
    Ok(Cow::Owned(octets.iter().copied().map(char::from).collect()))
}

/// # Errors
/// [`CdrError::StrayNul`].
pub(crate) fn check_nul(octets: &[u8]) -> Result<(), CdrError> {
    if octets.contains(&0) { Err(CdrError::StrayNul) } else { Ok(()) }
}
