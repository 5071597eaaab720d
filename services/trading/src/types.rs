//! Service types: their properties, inheritance and masks.
#![expect(clippy::result_large_err, reason = "the errors are those of the generated servant")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use spandrel::net::sync::Arc;
use spandrel::services::cos_trading::{DuplicatePropertyName, IllegalServiceType, UnknownServiceType};
use spandrel::services::cos_trading_repos::service_type_repository::{
    AddTypeError, DuplicateServiceTypeName, PropStruct, PropertyMode, ServiceTypeExists, TypeStruct,
    ValueTypeRedefinition,
};

use crate::names::{require_property, require_service_type};

/// All service types by name.
#[derive(Debug, Default)]
pub(crate) struct ServiceTypes {
    types: BTreeMap<String, Arc<TypeStruct>>,
    /// The direct subtypes of each type that has some.
    subtypes: BTreeMap<String, BTreeSet<String>>,
}

impl ServiceTypes {
    pub(crate) fn len(&self) -> usize {
        self.types.len()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<TypeStruct>> {
        self.types.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Arc<TypeStruct>)> {
        self.types.iter()
    }

    /// The type with this name.
    pub(crate) fn find<E>(&self, name: &str) -> Result<&Arc<TypeStruct>, E>
    where
        E: From<IllegalServiceType> + From<UnknownServiceType>,
    {
        require_service_type::<E>(name)?;
        self.types.get(name).ok_or_else(|| UnknownServiceType { r#type: name.to_owned() }.into())
    }

    /// Replaces a type; `None` removes it.
    pub(crate) fn set(&mut self, name: &str, service_type: Option<Arc<TypeStruct>>) {
        for parent in self.types.get(name).map(|before| before.super_types.clone()).unwrap_or_default() {
            if let Some(children) = self.subtypes.get_mut(&parent) {
                children.remove(name);
                if children.is_empty() {
                    self.subtypes.remove(&parent);
                }
            }
        }
        match service_type {
            Some(service_type) => {
                for parent in &service_type.super_types {
                    self.subtypes.entry(parent.clone()).or_default().insert(name.to_owned());
                }
                self.types.insert(name.to_owned(), service_type);
            }
            None => _ = self.types.remove(name),
        }
    }

    /// One direct subtype of a type.
    pub(crate) fn subtype(&self, name: &str) -> Option<&String> {
        self.subtypes.get(name)?.first()
    }

    /// A type and all its direct and indirect subtypes; `None` if there are more of them than `most`.
    pub(crate) fn with_subtypes(&self, name: &str, most: usize) -> Option<Vec<String>> {
        let mut all = vec![name];
        let mut visited: HashSet<&str> = HashSet::from([name]);
        let mut next = 0;
        while let Some(parent) = all.get(next) {
            for child in self.subtypes.get(*parent).into_iter().flatten() {
                if visited.insert(child) {
                    if all.len() >= most {
                        return None;
                    }
                    all.push(child);
                }
            }
            next += 1;
        }
        Some(all.into_iter().map(str::to_owned).collect())
    }

    /// Whether a type that exists has a supertype.
    pub(crate) fn has_supertype(&self, name: &str) -> bool {
        self.types.get(name).is_some_and(|service_type| !service_type.super_types.is_empty())
    }

    /// All direct and indirect supertypes, each once, the nearest first.
    fn supertypes(&self, direct: &[String]) -> Vec<String> {
        let mut all = Vec::<String>::new();
        let mut visited = HashSet::new();
        let mut waiting: Vec<String> = direct.to_vec();
        while !waiting.is_empty() {
            let new: Vec<_> = waiting.into_iter().filter(|parent| visited.insert(parent.clone())).collect();
            waiting = new.iter().filter_map(|name| self.types.get(name)).flat_map(|t| t.super_types.clone()).collect();
            all.extend(new);
        }
        all
    }

    /// A type with the properties and names of all its supertypes. A redefinition counts in place of what it redefines.
    pub(crate) fn full(&self, service_type: &TypeStruct) -> TypeStruct {
        let super_types = self.supertypes(&service_type.super_types);
        let mut props = service_type.props.clone();
        for parent in super_types.iter().filter_map(|name| self.types.get(name)) {
            for inherited in &parent.props {
                match props.iter_mut().find(|prop| prop.name == inherited.name) {
                    None => props.push(inherited.clone()),
                    // Of two supertypes with the property, the stronger mode counts.
                    Some(prop) => prop.mode = union_of(prop.mode, inherited.mode),
                }
            }
        }
        TypeStruct { props, super_types, ..service_type.clone() }
    }

    /// These types and all their supertypes, each with its interface.
    pub(crate) fn interfaces(&self, names: &[String]) -> Vec<(String, String)> {
        let interface = |name: &String| Some((name.clone(), self.types.get(name)?.if_name.clone()));
        self.supertypes(names).iter().filter_map(interface).collect()
    }

    /// Checks a new type, in the order of the exceptions of `add_type`.
    pub(crate) fn check_new(&self, name: &str, new: &TypeStruct) -> Result<(), AddTypeError> {
        require_service_type::<AddTypeError>(name)?;
        if self.types.contains_key(name) {
            return Err(ServiceTypeExists { name: name.to_owned() }.into());
        }
        let mut names = HashSet::new();
        for prop in &new.props {
            require_property::<AddTypeError>(&prop.name)?;
            if !names.insert(&prop.name) {
                return Err(DuplicatePropertyName { name: prop.name.clone() }.into());
            }
        }
        let mut parents = HashSet::new();
        for parent in &new.super_types {
            self.find::<AddTypeError>(parent)?;
            if !parents.insert(parent) {
                return Err(DuplicateServiceTypeName { name: parent.clone() }.into());
            }
        }
        let mut definitions: BTreeMap<&str, (&str, &PropStruct)> = BTreeMap::new();
        for parent in self.supertypes(&new.super_types) {
            let Some((parent, definition)) = self.types.get_key_value(&parent) else { continue };
            for prop in &definition.props {
                match definitions.get(&*prop.name) {
                    Some((other, inherited)) if !inherited.value_type.equivalent(&prop.value_type) => {
                        return Err(redefinition((other, inherited), (parent, prop)).into());
                    }
                    _ => _ = definitions.insert(&prop.name, (parent, prop)),
                }
            }
            for prop in &new.props {
                let Some(inherited) = definition.props.iter().find(|inherited| inherited.name == prop.name) else {
                    continue;
                };
                let is_weaker = union_of(prop.mode, inherited.mode) != prop.mode;
                if is_weaker || !prop.value_type.equivalent(&inherited.value_type) {
                    return Err(redefinition((name, prop), (parent, inherited)).into());
                }
            }
        }
        Ok(())
    }
}

/// The types that are a given one or its subtypes, each of which is decided once.
#[derive(Debug)]
pub(crate) struct Conformance<'t> {
    types: &'t ServiceTypes,
    decided: HashMap<&'t str, bool>,
}

impl<'t> Conformance<'t> {
    pub(crate) fn new(types: &'t ServiceTypes, base: &'t str) -> Self {
        Self { types, decided: HashMap::from([(base, true)]) }
    }

    /// Whether a type is the base or one of its subtypes. Supertypes are visited without recursion, each once.
    pub(crate) fn holds_for(&mut self, name: &str) -> bool {
        if let Some(decided) = self.decided.get(name) {
            return *decided;
        }
        let Some((name, first)) = self.types.types.get_key_value(name) else { return false };
        self.decided.insert(name, false);
        let mut path = vec![(name.as_str(), first.super_types.iter())];
        let mut conforms = false;
        while let Some((name, parents)) = path.last_mut() {
            if conforms {
                self.decided.insert(name, true);
                path.pop();
                continue;
            }
            let Some(parent) = parents.next() else {
                path.pop();
                continue;
            };
            match self.decided.get(parent.as_str()) {
                Some(decided) => conforms = *decided,
                None => {
                    self.decided.insert(parent, false);
                    if let Some(definition) = self.types.types.get(parent) {
                        path.push((parent, definition.super_types.iter()));
                    }
                }
            }
        }
        conforms
    }
}

fn redefinition(first: (&str, &PropStruct), second: (&str, &PropStruct)) -> ValueTypeRedefinition {
    ValueTypeRedefinition {
        type_1: first.0.to_owned(),
        definition_1: first.1.clone(),
        type_2: second.0.to_owned(),
        definition_2: second.1.clone(),
    }
}

pub(crate) fn is_mandatory(mode: PropertyMode) -> bool {
    matches!(mode, PropertyMode::PropMandatory | PropertyMode::PropMandatoryReadonly)
}

pub(crate) fn is_readonly(mode: PropertyMode) -> bool {
    matches!(mode, PropertyMode::PropReadonly | PropertyMode::PropMandatoryReadonly)
}

/// The mode with the restrictions of both.
fn union_of(left: PropertyMode, right: PropertyMode) -> PropertyMode {
    match (is_mandatory(left) || is_mandatory(right), is_readonly(left) || is_readonly(right)) {
        (false, false) => PropertyMode::PropNormal,
        (false, true) => PropertyMode::PropReadonly,
        (true, false) => PropertyMode::PropMandatory,
        (true, true) => PropertyMode::PropMandatoryReadonly,
    }
}
