//! Code sets of one or several octets per character: those of East Asia, by way of `encoding_rs`.
//!
//! What that library understands is what browsers do, which is more than a code set has, and now and then something else. What is written
//! is therefore looked at: a character has to be read back as itself (a yen sign would arrive as a backslash), and sets that others have
//! extended are written without the extensions. What is read may have them.

use std::sync::LazyLock;

use encoding_rs::{EncoderResult, Encoding};

/// One such code set.
pub(super) struct Several {
    pub(super) encoding: &'static Encoding,
    /// Whether a character, and the octets that the library makes of it, are in the code set.
    pub(super) has: fn(char, &[u8]) -> bool,
}

/// Characters of JIS X 0208 that are taken for two in Unicode: how JIS reads them, and how Microsoft and browsers do. Both are written alike,
/// and read the second way.
const TWINS: [(char, char); 6] = [
    ('\u{a2}', '\u{ffe0}'),
    ('\u{a3}', '\u{ffe1}'),
    ('\u{ac}', '\u{ffe2}'),
    ('\u{2016}', '\u{2225}'),
    ('\u{2212}', '\u{ff0d}'),
    ('\u{301c}', '\u{ff5e}'),
];

/// More than a character has octets.
const ROOM: usize = 8;

impl Several {
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

    /// Adds the octets of a character beyond ASCII, if it has some.
    fn add(&self, value: char, octets: &mut Vec<u8>) -> bool {
        let is_japanese = [encoding_rs::EUC_JP, encoding_rs::SHIFT_JIS].contains(&self.encoding);
        let twin = TWINS.iter().find(|(jis, _)| is_japanese && *jis == value);
        let value = twin.map_or(value, |(_, twin)| *twin);
        let (room, text) = (&mut [0; ROOM], &mut [0; 4]);
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
            && let Ok(found) = JIS_X_0212.binary_search_by_key(&value, |(known, _)| *known)
        {
            octets.push(0x8f);
            octets.extend_from_slice(&JIS_X_0212[found].1);
            return true;
        }
        false
    }

    /// `None` if it is not text in this code set.
    pub(super) fn decode(&self, octets: &[u8]) -> Option<String> {
        Some(self.encoding.decode_without_bom_handling_and_without_replacement(octets)?.into_owned())
    }
}

/// The supplementary characters of EUC-JP, which the library reads and does not write: by character, made when one is first written.
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

/// Everything that the library has.
pub(super) fn anything(_: char, _: &[u8]) -> bool {
    true
}

/// Korean, without the syllables that Microsoft added below the 94 rows of 94.
pub(super) fn is_korean(_: char, octets: &[u8]) -> bool {
    octets.iter().all(|octet| *octet >= 0xa1)
}

/// Japanese in EUC, without the rows that NEC and IBM added.
pub(super) fn is_euc_japanese(_: char, octets: &[u8]) -> bool {
    octets[0] != 0xad && octets[0] < 0xf5
}

/// Japanese in Shift_JIS, without them.
pub(super) fn is_shift_jis(_: char, octets: &[u8]) -> bool {
    !matches!(octets[0], 0x80 | 0x87 | 0xed..)
}

/// The same with them, as Microsoft and IBM have it.
pub(super) fn is_code_page_943(_: char, octets: &[u8]) -> bool {
    octets[0] != 0x80
}

/// Traditional Chinese, without what ETEN and Hong Kong added, nor the control pictures.
pub(super) fn is_big5(_: char, octets: &[u8]) -> bool {
    let &[row, column] = octets else { return false };
    let added =
        matches!((row, column), (0xa3, 0xc0..=0xe0) | (0xc6, 0xa1..) | (0xc7..=0xc8, _) | (0xf9, 0xd6..) | (0xfa.., _));
    row >= 0xa1 && !added
}

/// Simplified Chinese as Microsoft's code page 936 has it: without private characters, nor what GB 18030 added.
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

/// GB 2312, which is that part of GBK.
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
