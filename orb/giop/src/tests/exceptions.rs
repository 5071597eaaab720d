//! The text of system exceptions, and their conversion from other errors.

#![cfg(feature = "details")]

use std::error::Error;

use spandrel_cdr::{CdrError, Decoder, Wire};
use spandrel_giop::{CompletionStatus, GiopError, ReferenceError, SystemException, SystemExceptionKind, ids, minor};

#[test]
fn an_exception_prints_name_minor_code_and_completion() {
    let plain = SystemException::comm_failure(0x1234, CompletionStatus::Maybe);
    assert_eq!(plain.to_string(), "CORBA::COMM_FAILURE (minor 0x00001234, COMPLETED_MAYBE)");
    let known =
        SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No).with_detail("run() returned");
    assert_eq!(
        known.to_string(),
        "CORBA::BAD_INV_ORDER (minor 0x4f4d0004: the ORB has been shut down, COMPLETED_NO): run() returned"
    );
    let own = SystemException::marshal(ids::MARSHAL_TRUNCATED, CompletionStatus::Yes);
    assert_eq!(own.to_string(), "CORBA::MARSHAL (minor 0x53505002: the message ended inside a value, COMPLETED_YES)");
}

#[test]
fn detail_and_source_are_not_compared() {
    let plain = SystemException::timeout(0, CompletionStatus::Maybe);
    let detailed = plain.clone().with_detail("slow").with_source(CdrError::NulInString);
    assert_eq!(plain, detailed);
    assert_eq!(detailed.detail(), Some("slow"));
    assert_eq!(detailed.source().map(ToString::to_string), Some(CdrError::NulInString.to_string()));
    assert!(plain.source().is_none());
    assert_ne!(plain, plain.clone().with_completed(CompletionStatus::No));
}

#[test]
fn a_public_detail_is_the_detail_until_a_caller_passes_the_exception_on() {
    let told = SystemException::unknown(0, CompletionStatus::Maybe).with_public_detail("short");
    assert_eq!((told.detail(), told.public_detail()), (Some("short"), Some("short")));
    let whole = told.with_detail("long");
    assert_eq!((whole.detail(), whole.public_detail()), (Some("long"), Some("short")));
    let raised = |text| SystemException::raised(SystemExceptionKind::BadParam, text);
    let [withheld, shown] = [raised("negative"), raised("negative").public()];
    assert_eq!((withheld.public_detail(), withheld.withholds_reason()), (None, true));
    assert_eq!((shown.public_detail(), shown.withholds_reason()), (Some("negative"), false));
    let received = whole.of_call();
    assert!(received.withholds_reason());
    assert_eq!((received.detail(), received.public_detail()), (Some("long"), None));
}

#[test]
fn every_kind_has_its_repository_id() {
    assert_eq!(SystemExceptionKind::ALL.len(), 40);
    for kind in SystemExceptionKind::ALL {
        assert_eq!(kind.repository_id(), format!("IDL:omg.org/CORBA/{}:1.0", kind.name()));
        assert_eq!(SystemExceptionKind::from_repository_id(kind.repository_id()), Some(*kind));
    }
    assert_eq!(SystemExceptionKind::from_repository_id("IDL:omg.org/CORBA/MARSHAL:1.1"), None);
}

#[test]
fn an_unknown_exception_becomes_unknown_with_its_minor_code_and_status() {
    let octets = [0, 0, 0, 9, 0, 0, 0, 2];
    let wire = Wire::new(spandrel_cdr::ByteOrder::Big, spandrel_cdr::GiopVersion::V1_2);
    let found = SystemException::decode("IDL:acme/NEW:1.0", &mut Decoder::new(&octets, wire)).unwrap();
    assert_eq!(found, SystemException::unknown(9, CompletionStatus::Maybe));
    assert_eq!(found.detail(), Some("the peer raised IDL:acme/NEW:1.0"));
    let bad = [0, 0, 0, 9, 0, 0, 0, 3];
    let error = SystemException::decode("IDL:acme/NEW:1.0", &mut Decoder::new(&bad, wire)).unwrap_err();
    assert_eq!(error, CdrError::BadEnum { name: "CompletionStatus", value: 3 });
}

#[test]
fn coding_errors_become_the_standard_exceptions() {
    let cases = [
        (
            CdrError::NotRepresentable { character: '€', code_set: "ISO 8859-1" },
            SystemExceptionKind::DataConversion,
            minor::CHARACTER_NOT_IN_CODE_SET,
        ),
        (CdrError::NulInString, SystemExceptionKind::BadParam, ids::BAD_PARAM_NUL_IN_STRING),
        (CdrError::Truncated { needed: 4, remaining: 0 }, SystemExceptionKind::Marshal, ids::MARSHAL_TRUNCATED),
        (CdrError::BadBoolean(2), SystemExceptionKind::Marshal, ids::MARSHAL_BAD_VALUE),
        (CdrError::Malformed("odd"), SystemExceptionKind::Marshal, ids::MARSHAL_OTHER),
    ];
    for (cause, kind, minor) in cases {
        let found = SystemException::from(cause.clone());
        assert_eq!(found, SystemException::new(kind, minor, CompletionStatus::No));
        assert_eq!(found.source().map(ToString::to_string), Some(cause.to_string()));
    }
}

#[test]
fn reference_errors_become_bad_param() {
    let minor_of = |text: &str| {
        let error = text.parse::<spandrel_giop::ObjectUrl>().unwrap_err();
        let found = SystemException::from(error);
        assert_eq!(found.kind(), SystemExceptionKind::BadParam);
        found.minor()
    };
    assert_eq!(minor_of("nonsense"), minor::BAD_SCHEME_NAME);
    assert_eq!(minor_of("corbaloc::h:x/k"), minor::BAD_ADDRESS);
    assert_eq!(minor_of("IOR:zz"), minor::BAD_SCHEME_SPECIFIC_PART);
    let none = SystemException::from(ReferenceError::NoProfile("corbaloc:rir:".to_owned()));
    assert_eq!(none.minor(), minor::BAD_URL_OTHER);
}

#[test]
fn a_malformed_stream_is_comm_failure_with_completed_maybe() {
    let found = SystemException::from(GiopError::BadMagic(*b"HTTP"));
    assert_eq!((found.kind(), found.completed()), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
    assert_eq!(found.detail(), Some("expected `GIOP`, found [48, 54, 54, 50]"));
}
