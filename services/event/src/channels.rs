//! The set of channels of a service: creation, and their plain object keys.

use spandrel::net::sync::Arc;
use spandrel::{ObjectRef, SystemException};
use spandrel_daemon::require_at_most;
use spandrel_store::Service;

use crate::admin::ChannelServant;
use crate::channel::Channel;
use crate::keys::{FACTORY_KEY, MONITOR_KEY, typed_key};
use crate::proxies::restore_proxy;
use crate::registry::Registry;
use crate::settings::{ChannelSettings, is_name};
use crate::store::StoredChannel;
use crate::typed::activate_typed;

/// A failure of [`EventChannels::create`](crate::EventChannels::create).
#[derive(Debug)]
pub enum CreateError {
    /// Another channel has the name, or it is reserved or not valid.
    Name,
    /// The service failed, or has a bound.
    System(SystemException),
}

impl From<SystemException> for CreateError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// Creates a channel, durably, and serves it with its name as its plain key.
pub(crate) fn create(registry: &Arc<Registry>, settings: ChannelSettings) -> Result<ObjectRef, CreateError> {
    let reserved = [FACTORY_KEY, MONITOR_KEY, Service::Event.administration_key()];
    let shared = &registry.shared;
    // The lock is held while the store is written: names and numbers are unique.
    let mut channels = registry.channels.write();
    let number = channels.next;
    let name = settings.name.clone().unwrap_or_else(|| format!("channel-{number}"));
    if !is_name(&name) || reserved.contains(&&*name) || channels.by_name.contains_key(&name) {
        return Err(CreateError::Name);
    }
    require_at_most(channels.by_name.len() + 1, shared.limits.channels, "channels")?;
    shared.change(|store| store.create(number, &settings))?;
    channels.next += 1;
    let channel = Channel::new(&registry.shared, number, name.clone(), settings);
    let object = activate(registry, &channel)?;
    channels.by_name.insert(name, channel);
    Ok(object)
}

/// Serves a channel of the store with its connections.
pub(crate) fn restore(registry: &Arc<Registry>, stored: StoredChannel) -> Result<(), SystemException> {
    let StoredChannel { number, settings, connections } = stored;
    let name = settings.name.clone().unwrap_or_else(|| format!("channel-{number}"));
    let channel = Channel::new(&registry.shared, number, name.clone(), settings);
    activate(registry, &channel)?;
    for (proxy, record) in connections {
        restore_proxy(&channel, proxy, record)?;
    }
    registry.channels.write().by_name.insert(name, channel);
    Ok(())
}

fn activate(registry: &Arc<Registry>, channel: &Arc<Channel>) -> Result<ObjectRef, SystemException> {
    let servant = ChannelServant { channel: Arc::clone(channel), registry: Arc::clone(registry) };
    let (object, typed) = (servant.activate()?, activate_typed(&servant)?);
    channel.shared.orb.set_object_key_alias(&*channel.name, &object)?;
    channel.shared.orb.set_object_key_alias(&*typed_key(&channel.name), &typed)?;
    Ok(object)
}

/// The reference of a channel.
pub(crate) fn reference(channel: &Channel) -> Result<ObjectRef, SystemException> {
    Ok(channel.shared.adapter.id_to_reference(&channel.object_id(None))?)
}

/// The channel with this name.
pub(crate) fn find(registry: &Registry, name: &str) -> Option<Arc<Channel>> {
    registry.channels.read().by_name.get(name).cloned()
}
