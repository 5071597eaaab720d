//! The administrators and proxies of a channel.

use std::collections::BTreeMap;

use spandrel::net::sync::Arc;
use spandrel::services::cos_notify_channel_admin::InterFilterGroupOperator;
use spandrel::{CompletionStatus, SystemException};

use crate::admin::Admin;
use crate::kind::Side;
use crate::proxy::Proxy;

/// The id of the administrators that each channel has from its creation on.
pub(crate) const DEFAULT_ADMIN: i32 = 0;

/// Administrators and proxies by their ids.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) suppliers: BTreeMap<i32, Arc<Admin>>,
    pub(crate) consumers: BTreeMap<i32, Arc<Admin>>,
    pub(crate) proxies: BTreeMap<i32, Arc<Proxy>>,
    pub(crate) last_admin: i32,
    pub(crate) last_proxy: i32,
    /// The id up to which the store takes proxies as used.
    pub(crate) reserved_proxy: i32,
    pub(crate) is_destroyed: bool,
}

impl Members {
    /// The members of a new channel, or of one whose ids are used up to these.
    pub(crate) fn new(last_admin: i32, last_proxy: i32) -> Self {
        let default_admin = |side| Arc::new(Admin::new(DEFAULT_ADMIN, side, InterFilterGroupOperator::AndOp));
        Self {
            suppliers: BTreeMap::from([(DEFAULT_ADMIN, default_admin(Side::Suppliers))]),
            consumers: BTreeMap::from([(DEFAULT_ADMIN, default_admin(Side::Consumers))]),
            last_admin,
            last_proxy,
            reserved_proxy: last_proxy,
            ..Self::default()
        }
    }

    pub(crate) fn admins(&mut self, side: Side) -> &mut BTreeMap<i32, Arc<Admin>> {
        match side {
            Side::Suppliers => &mut self.suppliers,
            Side::Consumers => &mut self.consumers,
        }
    }

    /// OBJECT_NOT_EXIST for a channel that is destroyed.
    pub(crate) fn require_live(&self) -> Result<(), SystemException> {
        if self.is_destroyed {
            return Err(SystemException::object_not_exist(0, CompletionStatus::No));
        }
        Ok(())
    }

    /// Makes room for one more proxy of a side, below its bound and that of all proxies. If there is none, the oldest proxy
    /// of the side that was never connected is removed, and returned.
    ///
    /// # Errors
    /// All proxies are connected.
    pub(crate) fn make_room(
        &mut self,
        side: Side,
        bound: usize,
        bound_of_all: usize,
    ) -> Result<Option<Arc<Proxy>>, AllConnected> {
        let is_full = |proxies: &BTreeMap<i32, Arc<Proxy>>| {
            proxies.len() >= bound_of_all || proxies.values().filter(|proxy| proxy.kind.side == side).count() >= bound
        };
        let mut evicted = None;
        if is_full(&self.proxies) {
            let of_side = self.proxies.values().filter(|proxy| proxy.kind.side == side);
            let unconnected = of_side.filter(|proxy| proxy.connection.is_unconnected());
            let oldest = unconnected.min_by_key(|proxy| proxy.created).map(|proxy| proxy.id);
            evicted = oldest.and_then(|id| self.proxies.remove(&id));
        }
        if is_full(&self.proxies) { Err(AllConnected) } else { Ok(evicted) }
    }
}

/// The error of a channel whose proxies are all connected, and as many as it may have.
#[derive(Debug)]
pub(crate) struct AllConnected;

/// The id behind the last one; ids are not used again.
pub(crate) fn next_id(last: i32) -> Result<i32, SystemException> {
    last.checked_add(1)
        .ok_or_else(|| SystemException::imp_limit(0, CompletionStatus::No).with_detail("all ids have been used"))
}
