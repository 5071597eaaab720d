//! References to values, from outside a graph and inside it.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{ImplementedBy, IsA, ValueType};
use crate::encoder::values::{Entry, Graph, GraphPosition};
use crate::{CdrError, Decode, Decoder, Encode, Encoder};

/// A reference to a value; nil is `Option::None` of it. It keeps the value and its graph alive.
///
/// References are equal if they refer to the same value; equal states do not suffice.
pub struct ValueRef<T: ?Sized>(RefKind<T>);

enum RefKind<T: ?Sized> {
    Owned { value: Arc<T>, graph: Arc<Graph>, index: u32 },
    Link(GraphPosition),
}

impl<T: ValueType + ?Sized> ValueRef<T> {
    /// A new value with a graph of its own. Values to which its state refers may belong to other graphs,
    /// which it keeps alive.
    #[must_use]
    pub fn new<I: Any + Send + Sync>(value: I) -> Self
    where
        T: ImplementedBy<I>,
    {
        let graph = Graph::finish(Arc::default(), vec![Entry::new::<T, I>(value)]);
        Self::owned(graph, 0).expect("a value has its own type")
    }

    /// The same value as a derived type, or as an abstract interface; `None` if it is of another type.
    #[must_use]
    pub fn downcast<D: ?Sized + 'static>(&self) -> Option<ValueRef<D>> {
        match &self.0 {
            RefKind::Owned { graph, index, .. } => ValueRef::owned(Arc::clone(graph), *index),
            RefKind::Link(graph_position) => ValueRef::owned(graph_position.anchor.graph()?, graph_position.index),
        }
    }
}

impl<T: ?Sized + 'static> ValueRef<T> {
    /// A reference from outside; `None` if the value is not a `T`.
    pub(super) fn owned(graph: Arc<Graph>, index: u32) -> Option<Self> {
        let value = graph.entry(index).cast()?;
        Some(Self(RefKind::Owned { value, graph, index }))
    }

    /// A reference inside the graph.
    pub(super) fn link(graph_position: GraphPosition) -> Self {
        Self(RefKind::Link(graph_position))
    }

    /// The position of the value.
    pub(super) fn graph_position(&self) -> GraphPosition {
        match &self.0 {
            RefKind::Owned { graph, index, .. } => GraphPosition { anchor: Arc::clone(graph.anchor()), index: *index },
            RefKind::Link(graph_position) => graph_position.clone(),
        }
    }

    /// The same value as one of its bases, or as an abstract interface that it supports.
    #[must_use]
    pub fn upcast<B: ?Sized>(&self) -> ValueRef<B>
    where
        T: IsA<B>,
    {
        match self.clone().0 {
            RefKind::Owned { value, graph, index } => {
                ValueRef(RefKind::Owned { value: T::upcast(value), graph, index })
            }
            RefKind::Link(graph_position) => ValueRef(RefKind::Link(graph_position)),
        }
    }

    /// The value as the Rust type that implements it: the argument of [`ValueRef::new`], or the result of a
    /// factory.
    #[must_use]
    pub fn implementation<I: Any>(&self) -> Option<&I> {
        match &self.0 {
            RefKind::Owned { graph, index, .. } => graph.entry(*index).implementation(),
            RefKind::Link(_) => None,
        }
    }

    /// The repository id of its most derived type; `None` for a link in an incomplete graph.
    #[must_use]
    pub fn repository_id(&self) -> Option<&'static str> {
        match &self.0 {
            RefKind::Owned { graph, index, .. } => Some(graph.entry(*index).vtable().ids[0]),
            RefKind::Link(graph_position) => {
                graph_position.anchor.graph().map(|graph| graph.entry(graph_position.index).vtable().ids[0])
            }
        }
    }

    pub(super) fn encode_value<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        match &self.0 {
            RefKind::Owned { graph, index, .. } => out.value(graph, *index),
            RefKind::Link(graph_position) => out.linked_value(graph_position),
        }
    }
}

impl<T: ?Sized + 'static> Clone for ValueRef<T> {
    /// Another reference to the same value; for a link in a complete graph, one from outside.
    fn clone(&self) -> Self {
        match &self.0 {
            RefKind::Owned { value, graph, index } => {
                Self(RefKind::Owned { value: Arc::clone(value), graph: Arc::clone(graph), index: *index })
            }
            RefKind::Link(graph_position) => {
                let followed = graph_position.anchor.graph().and_then(|graph| Self::owned(graph, graph_position.index));
                followed.unwrap_or_else(|| Self(RefKind::Link(graph_position.clone())))
            }
        }
    }
}

impl<T: ?Sized> Deref for ValueRef<T> {
    type Target = T;

    /// # Panics
    /// If this is a link inside a graph. Only two kinds of code have such links: a closure that builds a
    /// graph, and a factory that creates a received value. Neither may dereference values that may be
    /// incomplete. What a received value keeps of them is in a [`Linked`], whose [`get`](Linked::get) follows them.
    fn deref(&self) -> &T {
        match &self.0 {
            RefKind::Owned { value, .. } => value,
            RefKind::Link(_) => {
                panic!("a link inside a graph of values cannot be followed before the graph is complete")
            }
        }
    }
}

impl<T: ?Sized + 'static> PartialEq for ValueRef<T> {
    fn eq(&self, other: &Self) -> bool {
        self.graph_position() == other.graph_position()
    }
}

impl<T: ?Sized + 'static> Eq for ValueRef<T> {}

impl<T: ?Sized + 'static> fmt::Debug for ValueRef<T> {
    /// Without the state, which may lead back here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueRef({})", self.repository_id().unwrap_or("unfinished"))
    }
}

impl<T: ?Sized + 'static> Encode for Option<ValueRef<T>> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        match self {
            Some(value) => value.encode_value(out),
            None => out.nil_value(),
        }
    }
}

impl<T: ?Sized + 'static> Encode for Option<&ValueRef<T>> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        match self {
            Some(value) => value.encode_value(out),
            None => out.nil_value(),
        }
    }
}

impl<T: ValueType + ?Sized> Decode for Option<ValueRef<T>> {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        input.value()
    }
}

/// A member of a value that holds references to values. Inside a graph these are links, so that the graph
/// does not own itself; [`Linked::get`] converts them to references.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Linked<X>(X);

impl<X: Clone> Linked<X> {
    /// The member, with references that keep their targets alive.
    #[must_use]
    pub fn get(&self) -> X {
        self.0.clone()
    }
}

impl<X> From<X> for Linked<X> {
    fn from(member: X) -> Self {
        Self(member)
    }
}

impl<X: Encode> Encode for Linked<X> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.0.encode(out)
    }
}

impl<X: Decode> Decode for Linked<X> {
    const MIN_OCTETS: usize = X::MIN_OCTETS;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let outer = std::mem::replace(&mut input.read_values().takes_links, true);
        let member = X::decode(input);
        input.read_values().takes_links = outer;
        member.map(Self)
    }
}
