//! Type codes: IDL types as values (CORBA 3.3 Part 1, 8.11).
//!
//! A [`TypeCode`] is immutable, cheap to clone, and shared between threads. It is made by the functions of `build`, by
//! generated code through [`Typed`](crate::Typed) and [`Defining`], or read from a message. What values of a type look
//! like is [`walk`](crate::walk)'s to know; holding one together with its type is [`Any`](crate::Any)'s.

mod build;
mod compact;
mod compare;
mod define;
mod display;
mod kind;
pub(crate) mod node;
pub(crate) mod sound;

use std::{collections::HashSet, sync::Arc};

pub use define::Defining;
pub use kind::TcKind;
pub(crate) use node::View;

use node::{Group, Mark, Node};

/// What an IDL type is: IDL `CORBA::TypeCode`.
#[derive(Clone)]
pub struct TypeCode(pub(crate) Repr);

#[derive(Clone)]
pub(crate) enum Repr {
    Leaf(Leaf),
    Node(Arc<Group>, u32),
}

/// A type code that fits into a few octets.
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

/// Why a type code has not what was asked for, or cannot be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeCodeError {
    /// Type codes of this kind have no such property: IDL `CORBA::TypeCode::BadKind`.
    #[error("a type code of kind {0} has no such property")]
    BadKind(TcKind),
    /// There are fewer members: IDL `CORBA::TypeCode::Bounds`.
    #[error("there is no member {index} among {len}")]
    Bounds {
        /// What was asked for.
        index: usize,
        /// How many members there are.
        len: usize,
    },
    /// A parameter that no IDL type could have; as system exception BAD_PARAM.
    #[error("{0}")]
    BadParam(&'static str),
    /// A type that must not stand in this place; as system exception BAD_TYPECODE.
    #[error("{0}")]
    BadTypeCode(&'static str),
}

/// For which values of its discriminator a union has a member.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Label {
    /// For all that no other member claims.
    Default,
    /// For this one: a number, a character's, 0 and 1 for `boolean`, an enumerator's place.
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

/// Who may see a member of a value type: IDL `CORBA::Visibility`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum Visibility {
    /// `private`.
    Private = 0,
    /// `public`.
    Public = 1,
}

/// How a value type is declared: IDL `CORBA::ValueModifier`.
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

