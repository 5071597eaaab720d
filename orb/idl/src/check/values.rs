//! Value types (IDL 4.2, 7.4.5 and 7.4.7; CORBA 3.3 Part 1, 7.9).

use super::checker::{Checker, ScopeId, Shape};
use super::types::Place;
use crate::ast::{self, Bodiless, FactoryItem, NewName, TypeSpec, ValueItem};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefinitionKind, Factory, Member, StateMember, Type, ValueBox, ValueType};

mod inheritance;

impl Checker<'_> {
    pub(super) fn bodiless_value(&mut self, item: &Bodiless) {
        match item {
            Bodiless::Forward { name, is_abstract } => self.forward_value(name, *is_abstract),
            Bodiless::Boxed { name, ty } => self.value_box(name, ty),
        }
    }

    fn forward_value(&mut self, name: &NewName, is_abstract: bool) {
        let id = match self.declared_value(name) {
            Some(id) => {
                self.check_same_prefix(id, name);
                self.check_same_abstractness(id, name, is_abstract);
                id
            }
            None => {
                let forward = ValueType { forward_only: true, is_abstract, ..ValueType::default() };
                self.define(name, DefinitionKind::ValueType(forward))
            }
        };
        self.forward_declarations.insert((id, name.name.span.file));
    }

    /// The value type in this scope with exactly this name.
    fn declared_value(&mut self, name: &NewName) -> Option<DefId> {
        self.declared_before(name).filter(|&id| matches!(self[id].kind, DefinitionKind::ValueType(_)))
    }

    fn check_same_abstractness(&mut self, id: DefId, name: &NewName, is_abstract: bool) {
        let earlier = &self[id];
        let before = matches!(&earlier.kind, DefinitionKind::ValueType(value) if value.is_abstract);
        if before == is_abstract {
            return;
        }
        let said = |is_abstract| if is_abstract { "here it is abstract" } else { "here it is not abstract" };
        let error = Diagnostic::error(format!("`{}` is abstract in one place and not in another", earlier.name))
            .at(name.name.span, said(is_abstract))
            .also(earlier.span, said(before));
        self.report(error);
    }

    pub(super) fn value(&mut self, item: &ValueItem) {
        let earlier = self.declared_value(&item.name);
        let bases = self.value_bases(item);
        let supports = self.supported(item);
        self.check_supported_together(&bases, &supports, item);
        let earlier = earlier.filter(|id| self.facts[id.index()].scope.is_none());
        let id = match earlier {
            Some(id) => {
                self.check_same_abstractness(id, &item.name, item.is_abstract);
                self.complete_forward(id, &item.name);
                id
            }
            None => self.define(&item.name, DefinitionKind::ValueType(ValueType::default())),
        };
        let all_bases = self.all_bases(&bases, &item.name);
        let base_scopes = self.inherited_scopes(&all_bases, &supports);
        let inherited = self.inherited_features(&all_bases, &supports, item.name.name);
        let scope = self.enter(id);
        self.scope_mut(scope).bases = base_scopes;
        if let DefinitionKind::ValueType(value) = &mut self.definitions[id.index()].kind {
            value.is_custom = item.is_custom;
            value.is_abstract = item.is_abstract;
            value.is_truncatable = item.truncatable.is_some();
            value.forward_only = false;
            (value.bases, value.all_bases, value.supports) = (bases, all_bases, supports);
        }
        self.items(&item.body);
        self.check_features(id, &inherited);
        self.leave();
        let shape = self.value_shape(id);
        self.set_shape(id, shape);
    }

    /// All scopes whose names are visible in a value type: those of its bases, of interfaces that they
    /// support, and of those that it supports.
    fn inherited_scopes(&self, all_bases: &[DefId], supports: &[DefId]) -> Vec<ScopeId> {
        let interfaces = self.all_supported(all_bases, supports);
        let all = all_bases.iter().chain(&interfaces);
        all.filter_map(|it| self.facts[it.index()].scope).collect()
    }

    /// Values refer to each other, so a value adds at least a nil to another.
    fn value_shape(&self, id: DefId) -> Shape {
        let DefinitionKind::ValueType(value) = &self[id].kind else {
            return Shape::default();
        };
        let members = value.members.iter().map(|state| self.shape(&state.member.ty).depth);
        let bases = value.bases.iter().map(|&base| self.facts[base.index()].shape.depth);
        Shape { depth: 1 + members.chain(bases).max().unwrap_or(0), octets: 4, ..Shape::default() }
    }

    pub(super) fn state(&mut self, is_public: bool, item: &ast::Member) {
        let Some(owner) = self.scope(self.current()).owner else {
            return;
        };
        if matches!(&self[owner].kind, DefinitionKind::ValueType(value) if value.is_abstract) {
            if let Some(first) = item.declarators.first() {
                let error = Diagnostic::error("an abstract value type has no state")
                    .at(first.name.name.span, "this state member is not permitted")
                    .also(self[owner].span, "declared `abstract` here");
                self.report(error);
            }
            return;
        }
        let annotations = self.annotations(&item.annotations);
        let ty = self.type_of(&item.ty, Place::Member);
        for declarator in &item.declarators {
            let name = &declarator.name;
            let declared = ty.as_ref().and_then(|ty| self.declared_type(ty, declarator));
            self.enter_name(name.name, None, "state member");
            let Some(ty) = declared else {
                continue;
            };
            self.facts[owner.index()].local |= self.is_local(&ty);
            let member = Member {
                name: self.text(name.name.symbol).to_string(),
                ty,
                doc: name.doc.clone(),
                annotations: self.copied(&annotations, name.name.span),
                span: name.name.span,
            };
            if let DefinitionKind::ValueType(value) = &mut self.definitions[owner.index()].kind {
                value.members.push(StateMember { is_public, member });
            }
        }
    }

    /// An initializer. Its name is in the scope of the value type, and not inherited (IDL 4.2, 7.4.5.4.1.4).
    pub(super) fn factory(&mut self, item: &FactoryItem) {
        let Some(owner) = self.scope(self.current()).owner else {
            return;
        };
        if matches!(&self[owner].kind, DefinitionKind::ValueType(value) if value.is_abstract) {
            let error = Diagnostic::error("an abstract value type has no initializers")
                .at(item.name.name.span, "it could not create a value")
                .also(self[owner].span, "declared `abstract` here");
            self.report(error);
            return;
        }
        let raises = self.raised(&item.raises);
        self.enter_name(item.name.name, None, "initializer");
        let parameters = self.factory_parameters(&item.parameters);
        let factory = Factory {
            name: self.text(item.name.name.symbol).to_string(),
            parameters,
            raises,
            doc: item.name.doc.clone(),
            span: item.name.name.span,
        };
        if let DefinitionKind::ValueType(value) = &mut self.definitions[owner.index()].kind {
            value.factories.push(factory);
        }
    }

    fn value_box(&mut self, name: &NewName, spec: &TypeSpec) {
        let Some(ty) = self.type_of(spec, Place::Member) else {
            self.broken(name);
            return;
        };
        if self.is_value(&ty) {
            let error = Diagnostic::error("a value type cannot be boxed")
                .at(spec.span, "this is a value already")
                .help("use it as it is, or name it with a `typedef`");
            self.report(error);
        }
        let mut shape = self.shape(&ty);
        shape = Shape { depth: shape.depth + 1, octets: 4, ..Shape::default() };
        let local = self.is_local(&ty);
        let id = self.define(name, DefinitionKind::ValueBox(ValueBox { ty }));
        self.facts[id.index()].local = local;
        self.set_shape(id, shape);
    }

    fn is_value(&self, ty: &Type) -> bool {
        match ty {
            Type::ValueBase => true,
            Type::Named(id) => match &self[self.unaliased(*id)].kind {
                DefinitionKind::ValueType(_) | DefinitionKind::ValueBox(_) => true,
                DefinitionKind::Typedef(typedef) => typedef.ty == Type::ValueBase,
                _ => false,
            },
            _ => false,
        }
    }
}
