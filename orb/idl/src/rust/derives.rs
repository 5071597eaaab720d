//! The standard Rust traits that a type can derive, computed from those of its members.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::names;
use super::value_links::concrete_base;
use crate::model::{DefId, DefinitionKind, Model, Primitive, Type};

/// Arrays longer than this have no `Default`.
const MAX_DEFAULT_ARRAY: u32 = 32;

/// Rust compares tuples of at most so many values.
const MAX_TUPLE: usize = 12;

/// The implementation of `Eq` and the order of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Derived, as far as it has them.
    Derived,
    /// The macro for `Eq`.
    Equal,
    /// The macro for `Eq`, `PartialOrd` and `Ord`.
    Ordered,
}

/// The traits implemented by a type besides `Clone`, which all implement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    debug: bool,
    copy: bool,
    default: bool,
    partial_eq: bool,
    eq: bool,
    hash: bool,
    partial_ord: bool,
    ord: bool,
}

impl Traits {
    const ALL: Self = Self {
        debug: true,
        copy: true,
        default: true,
        partial_eq: true,
        eq: true,
        hash: true,
        partial_ord: true,
        ord: true,
    };
    const FLOAT: Self = Self { eq: false, hash: false, ord: false, ..Self::ALL };
    const LONG_DOUBLE: Self = Self { partial_ord: false, ord: false, ..Self::ALL };
    const REFERENCE: Self = Self { copy: false, hash: false, partial_ord: false, ord: false, ..Self::ALL };
    /// `any`: empty by default, and equal to one of the same type and value.
    const ANY: Self = Self { eq: false, ..Self::REFERENCE };
    /// A type known only to this process: a local object, or a type defined by the program.
    const LOCAL: Self = Self { debug: false, partial_eq: false, ..Self::ANY };

    fn and(self, other: Self) -> Self {
        Self {
            debug: self.debug && other.debug,
            copy: self.copy && other.copy,
            default: self.default && other.default,
            partial_eq: self.partial_eq && other.partial_eq,
            eq: self.eq && other.eq,
            hash: self.hash && other.hash,
            partial_ord: self.partial_ord && other.partial_ord,
            ord: self.ord && other.ord,
        }
    }

    /// For exceptions: neither `Copy` nor `Default`, nor an order or a hash.
    pub(super) fn of_exception(self) -> Self {
        Self { copy: false, default: false, hash: false, partial_ord: false, ord: false, ..self }
    }

    /// For types with a manual implementation of `Default`.
    pub(super) fn without_default(self) -> Self {
        Self { default: false, ..self }
    }

    /// Whether it implements `Default`, by hand or derived.
    pub(super) fn has_default(self) -> bool {
        self.default
    }

    /// Whether it implements `PartialEq`.
    pub(super) fn has_partial_eq(self) -> bool {
        self.partial_eq
    }

    /// Whether it implements `Debug`.
    pub(super) fn has_debug(self) -> bool {
        self.debug
    }

    /// The traits to derive for a struct of so many members, and how the runtime's macros compare it beyond
    /// `PartialEq`: that is less code than derives, which compare members one by one for each trait.
    pub(super) fn split_comparison(self, members: usize) -> (Self, Comparison) {
        match self {
            Self { eq: true, partial_ord: true, ord: true, .. } if members <= MAX_TUPLE => {
                (Self { eq: false, partial_ord: false, ord: false, ..self }, Comparison::Ordered)
            }
            Self { eq: true, partial_ord: false, ord: false, .. } => (Self { eq: false, ..self }, Comparison::Equal),
            _ => (self, Comparison::Derived),
        }
    }

