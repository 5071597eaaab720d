//! IDL types as Rust types, in each position that a type can have.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::derives::TraitTable;
use super::engines::Engines;
use super::external::Externals;
use super::layout::LeafCounts;
use super::names::{ModulePath, Names, path};
use super::options::Asynchronous;
use super::padding::PaddingTable;
use super::sizes::SizeTable;
use super::value_links::ValueTable;
use super::{Collocation, Options, Sides, local, supported};
use crate::model::{DefId, DefinitionKind, Model, Primitive, Type};

/// The shared data of all writers.
pub(super) struct Context<'m> {
    pub(super) model: &'m Model,
    pub(super) names: Names,
    pub(super) traits: TraitTable,
    pub(super) leaf_counts: LeafCounts,
    pub(super) padding: PaddingTable,
    pub(super) sizes: SizeTable,
    pub(super) runtime: syn::Path,
    pub(super) engines: Engines,
    pub(super) asynchronous: Asynchronous,
    /// Additional derive macros, for a definition of this name or for all.
    pub(super) derives: &'m [(Option<String>, String)],
    /// The definitions whose Rust code is in another module.
    pub(super) externals: Externals,
    pub(super) sides: Sides,
    pub(super) ties: bool,
    /// Whether the methods of servant traits have a default.
    pub(super) servant_defaults: bool,
    pub(super) collocation: Collocation,
    pub(super) prefix: &'m [String],
    /// The Rust types of native types, by their scoped names.
    pub(super) natives: &'m BTreeMap<String, String>,
    /// The type parameter of skeletons: the implementation of the servant trait.
    pub(super) implementation: Ident,
    pub(super) values: ValueTable,
    /// The definitions that never leave the process.
    pub(super) local: HashSet<DefId>,
    /// The bases of local interfaces.
    pub(super) local_bases: HashSet<DefId>,
    /// The definitions without a Rust form, with all that need them; they are left out.
    pub(super) left_out: HashSet<DefId>,
    /// The methods of reply handlers, of interfaces requested so far.
    pub(super) handlers: RefCell<HashMap<DefId, HandlerNames>>,
    /// Lints that the code being written would trip unavoidably.
    pub(super) lints: RefCell<BTreeSet<&'static str>>,
}

/// The methods of a reply handler by operation.
pub(super) type HandlerNames = HashMap<String, (Ident, Ident)>;

/// One Rust module being written.
#[derive(Clone, Copy)]
pub(super) struct Scope<'c, 'm> {
    pub(super) cx: &'c Context<'m>,
    pub(super) module: &'c ModulePath,
}

/// The way in which a value of a type is passed, and stored during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    /// By value: primitives and enums.
    Value,
    /// `&str`, lent by the message.
    Text,
    /// `&str`, made from the message's wide characters.
    WideText,
    /// `&[T]`, lent by the message where that is possible.
    Slice,
    /// `Option<&I>`, for references that may be nil.
    Reference,
    /// `&T`, for types that own memory.
    Borrowed,
}

impl<'m> Context<'m> {
    pub(super) fn new(model: &'m Model, options: &'m Options) -> Self {
        let local = local::local(model);
        let externals = Externals::new(model, &options.externals);
        let left_out = supported::left_out(model);
        let names = Names::new(model, &local, &externals, &left_out);
        let leaf_counts = LeafCounts::new(model);
        Self {
            model,
            implementation: names.type_parameter(),
            names,
            traits: TraitTable::new(model, &local),
            padding: PaddingTable::new(model, &options.padded, &leaf_counts),
            leaf_counts,
            sizes: SizeTable::new(model),
            engines: options.engines.clone(),
            asynchronous: options.asynchronous,
            runtime: syn::parse_str(&options.runtime).expect("checked when it was set"),
            values: ValueTable::new(model),
            local_bases: local::bases(model, &local),
            local,
            natives: &options.natives,
            derives: &options.derives,
            externals,
            sides: options.sides,
            ties: options.ties,
            servant_defaults: options.servant_defaults,
            collocation: options.collocation,
            prefix: &options.prefix,
            left_out,
            handlers: RefCell::default(),
            lints: RefCell::default(),
        }
    }

