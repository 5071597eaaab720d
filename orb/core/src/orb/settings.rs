//! The settings of an ORB.

use std::time::Duration;

use spandrel_giop::OwnCodeSets;

use crate::{
    client::destination::WireSettings,
    diagnostics::DiagnosticsSettings,
    orb::{initial_references::InitialReferences, parts::Parts},
};

/// The settings that both sides of an ORB use.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) wire: WireSettings,
    pub(crate) code_sets: OwnCodeSets,
    pub(crate) orb_id: String,
    pub(crate) server_id: String,
    /// Whether persistent references denote the implementation repository.
    pub(crate) uses_implementation_repository: bool,
    pub(crate) request_timeout: Option<Duration>,
    /// The limits on the service contexts of a reply.
    pub(crate) context_limits: spandrel_giop::ContextLimits,
    pub(crate) diagnostics: DiagnosticsSettings,
    pub wait: WaitStrategy,
    pub(crate) initial: InitialReferences,
    pub(crate) parts: Parts,
    /// How calls reach objects of the same ORB.
    pub collocation: Collocation,
    /// Whether connections carry the requests of both sides.
    pub(crate) is_bidirectional: bool,
    /// Whether calls made by servants inherit the deadline of the request.
    pub(crate) inherits_deadlines: bool,
    /// Whether calls made by servants end when the request is cancelled.
    pub cancels_nested: bool,
}

/// How calls on objects of the same ORB reach their servants.
///
/// | | path | costs |
/// | --- | --- | --- |
/// | [`Direct`](Self::Direct) | the stub calls the servant's method, if generated with `--collocation direct` | an adapter's look-up and a virtual call |
/// | [`ThroughPoa`](Self::ThroughPoa) | marshaled, and dispatched by the adapter in the calling thread | marshaling |
/// | [`No`](Self::No) | as to any other server | a round trip through the system |
///
/// Apart from the time they take, all three behave alike: states of adapters, exceptions, time-outs. Since
/// the servant runs in the calling thread, a time-out cannot end the call early: the call ends in TIMEOUT
/// once the servant has returned. Recursion through such calls is limited by the thread's stack.
///
/// Calls that must not wait for the servant (one-ways, asynchronous calls) are made as by [`No`](Self::No).
/// So is the first two-way call of a thread after one-ways, so that the one-ways run first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Collocation {
    /// Without marshaling where the stub supports it, otherwise through the adapter.
    Direct,
    /// Through the adapter, with its checks and with marshaled arguments, but without a socket.
    #[default]
    ThroughPoa,
    /// Through a socket, as calls of any other server.
    No,
}

/// How a thread waits for the reply to its own call (design decision 3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// The thread reads its reply itself, in one system call. It serves no other requests meanwhile.
    #[default]
    OnRead,
    /// A thread that serves connections with others ([`Concurrency`](crate::Concurrency)) runs further
    /// requests while its servant waits. They nest up to 64 deep; beyond it a servant's calls end in
    /// TRANSIENT. The innermost request returns first, so a long one delays those around it. Other threads
    /// read their replies themselves.
    OnReactor,
    /// The thread sleeps until the ORB's reactor thread for asynchronous calls has read its reply. As for
    /// asynchronous calls, [`OrbBuilder::pending_requests`](crate::OrbBuilder::pending_requests) limits the
    /// calls that wait on one connection; further calls end in TRANSIENT.
    OnWaker,
}
