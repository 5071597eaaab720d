//! The subject of a certificate: a `Name` of RFC 5280 (4.1.2.4) in DER (X.690).
//!
//! The handshake has verified the certificate.

use crate::der::{
    IA5_STRING, NUMERIC_STRING, OBJECT_IDENTIFIER, PRINTABLE_STRING, SEQUENCE, SET, UTF8_STRING, contents, element,
};

/// 2.5.4.3, the attribute `commonName`.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The only common name of a subject: the contents of its `RDNSequence`. `None` if there is none, several, or
/// one that is not text, and for malformed subjects.
pub(super) fn common_name(mut subject: &[u8]) -> Option<String> {
    let mut common_name = None;
    while !subject.is_empty() {
        let mut attributes = contents(&mut subject, SET)?;
        while !attributes.is_empty() {
            let mut attribute = contents(&mut attributes, SEQUENCE)?;
            let is_name = contents(&mut attribute, OBJECT_IDENTIFIER)? == COMMON_NAME;
            let (tag, value) = element(&mut attribute)?;
            if !attribute.is_empty() || is_name && common_name.replace((tag, value)).is_some() {
                return None;
            }
        }
    }
    let (UTF8_STRING | NUMERIC_STRING | PRINTABLE_STRING | IA5_STRING, text) = common_name? else { return None };
    std::str::from_utf8(text).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element of a few octets.
    fn short(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let contents = parts.concat();
        [&[tag, contents.len() as u8], &contents[..]].concat()
    }

    fn attribute(kind: u8, tag: u8, text: &[u8]) -> Vec<u8> {
        short(SEQUENCE, &[&short(OBJECT_IDENTIFIER, &[&[0x55, 0x04, kind]]), &short(tag, &[text])])
    }

    #[test]
    fn the_name_is_found_among_other_attributes() {
        let country = short(SET, &[&attribute(6, PRINTABLE_STRING, b"DE")]);
        for tag in [UTF8_STRING, PRINTABLE_STRING, IA5_STRING, NUMERIC_STRING] {
            let name = short(SET, &[&attribute(3, tag, b"teller")]);
            assert_eq!(common_name(&[&country[..], &name].concat()).as_deref(), Some("teller"));
            let both = short(SET, &[&attribute(10, UTF8_STRING, b"Bank"), &attribute(3, tag, b"teller")]);
            assert_eq!(common_name(&[both, country.clone()].concat()).as_deref(), Some("teller"));
        }
        assert_eq!(common_name(&country), None);
        assert_eq!(common_name(&[]), None);
    }

    #[test]
    fn two_names_are_no_name() {
        let one = attribute(3, UTF8_STRING, b"teller");
        let two = attribute(3, UTF8_STRING, b"thief");
        assert_eq!(common_name(&short(SET, &[&one, &two])), None);
        assert_eq!(common_name(&[short(SET, &[&one]), short(SET, &[&two])].concat()), None);
    }

    #[test]
    fn a_name_that_is_not_text_is_no_name() {
        const BMP_STRING: u8 = 0x1e;
        assert_eq!(common_name(&short(SET, &[&attribute(3, BMP_STRING, b"\0t")])), None);
        assert_eq!(common_name(&short(SET, &[&attribute(3, UTF8_STRING, b"\xff")])), None);
    }

    #[test]
    fn malformed_subjects_have_no_name() {
        let subject = short(SET, &[&attribute(3, UTF8_STRING, b"teller")]);
        for len in 1..subject.len() {
            assert_eq!(common_name(&subject[..len]), None, "{len}");
        }
        for at in 0..subject.len() {
            let mut damaged = subject.clone();
            damaged[at] = 0xff;
            assert_eq!(common_name(&damaged), None, "{at}");
        }
        assert_eq!(common_name(&[&subject[..], &[0]].concat()), None);
        let long = [&[SET, 0x81, subject.len() as u8 - 2], &subject[2..]].concat();
        assert_eq!(common_name(&long), None, "the length has a shorter form");
    }

    #[test]
    fn long_values_have_longer_lengths() {
        let text = "x".repeat(300);
        let long =
            |tag: u8, contents: &[u8]| [&[tag, 0x82][..], &(contents.len() as u16).to_be_bytes(), contents].concat();
        let value = long(UTF8_STRING, text.as_bytes());
        let attribute = long(SEQUENCE, &[&short(OBJECT_IDENTIFIER, &[COMMON_NAME]), &value[..]].concat());
        assert_eq!(common_name(&long(SET, &attribute)).as_deref(), Some(&text[..]));
    }
}
