//! Filters: constraints on the types and components of events.

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
use spandrel::{ObjectRef, SystemException};
use spandrel_constraint::Constraint;
use spandrel_delivery::{MemoryCharge, require_at_most};

use crate::components::{Components, Filterable};
use crate::event_types::{ANY, is_match};
use crate::notification::Content;
use crate::shared::{Shared, encoded_octets};

/// The grammar of constraints: that of the standard.
pub(crate) const GRAMMAR: &str = "EXTENDED_TCL";

/// The result of a constraint that matches: nothing in a filter, a value in a mapping filter.
pub(crate) trait FilterResult {
    /// The octets that it takes of the memory for filters.
    fn octets(&self) -> Result<usize, SystemException>;
}

impl FilterResult for () {
    fn octets(&self) -> Result<usize, SystemException> {
        Ok(0)
    }
}

impl FilterResult for Any {
    fn octets(&self) -> Result<usize, SystemException> {
        encoded_octets(self)
    }
}

/// Charges the memory for filters.
pub(crate) fn charge(shared: &Shared, octets: usize) -> Result<MemoryCharge, SystemException> {
    shared.filter_memory.charge(octets).ok_or_else(|| {
        let detail = format!("all filters together have more than {} octets", shared.limits.filter_octets);
        SystemException::imp_limit(0, completed_no()).with_detail(move || detail)
    })
}

/// A parsed constraint with the result that it has in a mapping filter.
#[derive(Debug)]
pub(crate) struct FilterConstraint<R> {
    pub(crate) expression: ConstraintExp,
    parsed: Constraint,
    pub(crate) result: R,
    _charge: MemoryCharge,
}

/// The constraints of a filter by their ids, which are not used again. The first one that matches counts.
#[derive(Debug)]
pub(crate) struct Constraints<R> {
    by_id: BTreeMap<i32, Arc<FilterConstraint<R>>>,
    last: i32,
}

impl<R> Default for Constraints<R> {
    fn default() -> Self {
        Self { by_id: BTreeMap::new(), last: 0 }
    }
}

/// The constraints of a filter, for several threads.
pub(crate) type SharedConstraints<R> = RwLock<Arc<Constraints<R>>>;

/// A constraint with its id.
type NumberedConstraint<R> = (i32, Arc<FilterConstraint<R>>);

/// The reason why constraints were not changed.
pub(crate) enum ChangeError {
    Invalid(ConstraintExp),
    Unknown(i32),
    System(SystemException),
}

impl<R: FilterResult> Constraints<R> {
    pub(crate) fn list(&self) -> impl Iterator<Item = (i32, &FilterConstraint<R>)> {
        self.by_id.iter().map(|(id, constraint)| (*id, &**constraint))
    }

    pub(crate) fn get(&self, ids: &[i32]) -> Result<Vec<NumberedConstraint<R>>, ConstraintNotFound> {
        let constraint = |id: &i32| self.by_id.get(id).map(|constraint| (*id, Arc::clone(constraint)));
        ids.iter().map(|id| constraint(id).ok_or(ConstraintNotFound { id: *id })).collect()
    }

    /// No constraints; the ids before are not used again.
    pub(crate) fn emptied(&self) -> Self {
        Self { by_id: BTreeMap::new(), last: self.last }
    }

    /// The constraints after a change, which is made whole or not at all: removed ids, new expressions of ids, and additions.
    /// Returns the ids of the additions as well.
    pub(crate) fn changed(
        &self,
        shared: &Shared,
        removed: &[i32],
        modified: impl IntoIterator<Item = (i32, ConstraintExp, R)>,
        added: impl IntoIterator<Item = (ConstraintExp, R)>,
    ) -> Result<(Self, Vec<i32>), ChangeError> {
        let mut by_id = self.by_id.clone();
        for id in removed {
            by_id.remove(id).ok_or(ChangeError::Unknown(*id))?;
        }
        for (id, expression, result) in modified {
            let place = by_id.get_mut(&id).ok_or(ChangeError::Unknown(id))?;
            *place = Arc::new(parse(shared, expression, result)?);
        }
        let (mut last, mut ids) = (self.last, Vec::new());
        for (expression, result) in added {
            require_at_most(by_id.len() + 1, shared.limits.constraints, "constraints of a filter")
                .map_err(ChangeError::System)?;
            last = last
                .checked_add(1)
                .ok_or_else(|| ChangeError::System(SystemException::imp_limit(0, completed_no())))?;
            by_id.insert(last, Arc::new(parse(shared, expression, result)?));
            ids.push(last);
        }
        Ok((Self { by_id, last }, ids))
    }

