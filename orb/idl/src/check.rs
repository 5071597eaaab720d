//! The checker: resolves names, computes constants, and builds the model.
//!
//! It walks the syntax tree once, in source order, since in IDL a name must be defined before it is used (IDL
//! 4.2, 7.5). A definition with an error stays known, marked as broken, so that its uses are not reported
//! again.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::ast::{Item, NewName};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, Definition, DefinitionKind, Module};
use crate::preprocess::Context;
use crate::source::FileId;

mod annotations;
mod arithmetic;
mod checker;
mod components;
mod constants;
mod decimal;
mod incomplete;
mod interfaces;
mod locals;
mod names;
mod operations;
mod pragmas;
mod prefixes;
mod scopes;
mod shapes;
mod structs;
mod types;
mod unions;
mod values;

use checker::Checker;

/// The checker's results for the model.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) roots: Vec<DefId>,
    pub(crate) by_name: HashMap<String, DefId>,
    /// Whether values of each definition, if it is a type, have a fixed size.
    pub(crate) fixed: Vec<bool>,
    /// Interfaces and value types that are declared forward, with each file that does so.
    pub(crate) forward_declarations: BTreeSet<(DefId, FileId)>,
    /// Names that were looked up in the module CORBA and do not exist.
    pub(crate) missing_in_corba: HashSet<String>,
    /// Whether the module CORBA is imported and does not exist.
    pub(crate) imports_corba: bool,
}

/// Checks a whole specification.
pub(crate) fn check(items: &[Item], context: Context<'_>) -> Checked {
    let mut checker = Checker::new(context);
    checker.items(items);
    checker.undefined_forwards();
    checker.apply_type_prefixes();
    Checked {
        fixed: checker.facts.iter().map(|it| it.shape.fixed).collect(),
        definitions: checker.definitions,
        roots: checker.roots,
        by_name: checker.by_name,
        missing_in_corba: checker.missing_in_corba,
        imports_corba: checker.imports_corba,
        forward_declarations: checker.forward_declarations,
    }
}

impl Checker<'_> {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Module { name, body } => self.module(name, body),
            Item::Interface { flavour, name, bases, body } => {
                self.interface((*flavour, name), bases, body.as_deref());
            }
            Item::Operation(operation) => self.operation(operation),
            Item::Attribute { readonly, ty, names, get_raises, set_raises } => {
                self.attribute(*readonly, ty, names, (get_raises, set_raises))
            }
            Item::Struct(body) => {
                self.structure(body);
            }
            Item::StructForward { name } => self.forward_struct(name),
            Item::Union(body) => {
                self.union(body);
            }
            Item::UnionForward { name } => self.forward_union(name),
            Item::Native { name } => {
                self.define(name, DefinitionKind::Native);
            }
            Item::Annotated { annotations, items } => self.annotated(annotations, items),
            Item::Enum(body) => {
                self.enumeration(body);
            }
            Item::Typedef { ty, declarators } => self.typedef(ty, declarators),
            Item::Const { ty, name, value } => self.constant(ty, name, value),
            Item::Value(item) => self.value(item),
            Item::Bodiless(item) => self.bodiless_value(item),
            Item::State { is_public, member } => self.state(*is_public, member),
            Item::Factory(item) => self.factory(item),
            Item::Unmapped(item) => self.unmapped(item),
            Item::Port(port) => self.port(port),
            Item::Declaration(declaration) => self.declaration(declaration),
            Item::Broken { name } => {
                self.broken(name);
            }
            Item::PragmaId { name, id, span } => self.pragma_id(name, id, *span),
            Item::PragmaVersion { name, version, span } => {
                self.pragma_version(name, version, *span);
            }
        }
    }

    fn module(&mut self, name: &NewName, body: &[Item]) {
        let existing = self.own(self.current(), name.name.symbol);
        let reopened = existing.and_then(|entry| entry.definition).filter(|&id| {
            let same = self.facts[id.index()].symbol == name.name.symbol;
            same && matches!(self[id].kind, DefinitionKind::Module(_))
        });
        let id = match reopened {
            Some(id) => {
                let in_main = self.in_main(name.name.span);
                let definition = &mut self.definitions[id.index()];
                definition.in_main_file |= in_main;
                if definition.doc.is_empty() {
                    definition.doc.clone_from(&name.doc);
                }
                id
            }
            None => self.define(name, DefinitionKind::Module(Module::default())),
        };
        self.enter(id);
        self.items(body);
        self.leave();
    }

    /// Defines a name without a usable definition. It may recur, as forward declarations do.
    fn broken(&mut self, name: &NewName) -> DefId {
        let existing = self.own(self.current(), name.name.symbol);
        let definition = existing.and_then(|entry| entry.definition);
        if let Some(id) = definition.filter(|id| self.facts[id.index()].broken) {
            return id;
        }
        let id = self.define(name, DefinitionKind::Native);
        self.facts[id.index()].broken = true;
        id
    }

    /// Reports structs, unions and interfaces that were declared and never defined.
    fn undefined_forwards(&mut self) {
        for index in 0..self.definitions.len() {
            let definition = &self.definitions[index];
            if self.facts[index].complete || self.facts[index].broken {
                continue;
            }
            let name = &definition.scoped_name;
            let message = format!("{} `{name}` is declared and never defined", definition.kind.keyword());
            let diagnostic = match definition.kind {
                DefinitionKind::Struct(_) | DefinitionKind::Union(_) => Diagnostic::error(message),
                DefinitionKind::Interface(_) | DefinitionKind::ValueType(_) => {
                    Diagnostic { undefined: Some(name.clone()), ..Diagnostic::warning(message) }
                }
                _ => continue,
            };
            let diagnostic = diagnostic.at(definition.span, "declared here");
            self.report(diagnostic);
        }
    }
}
