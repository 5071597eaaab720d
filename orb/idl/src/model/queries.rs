//! Queries of back ends on a model.

use std::collections::HashSet;
use std::fmt;
use std::ops::Index;

use super::{
    Attribute, Const, DefId, Definition, DefinitionKind, Enum, Interface, Model, Operation, Primitive, Struct, Type,
    Typedef, Union, Unmapped, ValueBox, ValueType,
};
use crate::diagnostic::Diagnostics;
use crate::source::SourceMap;

impl Model {
    /// All definitions in the order of their first declaration: containers before their contents. The
    /// contents of a reopened module need not be adjacent.
    pub fn definitions(&self) -> impl ExactSizeIterator<Item = &Definition> + DoubleEndedIterator {
        self.definitions.iter()
    }

    /// The top-level definitions, in source order.
    pub fn roots(&self) -> &[DefId] {
        &self.roots
    }

    /// The definition with this full name, with or without a leading `::`.
    pub fn lookup(&self, scoped_name: &str) -> Option<&Definition> {
        let name = scoped_name.strip_prefix("::").unwrap_or(scoped_name);
        self.by_name.get(name).map(|&id| &self[id])
    }

    /// The direct contents of `container`, in source order; empty for definitions without contents. The
    /// enumerators of an enum are its contents.
    pub fn contents(&self, container: DefId) -> &[DefId] {
        match &self[container].kind {
            DefinitionKind::Module(module) => &module.contents,
            DefinitionKind::Interface(interface) => &interface.contents,
            DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => &body.contents,
            DefinitionKind::Enum(body) => &body.enumerators,
            DefinitionKind::Union(body) => &body.contents,
            DefinitionKind::ValueType(body) => &body.contents,
            DefinitionKind::Unmapped(body) => &body.contents,
            _ => &[],
        }
    }

    /// The files that the front end has read, for positions in messages.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The warnings of the front end, in the order of the source.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// The warnings that remain beside other models: none for interfaces and value types that this one only declares
    /// and another defines.
    #[must_use]
    pub fn warnings_beside<'m>(&self, others: impl Iterator<Item = &'m Model> + Clone) -> Diagnostics {
        let is_defined_in = |other: &Model, name: &str| other.lookup(name).is_some_and(|it| !it.is_forward_only());
        let is_defined = |name: &str| others.clone().any(|other| is_defined_in(other, name));
        let mut warnings = self.warnings.clone();
        warnings.list.retain(|warning| !warning.undefined.as_deref().is_some_and(is_defined));
        warnings
    }

    /// The type behind any number of typedefs. Only the outermost type is resolved: the element of
    /// `sequence<Amount>` stays `Amount`.
    pub fn resolve<'m>(&'m self, ty: &'m Type) -> &'m Type {
        let mut ty = ty;
        while let Type::Named(id) = ty {
            match &self[*id].kind {
                DefinitionKind::Typedef(typedef) => ty = &typedef.ty,
                _ => break,
            }
        }
        ty
    }

    /// The definition behind a type, typedefs resolved: an interface, struct, enum or native type.
    pub fn resolve_named(&self, ty: &Type) -> Option<&Definition> {
        match self.resolve(ty) {
            Type::Named(id) => Some(&self[*id]),
            _ => None,
        }
    }

    /// Whether every value of the type takes the same number of octets in CDR at a given alignment:
    /// primitives (other than `wchar`, whose encoding has a length), `fixed`, enums, and arrays and structs
    /// of these.
    pub fn is_fixed_size(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Primitive(primitive) => *primitive != Primitive::WChar,
            Type::Fixed { .. } => true,
            Type::Array { element, .. } => self.is_fixed_size(element),
            Type::Named(id) => self.fixed.get(id.index()).copied().unwrap_or(false),
            _ => false,
        }
    }

    /// Whether a value of the struct, union or value type `id` can contain values of the same type (through sequences and
    /// value types).
    pub fn is_recursive(&self, id: DefId) -> bool {
        let mut visited = HashSet::new();
        let mut open: Vec<&Type> = self.member_types(id);
        while let Some(ty) = open.pop() {
            match self.resolve(ty) {
                Type::Named(inner) if *inner == id => return true,
                Type::Named(inner) if visited.insert(*inner) => open.extend(self.member_types(*inner)),
                Type::Sequence { element, .. } | Type::Array { element, .. } => open.push(element),
                _ => {}
            }
        }
        false
    }

    /// The operations and attributes of the interface's objects: inherited ones first (in the order of
    /// [`Interface::all_bases`]), then its own. Each occurs once, even if a base is inherited twice.
    pub fn flattened(&self, interface: DefId) -> Vec<DefId> {
        let Some(body) = self[interface].as_interface() else {
            return Vec::new();
        };
        let with_self = body.all_bases.iter().chain(std::iter::once(&interface));
        with_self
            .flat_map(|&id| self.contents(id))
            .copied()
            .filter(|&id| {
                let kind = &self[id].kind;
                matches!(kind, DefinitionKind::Operation(_) | DefinitionKind::Attribute(_))
            })
            .collect()
    }

    /// The types of the direct parts of a definition's values.
    fn member_types(&self, id: DefId) -> Vec<&Type> {
        match &self[id].kind {
            DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => {
                body.members.iter().map(|member| &member.ty).collect()
            }
            DefinitionKind::Union(body) => body.branches.iter().map(|branch| &branch.member.ty).collect(),
            DefinitionKind::ValueType(body) => {
                let own = body.members.iter().map(|state| &state.member.ty);
                own.chain(body.bases.iter().flat_map(|&base| self.member_types(base))).collect()
            }
            DefinitionKind::ValueBox(body) => vec![&body.ty],
            _ => Vec::new(),
        }
    }
}