    /// The constraint that matches an event: its type, and its components. Constraints beyond the steps do not match.
    pub(crate) fn matching(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> Option<&FilterConstraint<R>> {
        self.by_id.values().map(|constraint| &**constraint).find(|constraint| constraint.is_match(event, steps))
    }
}

fn completed_no() -> spandrel::CompletionStatus {
    spandrel::CompletionStatus::No
}

fn parse<R: FilterResult>(
    shared: &Shared,
    expression: ConstraintExp,
    result: R,
) -> Result<FilterConstraint<R>, ChangeError> {
    let limits = &shared.limits;
    require_at_most(expression.constraint_expr.len(), limits.constraint_octets, "octets in a constraint")
        .map_err(ChangeError::System)?;
    require_at_most(expression.event_types.len(), limits.event_types, "event types of a constraint")
        .map_err(ChangeError::System)?;
    let types = expression.event_types.iter();
    let octets = types.map(|event_type| event_type.domain_name.len() + event_type.type_name.len() + 64).sum::<usize>();
    let octets = octets + expression.constraint_expr.len() + 256;
    let octets = octets + result.octets().map_err(ChangeError::System)?;
    let charge = charge(shared, octets).map_err(ChangeError::System)?;
    let parse_limits =
        spandrel_constraint::Limits { length: limits.constraint_octets, ..spandrel_constraint::Limits::default() };
    let parsed = Constraint::parse_extended(&expression.constraint_expr, parse_limits)
        .and_then(|parsed| parsed.check(&spandrel_constraint::UnknownTypes).map(|()| parsed));
    match parsed {
        Ok(parsed) => Ok(FilterConstraint { expression, parsed, result, _charge: charge }),
        Err(error) => {
            tracing::debug!(%error, constraint = expression.constraint_expr, "a constraint is refused");
            Err(ChangeError::Invalid(expression))
        }
    }
}

/// An event that filters see, for one evaluation.
#[derive(Debug)]
pub(crate) struct FilteredEvent<'e> {
    domain: &'e str,
    name: &'e str,
    components: Components<'e>,
}

impl<'e> FilteredEvent<'e> {
    pub(crate) fn new(content: &'e Content, shared: &Shared) -> Self {
        let (domain, name) = content.event_type();
        Self { domain, name, components: Components::new(content.into(), shared.limits.filter_reads) }
    }

    pub(crate) fn structured(event: &'e StructuredEvent, shared: &Shared) -> Self {
        let event_type = &event.header.fixed_header.event_type;
        let components = Components::new(Filterable::Structured(event), shared.limits.filter_reads);
        Self { domain: &event_type.domain_name, name: &event_type.type_name, components }
    }

    pub(crate) fn members(members: &'e [Property], shared: &Shared) -> Self {
        let components = Components::new(Filterable::Members(members), shared.limits.filter_reads);
        Self { domain: "", name: ANY, components }
    }
}

impl<R> FilterConstraint<R> {
    fn is_match(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> bool {
        let types = &self.expression.event_types;
        let is_of_type = |pattern: &EventType| is_match(pattern, event.domain, event.name);
        *steps = steps.saturating_sub(u64::try_from(types.len()).unwrap_or(u64::MAX));
        if *steps == 0 || !(types.is_empty() || types.iter().any(is_of_type)) {
            return false;
        }
        // An expression without a value does not match: a component is absent, or of another type.
        self.parsed.matches_within(&event.components, steps).unwrap_or(false)
    }
}

/// A filter.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) id: u64,
    pub(crate) shared: Arc<Shared>,
    constraints: SharedConstraints<()>,
    callbacks: RwLock<Callbacks>,
}

