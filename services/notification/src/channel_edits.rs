//! The edits of a channel in the store that are written together.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use spandrel::SystemException;
use spandrel::net::sync::Arc;
use spandrel::services::cos_notify_channel_admin::InterFilterGroupOperator;
use spandrel::types::Ior;
use spandrel_delivery::Connection;

use crate::admin::Admin;
use crate::durable::DurableStore;
use crate::edit::Edit;
use crate::encoding::encoded;
use crate::filters::{AnyFilter, write_with_filters};
use crate::mapping_filter::MappingFilter;
use crate::member::MemberState;
use crate::proxy::Proxy;
use crate::records::{AdminFields, ChannelRecord, MemberFields, ProxyFields, kind_fields};

/// Edits of one channel.
#[derive(Debug)]
pub(crate) struct ChannelEdits {
    channel: i32,
    edits: Vec<Edit>,
    /// The filters that the written objects use.
    filters: BTreeMap<u64, AnyFilter>,
    /// The proxies that are written or removed, and whether they are in the store afterwards.
    proxies: Vec<(Arc<Proxy>, bool)>,
}

impl ChannelEdits {
    pub(crate) fn new(channel: i32) -> Self {
        Self { channel, edits: Vec::new(), filters: BTreeMap::new(), proxies: Vec::new() }
    }

    pub(crate) fn channel(&mut self, record: ChannelRecord) -> Result<(), SystemException> {
        self.edits.push(Edit::Channel(self.channel, encoded(&record.into_fields())?));
        Ok(())
    }

    pub(crate) fn admin(&mut self, admin: &Admin, state: &MemberState) -> Result<(), SystemException> {
        let is_or = admin.operator == InterFilterGroupOperator::OrOp;
        let fields: AdminFields = (is_or, member_fields(state));
        self.edits.push(Edit::Admin((self.channel, admin.side, admin.id), Some(encoded(&fields)?)));
        self.use_filters(state);
        Ok(())
    }

    pub(crate) fn remove_admin(&mut self, admin: &Admin) {
        self.edits.push(Edit::Admin((self.channel, admin.side, admin.id), None));
    }

    /// Writes a connected proxy, or removes it. Those of typed peers end with the process.
    pub(crate) fn proxy(
        &mut self,
        proxy: &Arc<Proxy>,
        state: &MemberState,
        is_persistent: bool,
    ) -> Result<(), SystemException> {
        let key = (self.channel, proxy.id);
        let peer = proxy.peer.lock().as_ref().map(|peer| peer.reference.clone());
        match peer.filter(|_| is_persistent && proxy.interface.is_none()) {
            Some(peer) => {
                let fields: ProxyFields = (kind_fields(proxy.kind), proxy.admin.id, member_fields(state), peer);
                self.edits.push(Edit::Proxy(key, Some(encoded(&fields)?)));
                self.use_filters(state);
                self.proxies.push((Arc::clone(proxy), true));
            }
            None if proxy.is_stored.load(Ordering::Relaxed) => self.remove_proxy(proxy),
            None => {}
        }
        Ok(())
    }

    pub(crate) fn remove_proxy(&mut self, proxy: &Arc<Proxy>) {
        self.edits.push(Edit::Proxy((self.channel, proxy.id), None));
        self.proxies.push((Arc::clone(proxy), false));
    }

    fn use_filters(&mut self, state: &MemberState) {
        for filter in state.filters.filters() {
            self.filters.insert(filter.id, AnyFilter::Plain(Arc::clone(filter)));
        }
        for filter in [&state.mappings.priority, &state.mappings.lifetime].into_iter().flatten() {
            self.filters.insert(filter.id, AnyFilter::Mapping(Arc::clone(filter)));
        }
    }

    /// Writes all edits, durably.
    ///
    /// # Errors
    /// PERSIST_STORE if the store cannot be written.
    pub(crate) fn write(self, store: &DurableStore) -> Result<(), SystemException> {
        if self.edits.is_empty() {
            return Ok(());
        }
        write_with_filters(store, &self.filters, self.edits)?;
        for (proxy, is_stored) in &self.proxies {
            proxy.is_stored.store(*is_stored, Ordering::SeqCst);
            if let Connection::Disconnected = proxy.connection.get() {
                forget_proxy(store, self.channel, proxy);
            }
        }
        Ok(())
    }
}

fn member_fields(state: &MemberState) -> MemberFields {
    let (filters, last_filter) = state.filters.numbers();
    let number = |filter: &Option<Arc<MappingFilter>>| filter.as_ref().map_or(0, |filter| filter.id);
    (
        state.qos.recorded(),
        filters,
        last_filter,
        (number(&state.mappings.priority), number(&state.mappings.lifetime)),
        state.types.list(),
        (state.is_suspended, state.gets_no_types),
    )
}

/// Removes the record of a proxy whose connection has ended, with the next write.
pub(crate) fn forget_proxy(store: &DurableStore, channel: i32, proxy: &Proxy) {
    if proxy.is_stored.swap(false, Ordering::SeqCst) {
        store.write_later(Edit::Proxy((channel, proxy.id), None));
    }
}

/// The reference of a peer in a record.
pub(crate) fn peer_reference(peer: Option<&spandrel::ObjectRef>) -> Ior {
    peer.map(|peer| peer.ior().clone()).unwrap_or_default()
}