    /// Allows a lint in this file.
    pub(super) fn allow(&self, lint: &'static str) {
        self.lints.borrow_mut().insert(lint);
    }

    /// Whether a definition never leaves the process, and so has no form on the wire.
    pub(super) fn is_local(&self, id: DefId) -> bool {
        self.local.contains(&id)
    }

    /// Whether values of a type are local objects in an `Arc`.
    fn is_local_object(&self, ty: &Type) -> bool {
        let named = self.model.resolve_named(ty);
        named.is_some_and(|named| named.as_interface().is_some() && self.is_local(named.id))
    }

    pub(super) fn passing(&self, ty: &Type) -> Passing {
        match self.model.resolve(ty) {
            Type::Primitive(_) | Type::Fixed { .. } => Passing::Value,
            Type::String { bound: None } => Passing::Text,
            Type::WString { bound: None } => Passing::WideText,
            Type::Sequence { bound: None, .. } => Passing::Slice,
            Type::Object | Type::ValueBase | Type::AbstractBase => Passing::Reference,
            Type::Named(id) => match &self.model[*id].kind {
                DefinitionKind::Enum(_) => Passing::Value,
                DefinitionKind::Interface(_) | DefinitionKind::ValueType(_) | DefinitionKind::ValueBox(_) => {
                    Passing::Reference
                }
                _ => Passing::Borrowed,
            },
            _ => Passing::Borrowed,
        }
    }
}

