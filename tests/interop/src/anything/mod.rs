//! Anys, type codes, dynamic values, texts in all code sets, and calls that are not waited for: server and client of
//! `idl/anything.idl`, with the samples and cases of `peers/omniorb/anything.cc`.

pub mod client;
mod samples;
pub mod server;
pub mod show;

use spandrel::{Any, CompletionStatus, SystemException, SystemExceptionKind};

/// A text of these code units; what is no text is as nobody would say it.
fn text_of(units: &[u16]) -> Result<String, SystemException> {
    let refused = |_| SystemException::new(SystemExceptionKind::BadParam, 0, CompletionStatus::No);
    String::from_utf16(units).map_err(refused)
}

fn units_of(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// An any that is no sample.
fn other() -> Any {
    Any::new("other").expect("a string is a value")
}
