//! Type codes of generated types, each made once, also where types mention each other.
//!
//! While the type code of one type is being made, those of its members are asked for, and theirs in turn. A type that is met
//! again on the way is named by its id ([`TypeCode::recursive`]). Each thread remembers what was made since the outermost
//! of these calls began, so that types that all mention each other are made once and not once per path between them.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use super::{
    TcKind, TypeCode, TypeCodeError, View,
    node::{Child, index_of},
};

/// The place of one type's type code, as a `static` of generated code.
#[derive(Debug, Default)]
pub struct Defining(OnceLock<TypeCode>);

#[derive(Default)]
struct Session {
    /// The types that are being made, the outermost first.
    making: Vec<&'static str>,
    /// The types that were made since.
    made: HashMap<String, Made>,
}

enum Made {
    /// It mentions one that is being made, and lies in something that will be part of that.
    Open,
    Closed(TypeCode),
}

thread_local! {
    static SESSION: RefCell<Session> = RefCell::default();
}

impl Defining {
    /// A place that is still empty.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The type code of a type that cannot mention itself without a struct, union or value type between: an alias, an enum,
    /// an interface. `build` is called until what it makes is complete.
    ///
    /// # Panics
    /// If `build` fails: generated code names types that exist.
    pub fn type_code(&self, build: impl FnOnce() -> Result<TypeCode, TypeCodeError>) -> TypeCode {
        if let Some(made) = self.0.get() {
            return made.clone();
        }
        let made = build().expect("a type that IDL allows");
        self.keep(made)
    }

    /// The type code of a struct, union, exception, value type or boxed value, which `build` may ask for again, through those
    /// of its members.
    ///
    /// # Panics
    /// If `build` fails: generated code names types that exist.
    pub fn recursive(&self, id: &'static str, build: impl FnOnce() -> Result<TypeCode, TypeCodeError>) -> TypeCode {
        if let Some(made) = self.0.get() {
            return made.clone();
        }
        let met = SESSION.with_borrow_mut(|session| {
            if session.making.contains(&id) {
                return Some(None);
            }
            let met = session.made.get(id).map(|made| match made {
                Made::Open => None,
                Made::Closed(made) => Some(made.clone()),
            });
            if met.is_none() {
                session.making.push(id);
            }
            met
        });
        match met {
            Some(Some(made)) => self.keep(made),
            Some(None) => TypeCode::recursive(id).expect("an id that a type was made with"),
            None => {
                let making = Making(id);
                let made = build().expect("a type that IDL allows");
                let made = making.done(made);
                self.keep(made)
            }
        }
    }

    fn keep(&self, made: TypeCode) -> TypeCode {
        if made.is_open() { made } else { self.0.get_or_init(|| made).clone() }
    }
}

/// A type that is being made; ends with this, also when a panic does.
struct Making(&'static str);

impl Making {
    fn done(self, made: TypeCode) -> TypeCode {
        let made = if made.is_open() { made } else { known_within(&made).unwrap_or(made) };
        SESSION.with_borrow_mut(|session| match made.view() {
            View::Node(group, _) if !group.open => {
                // What was open around here is closed with it.
                for (index, node) in group.nodes.iter().enumerate().filter(|(_, node)| node.kind.can_recur()) {
                    let made = View::Node(group, index_of(index)).to_type_code();
                    session.made.insert(node.id.clone().into_owned(), Made::Closed(made));
                }
            }
            _ => {
                session.made.insert(self.0.to_owned(), Made::Open);
            }
        });
        made
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        SESSION.with_borrow_mut(|session| {
            session.making.pop();
            if session.making.is_empty() {
                session.made.clear();
            }
        });
    }
}

/// The same type within one that it uses: where types mention each other, whichever was made first has the others inside.
fn known_within(made: &TypeCode) -> Option<TypeCode> {
    let id = made.id().ok()?;
    let mut seen = HashSet::new();
    let mut todo = vec![made.view()];
    while let Some(view) = todo.pop() {
        let View::Node(group, _) = view else { continue };
        if !seen.insert(Arc::as_ptr(group)) {
            continue;
        }
        for (index, node) in group.nodes.iter().enumerate() {
            let here = View::Node(group, index_of(index));
            if node.kind != TcKind::Recursive && node.id == id && here.identity() != made.view().identity() {
                let known = here.to_type_code();
                if known.equal(made) {
                    return Some(known);
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
