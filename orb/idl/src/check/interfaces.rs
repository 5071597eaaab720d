//! Interfaces and their inheritance (IDL 4.2, 7.4.3.4.3.2).

use std::collections::HashMap;

use super::checker::{COMPARISON_BUDGET, Checker, ScopeId};
use super::names::named;
use crate::ast::{Flavour, Item, Name, NewName, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::intern::Symbol;
use crate::model::{DefId, DefinitionKind, Interface};

/// Maximum number of bases of an interface, direct and indirect.
const MOST_BASES: usize = 256;

impl Checker<'_> {
    pub(super) fn interface(
        &mut self,
        (flavour, name): (Flavour, &NewName),
        bases: &[ScopedName],
        body: Option<&[Item]>,
    ) {
        let earlier = self.declared_before(name).filter(|&id| matches!(self[id].kind, DefinitionKind::Interface(_)));
        if let Some(id) = earlier {
            self.check_same_flavour(flavour, id, name.name.span);
        }
        let empty = Interface {
            is_abstract: flavour == Flavour::Abstract,
            is_local: flavour == Flavour::Local,
            ..Interface::default()
        };
        let Some(body) = body else {
            let id = match earlier {
                Some(id) => {
                    self.check_same_prefix(id, name);
                    id
                }
                None => {
                    let forward = Interface { forward_only: true, ..empty };
                    let id = self.define(name, DefinitionKind::Interface(forward));
                    self.facts[id.index()].local = flavour == Flavour::Local;
                    id
                }
            };
            self.forward_declarations.insert((id, name.name.span.file));
            return;
        };
        let bases = self.bases((flavour, name), bases);
        let earlier = earlier.filter(|id| self.facts[id.index()].scope.is_none());
        let id = match earlier {
            Some(id) => {
                self.complete_forward(id, name);
                id
            }
            None => self.define(name, DefinitionKind::Interface(empty)),
        };
        self.facts[id.index()].local = flavour == Flavour::Local;
        let all_bases = self.all_bases(&bases, name);
        let base_scopes = all_bases.iter();
        let base_scopes: Vec<ScopeId> = base_scopes.filter_map(|it| self.facts[it.index()].scope).collect();
        let scope = self.enter(id);
        if bases.len() > 1 {
            self.check_inherited_together(&all_bases, name);
        }
        self.scope_mut(scope).bases = base_scopes;
        if let DefinitionKind::Interface(interface) = &mut self.definitions[id.index()].kind {
            interface.bases = bases;
            interface.all_bases = all_bases;
            interface.forward_only = false;
        }
        self.items(body);
        self.check_redefined(id);
        self.leave();
        self.facts[id.index()].complete = true;
    }

    /// The direct bases: defined interfaces, each once.
    fn bases(&mut self, (flavour, name): (Flavour, &NewName), written: &[ScopedName]) -> Vec<DefId> {
        let mut bases = Vec::new();
        // A head has no scope of its own, so `interface A : A` may take its name from the base.
        self.remember_uses = false;
        for base in written {
            let Some(id) = self.base(name, base) else {
                continue;
            };
            if !self.check_flavours(flavour, id, base.span) {
                continue;
            }
            if bases.contains(&id) {
                let text = self[id].name.clone();
                let error =
                    Diagnostic::error(format!("`{text}` is a direct base twice")).at(base.span, "named again here");
                self.report(error);
            } else if bases.len() <= MOST_BASES {
                bases.push(id);
            }
        }
        self.remember_uses = true;
        bases
    }

    fn base(&mut self, name: &NewName, written: &ScopedName) -> Option<DefId> {
        let id = match self.try_resolve(written) {
            Ok(definition) => definition?,
            Err(not_found) => {
                let itself = written.parts.len() == 1 && written.parts[0].symbol == name.name.symbol;
                if itself {
                    let error = Diagnostic::error("an interface cannot inherit from itself")
                        .at(written.span, "not defined yet");
                    self.report(error);
                } else {
                    self.report_not_found(written, &not_found);
                }
                return None;
            }
        };
        // A typedef of an interface is the interface.
        let id = self.unaliased(id);
        let definition = &self[id];
        let text = &definition.name;
        let error = match &definition.kind {
            DefinitionKind::Interface(_) if self.facts[id.index()].complete => return Some(id),
            DefinitionKind::Interface(_) => {
                Diagnostic::error(format!("interface `{text}` cannot be a base before it is defined"))
                    .at(written.span, "used as a base")
                    .also(definition.span, "only declared so far")
            }
            kind => Diagnostic::error(format!("`{text}` is not an interface"))
                .at(written.span, "used as a base")
                .also(definition.span, named(kind)),
        };
        self.report(error);
        None
    }

    /// All bases, each once and after its own bases.
    pub(super) fn all_bases(&mut self, bases: &[DefId], name: &NewName) -> Vec<DefId> {
        let mut all: Vec<DefId> = Vec::new();
        for &base in bases {
            let further = match &self[base].kind {
                DefinitionKind::Interface(interface) => &interface.all_bases,
                DefinitionKind::ValueType(value) => &value.all_bases,
                _ => continue,
            };
            for &inherited in further.iter().chain([&base]) {
                if !all.contains(&inherited) {
                    all.push(inherited);
                }
            }
            if all.len() > MOST_BASES {
                let message = format!("at most {MOST_BASES} bases are permitted, direct and indirect ones together");
                let error = Diagnostic::error(message).at(name.name.span, "this one has more");
                self.report(error);
                all.truncate(MOST_BASES);
                break;
            }
        }
        all
    }

    /// Reports operations and attributes of different bases with the same name.
    fn check_inherited_together(&mut self, all_bases: &[DefId], name: &NewName) {
        let mut interfaces_by_name: HashMap<Symbol, DefId> = HashMap::new();
        for &base in all_bases {
            for id in self.operations_of(base) {
                let Some(rest) = self.inheritance_budget.checked_sub(1) else {
                    return self.inheritance_too_large(name.name);
                };
                self.inheritance_budget = rest;
                let folded = self.interner.folded(self.facts[id.index()].symbol);
                match interfaces_by_name.get(&folded) {
                    None => {
                        interfaces_by_name.insert(folded, id);
                    }
                    Some(&other) => self.inherited_clash(name.name, id, other),
                }
            }
        }
    }

    pub(super) fn inheritance_too_large(&mut self, name: Name) {
        let error = Diagnostic::error("too many operations are inherited from several bases")
            .at(name.span, "the limit is exceeded here");
        self.report(error);
        self.inheritance_budget = COMPARISON_BUDGET;
    }

    fn inherited_clash(&mut self, name: Name, one: DefId, other: DefId) {
        let text = self.text(name.symbol);
        let (one, other) = (&self[one], &self[other]);
        let message = if one.name == other.name {
            format!("`{text}` inherits `{}` from two bases", one.name)
        } else {
            format!("`{text}` inherits `{}` and `{}`, which differ only in case", other.name, one.name)
        };
        let error = Diagnostic::error(message)
            .at(name.span, "")
            .also(other.span, format!("`{}` is one", other.scoped_name))
            .also(one.span, format!("`{}` is the other", one.scoped_name));
        self.report(error);
    }

    /// Reports items of an interface with the name of an inherited operation or attribute.
    fn check_redefined(&mut self, id: DefId) {
        let Some(scope) = self.facts[id.index()].scope else {
            return;
        };
        let DefinitionKind::Interface(interface) = &self[id].kind else {
            return;
        };
        if self.scope(scope).bases.is_empty() {
            return;
        }
        let contents = interface.contents.clone();
        let bases = self.scope(scope).bases.clone();
        for own in contents {
            let folded = self.interner.folded(self.facts[own.index()].symbol);
            let inherited = bases.iter().find_map(|&base| {
                let id = self.scope(base).names.get(&folded)?.definition?;
                self.is_operation(id).then_some(id)
            });
            if let Some(inherited) = inherited {
                let (own, inherited) = (&self[own], &self[inherited]);
                let error = Diagnostic::error(format!("`{}` is already inherited", own.name))
                    .at(own.span, "defined again here")
                    .also(inherited.span, format!("`{}`", inherited.scoped_name))
                    .note("operations and attributes cannot be redefined or overloaded");
                self.report(error);
            }
        }
    }

    fn operations_of(&self, interface: DefId) -> Vec<DefId> {
        match &self[interface].kind {
            DefinitionKind::Interface(body) => {
                let contents = body.contents.iter().copied();
                contents.filter(|&id| self.is_operation(id)).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn is_operation(&self, id: DefId) -> bool {
        matches!(self[id].kind, DefinitionKind::Operation(_) | DefinitionKind::Attribute(_))
    }

    /// The target of a chain of typedefs, if it is a definition.
    pub(super) fn unaliased(&self, id: DefId) -> DefId {
        let mut id = id;
        while let DefinitionKind::Typedef(typedef) = &self[id].kind {
            match typedef.ty {
                crate::model::Type::Named(next) => id = next,
                _ => break,
            }
        }
        id
    }
}
