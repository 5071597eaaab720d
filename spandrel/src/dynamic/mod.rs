//! What needs no generated code: values of any type, requests and servants that are put together at run time.
//!
//! With the feature `parse` descriptions of interfaces come from IDL, which is read when the program runs: `describe` and
//! `describe_file`.

pub use spandrel_dynamic::*;

#[cfg(feature = "parse")]
mod describe;
#[cfg(feature = "parse")]
mod error;
#[cfg(feature = "parse")]
mod types;

#[cfg(feature = "parse")]
pub use describe::{Descriptions, describe, describe_file};
#[cfg(feature = "parse")]
pub use error::DescribeError;

/// What the book says runs.
#[cfg(all(doctest, feature = "parse", feature = "server"))]
#[doc = include_str!("../../../docs/dynamic.md")]
struct Book;
