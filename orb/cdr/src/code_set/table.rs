//! The table of code sets, and conversion by it: their numbers in the OSF registry, their names, and the meaning of their octets.
//!
//! Programs hold text as `str`, to and from which the table converts. Only supersets of ASCII are included,
//! so that ASCII text is its own encoding in all of them (EBCDIC, for one, is not). UCS-2 and
//! UCS-4 are no such supersets, and are for wide characters only.
//!
//! A character that a code set lacks is returned as an error, from which `text` and `wide` make
//! `CdrError::NotRepresentable`.

use super::multi_octet::{
    MultiOctet, anything, is_big5, is_code_page_943, is_euc_japanese, is_gb2312, is_gbk, is_korean, is_shift_jis,
};
use super::single_octet::{self, Upper};
use super::{CodeSet, Conversion};
use crate::code_set_numbers::{ASCII, LATIN1, Named, UTF8};

struct Entry {
    named: Named,
    coding: Coding,
}

enum Coding {
    Ascii,
    Latin1,
    Utf8,
    /// One octet per character.
    SingleOctet(&'static Upper),
    /// One or more octets per character.
    MultiOctet(MultiOctet),
    /// A fixed number of octets per character, of ISO 10646.
    Fixed(usize),
}

const fn single_octet_entry(number: u32, names: &'static [&'static str], upper: &'static Upper) -> Entry {
    Entry { named: Named { number, names }, coding: Coding::SingleOctet(upper) }
}

const fn multi_octet_entry(
    number: u32,
    names: &'static [&'static str],
    encoding: &'static encoding_rs::Encoding,
    has: fn(char, &[u8]) -> bool,
) -> Entry {
    Entry { named: Named { number, names }, coding: Coding::MultiOctet(MultiOctet { encoding, has }) }
}

const fn fixed(number: u32, names: &'static [&'static str], width: usize) -> Entry {
    Entry { named: Named { number, names }, coding: Coding::Fixed(width) }
}