impl<'c, 'm> Scope<'c, 'm> {
    /// The path of the runtime in this module: `rt`, imported by the module. The file's root imports nothing,
    /// so that several files can be included in one module.
    pub(super) fn rt(&self) -> TokenStream {
        if self.module.is_empty() {
            let runtime = &self.cx.runtime;
            quote! { #runtime }
        } else {
            quote! { rt }
        }
    }

    /// The path of the definition `id` from this module.
    pub(super) fn path(&self, id: DefId) -> TokenStream {
        let path = self.cx.names.place(id);
        self.path_in(id, &path.module, &path.ident)
    }

    /// The path of `ident` in the module of `id`, from this module.
    pub(super) fn beside(&self, id: DefId, ident: &Ident) -> TokenStream {
        self.path_in(id, &self.cx.names.place(id).module, ident)
    }

    /// The path of `ident` in the module of the interface `id`, from this module.
    pub(super) fn within(&self, id: DefId, ident: &Ident) -> TokenStream {
        self.path_in(id, &self.cx.names.interface_module(id), ident)
    }

    /// The path of `ident` in a module that belongs to `id`.
    fn path_in(&self, id: DefId, module: &ModulePath, ident: &Ident) -> TokenStream {
        self.cx.externals.path(id, module, ident).unwrap_or_else(|| path(self.module, module, ident))
    }

    /// The owned form of the type: of members, results, elements.
    pub(super) fn owned(&self, ty: &Type) -> TokenStream {
        match ty {
            Type::Named(_) | Type::Object | Type::ValueBase | Type::AbstractBase
                if self.cx.passing(ty) == Passing::Reference =>
            {
                let held = self.held(ty);
                quote! { Option<#held> }
            }
            _ => self.target(ty),
        }
    }

    /// The type as an `in` parameter.
    pub(super) fn argument(&self, ty: &Type) -> TokenStream {
        match self.cx.passing(ty) {
            Passing::Value => self.owned(ty),
            Passing::Text | Passing::WideText => quote! { &str },
            Passing::Slice => {
                let element = self.element(ty);
                quote! { &[#element] }
            }
            Passing::Reference => {
                let held = self.held(ty);
                quote! { Option<&#held> }
            }
            Passing::Borrowed => {
                let owned = self.owned(ty);
                quote! { &#owned }
            }
        }
    }

    /// The element type of a sequence.
    pub(super) fn element(&self, ty: &Type) -> TokenStream {
        match self.cx.model.resolve(ty) {
            Type::Sequence { element, .. } => self.owned(element),
            other => unreachable!("{other:?} is no sequence"),
        }
    }

    /// A non-nil reference: the type itself, a local object in an `Arc`, a reference to a value, or either.
    pub(super) fn held(&self, ty: &Type) -> TokenStream {
        let (rt, target) = (self.rt(), self.target(ty));
        if self.cx.is_local_object(ty) {
            return quote! { #rt::Arc<#target> };
        }
        match self.cx.model.resolve(ty) {
            Type::ValueBase => quote! { #rt::ValueRef<#target> },
            Type::AbstractBase => quote! { #rt::AbstractRef<#target, dyn #rt::ValueBase> },
            Type::Named(id) => match &self.cx.model[*id].kind {
                DefinitionKind::ValueType(_) | DefinitionKind::ValueBox(_) => quote! { #rt::ValueRef<#target> },
                DefinitionKind::Interface(body) if body.is_abstract && body.forward_only => {
                    quote! { #rt::AbstractRef<#target, dyn #rt::ValueBase> }
                }
                DefinitionKind::Interface(body) if body.is_abstract => {
                    let servant = self.beside(*id, &self.cx.names.interface(*id).servant);
                    quote! { #rt::AbstractRef<#target, dyn #servant> }
                }
                _ => target,
            },
            _ => target,
        }
    }

    /// The type itself, without the wrappers for storage and nil.
    pub(super) fn target(&self, ty: &Type) -> TokenStream {
        let rt = self.rt();
        match ty {
            Type::Primitive(primitive) => self.primitive(*primitive),
            Type::String { bound: None } => quote! { String },
            Type::String { bound: Some(bound) } => {
                let bound = Literal::u32_unsuffixed(*bound);
                quote! { #rt::BoundedString<#bound> }
            }
            Type::Sequence { element, bound } => {
                let element = self.owned(element);
                match bound.map(Literal::u32_unsuffixed) {
                    None => quote! { Vec<#element> },
                    Some(bound) => quote! { #rt::BoundedVec<#element, #bound> },
                }
            }
            Type::Array { element, dimensions } => {
                let element = self.owned(element);
                dimensions.iter().rev().fold(element, |inner, &len| {
                    let len = Literal::u32_unsuffixed(len);
                    quote! { [#inner; #len] }
                })
            }
            Type::Named(id) => {
                let path = self.path(*id);
                let definition = &self.cx.model[*id];
                let is_local = definition.as_interface().is_some() && self.cx.is_local(*id);
                let is_trait = is_local || definition.as_value_type().is_some();
                if is_trait {
                    quote! { dyn #path }
                } else {
                    path
                }
            }
            Type::WString { bound: None } => quote! { #rt::WString },
            Type::WString { bound: Some(bound) } => {
                let bound = Literal::u32_unsuffixed(*bound);
                quote! { #rt::BoundedWString<#bound> }
            }
            Type::Fixed { digits, scale } => {
                let (digits, scale) = (Literal::u16_unsuffixed(*digits), Literal::u16_unsuffixed(*scale));
                quote! { #rt::Fixed<#digits, #scale> }
            }
            Type::Any => quote! { #rt::Any },
            Type::TypeCode => quote! { #rt::TypeCode },
            Type::Object | Type::AbstractBase => quote! { #rt::ObjectRef },
            Type::ValueBase => quote! { dyn #rt::ValueBase },
        }
    }

    fn primitive(&self, primitive: Primitive) -> TokenStream {
        let rt = self.rt();
        match primitive {
            Primitive::Short => quote! { i16 },
            Primitive::UnsignedShort => quote! { u16 },
            Primitive::Long => quote! { i32 },
            Primitive::UnsignedLong => quote! { u32 },
            Primitive::LongLong => quote! { i64 },
            Primitive::UnsignedLongLong => quote! { u64 },
            Primitive::Float => quote! { f32 },
            Primitive::Double => quote! { f64 },
            Primitive::LongDouble => quote! { #rt::LongDouble },
            Primitive::Boolean => quote! { bool },
            Primitive::Octet => quote! { u8 },
            Primitive::Char => quote! { #rt::Char },
            Primitive::WChar => quote! { char },
        }
    }
}
