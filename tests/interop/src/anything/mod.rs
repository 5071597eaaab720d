//! Anys, type codes, dynamic values, texts in all code sets, and asynchronous calls: server and client of
//! `idl/anything.idl`, with the samples and cases of `peers/omniorb/anything.cc`.

pub mod client;
mod samples;
pub mod server;
pub mod show;

use spandrel::{CompletionStatus, SystemException, SystemExceptionKind, types::Any};

/// The text of these UTF-16 code units, or BAD_PARAM if they are not well-formed.
fn text_of(units: &[u16]) -> Result<String, SystemException> {
    let bad_param = |_| SystemException::new(SystemExceptionKind::BadParam, 0, CompletionStatus::No);
    String::from_utf16(units).map_err(bad_param)
}

fn units_of(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// An any that is not among the samples.
fn other() -> Any {
    Any::new("other").expect("an any can hold a string")
}
