//! Value types in the syntax tree.

use super::{Item, NewName, Parameter, ScopedName, TypeSpec};
use crate::source::Span;

/// `valuetype` with a body.
#[derive(Clone, Debug)]
pub(crate) struct ValueItem {
    pub(crate) name: NewName,
    pub(crate) is_custom: bool,
    pub(crate) is_abstract: bool,
    pub(crate) truncatable: Option<Span>,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) supports: Vec<ScopedName>,
    /// State members and initializers besides the items of an interface.
    pub(crate) body: Vec<Item>,
}

/// `valuetype` without a body.
#[derive(Clone, Debug)]
pub(crate) enum Bodiless {
    Forward { name: NewName, is_abstract: bool },
    Boxed { name: NewName, ty: TypeSpec },
}

/// `factory name(in …) raises (…);`
#[derive(Clone, Debug)]
pub(crate) struct FactoryItem {
    pub(crate) name: NewName,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) raises: Vec<ScopedName>,
}
