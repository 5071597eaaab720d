//! Elements of DER (X.690), as far as certificates need them.
//!
//! An authority has signed the octets, but it may sign any octets, so each length is compared with the octets that are
//! there.

pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const NUMERIC_STRING: u8 = 0x12;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const IA5_STRING: u8 = 0x16;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// Takes an element with this tag from the front.
pub(super) fn contents<'a>(input: &mut &'a [u8], expected: u8) -> Option<&'a [u8]> {
    let (tag, contents) = element(input)?;
    (tag == expected).then_some(contents)
}

/// Takes an element from the front: its tag and contents. Lengths have one or two octets, in their shortest
/// form.
pub(super) fn element<'a>(input: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (len, tag, rest) = match **input {
        [tag, len @ 0..=0x7f, ref rest @ ..] => (usize::from(len), tag, rest),
        [tag, 0x81, len @ 0x80..=0xff, ref rest @ ..] => (usize::from(len), tag, rest),
        [tag, 0x82, high @ 1..=0xff, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high, low])), tag, rest),
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(len)?;
    *input = rest;
    Some((tag, contents))
}
