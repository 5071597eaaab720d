//! Every header in every version and byte order: the decoded header equals the encoded one, and invalid input
//! gives an error.

use crate::tests::support;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{ByteOrder, CdrError, Decoder, Encoder, GiopVersion, Ior, Joint, Limits, TaggedProfile, Wire};
use spandrel_giop::{
    AddressingDisposition, Assembler, CancelRequest, GiopError, HEADER_LEN, LocateReplyHeader, LocateRequestHeader,
    LocateStatus, Message, MessageHeader, MessageType, Reaction, ReplyHeader, ReplyStatus, RequestHeader,
    RequestTemplate, ResponseFlags, ServiceContext, SystemException, SystemExceptionKind, TAG_MULTIPLE_COMPONENTS,
    Target, bare_message, begin_locate_reply, begin_reply, locate_request,
};
use spandrel_message::MessageBlock;
use support::{VERSIONS, hex, wire, wires};

fn contexts() -> impl Strategy<Value = Vec<ServiceContext>> {
    vec((any::<u32>(), vec(any::<u8>(), 0..40)).prop_map(|(id, data)| ServiceContext { id, data }), 0..4)
}

fn profile() -> impl Strategy<Value = TaggedProfile> {
    (any::<u32>(), vec(any::<u8>(), 0..40)).prop_map(|(tag, data)| TaggedProfile { tag, data })
}

fn ior() -> impl Strategy<Value = Ior> {
    ("[ -~]{0,30}", vec(profile(), 0..3)).prop_map(|(type_id, profiles)| Ior { type_id, profiles })
}

/// A target without the lifetime of a key.
#[derive(Clone, Debug)]
enum Given {
    Key(Vec<u8>),
    Profile(TaggedProfile),
    Reference(Ior, u32),
}

impl Given {
    fn target(&self) -> Target<'_> {
        match self {
            Self::Key(key) => Target::Key(key),
            Self::Profile(profile) => Target::Profile(profile.clone()),
            Self::Reference(ior, selected) => Target::Reference { ior: ior.clone(), selected: *selected },
        }
    }
}

fn target(wire: Wire) -> BoxedStrategy<Given> {
    let key = vec(any::<u8>(), 0..50).prop_map(Given::Key);
    if wire.version < GiopVersion::V1_2 {
        return key.boxed();
    }
    let reference = (ior(), any::<u32>()).prop_map(|(ior, selected)| Given::Reference(ior, selected));
    prop_oneof![key, profile().prop_map(Given::Profile), reference].boxed()
}

fn response() -> impl Strategy<Value = ResponseFlags> {
    prop_oneof![Just(ResponseFlags::NONE), Just(ResponseFlags::WITH_SERVER), Just(ResponseFlags::TWO_WAY)]
}

/// The octets as a whole message, after a check of its header.
fn message(out: &Encoder<'_>, message_type: MessageType) -> Message {
    let octets = out.to_vec();
    let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
    let Wire { order, version, .. } = out.wire();
    let size = u32::try_from(octets.len() - HEADER_LEN).unwrap();
    assert_eq!(header, MessageHeader { version, order, more_fragments: false, message_type, size });
    assert_eq!(header.to_octets(), octets[..HEADER_LEN]);
    Assembler::new(1 << 20, 1).accept(header, MessageBlock::from(octets.as_slice())).unwrap().expect("a whole message")
}

