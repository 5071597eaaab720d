//! Type codes: IDL types as values (CORBA 3.3 Part 1, 8.11).
//!
//! A [`TypeCode`] is immutable, cheap to clone, and shared between threads. It is created by the functions of
//! `build`, by generated code through [`Typed`](crate::Typed) and [`Defining`], or decoded from a message.
//! The walk over values of a type belongs to [`walk`](crate::walk); a value together with its type is an
//! [`Any`](crate::Any).

mod build;
mod compact;
mod compare;
mod define;
mod display;
mod kind;
pub(crate) mod node;
pub(crate) mod validity;

use std::{collections::HashSet, sync::Arc};

pub use define::Defining;
pub use kind::TcKind;
pub(crate) use node::View;

use node::{Group, Mark, Node};

/// An IDL type as a value: IDL `CORBA::TypeCode`.
#[derive(Clone)]
pub struct TypeCode(pub(crate) Repr);

#[derive(Clone)]
pub(crate) enum Repr {
    Leaf(Leaf),
    Node(Arc<Group>, u32),
}

/// A type code of a few octets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leaf {
    Simple(TcKind),
    /// The bound in characters, or 0.
    String(u32),
    /// The bound in characters, or 0.
    WString(u32),
    Fixed {
        digits: u16,
        scale: i16,
    },
}

/// The error of a query on a type code, or of its creation.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeCodeError {
    /// Type codes of this kind lack the property: IDL `CORBA::TypeCode::BadKind`.
    #[error("a type code of kind {0} has no such property")]
    BadKind(TcKind),
    /// The index of a member that does not exist: IDL `CORBA::TypeCode::Bounds`.
    #[error("the type has no member {index}, only {len} members")]
    Bounds {
        /// The index.
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

/// The discriminator value that selects a member of a union.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Label {
    /// All values without another member.
    Default,
    /// This value: a number, a character's code, 0 and 1 for `boolean`, an enumerator's position.
    Value(i128),
}

macro_rules! label_from {
    ($($type:ty),*) => {
        $(impl From<$type> for Label {
            fn from(value: $type) -> Self {
                Self::Value(i128::from(value))
            }
        })*
    };
}

label_from!(bool, u8, i16, u16, i32, u32, i64, u64);

impl From<crate::Char> for Label {
    fn from(value: crate::Char) -> Self {
        Self::Value(i128::from(value.0))
    }
}

impl From<char> for Label {
    fn from(value: char) -> Self {
        Self::Value(i128::from(u32::from(value)))
    }
}

/// The visibility of a member of a value type: IDL `CORBA::Visibility`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum Visibility {
    /// `private`.
    Private = 0,
    /// `public`.
    Public = 1,
}

/// The modifier in a value type's declaration: IDL `CORBA::ValueModifier`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum ValueModifier {
    /// Without any modifier.
    None = 0,
    /// `custom`.
    Custom = 1,
    /// `abstract`.
    Abstract = 2,
    /// `truncatable`.
    Truncatable = 3,
}

impl Leaf {
    pub(crate) fn kind(self) -> TcKind {
        match self {
            Self::Simple(kind) => kind,
            Self::String(_) => TcKind::String,
            Self::WString(_) => TcKind::WString,
            Self::Fixed { .. } => TcKind::Fixed,
        }
    }
}

/// Queries. Each returns [`TypeCodeError::BadKind`] if the type lacks the property.
impl TypeCode {
    pub(crate) fn view(&self) -> View<'_> {
        match &self.0 {
            Repr::Leaf(leaf) => View::Leaf(*leaf),
            Repr::Node(group, index) => View::Node(group, *index),
        }
    }

    pub(crate) fn height(&self) -> u16 {
        match &self.0 {
            Repr::Leaf(_) => 0,
            Repr::Node(group, _) => group.height,
        }
    }

    /// Whether it contains a placeholder for an unknown type; see [`TypeCode::recursive`].
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(&self.0, Repr::Node(group, _) if group.open)
    }

    /// The kind.
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
        Ok(self.view().child(&member.of).to_type_code())
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

    /// The member of a union for all values without another member.
    ///
    /// # Errors
    /// For types other than unions.
    pub fn default_index(&self) -> Result<Option<usize>, TypeCodeError> {
        self.node_if(|kind| kind == TcKind::Union).map(|node| usize::try_from(node.number).ok())
    }

    /// The member of a union for this value of its discriminator.
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

    /// The value type from which a value type inherits state.
    ///
    /// # Errors
    /// For types other than value types.
    pub fn concrete_base_type(&self) -> Result<Option<Self>, TypeCodeError> {
        let node = self.node_if(TcKind::is_value)?;
        Ok(node.content.as_ref().map(|base| self.view().child(base).to_type_code()))
    }

    /// The value types and boxes inside this type, at any depth, itself included.
    #[must_use]
    pub fn value_types(&self) -> Vec<Self> {
        let (mut found, mut seen, mut todo) = (Vec::new(), HashSet::new(), vec![self.view()]);
        while let Some(view) = todo.pop() {
            if view.identity().is_some_and(|identity| seen.insert(identity)) {
                if view.kind().is_value() || view.kind() == TcKind::ValueBox {
                    found.push(view.to_type_code());
                }
                todo.extend(view.children());
            }
        }
        found
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

impl ValueModifier {
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        [Self::None, Self::Custom, Self::Abstract, Self::Truncatable].get(usize::try_from(number).ok()?).copied()
    }
}

/// No type: [`TypeCode::NULL`].
impl Default for TypeCode {
    fn default() -> Self {
        Self::NULL
    }
}
