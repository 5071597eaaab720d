//! Calls: the decisions of one call and its two drivers, asynchronous calls, and cancellation.

pub(crate) mod answer;
#[cfg(feature = "asynchronous")]
pub(crate) mod asynchronous;
#[cfg(feature = "asynchronous")]
#[doc(hidden)]
pub mod cancellation;
mod connection_contexts;
pub(crate) mod invocation;
#[cfg(feature = "asynchronous")]
pub mod messaging;
#[doc(hidden)]
pub mod scratch;
#[cfg(feature = "asynchronous")]
#[doc(hidden)]
pub mod timer;
