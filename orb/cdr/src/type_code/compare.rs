//! Whether two type codes mean the same (CORBA 3.3 Part 1, 8.11.1).
//!
//! Types that contain themselves are compared by assuming that two nodes are the same as soon as they are being compared:
//! if no difference is found anywhere, they are. Assumptions are kept as classes of nodes, so that there are never more of
//! them than nodes, whoever made the types.

use std::collections::HashMap;

use super::{TcKind, TypeCode, View, node::Node};

/// How closely two type codes are compared.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Closeness {
    /// Names and aliases matter.
    Equal,
    /// They do not, and types with an id are told apart by that alone.
    Equivalent,
}

impl TypeCode {
    /// The same type in every respect, names of types and members included: what the IDL operation `equal` says.
    #[must_use]
    pub fn equal(&self, other: &Self) -> bool {
        same(self.view(), other.view(), Closeness::Equal)
    }

    /// The same values and the same meaning: aliases are looked through, ids decide where both types have one, and
    /// names do not matter. This is what extraction from an `any` asks (IDL `equivalent`).
    #[must_use]
    pub fn equivalent(&self, other: &Self) -> bool {
        same(self.view(), other.view(), Closeness::Equivalent)
    }
}

impl TypeCode {
    /// Whether values of this type may stand where values of type `base` are declared: it is a value type, and `base` is equivalent to
    /// it or to one of the types that it inherits state from. Type codes do not say which abstract value types and interfaces a value
    /// type supports (CORBA 3.3 Part 1, 8.11.1), so that each may support any, and each is a `ValueBase`.
    #[must_use]
    pub fn derives_from(&self, base: &Self) -> bool {
        self.view().resolved().derives_from(base.view().resolved())
    }
}

/// How many value types a value type may inherit from, one after the other.
const MAX_BASES: usize = 256;

impl View<'_> {
    /// [`TypeCode::derives_from`], without aliases.
    pub(crate) fn derives_from(self, base: Self) -> bool {
        if !(self.kind().is_value() || self.kind() == TcKind::ValueBox) {
            return false;
        }
        let is_unspecific = base.kind() == TcKind::AbstractInterface
            || base.modifier() == Some(super::ValueModifier::Abstract)
            || (base.kind().is_value() && base.id() == Some("IDL:omg.org/CORBA/ValueBase:1.0"));
        let inherited = |of: &Self| if of.kind().is_value() { of.content().map(Self::resolved) } else { None };
        // Only a hostile type code says that a type inherits from itself.
        let mut line = std::iter::successors(Some(self), inherited).take(MAX_BASES);
        is_unspecific || line.any(|of| same(of, base, Closeness::Equivalent))
    }
}

/// [`TypeCode::equal`].
impl PartialEq for TypeCode {
    fn eq(&self, other: &Self) -> bool {
        self.equal(other)
    }
}

impl Eq for TypeCode {}

fn same(a: View<'_>, b: View<'_>, closeness: Closeness) -> bool {
    // What needs no memory, and is most often asked.
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

/// What the nodes themselves say; `None` if their children decide.
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

/// Nodes that are assumed to be the same.
#[derive(Default)]
struct Classes {
    numbers: HashMap<(usize, u32), usize>,
    parents: Vec<usize>,
}

impl Classes {
    /// False if that was assumed already.
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
