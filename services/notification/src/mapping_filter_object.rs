//! The object of a mapping filter: its constraints by their ids, with their results.

use spandrel::net::sync::Arc;
use spandrel::services::cos_notification::{Property, StructuredEvent};
use spandrel::services::cos_notify_filter::mapping_filter::{
    AddMappingConstraintsError, GetMappingConstraintsError, MatchError, MatchStructuredError, MatchTypedError,
    ModifyMappingConstraintsError,
};
use spandrel::services::cos_notify_filter::{
    ConstraintNotFound, InvalidConstraint, InvalidValue, MappingConstraintInfo, MappingConstraintPair,
    MappingFilterServant,
};
use spandrel::types::{Any, TypeCode};
use spandrel::{CompletionStatus, SystemException};
use spandrel_daemon::require_at_most;

use crate::constraints::{ChangeError, FilterConstraint, FilteredEvent, GRAMMAR};
use crate::content::Content;
use crate::mapping_filter::MappingFilter;
use crate::shared::Shared;

/// A mapping filter, as the servant of its interface.
#[derive(Debug)]
pub(crate) struct MappingFilterObject {
    pub(crate) filter: Arc<MappingFilter>,
    pub(crate) shared: Arc<Shared>,
}

impl MappingFilterObject {
    fn evaluate_alone(&self, event: &FilteredEvent<'_>) -> (bool, Any) {
        self.filter.evaluate(event, &mut self.shared.limits.filter_steps.clone())
    }
}

fn info(id: i32, constraint: &FilterConstraint<Any>) -> MappingConstraintInfo {
    MappingConstraintInfo {
        constraint_expression: constraint.expression.clone(),
        constraint_id: id,
        value: constraint.result.clone(),
    }
}

impl From<ChangeError> for AddMappingConstraintsError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Invalid(constr) => InvalidConstraint { constr }.into(),
            ChangeError::Unknown(_) => SystemException::internal(0, CompletionStatus::No).into(),
            ChangeError::System(exception) => exception.into(),
        }
    }
}

impl From<ChangeError> for ModifyMappingConstraintsError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Invalid(constr) => InvalidConstraint { constr }.into(),
            ChangeError::Unknown(id) => ConstraintNotFound { id }.into(),
            ChangeError::System(exception) => exception.into(),
        }
    }
}

impl MappingFilterServant for MappingFilterObject {
    fn constraint_grammar(&self) -> Result<String, SystemException> {
        Ok(GRAMMAR.to_owned())
    }

    fn value_type(&self) -> Result<TypeCode, SystemException> {
        Ok(self.filter.default.type_code().clone())
    }

    fn default_value(&self) -> Result<Any, SystemException> {
        Ok(self.filter.default.clone())
    }

    fn add_mapping_constraints(
        &self,
        pair_list: &[MappingConstraintPair],
    ) -> Result<Vec<MappingConstraintInfo>, AddMappingConstraintsError> {
        for pair in pair_list {
            if !self.filter.is_of_type(&pair.result_to_set) {
                let (constr, value) = (pair.constraint_expression.clone(), pair.result_to_set.clone());
                return Err(InvalidValue { constr, value }.into());
            }
        }
        let added = pair_list.iter().map(|pair| (pair.constraint_expression.clone(), pair.result_to_set.clone()));
        let ids = self.filter.change(|constraints| constraints.changed(&self.shared.filter_bounds, &[], [], added))?;
        let constraints = Arc::clone(&self.filter.constraints.read());
        Ok(constraints.get(&ids).unwrap_or_default().iter().map(|(id, constraint)| info(*id, constraint)).collect())
    }

    fn modify_mapping_constraints(
        &self,
        del_list: &[i32],
        modify_list: &[MappingConstraintInfo],
    ) -> Result<(), ModifyMappingConstraintsError> {
        for info in modify_list {
            if !self.filter.is_of_type(&info.value) {
                let (constr, value) = (info.constraint_expression.clone(), info.value.clone());
                return Err(InvalidValue { constr, value }.into());
            }
        }
        let modified =
            modify_list.iter().map(|info| (info.constraint_id, info.constraint_expression.clone(), info.value.clone()));
        self.filter.change(|constraints| constraints.changed(&self.shared.filter_bounds, del_list, modified, []))?;
        Ok(())
    }

    fn get_mapping_constraints(
        &self,
        id_list: &[i32],
    ) -> Result<Vec<MappingConstraintInfo>, GetMappingConstraintsError> {
        require_at_most(id_list.len(), self.shared.limits.constraints, "constraints of a filter")?;
        let constraints = self.filter.constraints.read().get(id_list)?;
        Ok(constraints.iter().map(|(id, constraint)| info(*id, constraint)).collect())
    }

    fn get_all_mapping_constraints(&self) -> Result<Vec<MappingConstraintInfo>, SystemException> {
        Ok(self.filter.constraints.read().list().map(|(id, constraint)| info(id, constraint)).collect())
    }

    fn remove_all_mapping_constraints(&self) -> Result<(), SystemException> {
        match self.filter.change(|constraints| Ok((constraints.emptied(), ()))) {
            Err(ChangeError::System(exception)) => Err(exception),
            _ => Ok(()),
        }
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.shared.filters.destroy(&self.shared.adapter, self.filter.id)
    }

    fn r#match(&self, filterable_data: &Any) -> Result<(bool, Any), MatchError> {
        let content = Content::from_any(filterable_data);
        Ok(self.evaluate_alone(&FilteredEvent::new(&content, &self.shared.filter_bounds)))
    }

    fn match_structured(&self, filterable_data: &StructuredEvent) -> Result<(bool, Any), MatchStructuredError> {
        Ok(self.evaluate_alone(&FilteredEvent::structured(filterable_data, &self.shared.filter_bounds)))
    }

    fn match_typed(&self, filterable_data: &[Property]) -> Result<(bool, Any), MatchTypedError> {
        Ok(self.evaluate_alone(&FilteredEvent::members(filterable_data, &self.shared.filter_bounds)))
    }
}
