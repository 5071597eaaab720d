//! Asynchronous invocation: a request that is sent now, and a future that waits for its answer.
//!
//! A call marshals its arguments before it returns, so that nothing of the caller's is borrowed any longer, and it goes through
//! the same connections, forwardings and retries as a synchronous one ([`invocation`](crate::invocation)). Who reads
//! its reply belongs to the [client side](crate::client); any executor may poll the future.

mod arguments;
mod call;
mod future;
mod interception;
mod request;

pub use future::{AsyncRawReply, AsyncReply};