/// What a type code says about its type. Each answers [`TypeCodeError::BadKind`] where the type has no such property.
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

    /// Somewhere in it stands an id whose type is not known yet; see [`TypeCode::recursive`].
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(&self.0, Repr::Node(group, _) if group.open)
    }

    /// What sort of type it is.
    #[must_use]
    pub fn kind(&self) -> TcKind {
        self.view().kind()
    }

    fn bad_kind(&self) -> TypeCodeError {
        TypeCodeError::BadKind(self.kind())
    }

    /// The node, if `has` says that its kind has what is asked for.
    fn node_if(&self, has: impl FnOnce(TcKind) -> bool) -> Result<&Node, TypeCodeError> {
        self.view().node().filter(|node| has(node.kind)).ok_or_else(|| self.bad_kind())
    }

    fn member(&self, index: usize, has: impl FnOnce(TcKind) -> bool) -> Result<&node::Member, TypeCodeError> {
        let members = &self.node_if(has)?.members;
        members.get(index).ok_or(TypeCodeError::Bounds { index, len: members.len() })
    }

    /// The repository id; may be empty in a type code that was received.
    ///
    /// # Errors
    /// Types without a name have no id.
    pub fn id(&self) -> Result<&str, TypeCodeError> {
        self.node_if(|kind| kind.is_named() || kind == TcKind::Recursive).map(|node| &*node.id)
    }

    /// The simple name; empty in [compact](TypeCode::compact) type codes.
    ///
    /// # Errors
    /// Types without a name have none.
    pub fn name(&self) -> Result<&str, TypeCodeError> {
        self.node_if(TcKind::is_named).map(|node| &*node.name)
    }

    /// How many members a struct, exception, union, enum or value type has, inherited ones not counted.
    ///
    /// # Errors
    /// Other types have none.
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

    /// For which value of the discriminator a union has this member.
    ///
    /// # Errors
    /// Only unions have labels; [`TypeCodeError::Bounds`].
    pub fn member_label(&self, index: usize) -> Result<Label, TypeCodeError> {
        self.member(index, |kind| kind == TcKind::Union).map(node::Member::label)
    }

    /// The type of a union's discriminator.
    ///
    /// # Errors
    /// Only unions have one.
    pub fn discriminator_type(&self) -> Result<Self, TypeCodeError> {
        self.content_if(|kind| kind == TcKind::Union)
    }

    /// Which member of a union is for all values that no other claims.
    ///
    /// # Errors
    /// Only unions have one.
    pub fn default_index(&self) -> Result<Option<usize>, TypeCodeError> {
        self.node_if(|kind| kind == TcKind::Union).map(|node| usize::try_from(node.number).ok())
    }

    /// The member that a union has for this value of its discriminator.
    ///
    /// # Errors
    /// Only unions have such members.
    pub fn selected_member(&self, discriminator: i128) -> Result<Option<usize>, TypeCodeError> {
        self.node_if(|kind| kind == TcKind::Union).map(|node| node.selected(discriminator))
    }

    /// The bound of a string, wide string or sequence, 0 without one; the number of elements of an array.
    ///
    /// # Errors
    /// Other types have none.
    pub fn length(&self) -> Result<u32, TypeCodeError> {
        if let Repr::Leaf(Leaf::String(bound) | Leaf::WString(bound)) = self.0 {
            return Ok(bound);
        }
        let node = self.node_if(|kind| matches!(kind, TcKind::Sequence | TcKind::Array))?;
        Ok(u32::try_from(node.number).expect("made from such a number"))
    }

    fn content_if(&self, has: impl FnOnce(TcKind) -> bool) -> Result<Self, TypeCodeError> {
        let node = self.node_if(has)?;
        let content = node.content.as_ref().ok_or_else(|| self.bad_kind())?;
        Ok(self.view().child(content).to_type_code())
    }

    /// The type of a sequence's or array's elements, of what a typedef names, and of what a value boxes.
    ///
    /// # Errors
    /// Other types have no content.
    pub fn content_type(&self) -> Result<Self, TypeCodeError> {
        self.content_if(|kind| matches!(kind, TcKind::Sequence | TcKind::Array | TcKind::Alias | TcKind::ValueBox))
    }

    /// How many decimal digits a `fixed` has.
    ///
    /// # Errors
    /// Other types have none.
    pub fn fixed_digits(&self) -> Result<u16, TypeCodeError> {
        match self.0 {
            Repr::Leaf(Leaf::Fixed { digits, .. }) => Ok(digits),
            _ => Err(self.bad_kind()),
        }
    }

    /// How many of them come after the decimal point.
    ///
    /// # Errors
    /// As [`TypeCode::fixed_digits`].
    pub fn fixed_scale(&self) -> Result<i16, TypeCodeError> {
        match self.0 {
            Repr::Leaf(Leaf::Fixed { scale, .. }) => Ok(scale),
            _ => Err(self.bad_kind()),
        }
    }

    /// Who may see a member of a value type.
    ///
    /// # Errors
    /// Only value types say so; [`TypeCodeError::Bounds`].
    pub fn member_visibility(&self, index: usize) -> Result<Visibility, TypeCodeError> {
        match self.member(index, TcKind::is_value)?.mark {
            Mark::Visibility(visibility) => Ok(visibility),
            _ => Err(self.bad_kind()),
        }
    }

    /// How a value type is declared.
    ///
    /// # Errors
    /// Only value types say so.
    pub fn type_modifier(&self) -> Result<ValueModifier, TypeCodeError> {
        let node = self.node_if(TcKind::is_value)?;
        Ok(ValueModifier::from_number(node.number).expect("made from a modifier"))
    }

    /// The value type that a value type inherits state from.
    ///
    /// # Errors
    /// Only value types say so.
    pub fn concrete_base_type(&self) -> Result<Option<Self>, TypeCodeError> {
        let node = self.node_if(TcKind::is_value)?;
        Ok(node.content.as_ref().map(|base| self.view().child(base).to_type_code()))
    }

    /// The value types and boxes that this type mentions, at any depth, itself included.
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

    /// The type that all aliases around it stand for; the type itself if there are none.
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
