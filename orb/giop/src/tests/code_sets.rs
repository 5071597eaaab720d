//! The choice of transmission code sets (CORBA 3.3 Part 2, 7.10.2.6): each of its branches, for narrow and
//! for wide text.

use spandrel_cdr::{CharSet, GiopVersion, WcharSet};
use spandrel_giop::{
    CompletionStatus, NoCommonCodeSet, OwnCodeSets, SystemException, SystemExceptionKind, TransmissionCodeSets,
    component::{CodeSets, Component},
    minor,
};

const LATIN1: u32 = 0x0001_0001;
const LATIN2: u32 = 0x0001_0002;
const CYRILLIC: u32 = 0x0001_0005;
const GREEK: u32 = 0x0001_0007;
const UTF8: u32 = 0x0501_0001;
const UTF16: u32 = 0x0001_0109;
const UCS2: u32 = 0x0001_0100;
const UCS4: u32 = 0x0001_0106;
/// In the registry, and not converted here.
const EBCDIC: u32 = 0x1002_0025;

fn sets(native: u32, conversion: &[u32]) -> CodeSets {
    CodeSets { native, conversion: conversion.to_vec() }
}

fn narrow(set: u32) -> CharSet {
    CharSet::from_number(set).unwrap()
}

fn wide(set: u32) -> WcharSet {
    WcharSet::from_number(set).unwrap()
}

/// A client with this native code set and exactly these conversions.
fn client(native: u32, conversion: &[u32]) -> OwnCodeSets {
    let conversion = conversion.iter().map(|set| narrow(*set)).collect();
    OwnCodeSets { char_set: narrow(native), char_conversion: Some(conversion), ..OwnCodeSets::default() }
}

fn chosen(own: &OwnCodeSets, server: &CodeSets) -> Result<u32, NoCommonCodeSet> {
    TransmissionCodeSets::choose(own, server, &sets(UTF16, &[]), false, GiopVersion::V1_2)
        .map(|chosen| chosen.char_set.number())
}

#[test]
fn the_same_native_code_set_is_not_converted() {
    assert_eq!(chosen(&client(GREEK, &[]), &sets(GREEK, &[])), Ok(GREEK));
}

#[test]
fn then_the_client_converts_to_the_servers_native_code_set() {
    assert_eq!(chosen(&client(GREEK, &[CYRILLIC, UTF8]), &sets(CYRILLIC, &[GREEK, UTF8])), Ok(CYRILLIC));
    // A client without a list converts to all known code sets.
    assert_eq!(chosen(&OwnCodeSets::default(), &sets(CYRILLIC, &[])), Ok(CYRILLIC));
}

#[test]
fn then_the_server_converts_from_the_clients() {
    assert_eq!(chosen(&client(GREEK, &[UTF8]), &sets(CYRILLIC, &[UTF8, GREEK])), Ok(GREEK));
}

#[test]
fn then_both_convert_to_the_code_set_that_the_server_prefers() {
    let server = sets(EBCDIC, &[LATIN2, UTF8, CYRILLIC]);
    assert_eq!(chosen(&client(GREEK, &[CYRILLIC, UTF8]), &server), Ok(UTF8));
    assert_eq!(chosen(&client(GREEK, &[CYRILLIC]), &server), Ok(CYRILLIC));
}

#[test]
fn then_both_fall_back_to_utf_8_if_they_have_characters_in_common() {
    assert_eq!(chosen(&client(LATIN1, &[]), &sets(EBCDIC, &[])), Ok(UTF8), "both have Latin-1");
    assert_eq!(chosen(&client(UTF8, &[]), &sets(GREEK, &[])), Ok(UTF8), "one has all of them");
}

#[test]
fn without_common_characters_the_exception_names_the_code_sets() {
    let refused = chosen(&client(GREEK, &[CYRILLIC]), &sets(EBCDIC, &[LATIN2])).unwrap_err();
    assert_eq!(refused, NoCommonCodeSet { server: EBCDIC, own: narrow(GREEK) });
    let exception = SystemException::from(refused);
    assert_eq!(
        (exception.kind(), exception.minor(), exception.completed()),
        (SystemExceptionKind::CodesetIncompatible, minor::NO_COMMON_CODE_SET, CompletionStatus::No)
    );
    let text = exception.to_string();
    for word in ["0x10020025", "ISO 8859-7", "-ORBConversionCodeSets"] {
        assert!(text.contains(word), "{word} in: {text}");
    }
    assert!(chosen(&client(GREEK, &[]), &sets(0x7777_7777, &[])).is_err(), "it is not registered");
}

