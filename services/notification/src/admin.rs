//! Administrators: the properties, filters and types that a group of proxies has in common.

use spandrel::net::sync::RwLock;
use spandrel::services::cos_notify_channel_admin::InterFilterGroupOperator;

use crate::event_types::TypeSet;
use crate::filter::FilteredEvent;
use crate::filters::FilterSet;
use crate::kind::Side;
use crate::mapping_filter::Mappings;
use crate::qos::Qos;

/// An administrator of suppliers or of consumers.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) id: i32,
    pub(crate) side: Side,
    pub(crate) operator: InterFilterGroupOperator,
    pub(crate) qos: RwLock<Qos>,
    pub(crate) filters: FilterSet,
    pub(crate) mappings: RwLock<Mappings>,
    pub(crate) types: RwLock<TypeSet>,
}

impl Admin {
    pub(crate) fn new(id: i32, side: Side, operator: InterFilterGroupOperator) -> Self {
        Self {
            id,
            side,
            operator,
            qos: RwLock::default(),
            filters: FilterSet::default(),
            mappings: RwLock::default(),
            types: RwLock::default(),
        }
    }

    /// Whether an event passes the filters of the administrator and of one of its proxies.
    pub(crate) fn is_match(&self, proxy: &FilterSet, event: &FilteredEvent<'_>, steps: &mut u64) -> bool {
        match self.operator {
            InterFilterGroupOperator::AndOp => self.filters.is_match(event, steps) && proxy.is_match(event, steps),
            InterFilterGroupOperator::OrOp => self.filters.is_match(event, steps) || proxy.is_match(event, steps),
        }
    }

    /// Its part of the object id.
    pub(crate) fn name(&self) -> String {
        match self.side {
            Side::Suppliers => format!("suppliers/{}", self.id),
            Side::Consumers => format!("consumers/{}", self.id),
        }
    }
}
