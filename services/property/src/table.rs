//! The properties of a set, its constraints, and the changes of its properties.

use std::collections::BTreeMap;

use spandrel::cdr::to_octets;
use spandrel::net::sync::Arc;
use spandrel::services::cos_property_service::{
    ConstraintNotSupported, ConstraintNotSupportedError, Property, PropertyDef, PropertyModeType,
};
use spandrel::types::{Any, TypeCode};
use spandrel::{CompletionStatus, SystemException};
use spandrel_daemon::require_at_most;

use crate::encoding::{form, octets_of};
use crate::limits::Limits;

/// A property without its name.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Any,
    pub(crate) mode: PropertyModeType,
    /// The octets that the property counts for.
    pub(crate) octets: usize,
}

/// Properties by name, each with its new state; `None` for deleted ones.
pub(crate) type Changes = BTreeMap<String, Option<Arc<Entry>>>;

/// All properties of a set.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: BTreeMap<String, Arc<Entry>>,
    /// The octets of all properties, and of the constraints of the set.
    pub(crate) octets: usize,
}

impl Table {
    /// The properties of a set with these constraints.
    pub(crate) fn new(constraints: &Constraints, entries: BTreeMap<String, Arc<Entry>>) -> Self {
        let octets = constraints.octets + entries.values().map(|entry| entry.octets).sum::<usize>();
        Self { entries, octets }
    }

    pub(crate) fn apply(&mut self, changes: Changes) {
        for (name, entry) in changes {
            self.octets += entry.as_ref().map_or(0, |entry| entry.octets);
            let before = match entry {
                Some(entry) => self.entries.insert(name, entry),
                None => self.entries.remove(&name),
            };
            self.octets -= before.map_or(0, |before| before.octets);
        }
    }
}

/// The types and properties that a set allows. Empty lists are no constraint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constraints {
    pub(crate) types: Vec<TypeCode>,
    pub(crate) properties: Vec<PropertyDef>,
    /// The octets that the constraints count for.
    octets: usize,
}

impl Constraints {
    /// The constraints of a new set.
    ///
    /// # Errors
    /// `ConstraintNotSupported` for an empty name, a name that stands twice, and a property whose type is none of the
    /// allowed ones. IMP_LIMIT.
    pub(crate) fn new(
        types: &[TypeCode],
        properties: Vec<PropertyDef>,
        limits: &Limits,
    ) -> Result<Self, ConstraintNotSupportedError> {
        require_at_most(types.len().max(properties.len()), limits.constraints, "constraints of a set")?;
        let constraints = Self::measured(types.to_vec(), properties)?;
        require_at_most(constraints.octets, limits.octets, "octets in a set")?;
        let mut names: Vec<&str> = constraints.properties.iter().map(|def| &*def.property_name).collect();
        names.sort_unstable();
        let has_wrong_name = names.first().is_some_and(|name| name.is_empty())
            || names.iter().any(|name| name.len() > limits.name)
            || names.windows(2).any(|pair| pair[0] == pair[1]);
        let mut values = constraints.properties.iter().map(|def| def.property_value.type_code());
        let is_contradiction = values.any(|value| !is_any_type(value) && !constraints.allows_type(value));
        if has_wrong_name || is_contradiction { Err(ConstraintNotSupported {}.into()) } else { Ok(constraints) }
    }

    /// Constraints that were checked before.
    ///
    /// # Errors
    /// Types and values without an encoding.
    pub(crate) fn measured(types: Vec<TypeCode>, properties: Vec<PropertyDef>) -> Result<Self, SystemException> {
        let mut octets = 0;
        for type_code in &types {
            octets += octets_of("", to_octets(type_code, &form()))?;
        }
        for def in &properties {
            octets += octets_of(&def.property_name, to_octets(&def.property_value, &form()))?;
        }
        Ok(Self { types, properties, octets })
    }

    pub(crate) fn allows_type(&self, type_code: &TypeCode) -> bool {
        self.types.is_empty() || self.types.iter().any(|allowed| allowed.equivalent(type_code))
    }

    pub(crate) fn property(&self, name: &str) -> Option<&PropertyDef> {
        self.properties.iter().find(|def| def.property_name == name)
    }
}

/// Whether the type of an allowed property's value is no constraint.
pub(crate) fn is_any_type(type_code: &TypeCode) -> bool {
    [TypeCode::NULL, TypeCode::VOID].contains(type_code)
}

pub(crate) fn property((property_name, property_value): (String, Any)) -> Property {
    Property { property_name, property_value }
}

/// The value of the type `void`: that of a property that does not exist.
pub(crate) fn void() -> Result<Any, SystemException> {
    Any::write(TypeCode::VOID, |_| Ok(())).map_err(|_| SystemException::internal(0, CompletionStatus::No))
}
