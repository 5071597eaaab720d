//! References as text and as profiles: parsing restores the printed reference, and errors name the reason and
//! the position.

use crate::tests::support;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{ByteOrder, CdrError, Encoder, GiopVersion, Ior, TaggedComponent, TaggedProfile, Wire};
use spandrel_giop::{
    Address, Corbaloc, DEFAULT_PORT, GiopError, IiopProfile, ObjectUrl, Reaction, ReferenceError, TAG_INTERNET_IOP,
    component::{CodeSets, Component, ComponentDisplay, PolicyValue, TAG_CODE_SETS, TAG_ORB_TYPE},
    ids, ior_from_string, ior_to_string,
    percent::{Escaped, unescape, unescape_leniently, unescape_name},
};
use support::VERSIONS;

fn component() -> impl Strategy<Value = TaggedComponent> {
    (any::<u32>(), vec(any::<u8>(), 0..30)).prop_map(|(tag, data)| TaggedComponent { tag, data })
}

fn iiop_profile() -> impl Strategy<Value = IiopProfile> {
    let parts = (prop::sample::select(&VERSIONS), "[a-z0-9.:]{0,20}", any::<u16>());
    (parts, vec(any::<u8>(), 0..40), vec(component(), 0..4)).prop_map(
        |((version, host, port), object_key, components)| {
            let components = if version > GiopVersion::V1_0 { components } else { Vec::new() };
            IiopProfile { version, host, port, object_key, components }
        },
    )
}

fn ior() -> impl Strategy<Value = Ior> {
    let profile = (any::<u32>(), vec(any::<u8>(), 0..40)).prop_map(|(tag, data)| TaggedProfile { tag, data });
    ("[ -~\u{e9}]{0,30}", vec(profile, 0..4)).prop_map(|(type_id, profiles)| Ior { type_id, profiles })
}

