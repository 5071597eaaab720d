//! Strings on the wire: ISO 8859-1, as both sides must assume without code-set negotiation, or UTF-8.
//!
//! ASCII is a subset of both, so it is borrowed in both directions whatever was negotiated; of the rest, ISO 8859-1 is
//! transcoded, and UTF-8 is checked.

use std::borrow::Cow;

use crate::{CdrError, CharSet, Encoder};

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
    if !is_plain(value.as_bytes()) && !is_sayable(out, value)? {
        return transcode(out, value);
    }
    out.len(value.len() + 1)?;
    plain(out, value.as_bytes());
    out.u8(0);
    Ok(())
}

/// True if the text, which is not plain, can be sent as the UTF-8 that it is.
#[cold]
fn is_sayable(out: &mut Encoder<'_>, value: &str) -> Result<bool, CdrError> {
    match out.wire().char_set {
        CharSet::Utf8 if value.contains('\0') => Err(CdrError::NulInString),
        CharSet::Utf8 => {
            out.note_code_sets();
            Ok(true)
        }
        CharSet::Latin1 => Ok(false),
    }
}

#[cold]
fn transcode(out: &mut Encoder<'_>, value: &str) -> Result<(), CdrError> {
    let octet = |c| match c {
        '\0' => Err(CdrError::NulInString),
        c => u8::try_from(c).map_err(|_| CdrError::NotRepresentable(c)),
    };
    out.note_code_sets();
    let octets: Vec<u8> = value.chars().map(octet).collect::<Result<_, _>>()?;
    out.len(octets.len() + 1)?;
    out.octets(&octets);
    out.u8(0);
    Ok(())
}

/// Reads text without its NUL.
///
/// # Errors
/// [`CdrError::StrayNul`], [`CdrError::NotText`].
#[inline]
pub(crate) fn decode(octets: &[u8], set: CharSet) -> Result<Cow<'_, str>, CdrError> {
    if !is_plain(octets) {
        return widen(octets, set);
    }
    Ok(Cow::Borrowed(std::str::from_utf8(octets).expect("ASCII is UTF-8")))
}

#[cold]
fn widen(octets: &[u8], set: CharSet) -> Result<Cow<'_, str>, CdrError> {
    check_nul(octets)?;
    match set {
        CharSet::Latin1 => Ok(Cow::Owned(octets.iter().copied().map(char::from).collect())),
        CharSet::Utf8 => std::str::from_utf8(octets).map(Cow::Borrowed).map_err(|_| CdrError::NotText("UTF-8")),
    }
}

/// # Errors
/// [`CdrError::StrayNul`].
pub(crate) fn check_nul(octets: &[u8]) -> Result<(), CdrError> {
    if octets.contains(&0) { Err(CdrError::StrayNul) } else { Ok(()) }
}
