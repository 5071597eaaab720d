//! Checks of structures and exceptions.

use super::checker::{Checker, Shape};
use std::mem::discriminant;

use super::types::Place;
use crate::ast;
use crate::ast::{NewName, StructItem};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefinitionKind, Member, Struct};

impl Checker<'_> {
    /// Declares a struct for `struct Name;`.
    pub(super) fn forward_struct(&mut self, name: &NewName) {
        self.forward(name, DefinitionKind::Struct(Struct::default()));
    }

    /// Declares a struct or union, before or after its definition.
    pub(super) fn forward(&mut self, name: &NewName, kind: DefinitionKind) {
        if let Some(id) = self.declared_before(name) {
            if discriminant(&self[id].kind) == discriminant(&kind) {
                self.check_same_prefix(id, name);
                return;
            }
            if self.facts[id.index()].broken {
                return;
            }
        }
        self.define(name, kind);
    }

    /// Defines a struct, union or exception, completing its forward declaration if there is one.
    pub(super) fn define_or_complete(&mut self, name: &NewName, kind: DefinitionKind) -> DefId {
        let forward = self.declared_before(name).filter(|&id| {
            let open = self.facts[id.index()].scope.is_some();
            discriminant(&self[id].kind) == discriminant(&kind) && !open && !self.facts[id.index()].broken
        });
        match forward {
            Some(id) => {
                self.complete_forward(id, name);
                id
            }
            None => self.define(name, kind),
        }
    }

    /// The definition in the current scope with exactly this name.
    pub(super) fn declared_before(&mut self, name: &NewName) -> Option<DefId> {
        let entry = self.own(self.current(), name.name.symbol)?;
        entry.definition.filter(|_| entry.symbol == name.name.symbol)
    }

    /// Checks that a definition gets the id of its forward declaration.
    pub(super) fn check_same_prefix(&mut self, id: DefId, name: &NewName) {
        let facts = &self.facts[id.index()];
        if facts.id_set.is_some() || facts.version_set.is_some() {
            return;
        }
        let text = self.text(name.name.symbol);
        let here = self.repository_id(&text, &name.prefix);
        let definition = &self[id];
        if definition.repository_id == here || definition.repository_id.is_empty() {
            return;
        }
        let error = Diagnostic::error(format!("`{text}` has two repository ids"))
            .at(name.name.span, format!("here it is `{here}`"))
            .also(definition.span, format!("here it is `{}`", definition.repository_id))
            .help("put both declarations under the same `#pragma prefix`");
        self.report(error);
    }

    /// Completes a forward declaration.
    pub(super) fn complete_forward(&mut self, id: DefId, name: &NewName) {
        self.check_same_prefix(id, name);
        let in_main_file = self.in_main(name.name.span);
        let definition = &mut self.definitions[id.index()];
        definition.span = name.name.span;
        definition.in_main_file = in_main_file;
        if !name.doc.is_empty() {
            definition.doc.clone_from(&name.doc);
        }
    }

    pub(super) fn structure(&mut self, item: &StructItem) -> DefId {
        let empty = Struct::default();
        let kind = if item.is_exception { DefinitionKind::Exception(empty) } else { DefinitionKind::Struct(empty) };
        let id = self.define_or_complete(&item.name, kind);
        self.enter(id);
        self.open_structs.push(id);
        let (members, broken) = self.members(item);
        self.open_structs.pop();
        self.leave();
        let shapes: Vec<Shape> = members.iter().map(|it| self.shape(&it.ty)).collect();
        if members.iter().any(|it| self.is_local(&it.ty)) {
            self.mark_local(id);
        }
        if let DefinitionKind::Struct(body) | DefinitionKind::Exception(body) = &mut self.definitions[id.index()].kind {
            body.members = members;
        }
        // A broken member was reported; the struct itself may be used.
        let shape = if broken { Shape::default() } else { self.composed(&shapes) };
        self.set_shape(id, shape);
        id
    }

    /// The members, and whether any is invalid.
    fn members(&mut self, item: &StructItem) -> (Vec<Member>, bool) {
        let mut members = Vec::new();
        let mut broken = false;
        for member in &item.members {
            broken |= !self.member(member, &mut members);
        }
        (members, broken)
    }

    /// Adds the members of one declaration; returns whether all are usable.
    pub(super) fn member(&mut self, item: &ast::Member, members: &mut Vec<Member>) -> bool {
        let mut usable = true;
        let annotations = self.annotations(&item.annotations);
        let ty = self.type_of(&item.ty, Place::Member);
        for declarator in &item.declarators {
            let name = &declarator.name;
            let declared = ty.as_ref().and_then(|ty| self.declared_type(ty, declarator));
            self.enter_name(name.name, None, "member");
            match declared {
                Some(ty) => members.push(Member {
                    name: self.text(name.name.symbol).to_string(),
                    ty,
                    doc: name.doc.clone(),
                    annotations: self.copied(&annotations, name.name.span),
                    span: name.name.span,
                }),
                None => usable = false,
            }
        }
        usable
    }
}
