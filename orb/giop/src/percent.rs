//! Escapes in URLs: `%` and two hexadecimal digits for an octet (CORBA 3.3 Part 2, 7.6.10.4; CosNaming 1.3, 2.5.3.5).
//!
//! The crate `percent-encoding` would write other digits (`%2F` for `%2f`), and has no decoder that refuses a `%` without
//! digits and tells where it is.

use std::fmt;

/// Octets besides letters and digits that are written as they are.
const UNESCAPED: &[u8] = b";/:?@&=+$,-_.!~*'()";

/// Octets as a part of a URL: those that it cannot hold are written as `%` and two lower-case digits.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| {
            if octet.is_ascii_alphanumeric() || UNESCAPED.contains(octet) {
                fmt::Write::write_char(f, char::from(*octet))
            } else {
                write!(f, "%{octet:02x}")
            }
        })
    }
}

/// Replaces each `%XX` of a URL's part by the octet that it stands for.
///
/// # Errors
/// The position of the first `%` that two hexadecimal digits do not follow.
pub fn unescape(text: &str) -> Result<Vec<u8>, usize> {
    decode(text, Err)
}

/// As [`unescape`], where a `%` without two hexadecimal digits stands for itself, as in the URLs of files.
#[must_use]
pub fn unescape_leniently(text: &str) -> Vec<u8> {
    decode(text, |_| Ok::<_, std::convert::Infallible>(())).unwrap_or_else(|never| match never {})
}

/// As [`unescape`], for the name in a URL `corbaname:`: UTF-8, or else ISO 8859-1, the default of omniNames.
///
/// # Errors
/// As [`unescape`].
pub fn unescape_name(text: &str) -> Result<String, usize> {
    let octets = unescape(text)?;
    Ok(String::from_utf8(octets).unwrap_or_else(|latin1| latin1.into_bytes().into_iter().map(char::from).collect()))
}

/// `bare` is called for the position of each `%` that stands for itself.
fn decode<E>(text: &str, mut bare: impl FnMut(usize) -> Result<(), E>) -> Result<Vec<u8>, E> {
    let digit = |octet: u8| char::from(octet).to_digit(16).map(|digit| digit as u8);
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let mut octet = *first;
        if octet == b'%' {
            match after {
                [high, low, behind @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    octet = digit(*high).unwrap_or_default() << 4 | digit(*low).unwrap_or_default();
                    rest = behind;
                }
                _ => bare(text.len() - after.len() - 1)?,
            }
        }
        octets.push(octet);
    }
    Ok(octets)
}