/// The objects that learn of changes of a filter's event types.
#[derive(Debug, Default)]
struct Callbacks {
    by_id: BTreeMap<i32, ObjectRef>,
    last: i32,
}

impl Filter {
    pub(crate) fn new(id: u64, shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { id, shared: Arc::clone(shared), constraints: RwLock::default(), callbacks: RwLock::default() })
    }

    /// Whether one of the constraints matches; without constraints no event does.
    pub(crate) fn is_match(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> bool {
        let constraints = Arc::clone(&self.constraints.read());
        constraints.matching(event, steps).is_some()
    }

    fn evaluate(&self, event: &FilteredEvent<'_>) -> bool {
        self.is_match(event, &mut self.shared.limits.filter_steps.clone())
    }

    fn list(&self) -> Vec<ConstraintInfo> {
        self.constraints.read().list().map(|(id, constraint)| info(id, constraint)).collect()
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
        let (before, ids) = {
            let mut constraints = self.constraints.write();
            let before: Vec<_> = constraints.list().map(|(id, constraint)| info(id, constraint)).collect();
            let (changed, ids) = change(&constraints)?;
            *constraints = Arc::new(changed);
            (before, ids)
        };
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
            ChangeError::Unknown(_) => SystemException::internal(0, completed_no()).into(),
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

impl FilterServant for Filter {
    fn constraint_grammar(&self) -> Result<String, SystemException> {
        Ok(GRAMMAR.to_owned())
    }

    fn add_constraints(&self, constraint_list: &[ConstraintExp]) -> Result<Vec<ConstraintInfo>, AddConstraintsError> {
        let added = constraint_list.iter().map(|expression| (expression.clone(), ()));
        let ids = self.change(|constraints| constraints.changed(&self.shared, &[], [], added))?;
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
        self.change(|constraints| constraints.changed(&self.shared, del_list, modified, []))?;
        Ok(())
    }

    fn get_constraints(&self, id_list: &[i32]) -> Result<Vec<ConstraintInfo>, GetConstraintsError> {
        require_at_most(id_list.len(), self.shared.limits.constraints, "constraints of a filter")?;
        let constraints = self.constraints.read().get(id_list)?;
        Ok(constraints.iter().map(|(id, constraint)| info(*id, constraint)).collect())
    }

    fn get_all_constraints(&self) -> Result<Vec<ConstraintInfo>, SystemException> {
        Ok(self.list())
    }

    fn remove_all_constraints(&self) -> Result<(), SystemException> {
        let before = self.list();
        {
            let mut constraints = self.constraints.write();
            *constraints = Arc::new(constraints.emptied());
        }
        self.notify(&before);
        Ok(())
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.shared.filters.destroy(&self.shared, self.id);
        Ok(())
    }

    fn r#match(&self, filterable_data: &Any) -> Result<bool, MatchError> {
        let content = Content::from_any(filterable_data);
        Ok(self.evaluate(&FilteredEvent::new(&content, &self.shared)))
    }

    fn match_structured(&self, filterable_data: &StructuredEvent) -> Result<bool, MatchStructuredError> {
        Ok(self.evaluate(&FilteredEvent::structured(filterable_data, &self.shared)))
    }

    fn match_typed(&self, filterable_data: &[Property]) -> Result<bool, MatchTypedError> {
        Ok(self.evaluate(&FilteredEvent::members(filterable_data, &self.shared)))
    }

    fn attach_callback(&self, callback: Option<&NotifySubscribe>) -> Result<i32, SystemException> {
        let callback = callback.ok_or_else(|| {
            SystemException::bad_param(0, completed_no()).with_detail("the reference of the callback is nil")
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
