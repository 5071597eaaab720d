//! Flow specifications: their forms, and hostile texts.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use spandrel::bulk::wire::Token;
use spandrel_avstreams::{
    Carrier, Direction, FlowAddress, FlowEntry, FlowProtocol, FlowSpecError, MAX_ENTRY, MAX_FLOWS, parse_flow_spec,
    parse_reverse_flow_spec,
};

fn parsed(text: &str) -> FlowEntry {
    FlowEntry::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_forward_entry_has_name_direction_format_protocol_and_address() {
    let entry = parsed(r"video\in\MPEG\SFP:1.0:credit=10\UDP=127.0.0.1:5000");
    assert_eq!(entry.name, "video");
    assert_eq!(entry.direction, Some(Direction::In));
    assert_eq!(entry.format, "MPEG");
    assert_eq!(entry.protocol, FlowProtocol::Sfp { credit: Some(10) });
    assert_eq!(entry.address.unwrap().data, "127.0.0.1:5000".parse().unwrap());
    // The name alone, and empty parts.
    assert_eq!(parsed("video"), FlowEntry::named("video"));
    let entry = parsed(r"audio\OUT\\\tcp");
    assert_eq!((entry.direction, entry.carrier, entry.address), (Some(Direction::Out), Some(Carrier::Tcp), None));
    // TAO's entries have the address of the other party as a sixth part.
    parsed(r"Data_Receiver\IN\\\UDP=127.0.0.1:5000\UDP=127.0.0.1:5001");
}

#[test]
fn an_address_of_rtp_has_a_port_of_its_control_connection() {
    let address = parsed(r"video\in\\RTP\RTP/UDP=[::1]:5000;5007").address.unwrap();
    assert_eq!(address.control(), "[::1]:5007".parse().unwrap());
    let address = parsed(r"video\in\\RTP\RTP/UDP=10.0.0.1:5000").address.unwrap();
    assert_eq!(address.control(), "10.0.0.1:5001".parse().unwrap());
}

#[test]
fn a_reverse_entry_has_name_address_and_protocol() {
    let entry = FlowEntry::parse_reverse(r"video\UDP=127.0.0.1:5000\SFP:1.0").unwrap();
    assert_eq!(entry.protocol, FlowProtocol::Sfp { credit: None });
    assert_eq!(entry.carrier, Some(Carrier::Udp));
    // A whole entry is an answer as well.
    let entry = FlowEntry::parse_reverse(r"video\in\MPEG\\TCP=127.0.0.1:5000").unwrap();
    assert_eq!((entry.format.as_str(), entry.carrier), ("MPEG", Some(Carrier::Tcp)));
    assert_eq!(FlowEntry::parse_reverse("video").unwrap(), FlowEntry::named("video"));
}

#[test]
fn hostile_entries_are_refused_with_the_reason() {
    for (text, reason) in [
        ("", "is no name of a flow"),
        ("a\u{7}b", "`a?b` is no name of a flow"),
        (r"a\up", "the direction of a flow is `in` or `out`, not `up`"),
        (r"a\in\\SFP:2.0", "the flow protocol `SFP:2.0` is unknown"),
        (r"a\in\\SFP:1.0:credit=0", "the flow protocol `SFP:1.0:credit=0` is unknown"),
        (r"a\in\\\AAL5", "the carrier protocol `AAL5` is unknown"),
        (r"a\in\\\UDP=host:5000", "`UDP=host:5000` is no address of a flow"),
        (r"a\in\\\UDP=127.0.0.1:0", "is no address of a flow"),
        (r"a\in\\\UDP=127.0.0.1:5000;0", "is no address of a flow"),
        (r"a\in\\\UDP=127.0.0.1:5000;1;2", "is no address of a flow"),
        (r"a\in\\\UDP=127.0.0.1:5000;token=00", "the token of a flow has 64 hexadecimal digits"),
        (r"a\b\c\d\e\f\g", "the direction"),
        (r"a\in\c\\UDP\UDP=127.0.0.1:1\g", "at most six parts"),
    ] {
        let error = FlowEntry::parse(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let long = "x".repeat(MAX_ENTRY + 1);
    assert_eq!(FlowEntry::parse(&long), Err(FlowSpecError::Length(MAX_ENTRY + 1)));
    let many = vec!["a".to_owned(); MAX_FLOWS + 1];
    assert_eq!(parse_flow_spec(&many), Err(FlowSpecError::Flows(MAX_FLOWS + 1)));
    assert_eq!(parse_flow_spec(&many[..2]), Err(FlowSpecError::Twice("a".to_owned())));
}

fn entries() -> impl Strategy<Value = FlowEntry> {
    let protocol = prop_oneof![
        Just(FlowProtocol::None),
        Just(FlowProtocol::Rtp),
        prop::option::of(1_u32..).prop_map(|credit| FlowProtocol::Sfp { credit }),
    ];
    let direction = prop::option::of(prop_oneof![Just(Direction::In), Just(Direction::Out)]);
    let address = (any::<IpAddr>(), 1_u16.., prop::option::of(1_u16..), prop::option::of(any::<[u8; 32]>()));
    let carrier = proptest::sample::select(&Carrier::ALL[..]);
    let parts = ("[a-zA-Z0-9_ ]{1,20}", direction, "[A-Za-z:]{0,10}", protocol, prop::option::of(address), carrier);
    parts.prop_map(|(name, direction, format, protocol, address, carrier)| {
        let address = address.map(|(ip, port, control_port, token)| FlowAddress {
            carrier,
            data: SocketAddr::new(ip, port),
            control_port,
            token: token.map(Token),
        });
        FlowEntry { name, direction, format, protocol, carrier: Some(carrier), address }
    })
}

proptest! {
    #[test]
    fn entries_survive_their_text_forms(entry in entries()) {
        prop_assert_eq!(&FlowEntry::parse(&entry.to_string()).unwrap(), &entry);
        let reverse = FlowEntry { direction: None, format: String::new(), ..entry };
        prop_assert_eq!(FlowEntry::parse_reverse(&reverse.to_reverse()).unwrap(), reverse);
    }

    #[test]
    fn no_text_makes_the_parser_panic(texts in prop::collection::vec(r"\PC{0,40}|([a-z=;:./\\]|[0-9]){0,60}", 0..6)) {
        _ = parse_flow_spec(&texts);
        _ = parse_reverse_flow_spec(&texts);
    }
}
