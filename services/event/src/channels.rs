//! The set of channels of a service: creation, destruction, and their plain object keys.

use spandrel::net::sync::Arc;
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_store::Service;

use crate::admin::{CONSUMERS, ChannelServant, SUPPLIERS};
use crate::channel::Channel;
use crate::limits::require_at_most;
use crate::proxies::restore_proxy;
use crate::service::{FACTORY_KEY, MONITOR_KEY};
use crate::settings::{ChannelSettings, is_name};
use crate::shared::Shared;
use crate::store::StoredChannel;

/// The reason why a channel was not created.
#[derive(Debug)]
pub(crate) enum CreateError {
    /// Another channel has the name, or it is reserved or no name.
    Name,
    System(SystemException),
}

impl From<SystemException> for CreateError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// Creates a channel, durably, and serves it with its name as its plain key.
pub(crate) fn create(shared: &Arc<Shared>, settings: ChannelSettings) -> Result<ObjectRef, CreateError> {
    let reserved = [FACTORY_KEY, MONITOR_KEY, Service::Event.administration_key()];
    // The lock is held while the store is written: names and numbers are unique.
    let mut channels = shared.channels.write();
    let number = channels.next;
    let name = settings.name.clone().unwrap_or_else(|| format!("channel-{number}"));
    if !is_name(&name) || reserved.contains(&&*name) || channels.by_name.contains_key(&name) {
        return Err(CreateError::Name);
    }
    require_at_most(channels.by_name.len() + 1, shared.limits.channels, "channels")?;
    shared.change(|store| store.create(number, &settings))?;
    channels.next += 1;
    let channel = Channel::new(shared, number, name.clone(), settings);
    let object = activate(&channel)?;
    channels.by_name.insert(name, channel);
    Ok(object)
}

/// Serves a channel of the store with its connections.
pub(crate) fn restore(shared: &Arc<Shared>, stored: StoredChannel) -> Result<(), SystemException> {
    let StoredChannel { number, settings, connections } = stored;
    let name = settings.name.clone().unwrap_or_else(|| format!("channel-{number}"));
    let channel = Channel::new(shared, number, name.clone(), settings);
    activate(&channel)?;
    for (proxy, record) in connections {
        restore_proxy(&channel, proxy, record)?;
    }
    shared.channels.write().by_name.insert(name, channel);
    Ok(())
}

fn activate(channel: &Arc<Channel>) -> Result<ObjectRef, SystemException> {
    let object = ChannelServant(Arc::clone(channel)).activate()?;
    channel.shared.orb.set_object_key_alias(&*channel.name, &object)?;
    Ok(object)
}

/// The reference of a channel.
pub(crate) fn reference(channel: &Channel) -> Result<ObjectRef, SystemException> {
    Ok(channel.shared.adapter.id_to_reference(&channel.object_id(None))?)
}

/// The channel with this name.
pub(crate) fn find(shared: &Shared, name: &str) -> Option<Arc<Channel>> {
    shared.channels.read().by_name.get(name).cloned()
}

/// Destroys a channel with its administrators and proxies. Connected peers get notice.
pub(crate) fn destroy(channel: &Arc<Channel>) -> Result<(), SystemException> {
    let shared = &channel.shared;
    {
        let mut channels = shared.channels.write();
        let is_current = channels.by_name.get(&channel.name).is_some_and(|current| Arc::ptr_eq(current, channel));
        if !is_current {
            return Err(SystemException::object_not_exist(0, CompletionStatus::No));
        }
        shared.change(|store| store.destroy(channel.number))?;
        channels.by_name.remove(&channel.name);
        shared.orb.remove_object_key_alias(&*channel.name);
    }
    channel.destroy();
    for part in [CONSUMERS, SUPPLIERS] {
        channel.deactivate(part);
    }
    _ = shared.adapter.deactivate_object(&channel.object_id(None)); // after this call
    Ok(())
}
