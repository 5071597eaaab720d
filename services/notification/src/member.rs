//! The properties that administrators and proxies have alike.

use spandrel::net::sync::{Arc, RwLock};

use crate::event_types::TypeSet;
use crate::filters::FilterSet;
use crate::mapping_filter::Mappings;
use crate::qos::Qos;

/// The properties, filters and event types of an administrator or proxy.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberState {
    pub(crate) qos: Qos,
    pub(crate) filters: FilterSet,
    pub(crate) mappings: Mappings,
    /// The types that the peer subscribes to or offers.
    pub(crate) types: TypeSet,
    /// Whether the connection of a proxy is suspended.
    pub(crate) is_suspended: bool,
    /// Whether the peer of a proxy gets no changes of the other side's event types.
    pub(crate) gets_no_types: bool,
}

/// The state of a member, for several threads.
#[derive(Debug, Default)]
pub(crate) struct MemberCell(RwLock<Arc<MemberState>>);

impl MemberCell {
    pub(crate) fn new(state: MemberState) -> Self {
        Self(RwLock::new(Arc::new(state)))
    }

    pub(crate) fn get(&self) -> Arc<MemberState> {
        Arc::clone(&self.0.read())
    }

    pub(crate) fn set(&self, state: MemberState) {
        *self.0.write() = Arc::new(state);
    }
}
