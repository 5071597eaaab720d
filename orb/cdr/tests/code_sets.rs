//! Code sets of narrow and wide text: their octets compared with an independent implementation (Python's, see
//! `golden/code_sets.py`); round trips; and robustness against octets from a peer.

use crate::support;

use proptest::prelude::*;
use spandrel_cdr::{
    Any, ByteOrder, CdrError, Char, CharSet, Decode, Decoder, Encode, Encoder, GiopVersion, WString, WcharSet, Wire,
};

const EURO: char = '€';

fn narrow(set: CharSet) -> Wire {
    Wire { char_set: set, ..Wire::new(ByteOrder::Big, GiopVersion::V1_2) }
}

fn wide(set: &str, order: ByteOrder, version: GiopVersion) -> Wire {
    Wire { wchar_set: set.parse().unwrap(), ..Wire::new(order, version) }
}

/// The octets of a text without its length and its NUL.
fn octets(text: &str, set: CharSet) -> Result<Vec<u8>, CdrError> {
    let mut out = Encoder::new(narrow(set));
    out.short_str(text)?;
    let written = out.to_vec();
    Ok(written[4..written.len() - 1].to_vec())
}

fn text(octets: &[u8], set: CharSet) -> Result<String, CdrError> {
    let mut out = Encoder::new(narrow(set));
    out.octet_sequence(&[octets, &[0]].concat()).unwrap();
    Decoder::new(&out.to_vec(), narrow(set)).str().map(Into::into)
}

fn set(name: &str) -> CharSet {
    name.parse().unwrap()
}

