//! The operations on one property, as changes that are made together later.

use std::collections::BTreeMap;

use spandrel::cdr::to_octets;
use spandrel::net::sync::Arc;
use spandrel::services::cos_property_service::{ExceptionReason, PropertyModeType};
use spandrel::types::Any;
use spandrel_daemon::require_at_most;

use crate::encoding::{form, octets_of};
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::state::{SetChange, SetState};
use crate::table::{Changes, Constraints, Entry, is_any_type};

/// The state of a set with changes that are not made yet.
#[derive(Debug)]
pub(crate) struct Edit<'t> {
    state: &'t SetState,
    constraints: &'t Constraints,
    limits: &'t Limits,
    changes: Changes,
    /// The properties that were examined, as they are in the state.
    observed: BTreeMap<String, Option<Arc<Entry>>>,
    /// Whether all properties were examined.
    observes_all: bool,
    /// The number of properties with the changes.
    count: usize,
    /// The octets of all properties with the changes.
    octets: usize,
}

impl<'t> Edit<'t> {
    pub(crate) fn new(state: &'t SetState, constraints: &'t Constraints, limits: &'t Limits) -> Self {
        let (count, octets) = (state.table.entries.len(), state.table.octets);
        let (changes, observed) = (Changes::new(), BTreeMap::new());
        Self { state, constraints, limits, changes, observed, observes_all: false, count, octets }
    }

    pub(crate) fn into_change(self) -> SetChange {
        let table = &self.state.table;
        SetChange {
            observed: self.observed,
            version: self.observes_all.then_some(self.state.version),
            changes: self.changes,
            count: (table.entries.len(), self.count),
            octets: (table.octets, self.octets),
        }
    }

    /// The property with this name, after the changes.
    fn get(&mut self, name: &str) -> Result<Arc<Entry>, Refusal> {
        if let Some(changed) = self.changes.get(require_name(name)?) {
            return changed.clone().ok_or(ExceptionReason::PropertyNotFound.into());
        }
        let entry = self.state.table.entries.get(name);
        if !self.observed.contains_key(name) {
            self.observed.insert(name.to_owned(), entry.cloned());
        }
        entry.cloned().ok_or(ExceptionReason::PropertyNotFound.into())
    }

    /// Adds a property or changes its value, and its mode if there is one.
    pub(crate) fn define(&mut self, name: &str, value: &Any, mode: Option<PropertyModeType>) -> Result<(), Refusal> {
        require_name(name)?;
        require_at_most(name.len(), self.limits.name, "octets in a name")?;
        let default = self.allowed_mode(name, value)?;
        if let Some(mode) = mode {
            self.require_mode(name, mode)?;
        }
        let before = self.get(name).ok();
        let mode = match &before {
            None => mode.or(default).unwrap_or_default(),
            Some(before) => {
                if !before.value.type_code().equivalent(value.type_code()) {
                    return Err(ExceptionReason::ConflictingProperty.into());
                }
                if is_read_only(before.mode) {
                    return Err(ExceptionReason::ReadOnlyProperty.into());
                }
                let mode = mode.unwrap_or(before.mode);
                if !can_become(before.mode, mode) {
                    return Err(ExceptionReason::UnsupportedMode.into());
                }
                mode
            }
        };
        let octets = octets_of(name, to_octets(value, &form()))?;
        let (count, all) = match &before {
            None => (self.count + 1, self.octets.saturating_add(octets)),
            Some(before) => (self.count, (self.octets - before.octets).saturating_add(octets)),
        };
        require_at_most(count, self.limits.properties, "properties in a set")?;
        require_at_most(all, self.limits.octets, "octets in a set")?;
        (self.count, self.octets) = (count, all);
        self.changes.insert(name.to_owned(), Some(Arc::new(Entry { value: value.clone(), mode, octets })));
        Ok(())
    }

    pub(crate) fn delete(&mut self, name: &str) -> Result<(), Refusal> {
        let entry = self.get(name)?;
        if is_fixed(entry.mode) {
            return Err(ExceptionReason::FixedProperty.into());
        }
        self.octets -= entry.octets;
        self.count -= 1;
        self.changes.insert(name.to_owned(), None);
        Ok(())
    }

    /// Deletes all properties whose modes allow it. Returns whether none remains.
    pub(crate) fn delete_all(&mut self) -> Result<bool, Refusal> {
        self.observes_all = true;
        let names: Vec<&String> =
            self.state.table.entries.iter().filter(|(_, entry)| !is_fixed(entry.mode)).map(|(name, _)| name).collect();
        names.into_iter().try_for_each(|name| self.delete(name))?;
        Ok(self.count == 0)
    }

    pub(crate) fn set_mode(&mut self, name: &str, mode: PropertyModeType) -> Result<(), Refusal> {
        require_name(name)?;
        self.require_mode(name, mode)?;
        let entry = self.get(name)?;
        if !can_become(entry.mode, mode) {
            return Err(ExceptionReason::UnsupportedMode.into());
        }
        if entry.mode != mode {
            let changed = Entry { mode, ..Entry::clone(&entry) };
            self.changes.insert(name.to_owned(), Some(Arc::new(changed)));
        }
        Ok(())
    }

    /// Checks the constraints of a set for a value. Returns the mode of the allowed property, if it has one.
    fn allowed_mode(&self, name: &str, value: &Any) -> Result<Option<PropertyModeType>, Refusal> {
        let type_code = value.type_code();
        if !self.constraints.allows_type(type_code) {
            return Err(ExceptionReason::UnsupportedTypeCode.into());
        }
        if self.constraints.properties.is_empty() {
            return Ok(None);
        }
        let allowed = self.constraints.property(name).ok_or(ExceptionReason::UnsupportedProperty)?;
        let expected = allowed.property_value.type_code();
        if !is_any_type(expected) && !expected.equivalent(type_code) {
            return Err(ExceptionReason::UnsupportedTypeCode.into());
        }
        Ok(Some(allowed.property_mode).filter(|mode| *mode != PropertyModeType::Undefined))
    }

    /// Checks that a property may have this mode.
    fn require_mode(&self, name: &str, mode: PropertyModeType) -> Result<(), Refusal> {
        let allowed = self.constraints.property(name).map(|allowed| allowed.property_mode);
        let is_allowed = allowed.is_none_or(|allowed| allowed == PropertyModeType::Undefined || allowed == mode);
        if mode == PropertyModeType::Undefined || !is_allowed {
            return Err(ExceptionReason::UnsupportedMode.into());
        }
        Ok(())
    }
}

pub(crate) fn require_name(name: &str) -> Result<&str, Refusal> {
    if name.is_empty() { Err(ExceptionReason::InvalidPropertyName.into()) } else { Ok(name) }
}

fn is_fixed(mode: PropertyModeType) -> bool {
    matches!(mode, PropertyModeType::FixedNormal | PropertyModeType::FixedReadonly)
}

fn is_read_only(mode: PropertyModeType) -> bool {
    matches!(mode, PropertyModeType::ReadOnly | PropertyModeType::FixedReadonly)
}

/// Whether a mode may be replaced: only by a mode that allows less.
fn can_become(from: PropertyModeType, to: PropertyModeType) -> bool {
    from == to || from == PropertyModeType::Normal || to == PropertyModeType::FixedReadonly
}
