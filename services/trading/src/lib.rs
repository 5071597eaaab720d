//! The OMG's trading service (Trading Object Service 1.0, formal/00-06-27): objects that are found by the properties of
//! their offers.
#![forbid(unsafe_code)]

pub mod federation;

#[doc(hidden)]
pub use spandrel;
