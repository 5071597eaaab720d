//! Asynchronous invocation: a request is sent at once, and a future waits for its reply.
//!
//! A call marshals its arguments before it returns, so the caller's data are not borrowed any longer. It uses
//! the same connections, forwardings and retries as a synchronous call ([`invocation`](crate::call::invocation)).
//! The [client side](crate::client) reads its reply; any executor may poll the future.

mod arguments;
mod call;
mod flow_control;
mod future;
pub(crate) mod generated;
mod orb_operations;

pub use arguments::SharedArguments;
pub use future::{AsyncRawReply, AsyncReply, NarrowReply};
