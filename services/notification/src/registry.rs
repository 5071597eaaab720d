//! The channels of a service by their ids.

use std::collections::BTreeMap;

use spandrel::SystemException;
use spandrel::net::sync::{Arc, RwLock};
use spandrel_daemon::require_at_most;

use crate::admin_properties::AdminSettings;
use crate::channel::{Channel, next_id};
use crate::qos::Qos;
use crate::shared::Shared;

/// The channels, and the parts that they share.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) shared: Arc<Shared>,
    channels: RwLock<Channels>,
}

#[derive(Debug, Default)]
struct Channels {
    by_id: BTreeMap<i32, Arc<Channel>>,
    last: i32,
}

impl Registry {
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared, channels: RwLock::default() })
    }

    /// Adds a channel, and gives it a number.
    ///
    /// # Errors
    /// IMP_LIMIT if there are too many.
    pub(crate) fn add(&self, qos: Qos, settings: AdminSettings) -> Result<Arc<Channel>, SystemException> {
        let mut channels = self.channels.write();
        require_at_most(channels.by_id.len() + 1, self.shared.limits.channels, "channels")?;
        channels.last = next_id(channels.last)?;
        let channel = Channel::new(&self.shared, channels.last, qos, settings);
        channels.by_id.insert(channel.id, Arc::clone(&channel));
        Ok(channel)
    }

    pub(crate) fn get(&self, id: i32) -> Option<Arc<Channel>> {
        self.channels.read().by_id.get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Channel>> {
        self.channels.read().by_id.values().cloned().collect()
    }

    pub(crate) fn destroy(&self, channel: &Channel) {
        self.channels.write().by_id.remove(&channel.id);
        channel.destroy();
    }
}
