//! Texts for logs: headers, targets, profiles, service contexts.

use spandrel_cdr::{ByteOrder, GiopVersion, Ior, TaggedProfile};
use spandrel_giop::{
    AddressingDisposition, CancelRequest, ContextLimits, IiopProfile, LocateReplyHeader, LocateRequestHeader,
    LocateStatus, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader, ResponseFlags, ServiceContext,
    ServiceContexts, SystemExceptionKind, TAG_INTERNET_IOP, Target, context_name,
};

fn context(id: u32, octets: usize) -> ServiceContext {
    ServiceContext { id, data: vec![0; octets] }
}

fn profile(object_key: &[u8]) -> IiopProfile {
    IiopProfile {
        version: GiopVersion::V1_2,
        host: "bank.example".to_owned(),
        port: 2809,
        object_key: object_key.to_vec(),
        components: Vec::new(),
    }
}

#[test]
fn headers_have_a_text() {
    let contexts = [context(1, 12), context(0x4242, 3)];
    let request = RequestHeader {
        request_id: 7,
        response: ResponseFlags::TWO_WAY,
        target: Target::Key(b"a\n"),
        operation: "deposit".into(),
        service_contexts: contexts.as_slice().into(),
    };
    assert_eq!(
        request.to_string(),
        r#"request 7: "deposit" on key "a\n", response from the target, contexts [CodeSets: 12 octets, 0x4242: 3 octets]"#
    );
    let reply =
        ReplyHeader { request_id: 7, status: ReplyStatus::UserException, service_contexts: ServiceContexts::NONE };
    assert_eq!(reply.to_string(), "reply 7: USER_EXCEPTION, contexts []");
    let locate = LocateRequestHeader { request_id: 8, target: Target::Key(b"b") };
    assert_eq!(locate.to_string(), r#"locate request 8: key "b""#);
    let located = LocateReplyHeader { request_id: 8, status: LocateStatus::ObjectHere };
    assert_eq!(located.to_string(), "locate reply 8: OBJECT_HERE");
    assert_eq!(CancelRequest { request_id: 9 }.to_string(), "cancel request 9");
    let mut header = MessageHeader {
        version: GiopVersion::V1_2,
        order: ByteOrder::Big,
        more_fragments: false,
        message_type: MessageType::Request,
        size: 20,
    };
    assert_eq!(header.to_string(), "GIOP 1.2 Request, big-endian, 20 octets");
    (header.order, header.more_fragments) = (ByteOrder::Little, true);
    assert_eq!(header.to_string(), "GIOP 1.2 Request, little-endian, 20 octets, more fragments follow");
}

#[test]
fn statuses_have_the_names_of_the_standard() {
    use {LocateStatus as Locate, ReplyStatus as Reply};
    for (status, name) in [
        (Reply::NoException, "NO_EXCEPTION"),
        (Reply::UserException, "USER_EXCEPTION"),
        (Reply::SystemException, "SYSTEM_EXCEPTION"),
        (Reply::LocationForward, "LOCATION_FORWARD"),
        (Reply::LocationForwardPerm, "LOCATION_FORWARD_PERM"),
        (Reply::NeedsAddressingMode, "NEEDS_ADDRESSING_MODE"),
    ] {
        assert_eq!(status.to_string(), name);
    }
    for (status, name) in [
        (Locate::UnknownObject, "UNKNOWN_OBJECT"),
        (Locate::ObjectHere, "OBJECT_HERE"),
        (Locate::ObjectForward, "OBJECT_FORWARD"),
        (Locate::ObjectForwardPerm, "OBJECT_FORWARD_PERM"),
        (Locate::LocSystemException, "LOC_SYSTEM_EXCEPTION"),
        (Locate::LocNeedsAddressingMode, "LOC_NEEDS_ADDRESSING_MODE"),
    ] {
        assert_eq!(status.to_string(), name);
    }
    for (flags, text) in [
        (ResponseFlags::NONE, "no response"),
        (ResponseFlags::WITH_SERVER, "response from the server"),
        (ResponseFlags::WITH_TARGET, "response from the target"),
        (ResponseFlags::from_octet(2), "response flags 2"),
    ] {
        assert_eq!(flags.to_string(), text);
    }
    for (disposition, text) in [
        (AddressingDisposition::Key, "object key"),
        (AddressingDisposition::Profile, "profile"),
        (AddressingDisposition::Reference, "reference"),
    ] {
        assert_eq!(disposition.to_string(), text);
    }
}

#[test]
fn response_flags_have_two_bits_of_which_the_first_awaits_a_response() {
    for octet in 0..=u8::MAX {
        let flags = ResponseFlags::from_octet(octet);
        assert_eq!(flags.to_octet(), octet % 4, "{octet}");
        assert_eq!(flags.is_expected(), octet % 2 == 1, "{octet}");
    }
}

#[test]
fn a_target_is_a_key_by_itself_or_that_of_a_profile() {
    let ior = Ior {
        type_id: "IDL:Bank:1.0".to_owned(),
        profiles: vec![TaggedProfile { tag: 99, data: Vec::new() }, profile(b"k").encode().unwrap()],
    };
    let target = |addressing, index| Target::by(addressing, &ior, index);
    assert_eq!(target(AddressingDisposition::Key, 1), None, "a key stands in the profile of the caller");
    let by_profile = target(AddressingDisposition::Profile, 1).unwrap();
    assert_eq!(by_profile, Target::Profile(ior.profiles[1].clone()));
    assert_eq!(by_profile.object_key().as_deref(), Some(&b"k"[..]));
    assert_eq!(by_profile.to_string(), r#"profile 0 with key "k""#);
    assert_eq!(target(AddressingDisposition::Profile, 2), None);
    let by_reference = target(AddressingDisposition::Reference, 1).unwrap();
    assert_eq!(by_reference, Target::Reference { ior: ior.clone(), selected: 1 });
    assert_eq!(by_reference.object_key().as_deref(), Some(&b"k"[..]));
    assert_eq!(by_reference.to_string(), r#"profile 1 of "IDL:Bank:1.0" with key "k""#);
    assert_eq!(target(AddressingDisposition::Reference, 0).unwrap().object_key(), None);
    let unknown = target(AddressingDisposition::Profile, 0).unwrap();
    assert_eq!(unknown.to_string(), "profile 99 with key unknown");
    assert_eq!(Target::Key(b"k").object_key().as_deref(), Some(&b"k"[..]));
}

#[test]
fn a_profile_of_another_protocol_or_major_version_is_none() {
    let encoded = profile(b"k").encode().unwrap();
    assert_eq!(IiopProfile::decode(&encoded).unwrap(), Some(profile(b"k")));
    let other = TaggedProfile { tag: TAG_INTERNET_IOP + 9, ..encoded.clone() };
    assert_eq!(IiopProfile::decode(&other).unwrap(), None);
    let mut later = encoded.clone();
    later.data[1] = 2;
    assert_eq!(IiopProfile::decode(&later).unwrap(), None);
    let mut cut = encoded;
    cut.data.truncate(5);
    IiopProfile::decode(&cut).unwrap_err();
}

#[test]
fn a_profile_has_a_text_with_brackets_around_addresses_of_ipv6() {
    assert_eq!(profile(b"k\0").to_string(), r#"IIOP 1.2 bank.example:2809 key "k\x00""#);
    let ipv6 = IiopProfile { host: "2001:db8::1".to_owned(), ..profile(b"k") };
    assert_eq!(ipv6.to_string(), r#"IIOP 1.2 [2001:db8::1]:2809 key "k""#);
}

#[test]
fn service_contexts_have_the_names_of_the_standard() {
    let names = [
        "TransactionService",
        "CodeSets",
        "ChainBypassCheck",
        "ChainBypassInfo",
        "LogicalThreadId",
        "BI_DIR_IIOP",
        "SendingContextRunTime",
        "INVOCATION_POLICIES",
        "FORWARDED_IDENTITY",
        "UnknownExceptionInfo",
        "RTCorbaPriority",
        "RTCorbaPriorityRange",
        "FT_GROUP_VERSION",
        "FT_REQUEST",
        "ExceptionDetailMessage",
        "SecurityAttributeService",
        "ActivityService",
    ];
    for (id, name) in (0..).zip(names) {
        assert_eq!(context_name(id), Some(name));
    }
    let ours = [
        (0x5350_4401, "OperationIndex"),
        (0x5350_4402, "RemainingTime"),
        (0x5350_4403, "Shim"),
        (0x5350_4410, "TraceContext"),
    ];
    for (id, name) in ours {
        assert_eq!(context_name(id), Some(name), "{id:#x}");
    }
    assert_eq!([17, 0x5350_4400].map(context_name), [None; 2]);
}

#[test]
fn service_contexts_are_bounded_in_number_and_in_octets_together() {
    let limits = ContextLimits { count: 2, octets: 10 };
    assert_eq!(ContextLimits::default(), ContextLimits { count: 256, octets: 1_048_576 });
    for (contexts, expected) in [
        (vec![], None),
        (vec![context(1, 4), context(2, 6)], None),
        (vec![context(1, 5), context(2, 6)], Some("11 octets of service contexts are more than the limit of 10")),
        (vec![context(1, 11)], Some("11 octets of service contexts are more than the limit of 10")),
        (vec![context(1, 0); 3], Some("3 service contexts are more than the limit of 2")),
    ] {
        match ServiceContexts::from(contexts.as_slice()).check(limits) {
            Ok(()) => assert_eq!(expected, None),
            Err(refused) => {
                assert_eq!(refused.kind(), SystemExceptionKind::ImpLimit);
                if let Some(detail) = refused.detail() {
                    assert!(expected.is_some_and(|text| detail.starts_with(text)), "{detail}");
                }
                assert!(expected.is_some());
            }
        }
    }
}

#[test]
fn service_contexts_are_compared_found_and_printed_in_their_order() {
    let given = [context(1, 1), context(2, 2), context(1, 3)];
    let contexts = ServiceContexts::from(given.as_slice());
    assert_eq!((contexts.len(), contexts.is_empty()), (3, false));
    assert_eq!(contexts.find(1), Some(&[0][..]), "the first one with this id");
    assert_eq!(contexts.find(3), None);
    assert_eq!((&contexts).into_iter().map(|context| context.data.len()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(contexts, ServiceContexts::from(given.as_slice()));
    assert_ne!(contexts, ServiceContexts::from(&given[..2]));
    assert_ne!(contexts, ServiceContexts::NONE);
    assert!(!contexts.is_empty() && ServiceContexts::NONE.is_empty());
    assert_eq!(ServiceContexts::default(), ServiceContexts::NONE);
    let text = format!("{contexts:?} {:?}", contexts.iter());
    assert_eq!(text.matches("ServiceContextRef").count(), 6, "{text}");
}
