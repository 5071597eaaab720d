//! Small complete programs that use Spandrel. Each is in a folder beside this one; the tests run all of them.
#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations, reason = "generated from IDL that has no comments")]

spandrel::include_idl!("bank");

/// Runs the code of docs/adapters.md as a test.
#[cfg(doctest)]
#[doc = include_str!("../../docs/adapters.md")]
mod adapters {}

/// Runs the code of docs/dynamic.md as a test.
#[cfg(doctest)]
#[doc = include_str!("../../docs/dynamic.md")]
mod dynamic {}