/// Sorted by number. Those from `0x1002_0000` on are IBM's, with a CCSID in the lower half. The registry
/// (version 1.2g) ends before ISO 8859-11; for this and later parts all ORBs continue its numbers. For GBK
/// and GB 18030, IBM's numbers are used.
static TABLE: [Entry; 54] = [
    Entry { named: LATIN1, coding: Coding::Latin1 },
    single_octet_entry(0x0001_0002, &["ISO 8859-2", "Latin-2"], &single_octet::ISO_8859_2),
    single_octet_entry(0x0001_0003, &["ISO 8859-3", "Latin-3"], &single_octet::ISO_8859_3),
    single_octet_entry(0x0001_0004, &["ISO 8859-4", "Latin-4"], &single_octet::ISO_8859_4),
    single_octet_entry(0x0001_0005, &["ISO 8859-5"], &single_octet::ISO_8859_5),
    single_octet_entry(0x0001_0006, &["ISO 8859-6"], &single_octet::ISO_8859_6),
    single_octet_entry(0x0001_0007, &["ISO 8859-7"], &single_octet::ISO_8859_7),
    single_octet_entry(0x0001_0008, &["ISO 8859-8"], &single_octet::ISO_8859_8),
    single_octet_entry(0x0001_0009, &["ISO 8859-9", "Latin-5"], &single_octet::ISO_8859_9),
    single_octet_entry(0x0001_000a, &["ISO 8859-10", "Latin-6"], &single_octet::ISO_8859_10),
    single_octet_entry(0x0001_000b, &["ISO 8859-11"], &single_octet::ISO_8859_11),
    single_octet_entry(0x0001_000d, &["ISO 8859-13", "Latin-7"], &single_octet::ISO_8859_13),
    single_octet_entry(0x0001_000e, &["ISO 8859-14", "Latin-8"], &single_octet::ISO_8859_14),
    single_octet_entry(0x0001_000f, &["ISO 8859-15", "Latin-9"], &single_octet::ISO_8859_15),
    single_octet_entry(0x0001_0010, &["ISO 8859-16", "Latin-10"], &single_octet::ISO_8859_16),
    Entry { named: ASCII, coding: Coding::Ascii },
    fixed(0x0001_0100, &["UCS-2", "UCS-2 level 1"], 2),
    fixed(0x0001_0101, &["UCS-2 level 2"], 2),
    fixed(0x0001_0102, &["UCS-2 level 3"], 2),
    fixed(0x0001_0104, &["UCS-4 level 1"], 4),
    fixed(0x0001_0105, &["UCS-4 level 2"], 4),
    fixed(0x0001_0106, &["UCS-4", "UTF-32", "UCS-4 level 3"], 4),
    multi_octet_entry(0x0003_0010, &["EUC-JP", "eucJP"], encoding_rs::EUC_JP, is_euc_japanese),
    multi_octet_entry(0x0004_000a, &["EUC-KR", "eucKR"], encoding_rs::EUC_KR, is_korean),
    single_octet_entry(0x000b_0001, &["TIS-620"], &single_octet::TIS_620),
    multi_octet_entry(0x0500_0011, &["OSF Shift_JIS 1"], encoding_rs::SHIFT_JIS, is_shift_jis),
    multi_octet_entry(0x0500_0012, &["OSF Shift_JIS 2"], encoding_rs::SHIFT_JIS, is_shift_jis),
    Entry { named: UTF8, coding: Coding::Utf8 },
    multi_octet_entry(0x0502_0001, &["JVC EUC-JP"], encoding_rs::EUC_JP, is_euc_japanese),
    multi_octet_entry(0x0502_0002, &["Shift_JIS", "SJIS", "JVC_SJIS"], encoding_rs::SHIFT_JIS, is_shift_jis),
    multi_octet_entry(0x1001_0008, &["HP Big5"], encoding_rs::BIG5, is_big5),
    single_octet_entry(0x1002_01b5, &["IBM-437", "cp437"], &single_octet::IBM_437),
    single_octet_entry(0x1002_0352, &["IBM-850", "cp850"], &single_octet::IBM_850),
    single_octet_entry(0x1002_0354, &["IBM-852", "cp852"], &single_octet::IBM_852),
    single_octet_entry(0x1002_0357, &["IBM-855", "cp855"], &single_octet::IBM_855),
    single_octet_entry(0x1002_0359, &["IBM-857", "cp857"], &single_octet::IBM_857),
    single_octet_entry(0x1002_0362, &["IBM-866", "cp866"], &single_octet::IBM_866),
    single_octet_entry(0x1002_036e, &["KOI8-R", "IBM-878"], &single_octet::KOI8_R),
    multi_octet_entry(0x1002_03af, &["IBM-943", "cp943"], encoding_rs::SHIFT_JIS, is_code_page_943),
    multi_octet_entry(0x1002_03b6, &["Big5", "IBM-950", "cp950"], encoding_rs::BIG5, is_big5),
    multi_octet_entry(0x1002_03ca, &["IBM-970", "cp970"], encoding_rs::EUC_KR, is_korean),
    single_octet_entry(0x1002_0490, &["KOI8-U", "IBM-1168"], &single_octet::KOI8_U),
    single_octet_entry(0x1002_04e2, &["windows-1250", "cp1250"], &single_octet::WINDOWS_1250),
    single_octet_entry(0x1002_04e3, &["windows-1251", "cp1251"], &single_octet::WINDOWS_1251),
    single_octet_entry(0x1002_04e4, &["windows-1252", "cp1252"], &single_octet::WINDOWS_1252),
    single_octet_entry(0x1002_04e5, &["windows-1253", "cp1253"], &single_octet::WINDOWS_1253),
    single_octet_entry(0x1002_04e6, &["windows-1254", "cp1254"], &single_octet::WINDOWS_1254),
    single_octet_entry(0x1002_04e7, &["windows-1255", "cp1255"], &single_octet::WINDOWS_1255),
    single_octet_entry(0x1002_04e8, &["windows-1256", "cp1256"], &single_octet::WINDOWS_1256),
    single_octet_entry(0x1002_04e9, &["windows-1257", "cp1257"], &single_octet::WINDOWS_1257),
    single_octet_entry(0x1002_04ea, &["windows-1258", "cp1258"], &single_octet::WINDOWS_1258),
    multi_octet_entry(0x1002_0567, &["EUC-CN", "GB2312", "IBM-1383"], encoding_rs::GBK, is_gb2312),
    multi_octet_entry(0x1002_056a, &["GBK", "IBM-1386"], encoding_rs::GBK, is_gbk),
    multi_octet_entry(0x1002_0570, &["GB18030", "IBM-1392"], encoding_rs::GB18030, anything),
];