impl Index<DefId> for Model {
    type Output = Definition;

    /// # Panics
    /// If `id` comes from another, larger model.
    fn index(&self, id: DefId) -> &Definition {
        &self.definitions[id.index()]
    }
}

/// Defines `as_interface` and similar methods, for access to one variant.
macro_rules! accessors {
    ($($method:ident $variant:ident $body:ty),* $(,)?) => {
        impl Definition {
            $(
                #[doc = concat!("The body, if this is a [`DefinitionKind::", stringify!($variant), "`].")]
                pub fn $method(&self) -> Option<&$body> {
                    match &self.kind {
                        DefinitionKind::$variant(body) => Some(body),
                        _ => None,
                    }
                }
            )*
        }
    };
}

accessors! {
    as_interface Interface Interface,
    as_operation Operation Operation,
    as_attribute Attribute Attribute,
    as_struct Struct Struct,
    as_exception Exception Struct,
    as_enum Enum Enum,
    as_typedef Typedef Typedef,
    as_const Const Const,
    as_union Union Union,
    as_value_type ValueType ValueType,
    as_value_box ValueBox ValueBox,
    as_unmapped Unmapped Unmapped,
}

impl Definition {
    /// Whether it is an interface or value type that no file that was read defines.
    pub fn is_forward_only(&self) -> bool {
        match &self.kind {
            DefinitionKind::Interface(body) => body.forward_only,
            DefinitionKind::ValueType(body) => body.forward_only,
            _ => false,
        }
    }

    /// The comments of its parts that have one, each with the part's name: members, branches of a union, enumerators, and the
    /// initializers of a value type.
    pub fn documented_parts<'m>(&'m self, model: &'m Model) -> Vec<(&'m str, &'m [String])> {
        fn member(member: &super::Member) -> (&str, &[String]) {
            (&member.name, &member.doc)
        }
        let parts: Vec<(&str, &[String])> = match &self.kind {
            DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => body.members.iter().map(member).collect(),
            DefinitionKind::Union(body) => body.branches.iter().map(|branch| member(&branch.member)).collect(),
            DefinitionKind::Enum(body) => {
                body.enumerators.iter().map(|id| (&*model[*id].name, &*model[*id].doc)).collect()
            }
            DefinitionKind::ValueType(body) => {
                let members = body.members.iter().map(|state| member(&state.member));
                members.chain(body.factories.iter().map(|factory| (&*factory.name, &*factory.doc))).collect()
            }
            _ => Vec::new(),
        };
        parts.into_iter().filter(|(_, doc)| !doc.is_empty()).collect()
    }
}

impl DefinitionKind {
    /// The IDL keyword, or a word for kinds without one.
    pub fn keyword(&self) -> &'static str {
        match self {
            DefinitionKind::Module(_) => "module",
            DefinitionKind::Interface(_) => "interface",
            DefinitionKind::Operation(_) => "operation",
            DefinitionKind::Attribute(_) => "attribute",
            DefinitionKind::Struct(_) => "struct",
            DefinitionKind::Exception(_) => "exception",
            DefinitionKind::Enum(_) => "enum",
            DefinitionKind::Enumerator(_) => "enumerator",
            DefinitionKind::Typedef(_) => "typedef",
            DefinitionKind::Const(_) => "const",
            DefinitionKind::Union(_) => "union",
            DefinitionKind::ValueType(_) | DefinitionKind::ValueBox(_) => "valuetype",
            DefinitionKind::Native => "native",
            DefinitionKind::Unmapped(body) => body.keyword,
        }
    }
}

impl Primitive {
    /// The type in IDL source, such as `unsigned long`.
    pub fn keyword(self) -> &'static str {
        match self {
            Primitive::Short => "short",
            Primitive::UnsignedShort => "unsigned short",
            Primitive::Long => "long",
            Primitive::UnsignedLong => "unsigned long",
            Primitive::LongLong => "long long",
            Primitive::UnsignedLongLong => "unsigned long long",
            Primitive::Float => "float",
            Primitive::Double => "double",
            Primitive::LongDouble => "long double",
            Primitive::Boolean => "boolean",
            Primitive::Octet => "octet",
            Primitive::Char => "char",
            Primitive::WChar => "wchar",
        }
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.keyword())
    }
}
