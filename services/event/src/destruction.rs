//! The end of channels.

use spandrel::net::sync::Arc;
use spandrel::{CompletionStatus, SystemException};

use crate::channel::Channel;
use crate::keys::{CONSUMERS, SUPPLIERS, TYPED, TYPED_CONSUMERS, TYPED_SUPPLIERS, typed_key};
use crate::registry::Registry;

/// Destroys a channel with its administrators and proxies. Connected peers get notice.
pub(crate) fn destroy(registry: &Registry, channel: &Arc<Channel>) -> Result<(), SystemException> {
    let shared = &registry.shared;
    {
        let mut channels = registry.channels.write();
        let is_current = channels.by_name.get(&channel.name).is_some_and(|current| Arc::ptr_eq(current, channel));
        if !is_current {
            return Err(SystemException::object_not_exist(0, CompletionStatus::No));
        }
        shared.change(|store| store.destroy(channel.number))?;
        channels.by_name.remove(&channel.name);
        shared.orb.remove_object_key_alias(&*channel.name);
        shared.orb.remove_object_key_alias(&*typed_key(&channel.name));
    }
    channel.destroy();
    for part in [CONSUMERS, SUPPLIERS, TYPED, TYPED_CONSUMERS, TYPED_SUPPLIERS] {
        channel.deactivate(part);
    }
    _ = shared.adapter.deactivate_object(&channel.object_id(None)); // after this call
    Ok(())
}
