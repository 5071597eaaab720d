//! Components and similar constructs (IDL 4.2, 7.4.8 to 7.4.11): their names are checked, and the back ends
//! ignore them.

use super::checker::Checker;
use super::names::{named, with_article};
use crate::ast::{Declaration, Port, Reference, Role, UnmappedItem};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefinitionKind, Type, Unmapped};

impl Checker<'_> {
    pub(super) fn unmapped(&mut self, item: &UnmappedItem) {
        let earlier = self.declared_before(&item.name).filter(|&id| self.unmapped_keyword(id) == Some(item.keyword));
        let kind = || DefinitionKind::Unmapped(Unmapped { keyword: item.keyword, contents: Vec::new() });
        let Some(body) = &item.body else {
            match earlier {
                Some(id) => self.check_same_prefix(id, &item.name),
                None => {
                    self.define(&item.name, kind());
                }
            }
            return;
        };
        // As in the head of an interface, the new name may equal that of a base in another scope.
        self.remember_uses = false;
        let bases = item.bases.iter().filter_map(|reference| self.reference(reference));
        let bases: Vec<DefId> = bases.collect();
        for reference in &item.others {
            self.reference(reference);
        }
        self.remember_uses = true;
        let id = match earlier.filter(|id| self.facts[id.index()].scope.is_none()) {
            Some(id) => {
                self.complete_forward(id, &item.name);
                id
            }
            None => self.define(&item.name, kind()),
        };
        let mut inherited = Vec::new();
        for scope in bases.iter().filter_map(|base| self.facts[base.index()].scope) {
            let further = self.scope(scope).bases.iter().copied().chain([scope]);
            let new: Vec<_> = further.filter(|it| !inherited.contains(it)).collect();
            inherited.extend(new);
        }
        let scope = self.enter(id);
        self.scope_mut(scope).bases = inherited;
        self.items(body);
        self.leave();
        self.facts[id.index()].complete = true;
        if item.keyword == "template module" {
            return; // its instances are ordinary modules
        }
        let warning = Diagnostic::warning(format!("no code is generated for the {} `{}`", item.keyword, self[id].name))
            .at(item.name.name.span, "parsed and left out");
        self.report(warning);
    }

    fn unmapped_keyword(&self, id: DefId) -> Option<&'static str> {
        match &self[id].kind {
            DefinitionKind::Unmapped(body) => Some(body.keyword),
            _ => None,
        }
    }

    /// The definition of a name, if it has the required role.
    fn reference(&mut self, reference: &Reference) -> Option<DefId> {
        let id = self.resolve(&reference.name)?;
        let id = self.unaliased(id);
        let fits = match (reference.role, self.unmapped_keyword(id)) {
            (Role::Component, keyword) => keyword == Some("component"),
            (Role::Home, keyword) => keyword == Some("home"),
            (Role::PortType, keyword) => keyword == Some("porttype"),
            (Role::Connector, keyword) => keyword == Some("connector"),
            (Role::Event | Role::Value, Some(keyword)) => keyword == "eventtype",
            (Role::Value, None) => matches!(self[id].kind, DefinitionKind::ValueType(_)),
            (Role::Interface, None) => matches!(self[id].kind, DefinitionKind::Interface(_)),
            (Role::Event, None) | (Role::Interface, Some(_)) => false,
        };
        if fits {
            return Some(id);
        }
        let keyword = match reference.role {
            Role::Component => "component",
            Role::Home => "home",
            Role::Interface => "interface",
            Role::Value => "value type",
            Role::Event => "event type",
            Role::PortType => "port type",
            Role::Connector => "connector",
        };
        let definition = &self[id];
        let error = Diagnostic::error(format!("`{}` cannot be used here", definition.name))
            .at(reference.name.span, format!("expected the name of {}", with_article(keyword)))
            .also(definition.span, named(&definition.kind));
        self.report(error);
        None
    }

    pub(super) fn port(&mut self, port: &Port) {
        if let Some(target) = &port.target {
            self.reference(target);
        }
        self.enter_name(port.name, None, "port");
    }

    /// The type in place of a component or similar construct: references to components and homes are object
    /// references (IDL 4.2, 7.4.8.4), and events are values.
    pub(super) fn unmapped_type(&self, id: DefId) -> Option<Type> {
        match self.unmapped_keyword(id)? {
            "component" | "home" => Some(Type::Object),
            "eventtype" => Some(Type::ValueBase),
            _ => None,
        }
    }

    pub(super) fn declaration(&mut self, declaration: &Declaration) {
        match declaration {
            Declaration::TypePrefix { name, prefix } => self.type_prefix(name, prefix),
            Declaration::Import(name) => {
                if let Err(not_found) = self.try_resolve(name) {
                    self.imports_corba |= name.parts.len() == 1 && &*self.text(name.parts[0].symbol) == "CORBA";
                    self.report_not_found(name, &not_found);
                }
            }
            Declaration::ImportId { id, span } => {
                if !self.definitions.iter().any(|definition| definition.repository_id == *id) {
                    self.report_import(*span);
                }
            }
        }
    }

    fn report_import(&mut self, span: crate::source::Span) {
        let error = Diagnostic::error("unknown import")
            .at(span, "no file read so far defines this name")
            .help("include the file with its definition first");
        self.report(error);
    }
}
