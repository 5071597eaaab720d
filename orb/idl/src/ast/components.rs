//! Components and similar constructs, and declarations of repository ids, in the syntax tree.

use super::{Item, Name, NewName, ScopedName};
use crate::source::Span;

/// A component, home, event type, port type or connector.
#[derive(Clone, Debug)]
pub(crate) struct UnmappedItem {
    pub(crate) keyword: &'static str,
    pub(crate) name: NewName,
    /// The bases, whose names are inherited.
    pub(crate) bases: Vec<Reference>,
    /// Other names in the head.
    pub(crate) others: Vec<Reference>,
    /// `None` for a forward declaration.
    pub(crate) body: Option<Vec<Item>>,
}

/// A name that must refer to a definition of this role.
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

/// A name in the body of a component or similar construct, such as that of a port.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: Name,
    /// `None` for `Object`.
    pub(crate) target: Option<Reference>,
}

/// A declaration that concerns names only.
#[derive(Clone, Debug)]
pub(crate) enum Declaration {
    /// `typeprefix name "prefix";`
    TypePrefix { name: ScopedName, prefix: String },
    /// `import name;`
    Import(ScopedName),
    /// `import "repository id";`
    ImportId { id: String, span: Span },
}
