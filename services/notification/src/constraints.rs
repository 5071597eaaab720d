//! Constraints of filters on the types and components of events.

use std::collections::BTreeMap;

use spandrel::net::sync::{Arc, RwLock};
use spandrel::services::cos_notification::{EventType, Property, StructuredEvent};
use spandrel::services::cos_notify_filter::{ConstraintExp, ConstraintNotFound};
use spandrel::types::Any;
use spandrel::{CompletionStatus, SystemException};
use spandrel_constraint::Constraint;
use spandrel_daemon::require_at_most;
use spandrel_delivery::MemoryCharge;

use crate::components::{Components, Filterable};
use crate::content::Content;
use crate::encoding::encoded_octets;
use crate::event_types::{TYPED, is_match};
use crate::filter_bounds::FilterBounds;

/// The grammar of constraints: that of the standard.
pub(crate) const GRAMMAR: &str = "EXTENDED_TCL";

/// The result of a constraint that matches: nothing in a filter, a value in a mapping filter.
pub(crate) trait FilterResult {
    /// The octets that it takes of the memory for filters.
    fn octets(&self) -> Result<usize, SystemException>;

    /// The value in the record of its filter.
    fn recorded(&self) -> Any;
}

impl FilterResult for () {
    fn recorded(&self) -> Any {
        Any::default()
    }

    fn octets(&self) -> Result<usize, SystemException> {
        Ok(0)
    }
}

impl FilterResult for Any {
    fn recorded(&self) -> Any {
        self.clone()
    }

    fn octets(&self) -> Result<usize, SystemException> {
        encoded_octets(self)
    }
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

    /// The constraints of a record with their ids, and the last id.
    ///
    /// # Errors
    /// A constraint that is refused by now.
    pub(crate) fn restored(
        bounds: &FilterBounds,
        constraints: impl IntoIterator<Item = (i32, ConstraintExp, R)>,
        last: i32,
    ) -> Result<Self, ChangeError> {
        let mut by_id = BTreeMap::new();
        for (id, expression, result) in constraints {
            by_id.insert(id, Arc::new(parse(bounds, expression, result)?));
        }
        Ok(Self { by_id, last })
    }

    /// The constraints with their results, and the last id, as a record has them.
    pub(crate) fn recorded(&self) -> (Vec<(i32, ConstraintExp, Any)>, i32) {
        let constraints = self.list();
        let recorded =
            constraints.map(|(id, constraint)| (id, constraint.expression.clone(), constraint.result.recorded()));
        (recorded.collect(), self.last)
    }

    /// The constraints after a change, which is made whole or not at all: removed ids, new expressions of ids, and additions.
    /// Returns the ids of the additions as well.
    pub(crate) fn changed(
        &self,
        bounds: &FilterBounds,
        removed: &[i32],
        modified: impl IntoIterator<Item = (i32, ConstraintExp, R)>,
        added: impl IntoIterator<Item = (ConstraintExp, R)>,
    ) -> Result<(Self, Vec<i32>), ChangeError> {
        let mut by_id = self.by_id.clone();
        for id in removed {
            by_id.remove(id).ok_or(ChangeError::Unknown(*id))?;
        }
        for (id, expression, result) in modified {
            let constraint = by_id.get_mut(&id).ok_or(ChangeError::Unknown(id))?;
            *constraint = Arc::new(parse(bounds, expression, result)?);
        }
        let (mut last, mut ids) = (self.last, Vec::new());
        for (expression, result) in added {
            require_at_most(by_id.len() + 1, bounds.limits.constraints, "constraints of a filter")
                .map_err(ChangeError::System)?;
            last = last
                .checked_add(1)
                .ok_or_else(|| ChangeError::System(SystemException::imp_limit(0, CompletionStatus::No)))?;
            by_id.insert(last, Arc::new(parse(bounds, expression, result)?));
            ids.push(last);
        }
        Ok((Self { by_id, last }, ids))
    }

    /// The constraint that matches an event: its type, and its components. Constraints beyond the steps do not match.
    pub(crate) fn matching(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> Option<&FilterConstraint<R>> {
        self.by_id.values().map(|constraint| &**constraint).find(|constraint| constraint.is_match(event, steps))
    }
}

fn parse<R: FilterResult>(
    bounds: &FilterBounds,
    expression: ConstraintExp,
    result: R,
) -> Result<FilterConstraint<R>, ChangeError> {
    let limits = &bounds.limits;
    require_at_most(expression.constraint_expr.len(), limits.constraint_octets, "octets in a constraint")
        .map_err(ChangeError::System)?;
    require_at_most(expression.event_types.len(), limits.event_types, "event types of a constraint")
        .map_err(ChangeError::System)?;
    let types = expression.event_types.iter();
    let octets = types.map(|event_type| event_type.domain_name.len() + event_type.type_name.len() + 64).sum::<usize>();
    let octets = octets + expression.constraint_expr.len() + 256;
    let octets = octets + result.octets().map_err(ChangeError::System)?;
    let charge = bounds.charge(octets).map_err(ChangeError::System)?;
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
    pub(crate) fn new(content: &'e Content, bounds: &FilterBounds) -> Self {
        let (domain, name) = content.event_type();
        Self { domain, name, components: Components::new(content.into(), bounds.limits.filter_reads) }
    }

    pub(crate) fn structured(event: &'e StructuredEvent, bounds: &FilterBounds) -> Self {
        let event_type = &event.header.fixed_header.event_type;
        let components = Components::new(Filterable::Structured(event), bounds.limits.filter_reads);
        Self { domain: &event_type.domain_name, name: &event_type.type_name, components }
    }

    pub(crate) fn members(members: &'e [Property], bounds: &FilterBounds) -> Self {
        let components = Components::new(Filterable::Members(members), bounds.limits.filter_reads);
        Self { domain: "", name: TYPED, components }
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
