//! Type codes: IDL types as values (CORBA 3.3 Part 1, 8.11).
//!
//! A [`TypeCode`] is immutable, cheap to clone, and shared between threads. It is created by the functions of
//! `build`, by generated code through [`Typed`](crate::Typed) and [`Defining`], or decoded from a message.
//! The walk over values of a type belongs to [`walk`](crate::walk); a value together with its type is an
//! [`Any`](crate::Any).

mod build;
mod compact;
mod compare;
pub(crate) mod composer;
mod define;
mod display;
mod kind;
pub(crate) mod node;
mod properties;
pub(crate) mod validity;

use std::collections::HashSet;

pub use define::{Defining, TypeDefinition, definitions};
pub use kind::TcKind;
pub use node::TypeCode;
pub(crate) use node::{Leaf, View};
pub use properties::{Label, ValueModifier, Visibility};

use node::{Mark, Node, Repr};

/// The error of a query on a type code, or of its creation.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeCodeError {
    /// Type codes of this kind lack the property: IDL `CORBA::TypeCode::BadKind`.
    #[error("a type code of kind {0} has no such property")]
    BadKind(TcKind),
    /// The index of a member that does not exist: IDL `CORBA::TypeCode::Bounds`.
    #[error("the type has no member {index}, only {len} members")]
    Bounds {
        /// The index that has no member.
        index: usize,
        /// The number of members.
        len: usize,
    },
    /// A parameter that no IDL type can have; as system exception BAD_PARAM.
    #[error("{0}")]
    BadParam(&'static str),
    /// A type that is not permitted in this position; as system exception BAD_TYPECODE.
    #[error("{0}")]
    BadTypeCode(&'static str),
}
spandrel_error::debug_as_report!(TypeCodeError);

/// Queries. Each returns [`TypeCodeError::BadKind`] if the type lacks the property.
impl TypeCode {
    /// Whether it contains a placeholder for an unknown type; see [`TypeCode::recursive`].
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(&self.0, Repr::Node(group, _) if group.open)
    }

    /// The kind, [`TcKind::Alias`] for a typedef.
    #[must_use]
    pub fn kind(&self) -> TcKind {
        self.view().kind()
    }

    fn bad_kind(&self) -> TypeCodeError {
        TypeCodeError::BadKind(self.kind())
    }

    /// The node, if `has` returns true for its kind.
    fn node_if(&self, has: impl FnOnce(TcKind) -> bool) -> Result<&Node, TypeCodeError> {
        self.view().node().filter(|node| has(node.kind)).ok_or_else(|| self.bad_kind())
    }

    fn member(&self, index: usize, has: impl FnOnce(TcKind) -> bool) -> Result<&node::Member, TypeCodeError> {
        let members = &self.node_if(has)?.members;
        members.get(index).ok_or(TypeCodeError::Bounds { index, len: members.len() })
    }

    /// The repository id; may be empty in a received type code.
    ///
    /// # Errors
    /// For types without a name, which have no id.
    pub fn id(&self) -> Result<&str, TypeCodeError> {
        self.node_if(|kind| kind.is_named() || kind == TcKind::Recursive).map(|node| &*node.id)
    }

    /// The simple name; empty in [compact](TypeCode::compact) type codes.
    ///
    /// # Errors
    /// For types without a name.
    pub fn name(&self) -> Result<&str, TypeCodeError> {
        self.node_if(TcKind::is_named).map(|node| &*node.name)
    }

    /// The number of members of a struct, exception, union, enum or value type, without inherited ones.
    ///
    /// # Errors
    /// For other types.
    pub fn member_count(&self) -> Result<usize, TypeCodeError> {
        self.node_if(has_members).map(|node| node.members.len())
    }

    /// The name of a member or enumerator; empty in [compact](TypeCode::compact) type codes.
    ///
    /// # Errors
    /// As [`TypeCode::member_count`], and [`TypeCodeError::Bounds`].
    pub fn member_name(&self, index: usize) -> Result<&str, TypeCodeError> {
        self.member(index, has_members).map(|member| &*member.name)
    }

    /// The type of a member.
    ///
    /// # Errors
    /// As [`TypeCode::member_name`]; enumerators have no type.
    pub fn member_type(&self, index: usize) -> Result<Self, TypeCodeError> {
        let member = self.member(index, |kind| has_members(kind) && kind != TcKind::Enum)?;
        Ok(self.view().child(&member.child).to_type_code())
    }

    /// The discriminator value that selects this member of a union.
    ///
    /// # Errors
    /// For types other than unions; [`TypeCodeError::Bounds`].
    pub fn member_label(&self, index: usize) -> Result<Label, TypeCodeError> {
        self.member(index, |kind| kind == TcKind::Union).map(node::Member::label)
    }

    /// The type of a union's discriminator.
    ///
    /// # Errors
    /// For types other than unions.
    pub fn discriminator_type(&self) -> Result<Self, TypeCodeError> {
        self.content_if(|kind| kind == TcKind::Union)
    }

    /// The index of a union's `default` member, which all values without another member select; `None`
    /// without one.
    ///
    /// # Errors
    /// For types other than unions.
    pub fn default_index(&self) -> Result<Option<usize>, TypeCodeError> {
        self.node_if(|kind| kind == TcKind::Union).map(|node| usize::try_from(node.number).ok())
    }

    /// The index of the union's member that this value of the discriminator selects; `None` if it selects
    /// none.
    ///
    /// # Errors
    /// For types other than unions.
    pub fn selected_member(&self, discriminator: i128) -> Result<Option<usize>, TypeCodeError> {
        self.node_if(|kind| kind == TcKind::Union).map(|node| node.selected(discriminator))
    }

    /// The bound of a string, wide string or sequence, 0 without one; the number of elements of an array.
    ///
    /// # Errors
    /// For other types.
    pub fn length(&self) -> Result<u32, TypeCodeError> {
        if let Repr::Leaf(Leaf::String(bound) | Leaf::WString(bound)) = self.0 {
            return Ok(bound);
        }
        let node = self.node_if(|kind| matches!(kind, TcKind::Sequence | TcKind::Array))?;
        Ok(u32::try_from(node.number).expect("created from a u32"))
    }

    fn content_if(&self, has: impl FnOnce(TcKind) -> bool) -> Result<Self, TypeCodeError> {
        let node = self.node_if(has)?;
        let content = node.content.as_ref().ok_or_else(|| self.bad_kind())?;
        Ok(self.view().child(content).to_type_code())
    }

    /// The type of a sequence's or array's elements, of a typedef's target, or of a boxed value's content.
    ///
    /// # Errors
    /// For other types.
    pub fn content_type(&self) -> Result<Self, TypeCodeError> {
        self.content_if(|kind| matches!(kind, TcKind::Sequence | TcKind::Array | TcKind::Alias | TcKind::ValueBox))
    }

    /// The number of decimal digits of a `fixed`.
    ///
    /// # Errors
    /// For other types.
    pub fn fixed_digits(&self) -> Result<u16, TypeCodeError> {
        match self.0 {
            Repr::Leaf(Leaf::Fixed { digits, .. }) => Ok(digits),
            _ => Err(self.bad_kind()),
        }
    }

    /// The number of digits after the decimal point of a `fixed`.
    ///
    /// # Errors
    /// As [`TypeCode::fixed_digits`].
    pub fn fixed_scale(&self) -> Result<i16, TypeCodeError> {
        match self.0 {
            Repr::Leaf(Leaf::Fixed { scale, .. }) => Ok(scale),
            _ => Err(self.bad_kind()),
        }
    }

    /// The visibility of a member of a value type.
    ///
    /// # Errors
    /// For types other than value types; [`TypeCodeError::Bounds`].
    pub fn member_visibility(&self, index: usize) -> Result<Visibility, TypeCodeError> {
        match self.member(index, TcKind::is_value)?.mark {
            Mark::Visibility(visibility) => Ok(visibility),
            _ => Err(self.bad_kind()),
        }
    }

    /// The modifier in a value type's declaration.
    ///
    /// # Errors
    /// For types other than value types.
    pub fn type_modifier(&self) -> Result<ValueModifier, TypeCodeError> {
        let node = self.node_if(TcKind::is_value)?;
        Ok(ValueModifier::from_number(node.number).expect("created from a modifier"))
    }

    /// The value type from which a value type inherits state; `None` if it has no such base.
    ///
    /// # Errors
    /// For types other than value types.
    pub fn concrete_base_type(&self) -> Result<Option<Self>, TypeCodeError> {
        let node = self.node_if(TcKind::is_value)?;
        Ok(node.content.as_ref().map(|base| self.view().child(base).to_type_code()))
    }

    /// All value types and boxed values in the type, the type itself included, each once.
    #[must_use]
    pub fn value_types(&self) -> Vec<Self> {
        self.types_within(|kind| kind.is_value() || kind == TcKind::ValueBox)
    }

    /// All types with a repository id in the type, the type itself included, each once.
    #[must_use]
    pub fn named_types(&self) -> Vec<Self> {
        self.types_within(|kind| {
            kind.is_value()
                || matches!(kind, TcKind::Struct | TcKind::Union | TcKind::Enum | TcKind::Except | TcKind::Alias)
                || matches!(kind, TcKind::ValueBox | TcKind::ObjRef | TcKind::AbstractInterface)
        })
    }

    fn types_within(&self, is_wanted: impl Fn(TcKind) -> bool) -> Vec<Self> {
        let (mut types, mut visited, mut todo) = (Vec::new(), HashSet::new(), vec![self.view()]);
        while let Some(view) = todo.pop() {
            if view.identity().is_some_and(|identity| visited.insert(identity)) {
                if is_wanted(view.kind()) {
                    types.push(view.to_type_code());
                }
                todo.extend(view.children());
            }
        }
        types
    }

    /// The type with its outer aliases resolved; the type itself without aliases.
    #[must_use]
    pub fn without_aliases(&self) -> Self {
        self.view().resolved().to_type_code()
    }
}

pub(crate) fn has_members(kind: TcKind) -> bool {
    kind.is_value() || matches!(kind, TcKind::Struct | TcKind::Except | TcKind::Union | TcKind::Enum)
}

/// The type code of no value: [`TypeCode::NULL`].
impl Default for TypeCode {
    fn default() -> Self {
        Self::NULL
    }
}
