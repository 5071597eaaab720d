//! Calls on objects.
//!
//! An [`Invocation`](invocation::Invocation) makes the decisions of one call: destinations, forwarding, retries,
//! deadlines. The blocking driver carries them out for synchronous calls, the polling driver (`asynchronous`) for
//! all others. `messaging` has the forms of asynchronous calls that the IDL mapping defines, `cancellation` the end
//! of requests whose reply is no longer needed.

pub(crate) mod answer;
#[cfg(feature = "asynchronous")]
pub(crate) mod asynchronous;
#[cfg(feature = "asynchronous")]
pub(crate) mod cancellation;
mod connection_contexts;
pub(crate) mod invocation;
#[cfg(feature = "asynchronous")]
pub mod messaging;
pub(crate) mod scratch;
#[cfg(feature = "asynchronous")]
pub(crate) mod timer;
