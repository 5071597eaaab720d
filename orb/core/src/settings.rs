//! What an ORB is configured with.

#[cfg(feature = "server")]
use std::fmt;
use std::time::Duration;

#[cfg(feature = "server")]
use spandrel_sync::Arc;

use crate::destination::WireSettings;
#[cfg(feature = "urls")]
use crate::initial::InitialReferences;
#[cfg(feature = "server")]
use crate::{Collocation, Endpoint, Spawn};

/// What both sides of an ORB are configured with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) wire: WireSettings,
    pub(crate) orb_id: String,
    pub(crate) server_id: String,
    pub(crate) request_timeout: Option<Duration>,
    #[cfg(feature = "asynchronous")]
    pub(crate) wait: WaitStrategy,
    #[cfg(feature = "urls")]
    pub(crate) initial: InitialReferences,
    #[cfg(feature = "server")]
    pub(crate) serving: Serving,
}

/// What the server side of an ORB does besides serving its connections.
#[cfg(feature = "server")]
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) shutdown_timeout: Duration,
    /// Who runs asynchronous servants; the server's own threads unless set.
    pub(crate) spawner: Option<Spawner>,
    /// How this ORB's own objects are called.
    pub(crate) collocation: Collocation,
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

/// How a thread waits for the reply to a call of its own (design decision 3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
#[cfg(feature = "asynchronous")]
pub enum WaitStrategy {
    /// It reads its reply itself, in one system call. It serves nobody meanwhile.
    #[default]
    OnRead,
    /// Threads that serve connections together ([`OrbBuilder::pool_threads`](crate::OrbBuilder::pool_threads)) serve further requests
    /// while a servant in them waits, nested in each other up to 64 deep; then a servant's calls end in TRANSIENT. The innermost
    /// request returns first, so that one that lasts delays those that it was nested in. Other threads read their replies themselves.
    #[cfg(feature = "server")]
    OnReactor,
    /// It sleeps, and is woken by the thread that reads the replies of asynchronous calls. As for those, so many wait on one connection
    /// as [`OrbBuilder::pending_requests`](crate::OrbBuilder::pending_requests) says, and further ones end in TRANSIENT.
    OnWaker,
}
