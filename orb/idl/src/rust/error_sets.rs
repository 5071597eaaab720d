//! The error enums of each Rust module: one for each distinct set of exceptions that its interfaces and value
//! types raise. External code has enums of its own: which of several files has one for the others is known only to
//! their own compilation.
//!
//! The order in which a `raises` clause lists the exceptions is of no consequence. Each operation has an alias
//! of its set's enum (`errors`).

use std::collections::HashMap;

use proc_macro2::Ident;

use super::file_homes::Home;
use super::scope::Scope;
use super::words::pascal;
use crate::model::{DefId, DefinitionKind, Model};

/// A set with more exceptions is named after the first operation that raises it.
const MAX_NAMED: usize = 4;

/// A set of exceptions, and its error enum.
#[derive(Debug)]
pub(super) struct ErrorSet {
    /// The name of the enum in the module of its owner.
    pub(super) ident: Ident,
    /// The interface or value type beside which the enum is written.
    pub(super) owner: DefId,
    /// Ordered by scoped name.
    pub(super) exceptions: Vec<DefId>,
}

/// The sets of all modules.
#[derive(Debug, Default)]
pub(super) struct ErrorSets {
    sets: Vec<ErrorSet>,
    by_contents: HashMap<(Home, Vec<Ident>, Vec<DefId>), usize>,
    by_owner: HashMap<DefId, Vec<usize>>,
}

impl ErrorSets {
    /// Adds the sets of an interface or value type in the module `path` of its home, and names the new ones in
    /// `scope`.
    pub(super) fn add(&mut self, model: &Model, owner: DefId, home: Home, path: &[Ident], scope: &mut Scope) {
        for (operation, raises) in raised(model, owner) {
            let exceptions = canonical(model, raises);
            let key = (home, path.to_owned(), exceptions.clone());
            if self.by_contents.contains_key(&key) {
                continue;
            }
            let ident = scope.take(&name(model, owner, operation, &exceptions));
            self.by_owner.entry(owner).or_default().push(self.sets.len());
            self.by_contents.insert(key, self.sets.len());
            self.sets.push(ErrorSet { ident, owner, exceptions });
        }
    }

    /// The sets whose enums are written beside an interface or value type.
    pub(super) fn of_owner(&self, owner: DefId) -> impl Iterator<Item = &ErrorSet> {
        self.by_owner.get(&owner).into_iter().flatten().map(|&nth| &self.sets[nth])
    }

    /// The set of a `raises` clause in the module `path` of a home.
    pub(super) fn of_clause(&self, model: &Model, home: Home, path: &[Ident], raises: &[DefId]) -> &ErrorSet {
        &self.sets[self.by_contents[&(home, path.to_owned(), canonical(model, raises))]]
    }
}

/// The operations, attributes and initializers that raise exceptions, in order of declaration, with these.
fn raised(model: &Model, owner: DefId) -> Vec<(&str, &[DefId])> {
    let mut sets: Vec<(&str, &[DefId])> = Vec::new();
    for &id in model.contents(owner) {
        let name = model[id].name.as_str();
        match &model[id].kind {
            DefinitionKind::Operation(body) => sets.push((name, &body.raises)),
            DefinitionKind::Attribute(body) => sets.extend([(name, &*body.get_raises), (name, &*body.set_raises)]),
            _ => {}
        }
    }
    if let Some(body) = model[owner].as_value_type() {
        sets.extend(body.factories.iter().map(|factory| (factory.name.as_str(), &*factory.raises)));
    }
    sets.retain(|(_, raises)| !raises.is_empty());
    sets
}

fn canonical(model: &Model, raises: &[DefId]) -> Vec<DefId> {
    let mut exceptions = raises.to_vec();
    exceptions.sort_by(|&one, &other| model[one].scoped_name.cmp(&model[other].scoped_name));
    exceptions.dedup();
    exceptions
}

/// `ClosedOrOverdrawnError`: the names of the exceptions in alphabetical order.
fn name(model: &Model, owner: DefId, operation: &str, exceptions: &[DefId]) -> String {
    if exceptions.len() > MAX_NAMED {
        return format!("{}{}Error", pascal(&model[owner].name), pascal(operation));
    }
    let mut names: Vec<String> = exceptions.iter().map(|&id| pascal(&model[id].name)).collect();
    names.sort_unstable();
    format!("{}Error", names.join("Or"))
}
