//! Administrators: the properties, filters and types that a group of proxies has in common.

use spandrel::services::cos_notify_channel_admin::InterFilterGroupOperator;

use crate::constraints::FilteredEvent;
use crate::filters::FilterSet;
use crate::kind::Side;
use crate::member::MemberCell;

/// An administrator of suppliers or of consumers.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) id: i32,
    pub(crate) side: Side,
    pub(crate) operator: InterFilterGroupOperator,
    pub(crate) state: MemberCell,
}

impl Admin {
    pub(crate) fn new(id: i32, side: Side, operator: InterFilterGroupOperator) -> Self {
        Self { id, side, operator, state: MemberCell::default() }
    }

    /// Whether an event passes the filters of the administrator and of one of its proxies.
    pub(crate) fn is_match(&self, proxy: &FilterSet, event: &FilteredEvent<'_>, steps: &mut u64) -> bool {
        let own = &self.state.get().filters;
        match self.operator {
            InterFilterGroupOperator::AndOp => own.is_match(event, steps) && proxy.is_match(event, steps),
            InterFilterGroupOperator::OrOp => own.is_match(event, steps) || proxy.is_match(event, steps),
        }
    }

    /// The part of the object id of its typed face.
    pub(crate) fn typed_part(&self) -> String {
        format!("{}/typed", self.name())
    }

    /// Its part of the object id.
    pub(crate) fn name(&self) -> String {
        match self.side {
            Side::Suppliers => format!("suppliers/{}", self.id),
            Side::Consumers => format!("consumers/{}", self.id),
        }
    }
}
