//! Type codes of generated types, each created once, also for types that refer to each other.
//!
//! The creation of a type's type code requests those of its members, and so on. A type that recurs on the way
//! is represented by its id ([`TypeCode::recursive`]). Each thread remembers the types created since the
//! outermost call began, so that mutually recursive types are created once, not once per path between them.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use super::{TcKind, TypeCode, TypeCodeError, View, composer::index_of, node::Child};

/// The storage of one type's type code, a `static` of generated code.
#[derive(Debug, Default)]
pub struct Defining(OnceLock<TypeCode>);

#[derive(Default)]
struct Session {
    /// The types under construction, the outermost first.
    making: Vec<&'static str>,
    /// The types completed since.
    definitions: HashMap<String, Definition>,
}

enum Definition {
    /// It refers to a type under construction, and will be part of that.
    Open,
    Closed(TypeCode),
}

thread_local! {
    static SESSION: RefCell<Session> = RefCell::default();
}

impl Defining {
    /// Creates the storage in which a static definition keeps its type code once that is made.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The type code of a type that cannot be recursive by itself: an alias, an enum, an interface. `build`
    /// is called until its result is complete.
    ///
    /// # Panics
    /// If `build` fails: generated code refers to existing types only.
    pub fn type_code(&self, build: impl FnOnce() -> Result<TypeCode, TypeCodeError>) -> TypeCode {
        if let Some(type_code) = self.0.get() {
            return type_code.clone();
        }
        let type_code = build().expect("a type that IDL allows");
        self.keep(type_code)
    }

    /// The type code of a struct, union, exception, value type or boxed value. `build` may request it again,
    /// through its members.
    ///
    /// # Panics
    /// If `build` fails: generated code refers to existing types only.
    pub fn recursive(&self, id: &'static str, build: impl FnOnce() -> Result<TypeCode, TypeCodeError>) -> TypeCode {
        if let Some(type_code) = self.0.get() {
            return type_code.clone();
        }
        let met = SESSION.with_borrow_mut(|session| {
            if session.making.contains(&id) {
                return Some(None);
            }
            let met = session.definitions.get(id).map(|definition| match definition {
                Definition::Open => None,
                Definition::Closed(type_code) => Some(type_code.clone()),
            });
            if met.is_none() {
                session.making.push(id);
            }
            met
        });
        match met {
            Some(Some(type_code)) => self.keep(type_code),
            Some(None) => TypeCode::recursive(id).expect("the id of an existing type"),
            None => {
                let making = DefinitionGuard(id);
                let type_code = build().expect("a type that IDL allows");
                let type_code = making.finish(type_code);
                self.keep(type_code)
            }
        }
    }

    fn keep(&self, type_code: TypeCode) -> TypeCode {
        if type_code.is_open() { type_code } else { self.0.get_or_init(|| type_code).clone() }
    }
}

/// The type code of a generated type as data, and the storage of its [`TypeCode`]: a `static` of generated code.
///
/// The type codes of members and aliased types are functions, since these types may refer to this one.
#[derive(Debug)]
pub struct TypeDefinition {
    id: &'static str,
    name: &'static str,
    shape: Shape,
    defining: Defining,
}

