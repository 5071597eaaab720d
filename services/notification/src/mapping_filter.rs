//! Mapping filters: they give an event another priority or lifetime for one consumer.

use spandrel::net::sync::{Arc, RwLock};
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
use spandrel_delivery::{MemoryCharge, require_at_most};

use crate::filter::{ChangeError, FilterConstraint, FilteredEvent, GRAMMAR, SharedConstraints};
use crate::notification::Content;
use crate::shared::Shared;

/// A mapping filter. All results have the type of its default value.
#[derive(Debug)]
pub(crate) struct MappingFilter {
    pub(crate) id: u64,
    shared: Arc<Shared>,
    default: Any,
    constraints: SharedConstraints<Any>,
    _charge: MemoryCharge,
}

impl MappingFilter {
    pub(crate) fn new(id: u64, shared: &Arc<Shared>, default: Any, charge: MemoryCharge) -> Arc<Self> {
        Arc::new(Self { id, shared: Arc::clone(shared), default, constraints: RwLock::default(), _charge: charge })
    }

    /// The result of the first constraint that matches, else the default value, and whether one matched.
    pub(crate) fn evaluate(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> (bool, Any) {
        let constraints = Arc::clone(&self.constraints.read());
        match constraints.matching(event, steps) {
            Some(constraint) => (true, constraint.result.clone()),
            None => (false, self.default.clone()),
        }
    }

    fn evaluate_alone(&self, event: &FilteredEvent<'_>) -> (bool, Any) {
        self.evaluate(event, &mut self.shared.limits.filter_steps.clone())
    }

    fn is_of_type(&self, value: &Any) -> bool {
        value.type_code().equivalent(self.default.type_code())
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

impl MappingFilterServant for MappingFilter {
    fn constraint_grammar(&self) -> Result<String, SystemException> {
        Ok(GRAMMAR.to_owned())
    }

    fn value_type(&self) -> Result<TypeCode, SystemException> {
        Ok(self.default.type_code().clone())
    }

    fn default_value(&self) -> Result<Any, SystemException> {
        Ok(self.default.clone())
    }

    fn add_mapping_constraints(
        &self,
        pair_list: &[MappingConstraintPair],
    ) -> Result<Vec<MappingConstraintInfo>, AddMappingConstraintsError> {
        for pair in pair_list {
            if !self.is_of_type(&pair.result_to_set) {
                let (constr, value) = (pair.constraint_expression.clone(), pair.result_to_set.clone());
                return Err(InvalidValue { constr, value }.into());
            }
        }
        let added = pair_list.iter().map(|pair| (pair.constraint_expression.clone(), pair.result_to_set.clone()));
        let mut constraints = self.constraints.write();
        let (changed, ids) = constraints.changed(&self.shared, &[], [], added)?;
        *constraints = Arc::new(changed);
        Ok(constraints.get(&ids).unwrap_or_default().iter().map(|(id, constraint)| info(*id, constraint)).collect())
    }

    fn modify_mapping_constraints(
        &self,
        del_list: &[i32],
        modify_list: &[MappingConstraintInfo],
    ) -> Result<(), ModifyMappingConstraintsError> {
        for info in modify_list {
            if !self.is_of_type(&info.value) {
                let (constr, value) = (info.constraint_expression.clone(), info.value.clone());
                return Err(InvalidValue { constr, value }.into());
            }
        }
        let modified =
            modify_list.iter().map(|info| (info.constraint_id, info.constraint_expression.clone(), info.value.clone()));
        let mut constraints = self.constraints.write();
        let (changed, _) = constraints.changed(&self.shared, del_list, modified, [])?;
        *constraints = Arc::new(changed);
        Ok(())
    }

    fn get_mapping_constraints(
        &self,
        id_list: &[i32],
    ) -> Result<Vec<MappingConstraintInfo>, GetMappingConstraintsError> {
        require_at_most(id_list.len(), self.shared.limits.constraints, "constraints of a filter")?;
        let constraints = self.constraints.read().get(id_list)?;
        Ok(constraints.iter().map(|(id, constraint)| info(*id, constraint)).collect())
    }

    fn get_all_mapping_constraints(&self) -> Result<Vec<MappingConstraintInfo>, SystemException> {
        Ok(self.constraints.read().list().map(|(id, constraint)| info(id, constraint)).collect())
    }

    fn remove_all_mapping_constraints(&self) -> Result<(), SystemException> {
        let mut constraints = self.constraints.write();
        *constraints = Arc::new(constraints.emptied());
        Ok(())
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.shared.filters.destroy(&self.shared, self.id);
        Ok(())
    }

    fn r#match(&self, filterable_data: &Any) -> Result<(bool, Any), MatchError> {
        let content = Content::from_any(filterable_data);
        Ok(self.evaluate_alone(&FilteredEvent::new(&content, &self.shared)))
    }

    fn match_structured(&self, filterable_data: &StructuredEvent) -> Result<(bool, Any), MatchStructuredError> {
        Ok(self.evaluate_alone(&FilteredEvent::structured(filterable_data, &self.shared)))
    }

    fn match_typed(&self, filterable_data: &[Property]) -> Result<(bool, Any), MatchTypedError> {
        Ok(self.evaluate_alone(&FilteredEvent::members(filterable_data, &self.shared)))
    }
}
