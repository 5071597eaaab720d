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
