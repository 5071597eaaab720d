//! Components and their like, and declarations of repository ids, in the syntax tree.

use super::{Item, Name, NewName, ScopedName};
use crate::source::Span;

/// A component, home, event type, port type or connector.
#[derive(Clone, Debug)]
pub(crate) struct UnmappedItem {
    pub(crate) keyword: &'static str,
    pub(crate) name: NewName,
    /// What names are inherited from.
    pub(crate) bases: Vec<Reference>,
    /// What else the head names.
    pub(crate) others: Vec<Reference>,
    /// `None` for a forward declaration.
    pub(crate) body: Option<Vec<Item>>,
}

/// A name that must be the name of something of this role.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) name: ScopedName,
    pub(crate) role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Component,
    Home,
    Interface,
    /// A value type or an event type.
    Value,
    Event,
    PortType,
    Connector,
}

/// A name in the body of a component or its like, such as that of a port.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: Name,
    /// `None` where `Object` stands.
    pub(crate) target: Option<Reference>,
}

/// What concerns names alone.
#[derive(Clone, Debug)]
pub(crate) enum Declaration {
    /// `typeprefix name "prefix";`
    TypePrefix { name: ScopedName, prefix: String },
    /// `import name;`
    Import(ScopedName),
    /// `import "repository id";`
    ImportId { id: String, span: Span },
}