/// Lookup of code sets.
impl CodeSet {
    /// All code sets of the table, in the order of their numbers.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(|index| Self::at(index, &Table))
    }

    /// The code set with this number of the OSF registry.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        let index = TABLE.binary_search_by_key(&number, |entry| entry.named.number).ok()?;
        Some(Self::at(index, &Table))
    }

    /// The code set with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let index = TABLE.iter().position(|entry| entry.named.is(name))?;
        Some(Self::at(index, &Table))
    }
}

/// The conversion of the table's code sets.
struct Table;

impl Table {
    fn entry(index: u8) -> &'static Entry {
        &TABLE[usize::from(index)]
    }
}

impl Conversion for Table {
    fn named(&self, index: u8) -> Named {
        Self::entry(index).named
    }

    fn is_utf8(&self, index: u8) -> bool {
        matches!(Self::entry(index).coding, Coding::Utf8)
    }

    fn width(&self, index: u8) -> Option<usize> {
        match Self::entry(index).coding {
            Coding::Fixed(width) => Some(width),
            _ => None,
        }
    }

    fn encode(&self, index: u8, text: &str) -> Result<Vec<u8>, char> {
        let each = |octet: fn(&Upper, char) -> Option<u8>, upper: &Upper| {
            text.chars().map(|value| octet(upper, value).ok_or(value)).collect()
        };
        match &Self::entry(index).coding {
            Coding::Utf8 => Ok(text.as_bytes().to_vec()),
            Coding::Latin1 => text.chars().map(|value| u8::try_from(value).map_err(|_| value)).collect(),
            Coding::SingleOctet(upper) => each(single_octet, upper),
            Coding::MultiOctet(multi_octet) => multi_octet.encode(text),
            Coding::Ascii | Coding::Fixed(_) => match text.chars().find(|value| !value.is_ascii()) {
                Some(beyond) => Err(beyond),
                None => Ok(text.as_bytes().to_vec()),
            },
        }
    }

    fn decode(&self, index: u8, octets: &[u8]) -> Option<String> {
        match &Self::entry(index).coding {
            Coding::Utf8 => std::str::from_utf8(octets).ok().map(str::to_owned),
            Coding::Latin1 => Some(octets.iter().copied().map(char::from).collect()),
            Coding::SingleOctet(upper) => octets.iter().map(|octet| single_char(upper, *octet)).collect(),
            Coding::MultiOctet(multi_octet) => multi_octet.decode(octets),
            Coding::Ascii | Coding::Fixed(_) => {
                str::from_utf8(octets).ok().filter(|text| text.is_ascii()).map(str::to_owned)
            }
        }
    }
}

fn single_octet(upper: &Upper, value: char) -> Option<u8> {
    if value.is_ascii() {
        return Some(value as u8);
    }
    let unit = u16::try_from(u32::from(value)).ok()?;
    let index = upper.iter().position(|candidate| *candidate == unit)?;
    u8::try_from(128 + index).ok()
}

fn single_char(upper: &Upper, octet: u8) -> Option<char> {
    match octet.checked_sub(128).map(|index| upper[usize::from(index)]) {
        None => Some(char::from(octet)),
        Some(0) => None,
        Some(unit) => char::from_u32(u32::from(unit)),
    }
}
