//! The items that need the feature `asynchronous`.

pub use crate::{
    call::timer::TimerFuture,
    client::connection::{AdoptedReader, CallbackDispatcher},
};

/// The state by which the request of a servant is cancelled, and the request of the present thread.
pub mod cancellation {
    pub use crate::call::cancellation::{
        CancellationSource, RequestOfThread, SERVING, renew, set_request_of_thread, source_of_thread,
    };
}

/// Requests that a thread serves while it waits for a reply.
pub mod nesting {
    pub use crate::call::invocation::nesting::{NestedWait, NestedWork, join, nests};
}
