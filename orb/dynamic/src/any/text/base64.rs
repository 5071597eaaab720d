//! Base64 with padding (RFC 4648, clause 4), the JSON form of octets.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of these octets.
pub(super) fn encode(octets: impl Iterator<Item = u8>) -> String {
    let mut text = String::new();
    let mut octets = octets.fuse();
    while let Some(first) = octets.next() {
        let (second, third) = (octets.next(), octets.next());
        let group = [first, second.unwrap_or(0), third.unwrap_or(0)];
        let bits = group.iter().fold(0_usize, |bits, octet| bits << 8 | usize::from(*octet));
        let used = 2 + usize::from(second.is_some()) + usize::from(third.is_some());
        for index in 0..4 {
            let letter = ALPHABET[bits >> (18 - 6 * index) & 0x3f];
            text.push(if index < used { char::from(letter) } else { '=' });
        }
    }
    text
}

/// The octets of a text; `None` if it is not Base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let groups = text.as_bytes().chunks(4);
    let last = groups.len().saturating_sub(1);
    let mut octets = Vec::with_capacity(groups.len() * 3);
    for (index, group) in groups.enumerate() {
        let letters = group.iter().position(|letter| *letter == b'=').unwrap_or(group.len());
        let is_padded = letters >= 2 && group[letters..].iter().all(|letter| *letter == b'=');
        if group.len() != 4 || !is_padded || (letters < 4 && index != last) {
            return None;
        }
        let mut bits = 0_u32;
        for letter in group {
            let value = if *letter == b'=' { 0 } else { ALPHABET.iter().position(|candidate| candidate == letter)? };
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        let [_, group @ ..] = bits.to_be_bytes();
        // Bits beyond the octets are zero, so that each value has one form.
        if group[letters - 1..].iter().any(|rest| *rest != 0) {
            return None;
        }
        octets.extend_from_slice(&group[..letters - 1]);
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, clause 10.
    #[test]
    fn octets_become_text_and_octets_again() {
        for (octets, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")]
        {
            assert_eq!(encode(octets.bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(octets.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(all.iter().copied())), Some(all));
        for text in ["Zg", "Zg=", "Z===", "Zh==", "Zg==Zg==", "Z-8=", "Zm9\u{e9}"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