/// The response flags as they decode in this version: before 1.2 the header holds less.
fn as_encoded(response: ResponseFlags, wire: Wire) -> ResponseFlags {
    match (wire.version >= GiopVersion::V1_2, response.is_expected()) {
        (true, _) => response,
        (false, true) => ResponseFlags::TWO_WAY,
        (false, false) => ResponseFlags::NONE,
    }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_request_header_survives_encoding_and_decoding(
        (wire, target) in wire().prop_flat_map(|wire| (Just(wire), target(wire))),
        request_id: u32, response in response(), operation in "[a-z_\u{e9}]{0,20}", contexts in contexts(),
        body in vec(any::<u8>(), 0..30),
    ) {
        let header = RequestHeader {
            request_id, response: as_encoded(response, wire), target: target.target(), operation: operation.as_str().into(),
            service_contexts: contexts.as_slice().into(),
        };
        let mut out = Encoder::new(wire);
        let begun = header.encode(&mut out).unwrap();
        out.octets(&body);
        begun.end(&mut out).unwrap();
        let message = message(&out, MessageType::Request);
        let mut input = message.decoder(Limits::default());
        prop_assert_eq!(&RequestHeader::decode(&mut input).unwrap(), &header);
        prop_assert_eq!(input.rest(), &body[..]);
        prop_assert!(wire.version < GiopVersion::V1_2 || body.is_empty() || input.position().is_multiple_of(8));
    }

    #[test]
    fn a_template_writes_the_same_octets_as_the_header(
        wire in wire(), key in vec(any::<u8>(), 0..50), request_id: u32, response in response(),
        operation in "[a-z_]{0,20}", contexts in contexts(), body in vec(any::<u8>(), 0..30),
    ) {
        let header = RequestHeader {
            request_id, response, target: Target::Key(&key), operation: operation.as_str().into(),
            service_contexts: contexts.as_slice().into(),
        };
        let (mut expected, mut found) = (Encoder::new(wire), Encoder::new(wire));
        let begun = header.encode(&mut expected).unwrap();
        expected.octets(&body);
        begun.end(&mut expected).unwrap();
        let begun = RequestTemplate::new(wire, &key).begin(&mut found, request_id, response, &operation, &contexts);
        found.octets(&body);
        begun.end(&mut found).unwrap();
        prop_assert_eq!(found.to_vec(), expected.to_vec());
    }

    #[test]
    fn a_complete_header_writes_the_same_octets_as_its_template(
        wire in wire(), key in vec(any::<u8>(), 0..50), ids in vec(any::<u32>(), 3), response in response(),
        operation in "[a-z_]{0,20}", contexts in contexts(), body in vec(any::<u8>(), 0..30),
    ) {
        let template = RequestTemplate::new(wire, &key);
        let contexts = if wire.version >= GiopVersion::V1_2 { &contexts[..] } else { &[] };
        let complete = template.complete(&operation, contexts).unwrap();
        for request_id in ids {
            let (mut expected, mut found) = (Encoder::new(wire), Encoder::new(wire));
            let begun = template.begin(&mut expected, request_id, response, &operation, contexts);
            expected.octets(&body);
            begun.end(&mut expected).unwrap();
            let begun = complete.begin(&mut found, request_id, response);
            found.octets(&body);
            begun.end(&mut found).unwrap();
            prop_assert_eq!(found.to_vec(), expected.to_vec());
        }
    }

    #[test]
    fn a_complete_header_takes_new_last_octets(
        order in prop_oneof![Just(ByteOrder::Big), Just(ByteOrder::Little)], key in vec(any::<u8>(), 0..50),
        request_id: u32, operation in "[a-z_]{0,20}", contexts in contexts(), start in vec(any::<u8>(), 0..20),
        end in any::<[u8; 16]>(), body in vec(any::<u8>(), 0..30),
    ) {
        let template = RequestTemplate::new(Wire::new(order, GiopVersion::V1_2), &key);
        let with = |end: &[u8]| {
            let last = ServiceContext { id: 7, data: [&start[..], end].concat() };
            [&contexts[..], &[last]].concat()
        };
        let complete = template.complete(&operation, &with(&[0; 16])).unwrap();
        let (mut expected, mut found) = (Encoder::new(template.wire()), Encoder::new(template.wire()));
        let begun = template.begin(&mut expected, request_id, ResponseFlags::TWO_WAY, &operation, &with(&end));
        expected.octets(&body);
        begun.end(&mut expected).unwrap();
        let begun = complete.begin_with_tail(&mut found, request_id, ResponseFlags::TWO_WAY, &end);
        found.octets(&body);
        begun.end(&mut found).unwrap();
        prop_assert_eq!(found.to_vec(), expected.to_vec());
    }

    #[test]
    fn a_reply_header_survives_encoding_and_decoding(
        wire in wire(), request_id: u32, status in 0..6_usize, contexts in contexts(), body in vec(any::<u8>(), 0..30),
    ) {
        let known = if wire.version < GiopVersion::V1_2 { 4 } else { 6 };
        let status = STATUSES[status % known];
        let mut out = Encoder::new(wire);
        let begun = begin_reply(&mut out, request_id, status, &contexts);
        out.octets(&body);
        begun.end(&mut out).unwrap();
        let message = message(&out, MessageType::Reply);
        let mut input = message.decoder(Limits::default());
        let header = ReplyHeader { request_id, status, service_contexts: contexts.as_slice().into() };
        let mut skimmed = input.clone();
        prop_assert_eq!(ReplyHeader::decode(&mut input).unwrap(), header);
        prop_assert_eq!(ReplyHeader::skim(&mut skimmed).unwrap(), (request_id, status, contexts.len()));
        prop_assert_eq!(skimmed.position(), input.position());
        prop_assert_eq!(input.rest(), &body[..]);
        prop_assert!(wire.version < GiopVersion::V1_2 || body.is_empty() || input.position().is_multiple_of(8));
    }

    #[test]
    fn locate_and_cancel_messages_survive_encoding_and_decoding(
        (wire, target) in wire().prop_flat_map(|wire| (Just(wire), target(wire))), request_id: u32, status in 0..6_usize,
        body in vec(any::<u8>(), 0..30),
    ) {
        let mut out = Encoder::new(wire);
        let header = LocateRequestHeader { request_id, target: target.target() };
        header.encode(&mut out).unwrap();
        let asked = message(&out, MessageType::LocateRequest);
        prop_assert_eq!(&LocateRequestHeader::decode(&mut asked.decoder(Limits::default())).unwrap(), &header);
        if let Target::Key(key) = header.target {
            let mut again = Encoder::new(wire);
            locate_request(&mut again, request_id, key).unwrap();
            prop_assert_eq!(again.to_vec(), out.to_vec());
        }

        let status = LOCATE_STATUSES[status % if wire.version < GiopVersion::V1_2 { 3 } else { 6 }];
        let mut out = Encoder::new(wire);
        let begun = begin_locate_reply(&mut out, request_id, status);
        out.octets(&body);
        begun.end(&mut out).unwrap();
        let answered = message(&out, MessageType::LocateReply);
        let mut input = answered.decoder(Limits::default());
        prop_assert_eq!(LocateReplyHeader::decode(&mut input).unwrap(), LocateReplyHeader { request_id, status });
        prop_assert_eq!((input.position(), input.rest()), (HEADER_LEN + 8, &body[..]));

        let mut out = Encoder::new(wire);
        CancelRequest { request_id }.encode(&mut out).unwrap();
        let cancelled = message(&out, MessageType::CancelRequest);
        let found = CancelRequest::decode(&mut cancelled.decoder(Limits::default()));
        prop_assert_eq!(found, Ok(CancelRequest { request_id }));
    }

    #[test]
    fn a_system_exception_survives_encoding_and_decoding(wire in wire(), kind in 0..40_usize, minor: u32, completed in 0..3_usize) {
        let completed = support::COMPLETIONS[completed];
        let exception = SystemException::new(SystemExceptionKind::ALL[kind], minor, completed);
        let mut out = Encoder::new(wire);
        exception.encode(&mut out).unwrap();
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, wire);
        let id = input.str().unwrap();
        prop_assert_eq!(SystemException::decode(&id, &mut input), Ok(exception));
        prop_assert_eq!(input.remaining(), 0);
    }

    #[test]
    fn arbitrary_octets_are_decoded_or_rejected(octets in vec(any::<u8>(), 0..200), wire in wire()) {
        let input = Decoder::new(&octets, wire).at(HEADER_LEN);
        support::read_everything(&input);
        let read = ReplyHeader::decode(&mut input.clone()).map(|header| (header.request_id, header.status, header.service_contexts.len()));
        prop_assert_eq!(ReplyHeader::skim(&mut input.clone()), read);
    }

    #[test]
    fn damaged_messages_are_decoded_or_rejected(
        wire in wire(), contexts in contexts(), key in vec(any::<u8>(), 0..20),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>(),
    ) {
        let mut out = Encoder::new(wire);
        let template = RequestTemplate::new(wire, &key);
        let begun = template.begin(&mut out, 1, ResponseFlags::TWO_WAY, "operation", &contexts);
        out.u64(7);
        begun.end(&mut out).unwrap();
        let mut octets = out.to_vec();
        for (at, value) in damage {
            let at = at.index(octets.len());
            octets[at] = value;
        }
        octets.truncate(cut.index(octets.len()) + 1);
        if let Some(Ok(header)) = octets.first_chunk().map(MessageHeader::parse) {
            prop_assert!(!header.to_string().is_empty());
        }
        support::read_everything(&Decoder::new(&octets, wire).at(HEADER_LEN));
    }

    #[test]
    fn any_twelve_octets_are_a_header_or_rejected(octets: [u8; 12], magic: bool, major in 0..3_u8, minor in 0..4_u8) {
        let mut octets = octets;
        if magic {
            octets[..4].copy_from_slice(b"GIOP");
            octets[4..6].copy_from_slice(&[major, minor]);
        }
        match MessageHeader::parse(&octets) {
            Ok(header) => {
                prop_assert_eq!(MessageHeader::parse(&header.to_octets()), Ok(header));
                prop_assert_eq!(header.total_len(), 12 + header.size as usize);
            }
            Err(error) => prop_assert_eq!(error.reaction(), Reaction::SendMessageError),
        }
    }
}

