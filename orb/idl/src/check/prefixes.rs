//! `typeprefix` (IDL 4.2, 7.4.6.4.1.2): the prefix of the default repository ids of a scope and its contents.

use super::checker::Checker;
use super::names::named;
use crate::ast::ScopedName;
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefinitionKind};

impl Checker<'_> {
    pub(super) fn type_prefix(&mut self, name: &ScopedName, prefix: &str) {
        let Some(target) = self.resolve(name) else {
            return;
        };
        let is_scope = match &self[target].kind {
            DefinitionKind::Unmapped(body) => body.keyword == "eventtype",
            kind => {
                matches!(kind, DefinitionKind::Module(_) | DefinitionKind::Interface(_) | DefinitionKind::ValueType(_))
            }
        };
        let diagnostic = if !is_scope {
            let definition = &self[target];
            Diagnostic::error(format!("`{}` has no prefix of its own", definition.name))
                .at(name.span, "expected the name of a module, interface, value type or event type")
                .also(definition.span, named(&definition.kind))
        } else if let Some((known, earlier)) = self.type_prefixes.get(&target) {
            let message = format!("the prefix of `{}` is set twice", self[target].name);
            // The standard forbids a second `typeid` of the same value, but not a second `typeprefix`.
            if known == prefix {
                Diagnostic::warning(message + " to the same value")
            } else {
                Diagnostic::error(message)
            }
            .at(name.span, "here")
            .also(*earlier, "and here")
        } else {
            self.type_prefixes.insert(target, (prefix.to_owned(), name.span));
            return;
        };
        self.report(diagnostic);
    }

    /// Applies the prefixes to all ids without an explicit setting, after all scopes have ended.
    pub(super) fn apply_type_prefixes(&mut self) {
        if self.type_prefixes.is_empty() {
            return;
        }
        // A definition comes after its parent, so the parent's prefix is known.
        let mut inherited: Vec<Option<DefId>> = Vec::with_capacity(self.definitions.len());
        for index in 0..self.definitions.len() {
            let definition = &self.definitions[index];
            let own = self.type_prefixes.contains_key(&definition.id).then_some(definition.id);
            let of_parent = definition.parent.and_then(|parent| inherited.get(parent.index()).copied().flatten());
            let from = own.or(of_parent);
            inherited.push(from);
            let prefix = from.and_then(|from| self.type_prefixes.get(&from));
            let Some((prefix, _)) = prefix.filter(|_| self.facts[index].id_set.is_none()) else {
                continue;
            };
            let version = definition.repository_id.rsplit_once(':').map_or("1.0", |(_, version)| version);
            let body = definition.scoped_name.replace("::", "/");
            let id = format!("IDL:{}:{version}", crate::parse::join(prefix, &body));
            let span = definition.span;
            if !self.charge_names(id.len(), span) {
                return;
            }
            self.definitions[index].repository_id = id;
        }
    }
}
