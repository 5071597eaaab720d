//! Strings on the wire: ISO 8859-1, the default without code set negotiation, or the negotiated code set.
//!
//! ASCII is a subset of all, so it is borrowed in both directions under any code set. Other text is validated
//! if UTF-8, and transcoded otherwise. Wide text is in `wide`, bounded text in `bounded`.

use std::borrow::Cow;

use crate::{CdrError, CharSet, Decoder, Encoder};

impl<'a> Encoder<'a> {
    /// Writes an IDL `string` in the code set in force, ISO 8859-1 without negotiation (9.3.2.7).
    ///
    /// # Errors
    /// [`CdrError::NulInString`]; [`CdrError::NotRepresentable`] for a character outside the code set;
    /// [`CdrError::TooLong`].
    #[inline]
    pub fn str(&mut self, value: &'a str) -> Result<(), CdrError> {
        encode(self, value, |out, octets| out.lend_divisible(octets))
    }

    /// Writes an IDL `string` that need not outlive the encoder.
    ///
    /// # Errors
    /// As [`Encoder::str`].
    #[inline]
    pub fn short_str(&mut self, value: &str) -> Result<(), CdrError> {
        encode(self, value, |out, octets| out.octets(octets))
    }
}

impl<'m> Decoder<'m> {
    /// Reads an IDL `string` in the code set in force: ASCII and UTF-8 are borrowed, ISO 8859-1 is
    /// transcoded.
    ///
    /// A length of zero, which some ORBs send for the empty string, is accepted as such.
    ///
    /// # Errors
    /// [`CdrError::UnterminatedString`], [`CdrError::StrayNul`], [`CdrError::NotText`],
    /// [`CdrError::LengthBeyondInput`].
    #[inline]
    pub fn str(&mut self) -> Result<Cow<'m, str>, CdrError> {
        decode(self.terminated()?, self.wire().char_set)
    }

    /// Reads an IDL `string` as its raw octets, without the NUL.
    ///
    /// # Errors
    /// As [`Decoder::str`].
    pub fn latin1(&mut self) -> Result<&'m [u8], CdrError> {
        let octets = self.terminated()?;
        check_nul(octets).map(|()| octets)
    }

    /// The octets of a string before its terminating NUL.
    #[inline]
    fn terminated(&mut self) -> Result<&'m [u8], CdrError> {
        let octets = self.octet_sequence()?;
        match octets.split_last() {
            None => Ok(octets),
            Some((0, text)) => Ok(text),
            Some(_) => Err(CdrError::UnterminatedString),
        }
    }
}

/// Whether every octet is ASCII and none is NUL: the text then is its own encoding.
#[inline]
fn is_plain(octets: &[u8]) -> bool {
    // One pass without early exit: short names are the usual case, and for long texts it vectorises.
    octets.iter().fold(true, |plain, octet| plain & (octet.wrapping_sub(1) < 0x7f))
}

/// Writes length, text and NUL; `plain` copies or lends ASCII text.
#[inline]
fn encode<'a, 's>(
    out: &mut Encoder<'a>,
    value: &'s str,
    plain: impl FnOnce(&mut Encoder<'a>, &'s [u8]),
) -> Result<(), CdrError> {
    if !is_plain(value.as_bytes()) && !is_encodable_as_utf8(out, value)? {
        return transcode(out, value);
    }
    out.len(value.len() + 1)?;
    plain(out, value.as_bytes());
    out.u8(0);
    Ok(())
}

/// Whether the text, which is not plain, can be sent as UTF-8.
#[cold]
fn is_encodable_as_utf8(out: &mut Encoder<'_>, value: &str) -> Result<bool, CdrError> {
    match out.wire().char_set {
        set if !set.is_utf8() => Ok(false),
        _ if value.contains('\0') => Err(CdrError::NulInString),
        _ => {
            out.record_code_sets();
            Ok(true)
        }
    }
}

#[cold]
fn transcode(out: &mut Encoder<'_>, value: &str) -> Result<(), CdrError> {
    if value.contains('\0') {
        return Err(CdrError::NulInString);
    }
    out.record_code_sets();
    let set = out.wire().char_set;
    // UTF-8 is handled before.
    let last = if set == CharSet::Ascii { 0x7f } else { 0xff };
    let octet = |c: char| u8::try_from(c).ok().filter(|octet| *octet <= last).ok_or(c);
    let octets = match set {
        CharSet::Other(other) => other.encode(value),
        _ => value.chars().map(octet).collect::<Result<Vec<_>, _>>(),
    }
    .map_err(|character| CdrError::NotRepresentable { character, code_set: set.name() })?;
    out.len(octets.len() + 1)?;
    out.octets(&octets);
    out.u8(0);
    Ok(())
}

/// Decodes text without its NUL.
///
/// # Errors
/// [`CdrError::StrayNul`], [`CdrError::NotText`].
#[inline]
fn decode(octets: &[u8], set: CharSet) -> Result<Cow<'_, str>, CdrError> {
    if !is_plain(octets) {
        return widen(octets, set);
    }
    Ok(Cow::Borrowed(std::str::from_utf8(octets).expect("ASCII is UTF-8")))
}

#[cold]
fn widen(octets: &[u8], set: CharSet) -> Result<Cow<'_, str>, CdrError> {
    check_nul(octets)?;
    let text = match set {
        CharSet::Latin1 => Some(Cow::Owned(octets.iter().copied().map(char::from).collect())),
        set if set.is_utf8() => std::str::from_utf8(octets).map(Cow::Borrowed).ok(),
        CharSet::Other(other) => other.decode(octets).map(Cow::Owned),
        // Text that is not plain is beyond ASCII; UTF-8 was handled above.
        CharSet::Ascii | CharSet::Utf8 => None,
    };
    text.ok_or(CdrError::NotText(set.name()))
}

/// Checks that a text has no NUL, which would end it for a receiver in C.
///
/// # Errors
/// [`CdrError::StrayNul`].
fn check_nul(octets: &[u8]) -> Result<(), CdrError> {
    if octets.contains(&0) { Err(CdrError::StrayNul) } else { Ok(()) }
}