/// The number of characters of the basic plane that a code set has beyond ASCII, and a hash of them with
/// their octets.
fn repertoire(set: CharSet, passed_over: &[char]) -> (usize, u64) {
    let (mut count, mut state) = (0, 0xcbf2_9ce4_8422_2325_u64);
    for value in ('\u{80}'..='\u{ffff}').filter(|value| !passed_over.contains(value)) {
        let Ok(octets) = octets(value.encode_utf8(&mut [0; 4]), set) else { continue };
        count += 1;
        for octet in u32::from(value).to_be_bytes().iter().chain(&octets) {
            state = (state ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    (count, state)
}

#[test]
#[cfg_attr(miri, ignore = "it encodes each character of Unicode in each code set, in safe code")]
fn encodings_equal_those_of_another_implementation() {
    for line in include_str!("golden/code_sets.txt").lines() {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap();
        let set = CharSet::from_number(u32::from_str_radix(word(), 16).unwrap()).unwrap();
        let (codec, count, hash) = (word(), word().parse().unwrap(), u64::from_str_radix(word(), 16).unwrap());
        let passed_over: Vec<char> =
            words.map(|word| char::from_u32(u32::from_str_radix(word, 16).unwrap()).unwrap()).collect();
        assert_eq!(repertoire(set, &passed_over), (count, hash), "{set} and {codec}");
    }
}

#[test]
fn each_code_set_decodes_its_own_encodings() {
    for set in CharSet::all() {
        for octet in (0x80..=0xff_u8).step_by(if cfg!(miri) { 41 } else { 1 }) {
            // Some sets have octets that are decoded and never encoded.
            if let Ok(read) = text(&[octet], set)
                && let Ok(written) = octets(&read, set)
            {
                assert_eq!(text(&written, set), Ok(read), "{set} {octet:#04x}");
            }
        }
        let sample = "\u{e9}\u{416}\u{20ac}\u{3b1}\u{5d0}\u{627}\u{e01}\u{4e9c}\u{ac00}\u{e000}\u{1f600}\u{2212}";
        for value in sample.chars() {
            match octets(&value.to_string(), set) {
                // The character with two mappings to Unicode.
                Ok(octets) if value == '\u{2212}' => {
                    assert!(["\u{2212}", "\u{ff0d}"].contains(&&*text(&octets, set).unwrap()), "{set}");
                }
                Ok(octets) => assert_eq!(text(&octets, set).unwrap(), value.to_string(), "{set}"),
                Err(error) => {
                    assert_eq!(error, CdrError::NotRepresentable { character: value, code_set: set.name() });
                }
            }
        }
    }
}

#[test]
fn a_code_set_is_found_by_its_number_and_its_names() {
    assert_eq!(set("iso8859_5"), set("ISO-8859-5"));
    assert_eq!(set("0x00010005"), set("ISO 8859-5"));
    assert_eq!(set("65541"), set("ISO 8859-5"));
    assert_eq!((set("cp1251").number(), set("CP1251").name()), (0x1002_04e3, "windows-1251"));
    assert_eq!((set("utf8"), set("latin1"), set("us-ascii")), (CharSet::Utf8, CharSet::Latin1, CharSet::Ascii));
    for set in CharSet::all() {
        assert_eq!(CharSet::from_number(set.number()), Some(set));
        assert_eq!(set.name().parse(), Ok(set));
    }
    for set in WcharSet::all() {
        assert_eq!(WcharSet::from_number(set.number()), Some(set));
        assert_eq!(set.name().parse(), Ok(set));
    }
    for unknown in ["", "EBCDIC", "UTF-16", "UCS-2", "0x00010109", "0x00010108", "0x", "-1", "99999999999"] {
        assert!(unknown.parse::<CharSet>().is_err(), "{unknown} is not for narrow text");
    }
    assert_eq!("none".parse(), Ok(WcharSet::Unknown));
    assert_eq!("utf16".parse(), Ok(WcharSet::Utf16));
    assert!("EBCDIC".parse::<WcharSet>().is_err());
}

#[test]
fn labels_of_the_encoding_standard_are_unknown() {
    // Browsers use these labels for windows-1252, windows-1254 and windows-874.
    assert_eq!(octets("\u{85}", set("ISO-8859-1")), Ok(vec![0x85]));
    assert_eq!(text(&[0x80], set("ISO-8859-9")), Ok("\u{80}".into()));
    assert_eq!(text(&[0x80], set("ISO-8859-11")), Ok("\u{80}".into()));
    // A yen sign is not a backslash, although the original Shift_JIS has one at its code.
    let refused = Err(CdrError::NotRepresentable { character: '¥', code_set: "Shift_JIS" });
    assert_eq!(octets("¥", set("Shift_JIS")), refused);
}

#[test]
fn a_missing_character_is_named_in_the_error() {
    for (name, said) in [("ISO-8859-1", "ISO 8859-1"), ("ASCII", "ISO 646"), ("KOI8-R", "KOI8-R"), ("EUC-KR", "EUC-KR")]
    {
        let error = octets("a\u{1f600}b", set(name)).unwrap_err();
        assert_eq!(error, CdrError::NotRepresentable { character: '\u{1f600}', code_set: set(name).name() });
        assert!(error.to_string().contains("U+1F600") && error.to_string().contains(said), "{error}");
    }
    assert_eq!(octets("\u{416}\0", set("KOI8-R")), Err(CdrError::NulInString));
    assert_eq!(text(&[0xc1, 0, 0xc1], set("KOI8-R")), Err(CdrError::StrayNul));
    for (name, hostile) in [
        ("Shift_JIS", &[0x81][..]),
        ("EUC-JP", &[0x8f, 0xa1]),
        ("Big5", &[0xa4, 0x20]),
        ("ASCII", &[0x80]),
        ("GBK", &[0xff]),
    ] {
        assert_eq!(text(hostile, set(name)), Err(CdrError::NotText(set(name).name())), "{name}");
    }
    assert_eq!(
        text(&[0xd2], set("windows-1253")),
        Err(CdrError::NotText("windows-1253")),
        "an octet without a character"
    );
}

fn wide_octets(text: &str, wire: Wire) -> Result<Vec<u8>, CdrError> {
    let mut out = Encoder::new(wire);
    out.wstr(text)?;
    Ok(out.to_vec())
}

fn letter(value: char, wire: Wire) -> Result<Vec<u8>, CdrError> {
    let mut out = Encoder::new(wire);
    out.wchar(value)?;
    Ok(out.to_vec())
}

#[test]
fn wide_text_in_other_code_sets_is_counted_octets() {
    for order in support::ORDERS {
        let in_1_2 = |set| wide(set, order, GiopVersion::V1_2);
        assert_eq!(letter(EURO, in_1_2("UCS-2")).unwrap(), [2, 0x20, 0xac]);
        // The octets of omniORB 4.2.5.
        let ucs4 = if order == ByteOrder::Big { [4, 0, 0, 0x20, 0xac] } else { [4, 0xac, 0x20, 0, 0] };
        assert_eq!(letter(EURO, in_1_2("UCS-4")).unwrap(), ucs4);
        assert_eq!(letter(EURO, in_1_2("UTF-8")).unwrap(), [3, 0xe2, 0x82, 0xac]);
        assert_eq!(letter(EURO, in_1_2("ISO-8859-15")).unwrap(), [1, 0xa4]);
        assert_eq!(letter('亜', in_1_2("EUC-JP")).unwrap(), [2, 0xb0, 0xa1]);
        let with = |octets: &[u8], set| {
            let mut out = Encoder::new(in_1_2(set));
            out.octet_sequence(octets).unwrap();
            WString::decode(&mut Decoder::new(&out.to_vec(), in_1_2(set)))
        };
        for (set, written) in [
            ("UCS-2", &[0, 0x61, 0x20, 0xac][..]),
            ("UCS-2", &[0xfe, 0xff, 0, 0x61, 0x20, 0xac]),
            ("UCS-2", &[0xff, 0xfe, 0x61, 0, 0xac, 0x20]),
            ("UCS-4", &[0, 0, 0xfe, 0xff, 0, 0, 0, 0x61, 0, 0, 0x20, 0xac]),
            ("UCS-4", &[0xff, 0xfe, 0, 0, 0x61, 0, 0, 0, 0xac, 0x20, 0, 0]),
            ("UTF-8", &[0x61, 0xe2, 0x82, 0xac]),
        ] {
            assert_eq!(with(written, set).unwrap(), "a€", "{set} {written:02x?}");
        }
        for text in ["\u{feff}a", "\u{fffe}a"] {
            for set in ["UTF-16", "UCS-2", "UCS-4"] {
                let written = wide_octets(text, in_1_2(set)).unwrap();
                assert_eq!(
                    Decoder::new(&written, in_1_2(set)).wstr().unwrap(),
                    text,
                    "a character that equals a mark is preserved"
                );
            }
        }
        assert_eq!(
            with(&[0xd8, 0x3d, 0xde, 0], "UCS-2"),
            Err(CdrError::NotText("UCS-2")),
            "surrogates belong to UTF-16"
        );
        let beyond = if order == ByteOrder::Big { [0, 0x11, 0, 0] } else { [0, 0, 0x11, 0] };
        assert_eq!(with(&beyond, "UCS-4"), Err(CdrError::NotText("UCS-4")));
        assert!(matches!(with(&[0, 0, 0], "UCS-2"), Err(CdrError::Malformed(_))));
        assert!(matches!(with(&[0, 0, 0, 0, 0, 1], "UCS-4"), Err(CdrError::Malformed(_))));
        assert_eq!(with(&[0xe2, 0x82], "UTF-8"), Err(CdrError::NotText("UTF-8")));
        let refused = CdrError::NotRepresentable { character: '\u{1f600}', code_set: "UCS-2" };
        assert_eq!(wide_octets("a\u{1f600}", in_1_2("UCS-2")), Err(refused.clone()));
        assert_eq!(letter('\u{1f600}', in_1_2("UCS-2")), Err(refused));
    }
}

#[test]
fn giop_1_1_has_wide_characters_of_two_octets_only() {
    let in_1_1 = |set| wide(set, ByteOrder::Little, GiopVersion::V1_1);
    assert_eq!(wide_octets("€", in_1_1("UCS-2")).unwrap(), [2, 0, 0, 0, 0xac, 0x20, 0, 0]);
    let refused = CdrError::NotRepresentable { character: '\u{1f600}', code_set: "UCS-2" };
    assert_eq!(wide_octets("\u{1f600}", in_1_1("UCS-2")), Err(refused));
    for set in ["UCS-4", "UTF-8", "EUC-JP"] {
        assert_eq!(wide_octets("a", in_1_1(set)), Err(CdrError::WideInGiop11(in_1_1(set).wchar_set.name())));
        let read = Decoder::new(&[0; 16], in_1_1(set)).wchar();
        assert_eq!(read, Err(CdrError::WideInGiop11(in_1_1(set).wchar_set.name())));
    }
}

/// A struct whose sequences are coded in blocks by both engines, and by field if its `char` is converted.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Letter {
    before: u8,
    letter: Char,
    two: [Char; 2],
    number: i32,
}

impl Letter {
    fn of(letter: char) -> Self {
        let letter = Char::try_from(letter).unwrap();
        Self { before: 0xe9, letter, two: [Char(b'a'), letter], number: 0x00e9_00e9 }
    }
}

spandrel_cdr::interpret!(
    struct Letter {
        before: u8,
        letter: Char,
        two: [Char; 2],
        number: i32,
    }
);

fn written<T: Encode>(value: &T, set: CharSet, order: ByteOrder) -> Result<Vec<u8>, CdrError> {
    let mut out = Encoder::new(Wire { char_set: set, ..Wire::new(order, GiopVersion::V1_2) });
    value.encode(&mut out)?;
    Ok(out.to_vec())
}

fn read<T: Decode>(octets: &[u8], set: CharSet, order: ByteOrder) -> Result<T, CdrError> {
    let wire = Wire { char_set: set, ..Wire::new(order, GiopVersion::V1_2) };
    T::decode(&mut Decoder::new(octets, wire))
}

#[test]
fn a_char_is_one_octet_of_the_code_set_or_rejected() {
    for order in support::ORDERS {
        for (name, octet) in [("ISO-8859-1", 0xe9), ("UTF-8", 0xe9), ("IBM-850", 0x82), ("windows-1252", 0xe9)] {
            let (set, e) = (set(name), Char(0xe9));
            assert_eq!(written(&e, set, order).unwrap(), [octet], "{name}");
            assert_eq!(read::<Char>(&[octet], set, order), Ok(e), "{name}");
            let all = written(&vec![e, Char(b'x'), e], set, order).unwrap();
            assert_eq!(all[4..], [octet, b'x', octet], "{name}");
            assert_eq!(read::<Vec<Char>>(&all, set, order).unwrap(), [e, Char(b'x'), e]);
            let letters = vec![Letter::of('é'), Letter::of('ü'), Letter::of('x'), Letter::of('é')];
            let all = written(&letters, set, order).unwrap();
            assert_eq!(all[4..8], [0xe9, octet, b'a', octet], "{name}: only chars are converted");
            assert_eq!(read::<Vec<Letter>>(&all, set, order).unwrap(), letters, "{name}");
            let one = written(&letters[0], set, order).unwrap();
            assert_eq!(one, all[4..12]);
            assert_eq!(read::<Letter>(&one, set, order).unwrap(), letters[0], "{name}");
        }
        for name in ["ASCII", "UTF-8", "ISO-8859-5", "Shift_JIS", "GB18030"] {
            let set = set(name).standard();
            let refused = CdrError::NotOneOctet { character: 'é', code_set: set.name() };
            assert_eq!(written(&Char(0xe9), set, order), Err(refused.clone()), "{name}");
            assert_eq!(written(&[Char(b'x'), Char(0xe9)], set, order), Err(refused.clone()), "{name}");
            assert_eq!(written(&vec![Letter::of('x'), Letter::of('é')], set, order), Err(refused), "{name}");
            let ascii = written(&vec![Letter::of('x'); 9], set, order).unwrap();
            assert_eq!(read::<Vec<Letter>>(&ascii, set, order).unwrap(), vec![Letter::of('x'); 9]);
        }
        let cyrillic = set("ISO-8859-5");
        assert_eq!(read::<Char>(&[0xe9], cyrillic, order), Err(CdrError::CharBeyondLatin1 { character: 'щ' }));
        let told = read::<Vec<Char>>(&[0, 0, 0, 1, 0xe9], cyrillic, ByteOrder::Big).unwrap_err().to_string();
        assert!(told.contains("U+0449"), "{told}");
        assert_eq!(read::<Char>(&[0x81], set("Shift_JIS"), order), Err(CdrError::NotText("Shift_JIS")));
        assert_eq!(read::<Char>(&[0xe9], set("UTF-8").standard(), order), Err(CdrError::NotText("UTF-8")));
    }
}

#[test]
fn an_any_is_converted_to_another_code_set() {
    let value = Any::new(vec![Char(0xe9), Char(b'x')]).unwrap();
    for (name, octet) in [("ISO-8859-1", 0xe9), ("IBM-850", 0x82)] {
        let mut out = Encoder::new(narrow(set(name)));
        value.write_value(&mut out).unwrap();
        assert_eq!(out.to_vec(), [0, 0, 0, 2, octet, b'x'], "{name}");
    }
    let refused = CdrError::NotOneOctet { character: 'é', code_set: "ISO 8859-5" };
    assert_eq!(value.write_value(&mut Encoder::new(narrow(set("ISO-8859-5")))), Err(refused));
}

fn any_narrow() -> impl Strategy<Value = CharSet> {
    proptest::sample::select(CharSet::all().collect::<Vec<_>>())
}

fn any_wide() -> impl Strategy<Value = WcharSet> {
    proptest::sample::select(WcharSet::all().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn encodable_narrow_text_survives_decoding(set in any_narrow(), text_in in "[^\0\u{a2}\u{a3}\u{ac}\u{2016}\u{2212}\u{301c}]{0,12}") {
        // The excluded characters have two mappings to Unicode and one in JIS.
        let writable: String = text_in.chars().filter(|value| octets(&value.to_string(), set).is_ok()).collect();
        prop_assert_eq!(text(&octets(&writable, set).unwrap(), set).unwrap(), writable);
    }

    #[test]
    fn any_octets_are_text_or_an_error(set in any_narrow(), hostile in proptest::collection::vec(1..=255_u8, 0..12)) {
        match text(&hostile, set) {
            Ok(read) => prop_assert!(read.len() <= 4 * hostile.len()),
            Err(error) => prop_assert_eq!(error, CdrError::NotText(set.name())),
        }
    }

    #[test]
    fn encodable_wide_text_survives_decoding(
        set in any_wide(),
        order in support::order(),
        text in "[a\u{e9}\u{416}\u{4e9c}\u{ac00}\u{1f600}]{0,8}",
    ) {
        let wire = Wire { wchar_set: set, ..Wire::new(order, GiopVersion::V1_2) };
        let writable: String = text.chars().filter(|value| letter(*value, wire).is_ok()).collect();
        let written = wide_octets(&writable, wire).unwrap();
        prop_assert_eq!(Decoder::new(&written, wire).wstr().unwrap(), &*writable);
        for value in writable.chars() {
            prop_assert_eq!(Decoder::new(&letter(value, wire).unwrap(), wire).wchar().unwrap(), value);
        }
    }

    #[test]
    fn any_octets_are_wide_text_or_an_error(set in any_wide(), hostile in proptest::collection::vec(any::<u8>(), 0..16)) {
        let wire = Wire { wchar_set: set, ..Wire::default() };
        let mut out = Encoder::new(wire);
        out.octet_sequence(&hostile).unwrap();
        if let Ok(read) = Decoder::new(&out.to_vec(), wire).wstr() {
            prop_assert!(read.len() <= 4 * hostile.len());
        }
        _ = Decoder::new(&hostile, wire).wchar();
    }
}
