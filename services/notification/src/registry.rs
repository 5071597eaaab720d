//! The channels of a service by their ids.

use std::collections::BTreeMap;
use std::ops::Bound;

use spandrel::SystemException;
use spandrel::net::sync::{Arc, RwLock};
use spandrel_daemon::require_at_most;

use crate::channel::Channel;
use crate::edit::Edit;
use crate::members::next_id;
use crate::records::ChannelRecord;
use crate::shared::Shared;

/// The ids of channels that the store takes as used with one write.
const RESERVED_CHANNELS: i32 = 1_000;

/// The channels, and the parts that they share.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) shared: Arc<Shared>,
    channels: RwLock<Channels>,
}

#[derive(Debug)]
struct Channels {
    by_id: BTreeMap<i32, Arc<Channel>>,
    last: i32,
    /// The id up to which the store takes ids as used.
    reserved: i32,
}

impl Registry {
    /// No channels; `last` is the last id that may be in use.
    pub(crate) fn new(shared: Arc<Shared>, last: i32) -> Arc<Self> {
        let channels = Channels { by_id: BTreeMap::new(), last, reserved: last };
        Arc::new(Self { shared, channels: RwLock::new(channels) })
    }

    /// Adds a channel, and gives it a number. With persistent connections it is in the store when this returns.
    ///
    /// # Errors
    /// IMP_LIMIT if there are too many; PERSIST_STORE if the store cannot be written.
    pub(crate) fn add(&self, record: ChannelRecord) -> Result<Arc<Channel>, SystemException> {
        let channel = {
            let mut channels = self.channels.write();
            require_at_most(channels.by_id.len() + 1, self.shared.limits.channels, "channels")?;
            let id = next_id(channels.last)?;
            if let Some(store) = self.shared.store.as_ref().filter(|_| id > channels.reserved) {
                // Ids are not used again, also those of channels that are not in the store.
                let reserved = id.saturating_add(RESERVED_CHANNELS);
                store.write(vec![Edit::Setting("channels", u64::try_from(reserved).unwrap_or_default())])?;
                channels.reserved = reserved;
            }
            channels.last = id;
            let channel = Channel::new(&self.shared, id, record);
            channels.by_id.insert(id, Arc::clone(&channel));
            channel
        };
        channel.store_new().inspect_err(|_| _ = self.channels.write().by_id.remove(&channel.id))?;
        Ok(channel)
    }

    /// Adds a channel of the store.
    pub(crate) fn restore(&self, channel: &Arc<Channel>) {
        self.channels.write().by_id.insert(channel.id, Arc::clone(channel));
    }

    pub(crate) fn get(&self, id: i32) -> Option<Arc<Channel>> {
        self.channels.read().by_id.get(&id).cloned()
    }

    /// Up to so many channels after the one with this number.
    pub(crate) fn after(&self, id: i32, how_many: usize) -> Vec<Arc<Channel>> {
        let channels = self.channels.read();
        let rest = channels.by_id.range((Bound::Excluded(id), Bound::Unbounded));
        rest.take(how_many).map(|(_, channel)| Arc::clone(channel)).collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Channel>> {
        self.channels.read().by_id.values().cloned().collect()
    }

    /// Destroys a channel.
    ///
    /// # Errors
    /// PERSIST_STORE if the store cannot be written; the channel goes on.
    pub(crate) fn destroy(&self, channel: &Channel) -> Result<(), SystemException> {
        channel.destroy()?;
        self.channels.write().by_id.remove(&channel.id);
        Ok(())
    }
}
