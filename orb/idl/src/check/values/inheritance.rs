//! Inheritance of value types, and its rules (IDL 4.2, 7.4.7.4.2; CORBA 3.3 Part 1, 7.9.5).

use std::collections::HashMap;

use crate::ast::{Name, NewName, ScopedName, ValueItem};
use crate::check::Checker;
use crate::check::names::named;
use crate::diagnostic::Diagnostic;
use crate::intern::Symbol;
use crate::model::{DefId, DefinitionKind, Interface, ValueType};
use crate::source::Span;

/// An operation, attribute or state member, whose name is unique in a value type.
#[derive(Clone)]
pub(super) struct Feature {
    name: String,
    /// The value type or interface that declares it.
    owner: DefId,
    span: Span,
}

impl Checker<'_> {
    fn value_body(&self, id: DefId) -> Option<&ValueType> {
        match &self[id].kind {
            DefinitionKind::ValueType(value) => Some(value),
            _ => None,
        }
    }

    fn interface_body(&self, id: DefId) -> Option<&Interface> {
        match &self[id].kind {
            DefinitionKind::Interface(interface) => Some(interface),
            _ => None,
        }
    }

    /// The direct bases: defined value types, each once, a concrete one only in the first position.
    pub(super) fn value_bases(&mut self, item: &ValueItem) -> Vec<DefId> {
        let role = "base value type";
        let bases = self.heads(&item.name, &item.bases, role, |kind| matches!(kind, DefinitionKind::ValueType(_)));
        let is_concrete = |it: &Self, id| it.value_body(id).is_some_and(|value| !value.is_abstract);
        for (index, &(base, span)) in bases.iter().enumerate() {
            if is_concrete(self, base) && (index > 0 || item.is_abstract) {
                let text = &self[base].name;
                let error = if item.is_abstract {
                    Diagnostic::error("an abstract value type has abstract bases only")
                        .note("it has no state, so it cannot inherit any")
                } else {
                    Diagnostic::error(format!("the concrete base `{text}` must be the first"))
                        .note("a value type has at most one base with state, and names it first")
                };
                let error = error.at(span, "this one has state").also(self[base].span, "not declared `abstract`");
                self.report(error);
            }
        }
        if let Some(&(base, span)) = bases.first() {
            self.check_custom_base(item, base, span);
        }
        if let Some(truncatable) = item.truncatable
            && !bases.first().is_some_and(|&(base, _)| is_concrete(self, base))
        {
            let warning = Diagnostic::warning("`truncatable` has no effect without a concrete base")
                .at(truncatable, "there is no base to truncate to");
            self.report(warning);
        }
        bases.into_iter().map(|(base, _)| base).collect()
    }

    /// Checks that types derived from a custom value type are custom.
    fn check_custom_base(&mut self, item: &ValueItem, base: DefId, span: Span) {
        if item.is_custom || !self.value_body(base).is_some_and(|value| value.is_custom) {
            return;
        }
        let text = &self[base].name;
        let error = Diagnostic::error(format!("`{text}` is custom, so derived types must be custom too"))
            .at(span, "a custom base")
            .also(self[base].span, "declared `custom` here");
        self.report(error);
    }

    /// The supported interfaces: defined ones, each once; at most one is not abstract, and it comes first.
    pub(super) fn supported(&mut self, item: &ValueItem) -> Vec<DefId> {
        let role = "supported interface";
        let interfaces =
            self.heads(&item.name, &item.supports, role, |kind| matches!(kind, DefinitionKind::Interface(_)));
        for &(interface, span) in interfaces.iter().skip(1) {
            if self.interface_body(interface).is_some_and(|it| !it.is_abstract) {
                let text = &self[interface].name;
                let error =
                    Diagnostic::error(format!("`{text}` is not abstract and not the first interface supported"))
                        .at(span, "named here")
                        .also(self[interface].span, "not declared `abstract`")
                        .note("a value type supports at most one interface that is not abstract, and names it first");
                self.report(error);
            }
        }
        interfaces.into_iter().map(|(interface, _)| interface).collect()
    }

    /// Definitions named in the head of a value type, each once, with their positions.
    fn heads(
        &mut self,
        name: &NewName,
        written: &[ScopedName],
        role: &str,
        fits: fn(&DefinitionKind) -> bool,
    ) -> Vec<(DefId, Span)> {
        let mut bases: Vec<(DefId, Span)> = Vec::new();
        // As in the head of an interface, the new name may equal that of a base in another scope.
        self.remember_uses = false;
        for written in written {
            let Some(id) = self.head(name, written, role, fits) else {
                continue;
            };
            if bases.iter().any(|(base, _)| *base == id) {
                let text = &self[id].name;
                let error = Diagnostic::error(format!("`{text}` is named twice")).at(written.span, "named again here");
                self.report(error);
            } else {
                bases.push((id, written.span));
            }
        }
        self.remember_uses = true;
        bases
    }

    fn head(
        &mut self,
        name: &NewName,
        written: &ScopedName,
        role: &str,
        fits: fn(&DefinitionKind) -> bool,
    ) -> Option<DefId> {
        let id = self.resolve(written)?;
        let id = self.unaliased(id);
        let definition = &self[id];
        let text = &definition.name;
        let error = if !fits(&definition.kind) {
            Diagnostic::error(format!("`{text}` cannot be a {role} here"))
                .at(written.span, format!("named as a {role} of `{}`", self.text(name.name.symbol)))
                .also(definition.span, named(&definition.kind))
        } else if !self.facts[id.index()].complete {
            Diagnostic::error(format!("`{text}` is not defined yet"))
                .at(written.span, format!("a {role} must be"))
                .also(definition.span, "only declared so far")
        } else {
            return Some(id);
        };
        self.report(error);
        None
    }

    /// Checks that the interface that a value type supports derives from all those that its bases support,
    /// abstract ones aside.
    pub(super) fn check_supported_together(&mut self, bases: &[DefId], supports: &[DefId], item: &ValueItem) {
        let regular = |it: &Self, id| it.interface_body(id).is_some_and(|interface| !interface.is_abstract);
        let own = supports.first().copied().filter(|&id| regular(self, id));
        let mut most_derived = own;
        for base in self.with_all_bases(bases) {
            let inherited = self.value_body(base).and_then(|value| value.supports.first().copied());
            let Some(inherited) = inherited.filter(|&id| regular(self, id)) else {
                continue;
            };
            let Some(current) = most_derived else {
                most_derived = Some(inherited);
                continue;
            };
            if self.derives(current, inherited) {
                continue;
            }
            if own.is_none() && self.derives(inherited, current) {
                most_derived = Some(inherited);
                continue;
            }
            let (one, other) = (self[current].name.clone(), self[inherited].name.clone());
            let text = self.text(item.name.name.symbol);
            let error = Diagnostic::error(format!("`{text}` supports `{one}` and `{other}`, which are not related"))
                .at(item.name.name.span, format!("`{one}` does not derive from `{other}`"))
                .also(self[base].span, format!("`{other}` is supported by this base"))
                .help("support an interface that derives from both");
            return self.report(error);
        }
    }

    fn derives(&self, derived: DefId, base: DefId) -> bool {
        derived == base || self.interface_body(derived).is_some_and(|it| it.all_bases.contains(&base))
    }

    fn with_all_bases(&self, bases: &[DefId]) -> Vec<DefId> {
        let all = bases.iter().filter_map(|&base| self.value_body(base).map(|value| (base, value)));
        all.flat_map(|(base, value)| value.all_bases.iter().copied().chain([base])).collect()
    }

    /// All interfaces supported by a value type with these bases, each once.
    pub(super) fn all_supported(&self, all_bases: &[DefId], supports: &[DefId]) -> Vec<DefId> {
        let mut all: Vec<DefId> = Vec::new();
        let by_bases = all_bases.iter().filter_map(|&base| self.value_body(base));
        let direct = by_bases.flat_map(|value| &value.supports).chain(supports);
        for &interface in direct {
            let bases = self.interface_body(interface).map_or(&[][..], |it| &it.all_bases);
            for &id in bases.iter().chain([&interface]) {
                if !all.contains(&id) {
                    all.push(id);
                }
            }
        }
        all
    }

    /// The operations, attributes and state members that a value type inherits, by their names in lower case.
    /// Two of the same name are reported.
    pub(super) fn inherited_features(
        &mut self,
        all_bases: &[DefId],
        supports: &[DefId],
        name: Name,
    ) -> HashMap<Symbol, Feature> {
        let mut inherited_features: HashMap<Symbol, Feature> = HashMap::new();
        let interfaces = self.all_supported(all_bases, supports);
        for &owner in all_bases.iter().chain(&interfaces) {
            for feature in self.features(owner) {
                let Some(rest) = self.inheritance_budget.checked_sub(1) else {
                    self.inheritance_too_large(name);
                    return inherited_features;
                };
                self.inheritance_budget = rest;
                let symbol = self.interner.intern(&feature.name);
                let folded = self.interner.folded(symbol);
                match inherited_features.get(&folded) {
                    None => {
                        inherited_features.insert(folded, feature);
                    }
                    Some(other) => self.features_clash(name, &feature, &other.clone()),
                }
            }
        }
        inherited_features
    }

    /// The operations, attributes and state members declared in a value type or interface itself.
    fn features(&self, owner: DefId) -> Vec<Feature> {
        let contents = match &self[owner].kind {
            DefinitionKind::Interface(body) => &body.contents,
            DefinitionKind::ValueType(body) => &body.contents,
            _ => return Vec::new(),
        };
        let called = contents.iter().filter(|&&id| self.is_operation(id)).map(|&id| &self[id]);
        let called = called.map(|it| Feature { name: it.name.clone(), owner, span: it.span });
        let state = self.value_body(owner).map_or(&[][..], |value| &value.members);
        let state = state.iter().map(|it| Feature { name: it.member.name.clone(), owner, span: it.member.span });
        called.chain(state).collect()
    }

    fn features_clash(&mut self, name: Name, one: &Feature, other: &Feature) {
        let text = self.text(name.symbol);
        let (first, second) = (&self[other.owner].scoped_name, &self[one.owner].scoped_name);
        let error = Diagnostic::error(format!("`{text}` inherits `{}` twice", one.name))
            .at(name.span, "")
            .also(other.span, format!("`{first}::{}` is one", other.name))
            .also(one.span, format!("`{second}::{}` is the other", one.name));
        self.report(error);
    }

    /// Reports items of a value type with an inherited name; initializers are exempt.
    pub(super) fn check_features(&mut self, id: DefId, inherited: &HashMap<Symbol, Feature>) {
        let Some(scope) = self.facts[id.index()].scope else {
            return;
        };
        let factories = self.value_body(id).map_or(&[][..], |value| &value.factories);
        let is_factory = |span| factories.iter().any(|factory| factory.span == span);
        let own = self.scope(scope).names.iter().filter(|(folded, entry)| {
            let clashes = inherited.contains_key(folded);
            clashes && !is_factory(entry.span)
        });
        let mut clashing: Vec<(Symbol, Name)> =
            own.map(|(&folded, entry)| (folded, Name { symbol: entry.symbol, span: entry.span })).collect();
        clashing.sort_by_key(|(_, name)| name.span);
        for (folded, name) in clashing {
            let feature = &inherited[&folded];
            let error = Diagnostic::error(format!("`{}` is already inherited", self.text(name.symbol)))
                .at(name.span, "defined again here")
                .also(feature.span, format!("`{}::{}`", self[feature.owner].scoped_name, feature.name))
                .note("inherited features cannot be redefined or overloaded");
            self.report(error);
        }
    }
}
