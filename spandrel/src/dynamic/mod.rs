//! Dynamic invocation, without generated code: values of any type, requests and servants that are built at
//! run time.
//!
//! With the feature `parse` descriptions of interfaces are read from IDL at run time: `describe` and
//! `describe_file`.

pub use spandrel_dynamic::*;

#[cfg(feature = "parse")]
mod describe;
#[cfg(feature = "parse")]
mod error;
#[cfg(feature = "parse")]
mod type_codes;

#[cfg(feature = "parse")]
pub use describe::{Descriptions, describe, describe_file};
#[cfg(feature = "parse")]
pub use error::DescribeError;
