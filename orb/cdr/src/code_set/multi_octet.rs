//! Code sets of one or several octets per character: those of East Asia, by means of `encoding_rs`.
//!
//! `encoding_rs` follows browsers, which accept more than a code set has, and sometimes differ from it. So
//! each encoded character is checked. It must decode to itself (a yen sign would arrive as a backslash), and
//! extensions of a standard set by vendors are not written. Decoding accepts extensions.

use std::sync::LazyLock;

use encoding_rs::{EncoderResult, Encoding};

/// A code set with a variable number of octets per character.
pub(super) struct MultiOctet {
    pub(super) encoding: &'static Encoding,
    /// Whether a character, with the library's octets for it, is in the code set.
    pub(super) has: fn(char, &[u8]) -> bool,
}

/// Characters of JIS X 0208 with two mappings to Unicode: that of JIS, and that of Microsoft and browsers.
/// Both are encoded alike, and decoded to the second one.
const DOUBLE_MAPPINGS: [(char, char); 6] = [
    ('\u{a2}', '\u{ffe0}'),
    ('\u{a3}', '\u{ffe1}'),
    ('\u{ac}', '\u{ffe2}'),
    ('\u{2016}', '\u{2225}'),
    ('\u{2212}', '\u{ff0d}'),
    ('\u{301c}', '\u{ff5e}'),
];

/// An upper bound of the octets of a character.
const MAX_CHARACTER_OCTETS: usize = 8;

impl MultiOctet {
    /// # Errors
    /// The first character that is not in the code set.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u8>, char> {
        let mut octets = Vec::with_capacity(text.len());
        for value in text.chars() {
            if value.is_ascii() {
                octets.push(value as u8);
            } else if !self.add(value, &mut octets) {
                return Err(value);
            }
        }
        Ok(octets)
    }

    /// Appends the octets of a character beyond ASCII, if it has an encoding.
    fn add(&self, value: char, octets: &mut Vec<u8>) -> bool {
        let is_japanese = [encoding_rs::EUC_JP, encoding_rs::SHIFT_JIS].contains(&self.encoding);
        let mapping = DOUBLE_MAPPINGS.iter().find(|(jis, _)| is_japanese && *jis == value);
        let value = mapping.map_or(value, |(_, mapping)| *mapping);
        let (room, text) = (&mut [0; MAX_CHARACTER_OCTETS], &mut [0; 4]);
        let text = value.encode_utf8(text);
        let (result, _, len) = self.encoding.new_encoder().encode_from_utf8_without_replacement(text, room, true);
        let written = &room[..len];
        if result == EncoderResult::InputEmpty
            && (self.has)(value, written)
            && self.decode(written).as_deref() == Some(text)
        {
            octets.extend_from_slice(written);
            return true;
        }
        if self.encoding == encoding_rs::EUC_JP
            && let Ok(index) = JIS_X_0212.binary_search_by_key(&value, |(candidate, _)| *candidate)
        {
            octets.push(0x8f);
            octets.extend_from_slice(&JIS_X_0212[index].1);
            return true;
        }
        false
    }

    /// `None` if it is not text in this code set.
    pub(super) fn decode(&self, octets: &[u8]) -> Option<String> {
        Some(self.encoding.decode_without_bom_handling_and_without_replacement(octets)?.into_owned())
    }
}

/// The supplementary characters of EUC-JP, which the library decodes and does not encode: sorted by
/// character, built on first use.
static JIS_X_0212: LazyLock<Vec<(char, [u8; 2])>> = LazyLock::new(|| {
    let rows = 0xa1..=0xfe_u8;
    let mut all: Vec<_> = rows
        .clone()
        .flat_map(|row| rows.clone().map(move |column| [row, column]))
        .filter_map(|[row, column]| {
            let octets = [0x8f, row, column];
            let text = encoding_rs::EUC_JP.decode_without_bom_handling_and_without_replacement(&octets)?;
            Some((text.chars().next()?, [row, column]))
        })
        .collect();
    all.sort_unstable();
    all
});

/// All characters of the library.
pub(super) fn anything(_: char, _: &[u8]) -> bool {
    true
}

/// Korean, without the syllables that Microsoft added below the 94 rows of 94.
pub(super) fn is_korean(_: char, octets: &[u8]) -> bool {
    octets.iter().all(|octet| *octet >= 0xa1)
}

/// Japanese in EUC, without the rows added by NEC and IBM.
pub(super) fn is_euc_japanese(_: char, octets: &[u8]) -> bool {
    octets[0] != 0xad && octets[0] < 0xf5
}

/// Japanese in Shift_JIS, without the rows added by NEC and IBM.
pub(super) fn is_shift_jis(_: char, octets: &[u8]) -> bool {
    !matches!(octets[0], 0x80 | 0x87 | 0xed..)
}

/// Japanese in Shift_JIS, with the rows added by Microsoft and IBM.
pub(super) fn is_code_page_943(_: char, octets: &[u8]) -> bool {
    octets[0] != 0x80
}

/// Traditional Chinese, without the additions of ETEN and Hong Kong, and without control pictures.
pub(super) fn is_big5(_: char, octets: &[u8]) -> bool {
    let &[row, column] = octets else { return false };
    let added =
        matches!((row, column), (0xa3, 0xc0..=0xe0) | (0xc6, 0xa1..) | (0xc7..=0xc8, _) | (0xf9, 0xd6..) | (0xfa.., _));
    row >= 0xa1 && !added
}

/// Simplified Chinese as in Microsoft's code page 936: without private characters and the additions of GB
/// 18030.
pub(super) fn is_gbk(value: char, octets: &[u8]) -> bool {
    let added = match octets {
        [row, column] => matches!(
            (row, column),
            (0xa6, 0xd9..=0xdf | 0xec..=0xed | 0xf3) | (0xa8, 0xbc | 0xbf) | (0xa9, 0x89..=0x95) | (0xfe, 0x50..)
        ),
        _ => value != '\u{20ac}',
    };
    !added && !matches!(value, '\u{e000}'..='\u{f8ff}')
}

/// GB 2312, a part of GBK.
pub(super) fn is_gb2312(_: char, octets: &[u8]) -> bool {
    let &[row, column] = octets else { return false };
    let has = match row {
        0xa1 | 0xa3 | 0xb0..=0xd6 | 0xd8..=0xf7 => 0xa1..=0xfe,
        0xa2 => return matches!(column, 0xb1..=0xe2 | 0xe5..=0xee | 0xf1..=0xfc),
        0xa4 => 0xa1..=0xf3,
        0xa5 => 0xa1..=0xf6,
        0xa6 => return matches!(column, 0xa1..=0xb8 | 0xc1..=0xd8),
        0xa7 => return matches!(column, 0xa1..=0xc1 | 0xd1..=0xf1),
        0xa8 => return matches!(column, 0xa1..=0xba | 0xc5..=0xe9),
        0xa9 => 0xa4..=0xef,
        0xd7 => 0xa1..=0xf9,
        _ => return false,
    };
    has.contains(&column)
}
