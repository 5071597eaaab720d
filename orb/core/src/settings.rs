//! What an ORB is configured with.

#[cfg(feature = "server")]
use std::fmt;
use std::time::Duration;

use spandrel_giop::{OwnCodeSets, SystemException};
#[cfg(feature = "server")]
use spandrel_sync::Arc;
#[cfg(feature = "server")]
use spandrel_transport::Endpoint;

#[cfg(feature = "server")]
use crate::Spawn;
use crate::{ObjectRef, Orb, destination::WireSettings, diagnostics::DiagnosticsSettings, initial::InitialReferences};

/// Reads a reference in the forms that an ORB knows.
pub(crate) type UrlParser = fn(&Orb, &str) -> Result<ObjectRef, SystemException>;

/// What both sides of an ORB are configured with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) wire: WireSettings,
    pub(crate) code_sets: OwnCodeSets,
    pub(crate) orb_id: String,
    pub(crate) server_id: String,
    pub(crate) request_timeout: Option<Duration>,
    /// How many contexts replies may have, and how long ones.
    #[cfg(feature = "details")]
    pub(crate) context_limits: spandrel_giop::ContextLimits,
    pub(crate) diagnostics: DiagnosticsSettings,
    #[cfg(feature = "asynchronous")]
    pub(crate) wait: WaitStrategy,
    /// Threads that call may have to leave the reading of their replies to others.
    #[cfg(feature = "asynchronous")]
    pub(crate) leaves_reading: bool,
    pub(crate) urls: UrlParser,
    pub(crate) initial: InitialReferences,
    #[cfg(feature = "server")]
    pub(crate) serving: ServiceSettings,
}

/// What the server side of an ORB does besides serving its connections.
#[cfg(feature = "server")]
#[derive(Clone, Debug)]
pub(crate) struct ServiceSettings {
    pub(crate) endpoints: Vec<Endpoint>,
    /// What IIOP endpoints publish that do not say it themselves.
    pub(crate) publish: Option<String>,
    pub(crate) shutdown_timeout: Duration,
    /// Who runs asynchronous servants; the server's own threads unless set.
    pub(crate) spawner: Option<Spawner>,
    /// How this ORB's own objects are called.
    pub(crate) collocation: Collocation,
    /// Exceptions say what is known of their cause.
    pub(crate) sends_exception_details: bool,
    /// Calls that servants make have no more time than their client.
    pub(crate) inherits_deadlines: bool,
    /// They end when their client does not wait any more.
    pub(crate) cancels_nested: bool,
    /// Connections are used by both sides.
    pub(crate) is_bidirectional: bool,
    /// What clients say of their listen points is believed, whatever it is.
    pub(crate) trusts_listen_points: bool,
}

/// Who runs futures.
#[cfg(feature = "server")]
#[derive(Clone)]
pub(crate) struct Spawner(pub(crate) Arc<dyn Spawn>);

#[cfg(feature = "server")]
impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawner")
    }
}

/// How calls on objects of the same ORB reach their servants.
///
/// | | path | costs |
/// | --- | --- | --- |
/// | [`Direct`](Self::Direct) | the stub calls the servant's method, if the IDL compiler was asked for that (`--collocation direct`) | an adapter's look-up and a virtual call |
/// | [`ThroughPoa`](Self::ThroughPoa) | marshaled, and dispatched by the adapter in the calling thread | what marshaling costs |
/// | [`No`](Self::No) | as to any other server | a round trip through the system |
///
/// All three are seen alike by programs, apart from time: states of adapters, exceptions, time-outs. Since the servant runs in the calling thread, a time-out of the
/// call cannot end it early: the call ends in TIMEOUT once the servant has returned. Recursion through such calls is as deep as the thread's stack.
/// Calls that must not wait for the servant (one-ways, asynchronous calls) go the way of [`No`](Self::No); so does the first two-way that a thread
/// makes after one-ways, so that these are run first.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Collocation {
    /// Without marshaling where the stub can do it, otherwise through the adapter.
    Direct,
    /// Through the adapter.
    #[default]
    ThroughPoa,
    /// Through a socket.
    No,
}

/// How a thread waits for the reply to a call of its own (design decision 3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
#[cfg(feature = "asynchronous")]
pub enum WaitStrategy {
    /// It reads its reply itself, in one system call. It serves nobody meanwhile.
    #[default]
    OnRead,
    /// Threads that serve connections together ([`Concurrency`](crate::Concurrency)) serve further requests
    /// while a servant in them waits, nested in each other up to 64 deep; then a servant's calls end in TRANSIENT. The innermost
    /// request returns first, so that one that lasts delays those that it was nested in. Other threads read their replies themselves.
    #[cfg(feature = "server")]
    OnReactor,
    /// It sleeps, and is woken by the thread that reads the replies of asynchronous calls. As for those, so many wait on one connection
    /// as [`OrbBuilder::pending_requests`](crate::OrbBuilder::pending_requests) says, and further ones end in TRANSIENT.
    OnWaker,
}