/// The name of a member, and the function that returns its type code.
type MemberDefinition = (&'static str, fn() -> TypeCode);

/// The contents of a type besides its id and name.
#[derive(Debug)]
enum Shape {
    /// Nothing: an interface of this kind.
    Interface(fn(&'static str, &'static str) -> Result<TypeCode, TypeCodeError>),
    /// The names of the enumerators, in order of their values.
    Enumeration(&'static [&'static str]),
    /// The function that returns the type code of the aliased type.
    Alias(fn() -> TypeCode),
    /// Members, of a struct or of an exception.
    Members(TcKind, &'static [MemberDefinition]),
}

impl TypeDefinition {
    const fn new(id: &'static str, name: &'static str, shape: Shape) -> Self {
        Self { id, name, shape, defining: Defining::new() }
    }

    /// The type code, created once.
    ///
    /// # Panics
    /// If the data are none that IDL allows.
    pub fn type_code(&self) -> TypeCode {
        let (id, name) = (self.id, self.name);
        match &self.shape {
            Shape::Interface(create) => self.defining.type_code(|| create(id, name)),
            Shape::Enumeration(enumerators) => self.defining.type_code(|| TypeCode::enumeration(id, name, enumerators)),
            Shape::Alias(aliased) => self.defining.type_code(|| TypeCode::alias(id, name, &aliased())),
            Shape::Members(kind, members) => self.defining.recursive(id, || {
                let members: Vec<(&str, TypeCode)> = members.iter().map(|(name, code)| (*name, code())).collect();
                match kind {
                    TcKind::Except => TypeCode::exception(id, name, &members),
                    _ => TypeCode::structure(id, name, &members),
                }
            }),
        }
    }
}

/// The constructors of [`TypeDefinition`], as functions for generated code.
pub mod definitions {
    use super::{MemberDefinition, Shape, TcKind, TypeCode, TypeDefinition};

    /// The definition of an interface whose objects may be remote.
    #[must_use]
    pub const fn object_reference(id: &'static str, name: &'static str) -> TypeDefinition {
        TypeDefinition::new(id, name, Shape::Interface(TypeCode::object_reference))
    }

    /// The definition of an abstract interface, whose values are references or value types.
    #[must_use]
    pub const fn abstract_interface(id: &'static str, name: &'static str) -> TypeDefinition {
        TypeDefinition::new(id, name, Shape::Interface(TypeCode::abstract_interface))
    }

    /// The definition of an enum with these enumerators.
    #[must_use]
    pub const fn enumeration(
        id: &'static str,
        name: &'static str,
        enumerators: &'static [&'static str],
    ) -> TypeDefinition {
        TypeDefinition::new(id, name, Shape::Enumeration(enumerators))
    }

    /// The definition of a typedef of the type with this type code.
    #[must_use]
    pub const fn alias(id: &'static str, name: &'static str, aliased: fn() -> TypeCode) -> TypeDefinition {
        TypeDefinition::new(id, name, Shape::Alias(aliased))
    }

    /// The definition of a struct, from the names and the type codes of its members.
    #[must_use]
    pub const fn structure(
        id: &'static str,
        name: &'static str,
        members: &'static [MemberDefinition],
    ) -> TypeDefinition {
        TypeDefinition::new(id, name, Shape::Members(TcKind::Struct, members))
    }

    /// The definition of an exception, from the names and the type codes of its members.
    #[must_use]
    pub const fn exception(
        id: &'static str,
        name: &'static str,
        members: &'static [MemberDefinition],
    ) -> TypeDefinition {
        TypeDefinition::new(id, name, Shape::Members(TcKind::Except, members))
    }
}

/// Guard of a type under construction; it ends the construction also in a panic.
struct DefinitionGuard(&'static str);

impl DefinitionGuard {
    fn finish(self, type_code: TypeCode) -> TypeCode {
        let type_code = if type_code.is_open() { type_code } else { known_within(&type_code).unwrap_or(type_code) };
        SESSION.with_borrow_mut(|session| match type_code.view() {
            View::Node(group, _) if !group.open => {
                // Open types inside this one are now closed.
                for (index, node) in group.nodes.iter().enumerate().filter(|(_, node)| node.kind.can_recur()) {
                    let type_code = View::Node(group, index_of(index)).to_type_code();
                    session.definitions.insert(node.id.clone().into_owned(), Definition::Closed(type_code));
                }
            }
            _ => {
                session.definitions.insert(self.0.to_owned(), Definition::Open);
            }
        });
        type_code
    }
}

impl Drop for DefinitionGuard {
    fn drop(&mut self) {
        SESSION.with_borrow_mut(|session| {
            session.making.pop();
            if session.making.is_empty() {
                session.definitions.clear();
            }
        });
    }
}

/// The same type inside another: of mutually recursive types, the first one created contains the others.
fn known_within(type_code: &TypeCode) -> Option<TypeCode> {
    let id = type_code.id().ok()?;
    let mut visited = HashSet::new();
    let mut todo = vec![type_code.view()];
    while let Some(view) = todo.pop() {
        let View::Node(group, _) = view else { continue };
        if !visited.insert(Arc::as_ptr(group)) {
            continue;
        }
        for (index, node) in group.nodes.iter().enumerate() {
            let here = View::Node(group, index_of(index));
            if node.kind != TcKind::Recursive && node.id == id && here.identity() != type_code.view().identity() {
                let candidate = here.to_type_code();
                if candidate.equal(type_code) {
                    return Some(candidate);
                }
            }
            todo.extend(node.children().filter_map(|child| match child {
                Child::Other(other) => Some(other.view()),
                Child::Local(_) => None,
            }));
        }
    }
    None
}