#[test]
fn servers_of_the_same_orb_get_unrestricted_text() {
    let ours = |own: &OwnCodeSets, server: &OwnCodeSets| {
        let Component::CodeSets { char_data, wchar_data } = server.component() else { unreachable!() };
        let chosen = TransmissionCodeSets::choose(own, &char_data, &wchar_data, true, GiopVersion::V1_2).unwrap();
        (chosen.char_set.number(), chosen.wchar_set.number())
    };
    let usual = OwnCodeSets::default();
    assert_eq!(ours(&usual, &usual), (UTF8, UTF16));
    let greek = OwnCodeSets { char_set: narrow(GREEK), ..OwnCodeSets::default() };
    assert_eq!(ours(&greek, &greek), (UTF8, UTF16));
    assert_eq!(ours(&usual, &client(GREEK, &[])), (GREEK, UTF16), "the server offers no conversion");
    assert_eq!(ours(&client(LATIN1, &[]), &greek), (LATIN1, UTF16), "the client configured no conversion");
}

#[test]
fn a_server_without_a_narrow_code_set_gets_the_default_one() {
    assert_eq!(chosen(&client(UTF8, &[UTF8]), &sets(0, &[UTF8])), Ok(LATIN1));
}

#[test]
fn wide_text_follows_the_same_rules_and_is_rejected_only_when_sent() {
    let own = |native, conversion: Option<&[u32]>| OwnCodeSets {
        wchar_set: wide(native),
        wchar_conversion: conversion.map(|sets| sets.iter().map(|set| wide(*set)).collect()),
        ..OwnCodeSets::default()
    };
    let chosen = |own: &OwnCodeSets, server: &CodeSets, version| {
        TransmissionCodeSets::choose(own, &sets(LATIN1, &[]), server, false, version).unwrap().wchar_set.number()
    };
    let (v11, v12) = (GiopVersion::V1_1, GiopVersion::V1_2);
    assert_eq!(chosen(&own(UTF16, None), &sets(UCS4, &[UTF16]), v12), UCS4);
    assert_eq!(chosen(&own(UTF16, None), &sets(UCS4, &[UTF16]), v11), UTF16, "GIOP 1.1 has two octets at most");
    assert_eq!(chosen(&own(UCS4, None), &sets(UCS4, &[]), v11), UTF16);
    assert_eq!(chosen(&own(UTF16, None), &sets(UCS2, &[]), v11), UCS2);
    assert_eq!(chosen(&own(UTF16, Some(&[])), &sets(UCS4, &[]), v12), UTF16, "the fallback");
    assert_eq!(chosen(&own(UTF16, None), &sets(UTF8, &[]), v12), UTF8);
    assert_eq!(chosen(&own(GREEK, Some(&[])), &sets(CYRILLIC, &[]), v12), 0);
    assert_eq!(chosen(&own(UTF16, None), &sets(0, &[UTF16]), v12), 0, "the server has none");
    assert_eq!(chosen(&own(0, None), &sets(UTF16, &[]), v12), 0, "the client has none");
}

#[test]
fn the_conversion_code_sets_of_a_reference_exclude_the_native_one() {
    let offered = |own: &OwnCodeSets| match own.component() {
        Component::CodeSets { char_data, wchar_data } => (char_data, wchar_data),
        other => panic!("{other}"),
    };
    assert_eq!(offered(&OwnCodeSets::default()), (sets(LATIN1, &[UTF8]), sets(UTF16, &[])));
    let own = OwnCodeSets { char_set: narrow(GREEK), wchar_set: wide(UCS4), ..OwnCodeSets::default() };
    assert_eq!(offered(&own), (sets(GREEK, &[UTF8, LATIN1]), sets(UCS4, &[UTF16])));
    let own = OwnCodeSets { wchar_set: WcharSet::Unknown, ..client(GREEK, &[CYRILLIC, GREEK]) };
    assert_eq!(offered(&own), (sets(GREEK, &[CYRILLIC]), CodeSets::default()));
}

#[test]
fn a_context_with_known_code_sets_is_accepted() {
    for char_set in CharSet::all() {
        for wchar_set in WcharSet::all().chain([WcharSet::Unknown]) {
            for char_set in [char_set, char_set.standard()] {
                let said = TransmissionCodeSets { char_set, wchar_set };
                let heard = TransmissionCodeSets::from_context(&said.to_context().data).unwrap();
                assert_eq!((heard.char_set.number(), heard.wchar_set), (char_set.number(), wchar_set));
                // There is one kind of ASCII.
                assert_eq!(heard.char_set == char_set, char_set != CharSet::Ascii, "{char_set}");
            }
        }
    }
    // UTF-16 is no code set of octets.
    let wide = [0, 0, 0, 0, 0, 1, 1, 9, 0, 1, 1, 9];
    let refused = TransmissionCodeSets::from_context(&wide).unwrap_err();
    assert_eq!(refused.minor(), minor::UNSUPPORTED_CODE_SET);
    assert!(refused.to_string().contains("UTF-16 (0x00010109) for char"), "{refused}");
}