const STATUSES: [ReplyStatus; 6] = [
    ReplyStatus::NoException,
    ReplyStatus::UserException,
    ReplyStatus::SystemException,
    ReplyStatus::LocationForward,
    ReplyStatus::LocationForwardPerm,
    ReplyStatus::NeedsAddressingMode,
];

const LOCATE_STATUSES: [LocateStatus; 6] = [
    LocateStatus::UnknownObject,
    LocateStatus::ObjectHere,
    LocateStatus::ObjectForward,
    LocateStatus::ObjectForwardPerm,
    LocateStatus::LocSystemException,
    LocateStatus::LocNeedsAddressingMode,
];

/// A request for `ping` on the key `key`, id 0x01020304, with one context, and the body 0x11.
fn ping(wire: Wire) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    let contexts = [ServiceContext { id: 0x0506_0708, data: vec![9] }];
    let begun =
        RequestTemplate::new(wire, b"key").begin(&mut out, 0x0102_0304, ResponseFlags::TWO_WAY, "ping", &contexts);
    out.u8(0x11);
    begun.end(&mut out).unwrap();
    out.to_vec()
}

#[test]
fn requests_are_encoded_as_the_standard_specifies() {
    let vectors = [
        (ByteOrder::Big, GiopVersion::V1_0, "47494f50 0100 00 00 00000031
            00000001 05060708 00000001 09 000000 01020304 01 000000 00000003 6b6579 00 00000005 70696e6700 000000 00000000 11"),
        (ByteOrder::Little, GiopVersion::V1_1, "47494f50 0101 01 00 31000000
            01000000 08070605 01000000 09 000000 04030201 01 000000 03000000 6b6579 00 05000000 70696e6700 000000 00000000 11"),
        (ByteOrder::Big, GiopVersion::V1_2, "47494f50 0102 00 00 00000035
            01020304 03 000000 0000 0000 00000003 6b6579 00 00000005 70696e6700 000000
            00000001 05060708 00000001 09 000000000000 00 11"),
        (ByteOrder::Little, GiopVersion::V1_2, "47494f50 0102 01 00 35000000
            04030201 03 000000 0000 0000 03000000 6b6579 00 05000000 70696e6700 000000
            01000000 08070605 01000000 09 000000000000 00 11"),
    ];
    for (order, version, expected) in vectors {
        assert_eq!(ping(Wire::new(order, version)), hex(expected), "GIOP {version} {order:?}");
    }
}

#[test]
fn replies_are_encoded_as_the_standard_specifies() {
    let vectors = [
        (ByteOrder::Big, GiopVersion::V1_0, "47494f50 0100 00 01 0000000d 00000000 01020304 00000000 11"),
        (ByteOrder::Little, GiopVersion::V1_1, "47494f50 0101 01 01 0d000000 00000000 04030201 00000000 11"),
        (ByteOrder::Big, GiopVersion::V1_2, "47494f50 0102 00 01 0000000d 01020304 00000000 00000000 11"),
        (ByteOrder::Little, GiopVersion::V1_2, "47494f50 0102 01 01 0d000000 04030201 00000000 00000000 11"),
    ];
    for (order, version, expected) in vectors {
        let mut out = Encoder::new(Wire::new(order, version));
        let begun = begin_reply(&mut out, 0x0102_0304, ReplyStatus::NoException, &[]);
        out.u8(0x11);
        begun.end(&mut out).unwrap();
        assert_eq!(out.to_vec(), hex(expected), "GIOP {version} {order:?}");
    }
}

#[test]
fn an_empty_body_gets_no_padding() {
    for wire in wires() {
        let mut out = Encoder::new(wire);
        let begun = RequestTemplate::new(wire, b"k").begin(&mut out, 1, ResponseFlags::NONE, "operation", &[]);
        begun.end(&mut out).unwrap();
        let octets = out.to_vec();
        // 1.2 ends with the number of contexts, earlier versions with the length of the principal.
        assert!(octets.ends_with(&[0; 4]) && octets.len() == 52, "{wire:?}: {}", octets.len());
    }
}

#[test]
fn padding_and_reserved_octets_are_ignored() {
    for wire in wires() {
        let clean = ping(wire);
        let read = |octets: &[u8]| {
            let mut input = Decoder::new(octets, wire).at(HEADER_LEN);
            let header = RequestHeader::decode(&mut input).map(|header| header.to_string());
            (header, input.rest().to_vec())
        };
        let (header, body) = read(&clean);
        assert_eq!((header.is_ok(), body), (true, vec![0x11]), "{wire:?}");
        let reserved = if wire.version < GiopVersion::V1_2 { 33..36 } else { 17..20 };
        let padding = if wire.version < GiopVersion::V1_2 { 25..28 } else { 22..24 };
        let mut dirty = clean.clone();
        for at in reserved.chain(padding) {
            assert_eq!(dirty[at], 0, "{wire:?} {at}");
            dirty[at] = 0xff;
        }
        assert_eq!(read(&dirty), read(&clean), "{wire:?}");
    }
}

#[test]
fn headers_that_are_not_giop_are_rejected() {
    let refused = |text: &str| MessageHeader::parse(hex(text).first_chunk().unwrap()).unwrap_err();
    assert_eq!(refused("48545450 0100 00 00 00000000"), GiopError::BadMagic(*b"HTTP"));
    let version = GiopVersion { major: 1, minor: 9 };
    assert_eq!(refused("47494f50 0109 00 00 00000000"), GiopError::UnsupportedVersion(version));
    let version = GiopVersion { major: 2, minor: 0 };
    assert_eq!(refused("47494f50 0200 00 00 00000000"), GiopError::UnsupportedVersion(version));
    assert_eq!(refused("47494f50 0100 02 00 00000000"), GiopError::BadByteOrder(2));
    let unknown = |version, value| GiopError::UnknownMessageType { version, value };
    assert_eq!(refused("47494f50 0102 00 08 00000000"), unknown(GiopVersion::V1_2, 8));
    assert_eq!(refused("47494f50 0100 00 07 00000000"), unknown(GiopVersion::V1_0, 7));
}

#[test]
fn a_size_of_four_gigabytes_is_rejected_before_memory_is_reserved() {
    let header = MessageHeader::parse(hex("47494f50 0102 00 00 ffffffff").first_chunk().unwrap()).unwrap();
    assert_eq!(header.check(64 << 20), Err(GiopError::TooLarge { len: header.total_len(), limit: 64 << 20 }));
    assert_eq!(header.check(usize::MAX), Ok(()));
}

#[test]
fn bare_messages_consist_of_their_header() {
    for version in VERSIONS {
        let octets = bare_message(version, ByteOrder::Little, MessageType::CloseConnection);
        assert_eq!(octets, [b'G', b'I', b'O', b'P', 1, version.minor, 1, 5, 0, 0, 0, 0]);
    }
}

#[test]
fn statuses_of_later_versions_are_rejected_in_earlier_ones() {
    for wire in wires() {
        let value = 5_u32;
        let mut octets = hex("00000000 00000000");
        let number = if wire.order == ByteOrder::Big { value.to_be_bytes() } else { value.to_le_bytes() };
        octets.extend(number);
        octets.extend([0; 4]);
        if wire.version >= GiopVersion::V1_2 {
            octets.drain(..4);
        }
        let found = ReplyHeader::decode(&mut Decoder::new(&octets, wire));
        match found {
            Ok(reply) => assert!(wire.version >= GiopVersion::V1_2 && reply.status == ReplyStatus::NeedsAddressingMode),
            Err(error) => {
                assert!(wire.version < GiopVersion::V1_2);
                let cause = CdrError::BadEnum { name: "ReplyStatus", value };
                assert_eq!(error, GiopError::Body { message: MessageType::Reply, cause });
            }
        }
    }
}

#[test]
fn an_operation_that_cannot_be_encoded_is_reported_by_end() {
    let mut out = Encoder::new(Wire::default());
    let begun = RequestTemplate::new(out.wire(), b"k").begin(&mut out, 1, ResponseFlags::NONE, "a\0b", &[]);
    assert_eq!(begun.end(&mut out), Err(CdrError::NulInString));
}

#[test]
fn before_1_2_a_target_is_encoded_as_the_key_of_its_profile() {
    let profile = spandrel_giop::IiopProfile {
        version: GiopVersion::V1_2,
        host: "h".to_owned(),
        port: 1,
        object_key: b"inner".to_vec(),
        components: Vec::new(),
    };
    let target = Target::Profile(profile.encode().unwrap());
    assert_eq!(target.object_key().as_deref(), Some(&b"inner"[..]));
    let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_1);
    let mut out = Encoder::new(wire);
    LocateRequestHeader { request_id: 1, target }.encode(&mut out).unwrap();
    let octets = out.to_vec();
    let mut input = Decoder::new(&octets, wire).at(HEADER_LEN);
    assert_eq!(LocateRequestHeader::decode(&mut input).unwrap().target, Target::Key(b"inner"));

    let unknown = Target::Profile(TaggedProfile { tag: 77, data: vec![1, 2, 3] });
    assert_eq!(unknown.object_key(), None);
    let mut out = Encoder::new(wire);
    assert!(LocateRequestHeader { request_id: 1, target: unknown }.encode(&mut out).is_err());
}

/// The key of a profile of components only is in TAG_COMPLETE_OBJECT_KEY, which may be any of them, or missing.
#[test]
fn a_profile_of_components_may_hold_the_object_key() {
    let profile = |components: &str| TaggedProfile { tag: TAG_MULTIPLE_COMPONENTS, data: hex(components) };
    let key_second = profile("00 000000 00000002 00000007 00000001 09 000000 00000005 00000003 6b6579");
    assert_eq!(Target::Profile(key_second.clone()).object_key().as_deref(), Some(&b"key"[..]));
    let reference = Ior { type_id: String::new(), profiles: vec![key_second] };
    let chosen = |selected| Target::Reference { ior: reference.clone(), selected };
    assert_eq!(chosen(0).object_key().as_deref(), Some(&b"key"[..]));
    assert_eq!(chosen(1).object_key(), None);
    let without = profile("00 000000 00000001 00000007 00000001 09");
    assert_eq!(Target::Profile(without).object_key(), None);
}

#[test]
fn an_addressing_disposition_is_one_of_three_numbers() {
    let read = |octets: [u8; 2]| {
        AddressingDisposition::decode(&mut Decoder::new(&octets, Wire::new(ByteOrder::Big, GiopVersion::V1_2)))
    };
    assert_eq!(read([0, 0]), Ok(AddressingDisposition::Key));
    assert_eq!(read([0, 1]), Ok(AddressingDisposition::Profile));
    assert_eq!(read([0, 2]), Ok(AddressingDisposition::Reference));
    assert!(matches!(read([0, 3]), Err(CdrError::Malformed(_))));
}

/// The three reserved octets of GIOP 1.1 may be the first ones of a fragment, whose alignment begins anew.
#[test]
fn reserved_octets_of_1_1_may_begin_a_fragment() {
    let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_1);
    let octets = hex("00000000 01020304 01  000000 00 00000003 6b6579 00 00000005 70696e6700 000000 00000000");
    let joints = [Joint { at: 9, alignment_position: HEADER_LEN }];
    let header = RequestHeader::decode(&mut Decoder::new(&octets, wire).with_joints(&joints)).unwrap();
    assert_eq!((header.target, &*header.operation), (Target::Key(b"key"), "ping"));
    assert!(header.service_contexts.is_empty());
}

#[test]
fn headers_print_their_fields() {
    let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_2);
    let octets = ping(wire);
    let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
    assert_eq!(header.to_string(), "GIOP 1.2 Request, big-endian, 53 octets");
    let request = RequestHeader::decode(&mut Decoder::new(&octets, wire).at(HEADER_LEN)).unwrap();
    assert_eq!(
        request.to_string(),
        "request 16909060: \"ping\" on key \"key\", response from the target, contexts [0x5060708: 1 octets]"
    );
    assert_eq!(request.service_contexts.find(0x0506_0708), Some(&[9][..]));
    assert_eq!(request.service_contexts.find(1), None);
    let contexts = [ServiceContext { id: 1, data: vec![0; 12] }, ServiceContext { id: 0x99, data: Vec::new() }];
    let reply =
        ReplyHeader { request_id: 4, status: ReplyStatus::NoException, service_contexts: contexts.as_slice().into() };
    assert_eq!(reply.to_string(), "reply 4: NO_EXCEPTION, contexts [CodeSets: 12 octets, 0x99: 0 octets]");
    let locate = LocateReplyHeader { request_id: 3, status: LocateStatus::ObjectHere };
    assert_eq!(locate.to_string(), "locate reply 3: OBJECT_HERE");
}