fn address() -> impl Strategy<Value = Address> {
    let host = prop_oneof!["[a-z][a-z0-9.-]{0,12}", "[0-9a-f]{1,4}::[0-9a-f]{1,4}"];
    (any::<u8>(), host, any::<u16>()).prop_map(|(minor, host, port)| Address::Iiop {
        version: GiopVersion { major: 1, minor },
        host,
        port,
    })
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_reference_survives_printing_and_parsing(ior in ior()) {
        let text = ior_to_string(&ior);
        prop_assert_eq!(ior_from_string(&text), Ok(ior.clone()));
        let shouted = format!(" \tior:{}\n", text[4..].to_uppercase());
        prop_assert_eq!(ior_from_string(&shouted), Ok(ior.clone()));
        prop_assert_eq!(text.parse::<ObjectUrl>(), Ok(ObjectUrl::Ior(ior)));
    }

    #[test]
    fn a_profile_survives_encoding_and_decoding(profile in iiop_profile()) {
        let tagged = profile.encode().unwrap();
        prop_assert_eq!(IiopProfile::decode(&tagged), Ok(Some(profile.clone())));
        prop_assert!(profile.to_string().starts_with("IIOP 1."));
    }

    #[test]
    fn a_corbaloc_survives_printing_and_parsing(addresses in vec(address(), 1..4), key in vec(any::<u8>(), 0..20)) {
        let corbaloc = Corbaloc { addresses, key };
        prop_assert_eq!(corbaloc.to_string().parse::<Corbaloc>(), Ok(corbaloc));
    }

    #[test]
    fn any_text_is_a_reference_or_rejected(text in "(IOR:|corbaloc:|)[ -~\u{e9}\u{20ac}]{0,60}") {
        match text.parse::<ObjectUrl>() {
            Ok(url) => prop_assert_eq!(url.to_string().parse::<ObjectUrl>(), Ok(url)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_digits_are_a_reference_or_rejected(octets in vec(any::<u8>(), 0..80)) {
        let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        let _ = ior_from_string(&format!("IOR:{digits}"));
    }

    #[test]
    fn any_octets_are_a_profile_or_rejected(data in vec(any::<u8>(), 0..80), tag in 0..4_u32) {
        if let Err(error) = IiopProfile::decode(&TaggedProfile { tag: TAG_INTERNET_IOP, data: data.clone() }) {
            prop_assert_eq!(error.reaction(), Reaction::RefuseReference);
        }
        let component = TaggedComponent { tag, data };
        prop_assert!(!ComponentDisplay(&component).to_string().is_empty());
    }
}

#[test]
fn profiles_of_other_protocols_are_not_decoded() {
    let foreign = TaggedProfile { tag: 1, data: vec![0, 1, 2] };
    assert_eq!(IiopProfile::decode(&foreign), Ok(None));
    let version_two = TaggedProfile { tag: TAG_INTERNET_IOP, data: vec![0, 2, 0] };
    assert_eq!(IiopProfile::decode(&version_two), Ok(None));
}

#[test]
fn a_profile_gives_the_first_component_of_a_tag() {
    let component = |tag, data: &[u8]| TaggedComponent { tag, data: data.to_vec() };
    let profile = IiopProfile {
        version: GiopVersion::V1_2,
        host: "h".to_owned(),
        port: 7,
        object_key: b"k".to_vec(),
        components: vec![component(5, b"five"), component(6, b"six"), component(5, b"another")],
    };
    assert_eq!(profile.component(5), Some(&b"five"[..]));
    assert_eq!(profile.component(6), Some(&b"six"[..]));
    assert_eq!(profile.component(7), None);
}

#[test]
fn octets_after_the_known_members_of_a_profile_are_ignored() {
    for version in VERSIONS {
        let profile =
            IiopProfile { version, host: "h".to_owned(), port: 7, object_key: b"k".to_vec(), components: Vec::new() };
        let mut tagged = profile.encode().unwrap();
        tagged.data.extend([1, 2, 3]);
        assert_eq!(IiopProfile::decode(&tagged), Ok(Some(profile)));
    }
}

#[test]
fn profiles_are_decoded_in_both_byte_orders() {
    let big = [0, 1, 0, 0, 0, 0, 0, 2, b'h', 0, 0x0b, 0x04, 0, 0, 0, 1, b'k'];
    let little = [1, 1, 0, 0, 2, 0, 0, 0, b'h', 0, 0x04, 0x0b, 1, 0, 0, 0, b'k'];
    for data in [big, little] {
        let profile = IiopProfile::decode(&TaggedProfile { tag: 0, data: data.to_vec() }).unwrap().unwrap();
        assert_eq!(profile.to_string(), "IIOP 1.0 h:2820 key \"k\"");
    }
}

#[test]
fn components_survive_encoding_and_print_their_content() {
    let sets = |native, conversion| CodeSets { native, conversion };
    let cases = [
        (Component::OrbType(ids::ORB_TYPE), "ORB type Spandrel"),
        (Component::OrbType(0x4154_5400), "ORB type omniORB"),
        (Component::OrbType(0x1234), "ORB type 0x00001234"),
        (
            Component::CodeSets {
                char_data: sets(0x0001_0001, vec![0x0501_0001]),
                wchar_data: sets(0x0001_0109, vec![0xff]),
            },
            "code sets char ISO 8859-1 or UTF-8; wchar UTF-16 or 0x000000ff",
        ),
        (Component::AlternateIiopAddress { host: "::1".to_owned(), port: 9 }, "also at [::1]:9"),
        (Component::CompleteObjectKey(b"a key\0".to_vec()), "key \"a key\\x00\""),
        (
            Component::Policies(vec![
                PolicyValue { policy_type: 32, data: vec![1, 0, 0, 0] },
                PolicyValue { policy_type: 40, data: Vec::new() },
            ]),
            "policies of types 32 40",
        ),
    ];
    for (component, text) in cases {
        let tagged = component.encode().unwrap();
        assert_eq!(Component::decode(&tagged), Ok(Some(component)));
        assert_eq!(ComponentDisplay(&tagged).to_string(), text);
    }
    let show = |tag, data: &[u8]| ComponentDisplay(&TaggedComponent { tag, data: data.to_vec() }).to_string();
    assert_eq!(show(TAG_CODE_SETS, &[0]), "malformed TAG_CODE_SETS of 1 octets");
    assert_eq!(show(TAG_ORB_TYPE, &[]), "malformed TAG_ORB_TYPE of 0 octets");
    assert_eq!(show(2, &[1, 2]), "TAG_POLICIES of 2 octets");
    assert_eq!(show(0x99, &[]), "component 0x99 of 0 octets");
}

#[test]
fn a_malformed_ior_is_rejected_with_the_position() {
    let error = |text: &str| ior_from_string(text).unwrap_err();
    assert_eq!(error("  IOR:00g0"), ReferenceError::NotHex { position: 8, found: 'g' });
    assert_eq!(error("IOR:000"), ReferenceError::OddDigits(3));
    assert_eq!(error("http://x"), ReferenceError::UnknownScheme("http://x".to_owned()));
    assert_eq!(error("file:///var/exchange.ior"), ReferenceError::UnknownScheme("file:///var/exch…".to_owned()));
    assert_eq!(error(""), ReferenceError::UnknownScheme(String::new()));
    let cause = CdrError::Truncated { needed: 1, remaining: 0 };
    assert_eq!(error("IOR:"), ReferenceError::Malformed { octet: 0, cause });
    let cause = CdrError::LengthBeyondInput { len: 255, remaining: 1 };
    assert_eq!(
        error("IOR:00000000 000000ff61".replace(' ', "").as_str()),
        ReferenceError::Malformed { octet: 8, cause }
    );
    assert_eq!(error("IOR:00g0").to_string(), "`g` at position 6 is not a hexadecimal digit");
}

fn iiop(minor: u8, host: &str, port: u16) -> Address {
    Address::Iiop { version: GiopVersion { major: 1, minor }, host: host.to_owned(), port }
}

fn ssliop(minor: u8, host: &str, port: u16) -> Address {
    Address::Ssliop { version: GiopVersion { major: 1, minor }, host: host.to_owned(), port }
}

#[test]
fn corbalocs_are_parsed_as_the_standard_specifies() {
    let cases = [
        ("corbaloc::host", vec![iiop(0, "host", DEFAULT_PORT)], ""),
        ("corbaloc:iiop:host/Name", vec![iiop(0, "host", 2809)], "Name"),
        ("corbaloc::1.2@host:7/a/b", vec![iiop(2, "host", 7)], "a/b"),
        ("CORBALOC:iiop:1.1@[::1]:7/k", vec![iiop(1, "::1", 7)], "k"),
        ("corbaloc::[fe80::1]/k", vec![iiop(0, "fe80::1", 2809)], "k"),
        ("corbaloc::a:1,iiop:1.2@b:2,:c/k", vec![iiop(0, "a", 1), iiop(2, "b", 2), iiop(0, "c", 2809)], "k"),
        ("corbaloc::/k", vec![iiop(0, "localhost", 2809)], "k"),
        ("corbaloc:rir:/RootPOA", vec![Address::Rir], "RootPOA"),
        ("corbaloc:rir:", vec![Address::Rir], "NameService"),
        ("corbaloc::h/%41%00%ff%2F", vec![iiop(0, "h", 2809)], "A\0\u{ff}/"),
        ("corbaloc:uds:/h,:g/k", vec![Address::Other("uds:".to_owned())], "h,:g/k"),
        ("corbaloc:ssliop:h:1,:g/k", vec![ssliop(2, "h", 1), iiop(0, "g", 2809)], "k"),
        ("corbaloc:ssliop:1.1@[::1]:1/k", vec![ssliop(1, "::1", 1)], "k"),
    ];
    for (text, addresses, key) in cases {
        let key = key.chars().map(|c| u8::try_from(c).expect("Latin-1")).collect();
        let expected = Corbaloc { addresses, key };
        assert_eq!(text.parse(), Ok(ObjectUrl::Corbaloc(expected.clone())), "{text}");
        assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
    }
}

#[test]
fn an_address_of_tls_has_its_port_in_a_component() {
    let ior = "corbaloc:ssliop:h:7/k".parse::<Corbaloc>().unwrap().to_ior().unwrap();
    let profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    assert_eq!((profile.version, &*profile.host, profile.port), (GiopVersion::V1_2, "h", 0));
    match Component::decode(&profile.components[0]).unwrap() {
        Some(Component::SslSecTrans(tls)) => assert_eq!(tls.port, 7),
        other => panic!("{other:?}"),
    }
}

#[test]
fn malformed_corbalocs_are_rejected_with_the_position() {
    assert_eq!(
        "corbaloc:ssliop:1.0@h:7/k".parse::<Corbaloc>(),
        Err(ReferenceError::BadVersion { position: 16, text: "1.0".to_owned() })
    );
    let error = |text: &str| text.parse::<Corbaloc>().unwrap_err();
    let text = |text: &str| text.to_owned();
    assert_eq!(error("corbaloc:"), ReferenceError::NoAddress(9));
    assert_eq!(error("corbaloc:/k"), ReferenceError::NoAddress(9));
    assert_eq!(error("corbaloc::a,,:b/k"), ReferenceError::NoAddress(12));
    assert_eq!(error("corbaloc:host/k"), ReferenceError::NoProtocol { position: 9, text: text("host") });
    assert_eq!(error("corbaloc::2.0@h/k"), ReferenceError::BadVersion { position: 10, text: text("2.0") });
    assert_eq!(error("corbaloc::1@h/k"), ReferenceError::BadVersion { position: 10, text: text("1") });
    assert_eq!(error("corbaloc::1.+2@h/k"), ReferenceError::BadVersion { position: 10, text: text("1.+2") });
    assert_eq!(error("corbaloc::h:70000/k"), ReferenceError::BadPort { position: 12, text: text("70000") });
    assert_eq!(error("corbaloc::1.2@h:x/k"), ReferenceError::BadPort { position: 16, text: text("x") });
    assert_eq!(error("corbaloc::::1/k"), ReferenceError::BadHost { position: 10, text: text("::1") });
    assert_eq!(error("corbaloc::[]:1/k"), ReferenceError::BadHost { position: 10, text: text("[]:1") });
    assert_eq!(error("corbaloc::[::1]x/k"), ReferenceError::BadHost { position: 10, text: text("[::1]x") });
    assert_eq!(error("corbaloc:rir:,:h/k"), ReferenceError::RirNotAlone(9));
    assert_eq!(error("corbaloc:rir:h/k"), ReferenceError::RirNotAlone(9));
    assert_eq!(error("corbaloc::h/a%4"), ReferenceError::BadEscape(13));
    assert_eq!(error("  corbaloc::h/%zz"), ReferenceError::BadEscape(14));
    assert_eq!(error("corbaname::h"), ReferenceError::UnknownScheme(text("corbaname::h")));
}

#[test]
fn octets_are_escaped_in_urls_and_read_again() {
    let all: Vec<u8> = (0..=255).collect();
    let text = Escaped(&all).to_string();
    assert_eq!(unescape(&text).unwrap(), all);
    assert_eq!(unescape(&text.to_ascii_uppercase()).unwrap(), all.to_ascii_uppercase(), "digits of either case");
    let whole: String =
        all.iter().filter(|octet| Escaped(&[**octet]).to_string().len() == 1).map(|octet| char::from(*octet)).collect();
    assert_eq!(whole, "!$&'()*+,-./0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~");
    for (text, position) in [("%", 0), ("a%4", 1), ("%41%+1", 3), ("%4\u{e9}", 0), ("\u{e9}%zz", 2)] {
        assert_eq!(unescape(text), Err(position), "{text}");
        assert_eq!(unescape_leniently(text), text.replace("%41", "A").into_bytes(), "{text}");
    }
    assert_eq!(unescape_leniently("100%/%c3%a9%2"), "100%/\u{e9}%2".as_bytes());
    assert_eq!(unescape_name("caf%c3%a9"), Ok("caf\u{e9}".to_owned()), "UTF-8");
    assert_eq!(unescape_name("caf%e9"), Ok("caf\u{e9}".to_owned()), "ISO 8859-1");
}

#[test]
fn a_corbaloc_becomes_a_reference_with_a_profile_for_each_address() {
    let corbaloc: Corbaloc = "corbaloc::a:1,htiop:x,iiop:1.2@[::1]:2/key".parse().unwrap();
    let ior = corbaloc.to_ior().unwrap();
    let profiles: Vec<_> = ior.profiles.iter().map(|p| IiopProfile::decode(p).unwrap().unwrap().to_string()).collect();
    assert_eq!(profiles, ["IIOP 1.0 a:1 key \"key\"", "IIOP 1.2 [::1]:2 key \"key\""]);
    assert_eq!(ior.type_id, "");
    let rir: Corbaloc = "corbaloc:rir:/X".parse().unwrap();
    assert_eq!(rir.to_ior(), Err(ReferenceError::NoProfile("corbaloc:rir:/X".to_owned())));
}

#[test]
fn the_nil_reference_has_a_text_form() {
    let text = ior_to_string(&Ior::default());
    assert!(ior_from_string(&text).unwrap().is_nil());
    // As omniORB prints it: a flag, three octets of padding, an empty string, no profiles.
    assert!(ior_from_string("IOR:01000000010000000000000000000000").unwrap().is_nil());
}

#[test]
fn a_malformed_profile_rejects_the_reference_only() {
    let error = IiopProfile::decode(&TaggedProfile { tag: 0, data: vec![0, 1, 0] }).unwrap_err();
    assert!(matches!(error, GiopError::Profile { .. }));
    assert_eq!(error.reaction(), Reaction::RefuseReference);
}

#[test]
fn a_reference_in_the_other_byte_order_decodes_alike() {
    let order = if ByteOrder::NATIVE == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
    let ior = Ior { type_id: "IDL:T:1.0".to_owned(), profiles: vec![TaggedProfile { tag: 0, data: vec![1, 2, 3] }] };
    let mut out = Encoder::new(Wire::new(order, GiopVersion::V1_0));
    out.u8(order.flag());
    spandrel_cdr::Encode::encode(&ior, &mut out).unwrap();
    let digits: String = out.to_vec().iter().map(|octet| format!("{octet:02x}")).collect();
    assert_eq!(ior_from_string(&format!("IOR:{digits}")).as_ref(), Ok(&ior));
}

/// Found by fuzzing: an address that ended in white space was printed, and parsed back without it.
#[test]
fn an_address_has_no_white_space_and_no_control_characters() {
    for text in [
        "corbaloc:ii\0;e:1/k",
        "corbaloc:uds:\u{1b}[2J/k",
        "corbaloc:other:\u{202e}a/k",
        "corbaloc:other:a ,:b/key",
        "corbaloc:iiop:ho st:1/key",
        "corbaloc:other:a\t/key",
    ] {
        assert!(matches!(text.parse::<Corbaloc>(), Err(ReferenceError::BadHost { .. })), "{text:?}");
    }
}

#[test]
fn a_host_has_only_the_brackets_of_an_ipv6_address() {
    for text in [
        "corbaloc::[[::1]:1/k",
        "corbaloc::[name]:1/k",
        "corbaloc::a]:1/k",
        "corbaloc::1.2@a@b:1/k",
        "corbaloc::a\0b/k",
    ] {
        assert!(matches!(text.parse::<Corbaloc>(), Err(ReferenceError::BadHost { .. })), "{text:?}");
    }
}

#[test]
fn a_host_in_the_place_of_the_protocol_is_recognised() {
    let error = |text: &str| match text.parse::<Corbaloc>() {
        Ok(corbaloc) => corbaloc.to_ior().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(error("corbaloc:host/k").ends_with("; did you mean `:host`?"), "{}", error("corbaloc:host/k"));
    assert!(error("corbaloc:host:2809/k").ends_with("; did you mean `corbaloc::host:2809/k`?"));
    for other in ["corbaloc:rir:/X", "corbaloc:future:thing/k", "corbaloc:[::1/k"] {
        assert!(!error(other).contains("did you mean"), "{}", error(other));
    }
}