    /// The attribute `#[derive(…)]` with the traits that all parts of a type implement.
    pub(super) fn derive(self) -> TokenStream {
        let all = [
            (true, "Clone"),
            (self.copy, "Copy"),
            (self.debug, "Debug"),
            (self.default, "Default"),
            (self.partial_eq, "PartialEq"),
            (self.eq, "Eq"),
            (self.hash, "Hash"),
            (self.partial_ord, "PartialOrd"),
            (self.ord, "Ord"),
        ];
        let derived = all.iter().filter(|(has, _)| *has).map(|(_, name)| -> Ident { format_ident!("{name}") });
        quote! { #[derive( #(#derived),* )] }
    }
}

/// The [`Traits`] of each struct, union and exception.
#[derive(Debug, Default)]
pub(super) struct TraitTable {
    traits: HashMap<DefId, Traits>,
}

impl TraitTable {
    /// Starts with all traits for all definitions and removes those that members lack, until nothing changes.
    /// The result is correct for recursive types, too.
    pub(super) fn new(model: &Model, local: &HashSet<DefId>) -> Self {
        let composed = || model.definitions().filter(|definition| is_composed(&definition.kind));
        let mut table = Self { traits: local.iter().map(|&id| (id, Traits::LOCAL)).collect() };
        table.traits.extend(composed().map(|definition| (definition.id, Traits::ALL)));
        loop {
            let mut changed = false;
            for definition in composed() {
                let traits = table.composed(model, &definition.kind);
                changed |= table.traits.insert(definition.id, traits) != Some(traits);
            }
            if !changed {
                return table;
            }
        }
    }

    /// The traits of a struct, union, exception or other type.
    pub(super) fn of_definition(&self, model: &Model, id: DefId) -> Traits {
        match &model[id].kind {
            DefinitionKind::Enum(_) => Traits::ALL,
            DefinitionKind::Native => Traits { default: false, ..Traits::LOCAL },
            _ => self.traits.get(&id).copied().unwrap_or(Traits::REFERENCE),
        }
    }

    /// The traits of the state of a value type.
    pub(super) fn of_value(&self, model: &Model, id: DefId) -> Traits {
        let Some(body) = model[id].as_value_type() else { return Traits::REFERENCE };
        let own = self.of_state(model, body.members.iter().map(|state| &state.member.ty));
        match concrete_base(model, body) {
            Some(base) => own.and(self.of_value(model, base)),
            None => own,
        }
    }

    /// The traits of a struct with members of these types, which may be links to values.
    pub(super) fn of_state<'t>(&self, model: &Model, types: impl IntoIterator<Item = &'t Type>) -> Traits {
        let none = Traits { copy: false, hash: false, partial_ord: false, ord: false, ..Traits::ALL };
        types.into_iter().map(|ty| self.of(model, ty)).fold(none, Traits::and)
    }

    fn of(&self, model: &Model, ty: &Type) -> Traits {
        match model.resolve(ty) {
            Type::Primitive(Primitive::Float | Primitive::Double) => Traits::FLOAT,
            Type::Primitive(Primitive::LongDouble) => Traits::LONG_DOUBLE,
            Type::Primitive(_) | Type::Fixed { .. } => Traits::ALL,
            Type::String { .. } | Type::WString { .. } => Traits { copy: false, ..Traits::ALL },
            Type::Sequence { element, .. } => Traits { copy: false, default: true, ..self.of(model, element) },
            Type::Array { element, dimensions } => {
                let short = dimensions.iter().all(|&len| len <= MAX_DEFAULT_ARRAY);
                let element = self.of(model, element);
                Traits { default: element.default && short, ..element }
            }
            Type::Named(id) => self.of_definition(model, *id),
            Type::Any => Traits::ANY,
            Type::TypeCode => Traits { eq: true, ..Traits::ANY },
            Type::Object | Type::ValueBase | Type::AbstractBase => Traits::REFERENCE,
        }
    }

    /// The traits that the members of a struct or union allow.
    fn composed(&self, model: &Model, kind: &DefinitionKind) -> Traits {
        match kind {
            DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => {
                let members = body.members.iter().map(|member| self.of(model, &member.ty));
                members.fold(Traits::ALL, Traits::and)
            }
            DefinitionKind::Union(body) => {
                let branches = body.branches.iter().map(|branch| self.of(model, &branch.member.ty));
                // The default is a union without a member if possible, otherwise the first member's.
                let empty = names::branches(body).1.is_some();
                let first = branches.clone().next().is_some_and(|first| first.default);
                let all = branches.fold(Traits::ALL, Traits::and);
                Traits { default: empty || first, ..all }
            }
            other => unreachable!("{} has no members", other.keyword()),
        }
    }
}

fn is_composed(kind: &DefinitionKind) -> bool {
    matches!(kind, DefinitionKind::Struct(_) | DefinitionKind::Exception(_) | DefinitionKind::Union(_))
}
