//! References as text: `IOR:` and hexadecimal digits (CORBA 3.3 Part 2, 7.6.9).

use spandrel_cdr::{ByteOrder, CdrError, Decode, Decoder, Encoder, GiopVersion, Ior, Wire};

use crate::ReferenceError;

const PREFIX: &str = "IOR:";

/// Encodes a reference without borrowing from it, so that it need not outlive the encoder.
pub(crate) fn write_ior(ior: &Ior, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    out.short_str(&ior.type_id)?;
    out.len(ior.profiles.len())?;
    for profile in &ior.profiles {
        out.u32(profile.tag);
        out.octet_sequence(&profile.data)?;
    }
    Ok(())
}

/// The reference as `IOR:` and hexadecimal digits, in this machine's byte order.
///
/// # Panics
/// If the type id holds a NUL or a character outside ISO 8859-1; no IDL type and no decoded reference has
/// one.
#[must_use]
pub fn ior_to_string(ior: &Ior) -> String {
    let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
    out.u8(ByteOrder::NATIVE.flag());
    write_ior(ior, &mut out).expect("a type id is a repository id, which is Latin-1 without NUL");
    let octets = out.to_vec();
    let mut text = String::with_capacity(PREFIX.len() + 2 * octets.len());
    text.push_str(PREFIX);
    for octet in octets {
        for nibble in [octet >> 4, octet & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
        }
    }
    text
}

/// Parses `IOR:` (in any case) and hexadecimal digits. Surrounding white space is ignored.
///
/// # Errors
/// [`ReferenceError`] with the error and its position.
pub fn ior_from_string(text: &str) -> Result<Ior, ReferenceError> {
    let start = text.len() - text.trim_ascii_start().len();
    let text = text.trim_ascii();
    let digits = match text.get(..PREFIX.len()) {
        Some(prefix) if prefix.eq_ignore_ascii_case(PREFIX) => &text[PREFIX.len()..],
        _ => return Err(ReferenceError::unknown_scheme(text)),
    };
    let octets = from_hex(digits, start + PREFIX.len())?;
    let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_0);
    let at = |octet| move |cause| ReferenceError::Malformed { octet, cause };
    let mut input = Decoder::of_encapsulation(&octets, wire).map_err(at(0))?;
    Ior::decode(&mut input).map_err(|cause| at(input.position())(cause))
}

fn from_hex(digits: &str, start: usize) -> Result<Vec<u8>, ReferenceError> {
    let mut octets = Vec::with_capacity(digits.len() / 2);
    let mut high = None;
    for (position, found) in digits.char_indices() {
        let digit = found.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let digit = digit.ok_or(ReferenceError::NotHex { position: start + position, found })?;
        match high.take() {
            None => high = Some(digit << 4),
            Some(high) => octets.push(high | digit),
        }
    }
    if high.is_some() { Err(ReferenceError::OddDigits(digits.len())) } else { Ok(octets) }
}
