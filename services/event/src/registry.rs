//! The channels of a service by their names.

use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, RwLock};

use crate::channel::Channel;
use crate::shared::Shared;

/// The channels, and the parts that they share.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) shared: Arc<Shared>,
    pub(crate) channels: RwLock<Channels>,
}

/// The channels by their names, and the number of the next one.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    pub(crate) by_name: BTreeMap<String, Arc<Channel>>,
    pub(crate) next: u64,
}
