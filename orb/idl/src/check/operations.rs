//! Checks of operations and attributes.

use super::checker::Checker;
use super::names::named;
use super::types::Place;
use crate::ast;
use crate::ast::{NewName, ScopedName, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::model::{Attribute, DefId, DefinitionKind, Operation, Parameter, ParameterMode};

impl Checker<'_> {
    pub(super) fn operation(&mut self, item: &ast::Operation) {
        let result = match &item.result {
            None => Some(None),
            Some(spec) => self.type_of(spec, Place::Call).map(Some),
        };
        let text = self.text(item.name.name.symbol);
        if let (Some(Some(ty)), Some(spec)) = (&result, &item.result) {
            self.check_not_local(ty, &format!("the result of `{text}`"), spec.span);
        }
        let raises = self.raised(&item.raises);
        let id = self.define(&item.name, DefinitionKind::Operation(Operation::default()));
        let parameters = self.parameters(id, &item.parameters);
        self.check_oneway(item);
        if let DefinitionKind::Operation(operation) = &mut self.definitions[id.index()].kind {
            *operation = Operation {
                oneway: item.oneway.is_some(),
                result: result.flatten(),
                parameters,
                raises,
                context: item.context.clone(),
            };
        }
    }

    fn parameters(&mut self, operation: DefId, items: &[ast::Parameter]) -> Vec<Parameter> {
        self.enter(operation);
        let parameters = self.entered_parameters(items);
        self.leave();
        parameters
    }

    /// The parameters of an initializer, which is not a definition but has a scope.
    pub(super) fn factory_parameters(&mut self, items: &[ast::Parameter]) -> Vec<Parameter> {
        let scope = self.new_scope(None);
        self.open.push(scope);
        let parameters = self.entered_parameters(items);
        self.leave();
        parameters
    }

    /// The parameters, entered into the current scope.
    fn entered_parameters(&mut self, items: &[ast::Parameter]) -> Vec<Parameter> {
        let mut parameters = Vec::with_capacity(items.len());
        for item in items {
            let annotations = self.annotations(&item.annotations);
            let ty = self.type_of(&item.ty, Place::Call);
            self.enter_parameter(item.name);
            if let Some(ty) = ty {
                let name = self.text(item.name.symbol).to_string();
                self.check_not_local(&ty, &format!("the parameter `{name}`"), item.ty.span);
                parameters.push(Parameter { mode: item.mode, ty, name, annotations, span: item.name.span });
            }
        }
        parameters
    }

    /// A parameter may have the name of its operation, unlike other names in scopes.
    fn enter_parameter(&mut self, name: ast::Name) {
        let scope = self.current();
        let owner = self.scope_mut(scope).owner.take();
        self.enter_name(name, None, "parameter");
        self.scope_mut(scope).owner = owner;
    }

    /// Checks that a oneway operation has no results (IDL 4.2, 7.4.6.4.2).
    fn check_oneway(&mut self, item: &ast::Operation) {
        let Some(oneway) = item.oneway else {
            return;
        };
        let text = self.text(item.name.name.symbol);
        let error = |problem: &str| {
            Diagnostic::error(format!("the oneway operation `{text}` {problem}"))
                .note("a oneway operation has no reply for results")
        };
        if let Some(result) = &item.result {
            let error = error("returns a value").at(result.span, "must be `void`").also(oneway, "oneway");
            self.report(error);
        }
        for parameter in &item.parameters {
            if parameter.mode != ParameterMode::In {
                let error = error("has a parameter that is not `in`")
                    .at(parameter.mode_span, "must be `in`")
                    .also(oneway, "oneway");
                self.report(error);
            }
        }
        if let Some(first) = item.raises.first() {
            let error = error("raises exceptions").at(first.span, "cannot be raised").also(oneway, "oneway");
            self.report(error);
        }
    }

    pub(super) fn attribute(
        &mut self,
        readonly: bool,
        ty: &TypeSpec,
        names: &[NewName],
        (get_raises, set_raises): (&[ScopedName], &[ScopedName]),
    ) {
        let spec = ty;
        let ty = self.type_of(spec, Place::Call);
        if let (Some(ty), Some(first)) = (&ty, names.first()) {
            let text = self.text(first.name.symbol);
            self.check_not_local(ty, &format!("the attribute `{text}`"), spec.span);
        }
        let get_raises = self.raised(get_raises);
        let set_raises = self.raised(set_raises);
        for name in names {
            let Some(ty) = ty.clone() else {
                self.broken(name);
                continue;
            };
            let attribute = Attribute { readonly, ty, get_raises: get_raises.clone(), set_raises: set_raises.clone() };
            self.define(name, DefinitionKind::Attribute(attribute));
        }
    }

    /// The exceptions in a list, each once.
    pub(super) fn raised(&mut self, names: &[ScopedName]) -> Vec<DefId> {
        let mut raised: Vec<DefId> = Vec::new();
        let mut raised_ids = std::collections::HashSet::new();
        for name in names {
            let Some(id) = self.resolve(name) else {
                continue;
            };
            let definition = &self[id];
            if !matches!(definition.kind, DefinitionKind::Exception(_)) {
                let text = &definition.name;
                let error = Diagnostic::error(format!("`{text}` is not an exception"))
                    .at(name.span, "cannot be raised")
                    .also(definition.span, named(&definition.kind));
                self.report(error);
            } else if raised_ids.insert(id) {
                raised.push(id);
                self.check_exception_not_local(id, name.span);
            } else {
                let text = &definition.name;
                let warning =
                    Diagnostic::warning(format!("exception `{text}` is named twice")).at(name.span, "again here");
                self.report(warning);
            }
        }
        raised
    }
}
