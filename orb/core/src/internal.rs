//! The items that the crates above use of this one, and nothing else. Not a public interface: it changes with
//! those crates, and `cargo xtask structure` fails on an item that none of them names.

pub use crate::{
    call::invocation::encode_collocated,
    client::{CallFailure, ClientConnection, Reply, call_kind::CallKind, destination::Destination, send_fragmented},
    diagnostics::{ArrivalTime, metrics::ConnectionMetrics, request::ObservedRequest, untraced},
    interception::{
        exception::ExceptionOctets,
        flow::RequestOutcome,
        server::flow::{LentSlots, RequestView, ServerFlow, receive_locate_request},
    },
    orb::{
        IMPL_REPO_SERVICE, WeakOrb, implementation_repository_prefix,
        server_side::{NothingToSend, ServerLevels, ServerSide},
    },
    policy::deadline_contexts::request_deadline,
    reference::object::OBJECT_ID,
    servant_side::{
        server_settings::{ClientTimeouts, DemuxDefaults, RESERVED_THREADS, ServerSettings, Spawner},
        upcall_scope::{PollScope, PollingExecutor, UpcallScope, upcalls},
    },
};
#[cfg(feature = "asynchronous")]
mod asynchronous;

#[cfg(feature = "asynchronous")]
pub use asynchronous::*;

/// References of an adapter, and the notification of IOR interceptors.
pub mod adapter_references {
    pub use crate::interception::adapter_references::{
        References, adapter_manager_state_changed, adapter_state_changed,
    };
}

/// Replies that a thread holds while it serves the requests behind theirs.
pub mod held_replies {
    pub use crate::servant_side::held_replies::{HeldReplies, Holder, forget, is_recorded, record, record_for_task};
}

/// The deadline of a request, and of the calls that its servant makes.
pub mod request_deadlines {
    pub use crate::policy::request_deadlines::{InheritedDeadline, RequestDeadline, inherited};
}

/// The thread's block of memory into which messages are marshaled.
pub mod scratch {
    pub use crate::call::scratch::{give, take};
}

/// Futures in the threads of an [`Executor`](task::Executor).
pub mod task {
    pub use crate::client::task::{Executor, begin_here, run_in};
}
