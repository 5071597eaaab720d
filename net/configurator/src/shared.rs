//! The parts of a configurator that its changes use.

use std::path::PathBuf;
use std::time::Duration;

use spandrel_reactor::Registry;
use spandrel_sync::{Arc, Mutex};

use crate::catalogue::Catalogue;
use crate::plugin::Libraries;
use crate::repository::ServiceRepository;
use crate::stream_object::StreamSupport;

/// The parts of a configurator that do not change.
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) catalogue: Catalogue,
    pub(crate) streams: Option<Arc<dyn StreamSupport>>,
    pub(crate) repository: ServiceRepository,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) call_timeout: Duration,
    pub(crate) state: Mutex<State>,
}

/// Locked during each change.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) libraries: Libraries,
    /// The files of the last configuration that was applied.
    pub(crate) files: Vec<PathBuf>,
    /// The arguments of [`Configurator::configure`].
    pub(crate) sources: Vec<PathBuf>,
}
