//! Comparison of type codes (CORBA 3.3 Part 1, 8.11.1).
//!
//! For recursive types, two nodes count as the same while they are being compared: without a difference
//! anywhere, they are. These assumptions are stored as classes of nodes, so that their number is bounded by
//! that of the nodes, for hostile types too.

use std::collections::HashMap;

use super::{TcKind, TypeCode, View, node::Node};

/// The strictness of a comparison.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Closeness {
    /// Names and aliases matter.
    Equal,
    /// Names and aliases do not matter, and types with an id are distinguished by it alone.
    Equivalent,
}

impl TypeCode {
    /// Whether both are the same type in every respect, names of types and members included: IDL `equal`.
    #[must_use]
    pub fn equal(&self, other: &Self) -> bool {
        same(self.view(), other.view(), Closeness::Equal)
    }

    /// Whether both have the same values with the same meaning: aliases are resolved, ids decide if both
    /// types have one, and names do not matter. Extraction from an `any` uses it (IDL `equivalent`).
    #[must_use]
    pub fn equivalent(&self, other: &Self) -> bool {
        same(self.view(), other.view(), Closeness::Equivalent)
    }
}

impl TypeCode {
    /// Whether values of this type are permitted where values of type `base` are declared: it is a value
    /// type, and `base` is equivalent to it or to a base from which it inherits state. Type codes do not list
    /// the abstract value types and interfaces that a value type supports (CORBA 3.3 Part 1, 8.11.1). So each
    /// may support any of them, and each is a `ValueBase`.
    #[must_use]
    pub fn derives_from(&self, base: &Self) -> bool {
        self.view().resolved().derives_from(base.view().resolved())
    }
}

/// Maximum number of bases of a value type that are compared.
const MAX_BASES: usize = 256;

impl View<'_> {
    /// The same as [`TypeCode::derives_from`] of types without aliases.
    pub(crate) fn derives_from(self, base: Self) -> bool {
        if !(self.kind().is_value() || self.kind() == TcKind::ValueBox) {
            return false;
        }
        let is_unspecific = base.kind() == TcKind::AbstractInterface
            || base.modifier() == Some(super::ValueModifier::Abstract)
            || (base.kind().is_value() && base.id() == Some("IDL:omg.org/CORBA/ValueBase:1.0"));
        let inherited = |view: &Self| if view.kind().is_value() { view.content().map(Self::resolved) } else { None };
        // Only in a hostile type code a type inherits from itself.
        let mut line = std::iter::successors(Some(self), inherited).take(MAX_BASES);
        is_unspecific || line.any(|view| same(view, base, Closeness::Equivalent))
    }
}

/// The relation of [`TypeCode::equal`]: names and ids count.
impl PartialEq for TypeCode {
    fn eq(&self, other: &Self) -> bool {
        self.equal(other)
    }
}

impl Eq for TypeCode {}

fn same(a: View<'_>, b: View<'_>, closeness: Closeness) -> bool {
    // The cheap and most frequent comparisons come first.
    match (a, b) {
        (View::Leaf(a), View::Leaf(b)) => return a == b,
        (View::Node(..), View::Node(..)) if a.identity() == b.identity() => return true,
        _ => {}
    }
    let mut assumed = Classes::default();
    let mut todo = vec![(a, b)];
    while let Some((a, b)) = todo.pop() {
        let (a, b) = match closeness {
            Closeness::Equal => (a, b),
            Closeness::Equivalent => (a.resolved(), b.resolved()),
        };
        match (a, b) {
            (View::Leaf(a), View::Leaf(b)) => {
                if a != b {
                    return false;
                }
            }
            (View::Node(..), View::Node(..)) => {
                if !assumed.join(a, b) {
                    continue;
                }
                let (node, other) = (node(a), node(b));
                match shallow(node, other, closeness) {
                    Some(true) => continue,
                    Some(false) => return false,
                    None => {}
                }
                todo.extend(node.children().zip(other.children()).map(|(x, y)| (a.child(x), b.child(y))));
            }
            _ => return false,
        }
    }
    true
}

fn node(view: View<'_>) -> &Node {
    view.node().expect("only nodes are compared as such")
}

/// Compares the nodes themselves; `None` if their children decide.
fn shallow(a: &Node, b: &Node, closeness: Closeness) -> Option<bool> {
    if a.kind != b.kind {
        return Some(false);
    }
    if a.kind == TcKind::Recursive {
        return Some(a.id == b.id);
    }
    if closeness == Closeness::Equivalent && a.kind.is_named() && !a.id.is_empty() && !b.id.is_empty() {
        return Some(a.id == b.id);
    }
    let alike = a.number == b.number
        && a.content.is_some() == b.content.is_some()
        && a.members.len() == b.members.len()
        && a.members.iter().zip(&b.members).all(|(x, y)| x.mark == y.mark);
    let named_alike =
        || a.id == b.id && a.name == b.name && a.members.iter().zip(&b.members).all(|(x, y)| x.name == y.name);
    if !alike || (closeness == Closeness::Equal && !named_alike()) {
        return Some(false);
    }
    None
}

/// Classes of nodes that are assumed to be the same.
#[derive(Default)]
struct Classes {
    numbers: HashMap<(usize, u32), usize>,
    parents: Vec<usize>,
}

impl Classes {
    /// Joins the classes of two nodes; returns false if they were the same already.
    fn join(&mut self, a: View<'_>, b: View<'_>) -> bool {
        if a.identity() == b.identity() {
            return false;
        }
        let (a, b) = (self.find(a), self.find(b));
        self.parents[a] = b;
        a != b
    }

    fn find(&mut self, view: View<'_>) -> usize {
        let parents = &mut self.parents;
        let mut at = *self.numbers.entry(view.identity().expect("a node")).or_insert_with(|| {
            parents.push(parents.len());
            parents.len() - 1
        });
        while parents[at] != at {
            parents[at] = parents[parents[at]];
            at = parents[at];
        }
        at
    }
}
