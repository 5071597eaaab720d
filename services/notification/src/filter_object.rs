//! The object of a filter: its constraints by their ids, and its callbacks.

use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, RwLock};
use spandrel::services::cos_notification::{EventType, Property, StructuredEvent};
use spandrel::services::cos_notify_comm::NotifySubscribe;
use spandrel::services::cos_notify_filter::filter::{
    AddConstraintsError, DetachCallbackError, GetConstraintsError, MatchError, MatchStructuredError, MatchTypedError,
    ModifyConstraintsError,
};
use spandrel::services::cos_notify_filter::{
    CallbackNotFound, ConstraintExp, ConstraintInfo, ConstraintNotFound, FilterServant, InvalidConstraint,
};
use spandrel::types::{Any, Interface as _};
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_daemon::require_at_most;

use crate::constraints::{ChangeError, Constraints, FilterConstraint, FilteredEvent, GRAMMAR};
use crate::content::Content;
use crate::filter::Filter;
use crate::shared::Shared;

/// A filter with its callbacks, as the servant of its interface.
#[derive(Debug)]
pub(crate) struct FilterObject {
    filter: Arc<Filter>,
    shared: Arc<Shared>,
    callbacks: RwLock<Callbacks>,
}

/// The objects that learn of changes of a filter's event types.
#[derive(Debug, Default)]
struct Callbacks {
    by_id: BTreeMap<i32, ObjectRef>,
    last: i32,
}

impl FilterObject {
    pub(crate) fn new(filter: Arc<Filter>, shared: Arc<Shared>) -> Self {
        Self { filter, shared, callbacks: RwLock::default() }
    }

    fn evaluate(&self, event: &FilteredEvent<'_>) -> bool {
        self.filter.is_match(event, &mut self.shared.limits.filter_steps.clone())
    }

    fn list(&self) -> Vec<ConstraintInfo> {
        self.filter.constraints.read().list().map(|(id, constraint)| info(id, constraint)).collect()
    }

    /// Tells the callbacks of the event types that have come and gone.
    fn notify(&self, before: &[ConstraintInfo]) {
        let types = |list: &[ConstraintInfo]| -> Vec<EventType> {
            list.iter().flat_map(|info| info.constraint_expression.event_types.iter().cloned()).collect()
        };
        let (old, new) = (types(before), types(&self.list()));
        let lost = |from: &[EventType], other: &[EventType]| -> Vec<EventType> {
            from.iter().filter(|event_type| !other.contains(event_type)).cloned().collect()
        };
        let (added, removed) = (lost(&new, &old), lost(&old, &new));
        if added.is_empty() && removed.is_empty() {
            return;
        }
        let callbacks: Vec<ObjectRef> = self.callbacks.read().by_id.values().cloned().collect();
        for callback in callbacks {
            self.shared.notify_subscription(&callback, &added, &removed);
        }
    }

    fn change(
        &self,
        change: impl FnOnce(&Constraints<()>) -> Result<(Constraints<()>, Vec<i32>), ChangeError>,
    ) -> Result<Vec<i32>, ChangeError> {
        let (before, ids) = self.filter.change(change)?;
        let before: Vec<_> = before.list().map(|(id, constraint)| info(id, constraint)).collect();
        self.notify(&before);
        Ok(ids)
    }
}

fn info(id: i32, constraint: &FilterConstraint<()>) -> ConstraintInfo {
    ConstraintInfo { constraint_expression: constraint.expression.clone(), constraint_id: id }
}

impl From<ChangeError> for AddConstraintsError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Invalid(constr) => InvalidConstraint { constr }.into(),
            ChangeError::Unknown(_) => SystemException::internal(0, CompletionStatus::No).into(),
            ChangeError::System(exception) => exception.into(),
        }
    }
}

impl From<ChangeError> for ModifyConstraintsError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Invalid(constr) => InvalidConstraint { constr }.into(),
            ChangeError::Unknown(id) => ConstraintNotFound { id }.into(),
            ChangeError::System(exception) => exception.into(),
        }
    }
}

impl FilterServant for FilterObject {
    fn constraint_grammar(&self) -> Result<String, SystemException> {
        Ok(GRAMMAR.to_owned())
    }

    fn add_constraints(&self, constraint_list: &[ConstraintExp]) -> Result<Vec<ConstraintInfo>, AddConstraintsError> {
        let added = constraint_list.iter().map(|expression| (expression.clone(), ()));
        let ids = self.change(|constraints| constraints.changed(&self.shared.filter_bounds, &[], [], added))?;
        let added = ids.into_iter().zip(constraint_list);
        let info = |(constraint_id, expression): (i32, &ConstraintExp)| ConstraintInfo {
            constraint_expression: expression.clone(),
            constraint_id,
        };
        Ok(added.map(info).collect())
    }

    fn modify_constraints(
        &self,
        del_list: &[i32],
        modify_list: &[ConstraintInfo],
    ) -> Result<(), ModifyConstraintsError> {
        let modified = modify_list.iter().map(|info| (info.constraint_id, info.constraint_expression.clone(), ()));
        self.change(|constraints| constraints.changed(&self.shared.filter_bounds, del_list, modified, []))?;
        Ok(())
    }

    fn get_constraints(&self, id_list: &[i32]) -> Result<Vec<ConstraintInfo>, GetConstraintsError> {
        require_at_most(id_list.len(), self.shared.limits.constraints, "constraints of a filter")?;
        let constraints = self.filter.constraints.read().get(id_list)?;
        Ok(constraints.iter().map(|(id, constraint)| info(*id, constraint)).collect())
    }

    fn get_all_constraints(&self) -> Result<Vec<ConstraintInfo>, SystemException> {
        Ok(self.list())
    }

    fn remove_all_constraints(&self) -> Result<(), SystemException> {
        match self.change(|constraints| Ok((constraints.emptied(), Vec::new()))) {
            Err(ChangeError::System(exception)) => Err(exception),
            _ => Ok(()),
        }
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.shared.filters.destroy(&self.shared.adapter, self.filter.id)
    }

    fn r#match(&self, filterable_data: &Any) -> Result<bool, MatchError> {
        let content = Content::from_any(filterable_data);
        Ok(self.evaluate(&FilteredEvent::new(&content, &self.shared.filter_bounds)))
    }

    fn match_structured(&self, filterable_data: &StructuredEvent) -> Result<bool, MatchStructuredError> {
        Ok(self.evaluate(&FilteredEvent::structured(filterable_data, &self.shared.filter_bounds)))
    }

    fn match_typed(&self, filterable_data: &[Property]) -> Result<bool, MatchTypedError> {
        Ok(self.evaluate(&FilteredEvent::members(filterable_data, &self.shared.filter_bounds)))
    }

    fn attach_callback(&self, callback: Option<&NotifySubscribe>) -> Result<i32, SystemException> {
        let callback = callback.ok_or_else(|| {
            SystemException::bad_param(0, CompletionStatus::No).with_detail("the reference of the callback is nil")
        })?;
        let mut callbacks = self.callbacks.write();
        require_at_most(callbacks.by_id.len() + 1, self.shared.limits.filters_of_object, "callbacks of a filter")?;
        callbacks.last = callbacks.last.wrapping_add(1);
        let id = callbacks.last;
        callbacks.by_id.insert(id, callback.as_object().clone());
        Ok(id)
    }

    fn detach_callback(&self, callback: i32) -> Result<(), DetachCallbackError> {
        self.callbacks.write().by_id.remove(&callback).map(drop).ok_or_else(|| CallbackNotFound {}.into())
    }

    fn get_callbacks(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.callbacks.read().by_id.keys().copied().collect())
    }
}
