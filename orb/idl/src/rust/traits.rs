//! Which of Rust's own traits a type can derive, following from what its members can.

use std::collections::HashMap;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::model::{DefId, DefinitionKind, Model, Primitive, Type};

/// Arrays longer than this have no `Default`.
const MAX_DEFAULT_ARRAY: u32 = 32;

/// What a type implements besides `Clone`, `Debug` and `PartialEq`, which all do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    copy: bool,
    default: bool,
    eq: bool,
    hash: bool,
    partial_ord: bool,
    ord: bool,
}

impl Traits {
    const ALL: Self = Self { copy: true, default: true, eq: true, hash: true, partial_ord: true, ord: true };
    const FLOAT: Self = Self { eq: false, hash: false, ord: false, ..Self::ALL };
    const LONG_DOUBLE: Self = Self { partial_ord: false, ord: false, ..Self::ALL };
    const REFERENCE: Self = Self { copy: false, default: true, eq: true, hash: false, partial_ord: false, ord: false };

    fn and(self, other: Self) -> Self {
        Self {
            copy: self.copy && other.copy,
            default: self.default && other.default,
            eq: self.eq && other.eq,
            hash: self.hash && other.hash,
            partial_ord: self.partial_ord && other.partial_ord,
            ord: self.ord && other.ord,
        }
    }

    /// For what errors are, which nobody wants copied or made from nothing.
    pub(super) fn of_exception(self) -> Self {
        Self { copy: false, default: false, ..self }
    }

    /// The attribute.
    pub(super) fn derive(self) -> TokenStream {
        let all = [
            (true, "Clone"),
            (self.copy, "Copy"),
            (true, "Debug"),
            (self.default, "Default"),
            (true, "PartialEq"),
            (self.eq, "Eq"),
            (self.hash, "Hash"),
            (self.partial_ord, "PartialOrd"),
            (self.ord, "Ord"),
        ];
        let derived = all.iter().filter(|(has, _)| *has).map(|(_, name)| -> Ident { format_ident!("{name}") });
        quote! { #[derive( #(#derived),* )] }
    }
}

/// The [`Traits`] of each struct and exception.
#[derive(Debug, Default)]
pub(super) struct TraitTable {
    structs: HashMap<DefId, Traits>,
}

impl TraitTable {
    /// Begins with everything for everyone and takes away what members deny, until nothing changes: that is right for
    /// structs that contain themselves too.
    pub(super) fn new(model: &Model) -> Self {
        let bodies = || {
            model.definitions().filter_map(|definition| match &definition.kind {
                DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => Some((definition.id, body)),
                _ => None,
            })
        };
        let mut table = Self { structs: bodies().map(|(id, _)| (id, Traits::ALL)).collect() };
        loop {
            let mut changed = false;
            for (id, body) in bodies() {
                let members = body.members.iter().map(|member| table.of(model, &member.ty));
                let traits = members.fold(Traits::ALL, Traits::and);
                changed |= table.structs.insert(id, traits) != Some(traits);
            }
            if !changed {
                return table;
            }
        }
    }

    pub(super) fn of_struct(&self, id: DefId) -> Traits {
        self.structs[&id]
    }

    fn of(&self, model: &Model, ty: &Type) -> Traits {
        match model.resolve(ty) {
            Type::Primitive(Primitive::Float | Primitive::Double) => Traits::FLOAT,
            Type::Primitive(Primitive::LongDouble) => Traits::LONG_DOUBLE,
            Type::Primitive(_) => Traits::ALL,
            Type::String { .. } | Type::WString { .. } => Traits { copy: false, ..Traits::ALL },
            Type::Sequence { element, .. } => Traits { copy: false, default: true, ..self.of(model, element) },
            Type::Array { element, dimensions } => {
                let short = dimensions.iter().all(|&len| len <= MAX_DEFAULT_ARRAY);
                let element = self.of(model, element);
                Traits { default: element.default && short, ..element }
            }
            Type::Named(id) => match &model[*id].kind {
                DefinitionKind::Enum(_) => Traits::ALL,
                DefinitionKind::Struct(_) => self.structs[id],
                _ => Traits::REFERENCE,
            },
            // The others are left out so far.
            _ => Traits::REFERENCE,
        }
    }
}
