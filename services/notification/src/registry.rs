//! The channels of a service by their ids, and the objects that stand for them.

use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, RwLock};
use spandrel::services::cos_notify_channel_admin::EventChannelSkeleton;
use spandrel::{ObjectRef, SystemException};
use spandrel_delivery::require_at_most;

use crate::admin_properties::AdminSettings;
use crate::admins::AdminServant;
use crate::channel::{Channel, DEFAULT_ADMIN, next_id};
use crate::channel_servant::ChannelServant;
use crate::proxy::Side;
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

    /// Creates and serves a channel with its default administrators.
    pub(crate) fn create(
        self: &Arc<Self>,
        qos: Qos,
        settings: AdminSettings,
    ) -> Result<(ObjectRef, Arc<Channel>), SystemException> {
        let channel = {
            let mut channels = self.channels.write();
            require_at_most(channels.by_id.len() + 1, self.shared.limits.channels, "channels")?;
            channels.last = next_id(channels.last)?;
            let channel = Channel::new(&self.shared, channels.last, qos, settings);
            channels.by_id.insert(channel.id, Arc::clone(&channel));
            channel
        };
        for side in [Side::Suppliers, Side::Consumers] {
            if let Some(admin) = channel.admin(side, DEFAULT_ADMIN) {
                AdminServant { channel: Arc::clone(&channel), admin }.activate()?;
            }
        }
        let servant = ChannelServant { channel: Arc::clone(&channel), registry: Arc::clone(self) };
        let object = channel.serve(None, Arc::new(EventChannelSkeleton::new(servant)))?;
        Ok((object, channel))
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
