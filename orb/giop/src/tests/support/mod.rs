//! Helpers shared by several test modules; each uses a part of them.
#![allow(dead_code, reason = "every test program compiles its own copy and uses a part")]

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng},
};
use spandrel_cdr::{ByteOrder, Decode, Decoder, GiopVersion, Ior, Wire};
use spandrel_giop::{
    CancelRequest, CompletionStatus, IiopProfile, LocateReplyHeader, LocateRequestHeader, ReplyHeader, RequestHeader,
    SystemException,
};

pub(crate) const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];

pub(crate) const COMPLETIONS: [CompletionStatus; 3] =
    [CompletionStatus::Yes, CompletionStatus::No, CompletionStatus::Maybe];

/// Few cases under Miri, which is slow, and no files there, which it isolates.
pub(crate) fn config() -> Config {
    if cfg!(miri) { Config { cases: 6, failure_persistence: None, ..Config::default() } } else { Config::default() }
}

/// A generator with the same numbers in every run.
pub(crate) fn rng() -> TestRng {
    TestRng::deterministic_rng(RngAlgorithm::ChaCha)
}

/// Every version in both byte orders.
pub(crate) fn wires() -> impl Iterator<Item = Wire> {
    VERSIONS.into_iter().flat_map(|version| [ByteOrder::Big, ByteOrder::Little].map(|order| Wire::new(order, version)))
}

pub(crate) fn wire() -> impl Strategy<Value = Wire> {
    prop::sample::select(wires().collect::<Vec<_>>())
}

/// Octets from hexadecimal digits; white space is ignored.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).unwrap_or_else(|| panic!("{c:?} is no digit"))).expect("a nibble"))
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Decodes the input as every kind of header, and prints the results.
pub(crate) fn read_everything(input: &Decoder<'_>) {
    if let Ok(request) = RequestHeader::decode(&mut input.clone()) {
        let _ = (request.to_string(), request.target.object_key());
    }
    if let Ok(reply) = ReplyHeader::decode(&mut input.clone()) {
        let _ = reply.to_string();
    }
    if let Ok(locate) = LocateRequestHeader::decode(&mut input.clone()) {
        let _ = locate.to_string();
    }
    if let Ok(locate) = LocateReplyHeader::decode(&mut input.clone()) {
        let _ = locate.to_string();
    }
    if let Ok(cancel) = CancelRequest::decode(&mut input.clone()) {
        let _ = cancel.to_string();
    }
    if let Ok(exception) = SystemException::decode("IDL:x:1.0", &mut input.clone()) {
        let _ = exception.to_string();
    }
    if let Ok(ior) = Ior::decode(&mut input.clone()) {
        for profile in &ior.profiles {
            let _ = IiopProfile::decode(profile).map(|profile| profile.map(|profile| profile.to_string()));
        }
    }
}
