//! References to values, and what values hold of each other.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{ImplementedBy, IsA, ValueType};
use crate::encoder::values::{Entry, Graph, Place};
use crate::{CdrError, Decode, Decoder, Encode, Encoder};

/// A reference to a value; nil is `Option::None` of it. It keeps the value alive, and with it the graph that the value is of.
///
/// References are equal if they are to the same value, not if two values have the same state.
pub struct ValueRef<T: ?Sized>(Hold<T>);

enum Hold<T: ?Sized> {
    Kept { value: Arc<T>, graph: Arc<Graph>, index: u32 },
    Link(Place),
}

impl<T: ValueType + ?Sized> ValueRef<T> {
    /// A new value that is a graph by itself. What its state refers to may belong to other graphs, which it then keeps.
    #[must_use]
    pub fn new<I: Any + Send + Sync>(value: I) -> Self
    where
        T: ImplementedBy<I>,
    {
        let graph = Graph::finish(Arc::default(), vec![Entry::new::<T, I>(value)]);
        Self::kept(graph, 0).expect("it offers itself as what it is")
    }

    /// The same value as a type derived from this one, or as an abstract interface; `None` if it is none.
    #[must_use]
    pub fn downcast<D: ?Sized + 'static>(&self) -> Option<ValueRef<D>> {
        match &self.0 {
            Hold::Kept { graph, index, .. } => ValueRef::kept(Arc::clone(graph), *index),
            Hold::Link(place) => ValueRef::kept(place.anchor.graph()?, place.index),
        }
    }
}

impl<T: ?Sized + 'static> ValueRef<T> {
    /// A reference from outside; `None` if the value is no `T`.
    pub(super) fn kept(graph: Arc<Graph>, index: u32) -> Option<Self> {
        let value = graph.entry(index).cast()?;
        Some(Self(Hold::Kept { value, graph, index }))
    }

    /// What another value of the same graph holds.
    pub(super) fn link(place: Place) -> Self {
        Self(Hold::Link(place))
    }

    /// Where the value is.
    pub(super) fn place(&self) -> Place {
        match &self.0 {
            Hold::Kept { graph, index, .. } => Place { anchor: Arc::clone(graph.anchor()), index: *index },
            Hold::Link(place) => place.clone(),
        }
    }

    /// The same value as one of its bases, or as an abstract interface that it supports.
    #[must_use]
    pub fn upcast<B: ?Sized>(&self) -> ValueRef<B>
    where
        T: IsA<B>,
    {
        match self.clone().0 {
            Hold::Kept { value, graph, index } => ValueRef(Hold::Kept { value: T::upcast(value), graph, index }),
            Hold::Link(place) => ValueRef(Hold::Link(place)),
        }
    }

    /// The value as the Rust type that implements it: what was given to [`ValueRef::new`] or made by a factory.
    #[must_use]
    pub fn implementation<I: Any>(&self) -> Option<&I> {
        match &self.0 {
            Hold::Kept { graph, index, .. } => graph.entry(*index).implementation(),
            Hold::Link(_) => None,
        }
    }

    /// The repository id of its most derived type; `None` for a link in a graph that is not finished.
    #[must_use]
    pub fn repository_id(&self) -> Option<&'static str> {
        match &self.0 {
            Hold::Kept { graph, index, .. } => Some(graph.entry(*index).about().ids[0]),
            Hold::Link(place) => place.anchor.graph().map(|graph| graph.entry(place.index).about().ids[0]),
        }
    }

    pub(super) fn encode_value<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        match &self.0 {
            Hold::Kept { graph, index, .. } => out.value(graph, *index),
            Hold::Link(place) => out.linked_value(place),
        }
    }
}

impl<T: ?Sized + 'static> Clone for ValueRef<T> {
    /// Another reference to the same value; of a link in a finished graph, one from outside.
    fn clone(&self) -> Self {
        match &self.0 {
            Hold::Kept { value, graph, index } => {
                Self(Hold::Kept { value: Arc::clone(value), graph: Arc::clone(graph), index: *index })
            }
            Hold::Link(place) => {
                let followed = place.anchor.graph().and_then(|graph| Self::kept(graph, place.index));
                followed.unwrap_or_else(|| Self(Hold::Link(place.clone())))
            }
        }
    }
}

impl<T: ?Sized> Deref for ValueRef<T> {
    type Target = T;

    /// # Panics
    /// If this is a link inside a graph. Only two sorts of code ever see such: a closure that builds a graph, and a factory
    /// that is making a received value; neither can look into values that may not be there yet.
    fn deref(&self) -> &T {
        match &self.0 {
            Hold::Kept { value, .. } => value,
            Hold::Link(_) => panic!("a link inside a graph of values leads nowhere before the graph is finished"),
        }
    }
}

impl<T: ?Sized + 'static> PartialEq for ValueRef<T> {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl<T: ?Sized + 'static> Eq for ValueRef<T> {}

impl<T: ?Sized + 'static> fmt::Debug for ValueRef<T> {
    /// Not the state: it may lead back here.
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

/// A member of a value that holds references to values. Inside a graph these are links, so that it owns no part of
/// itself; [`Linked::get`] makes references of them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Linked<X>(X);

impl<X: Clone> Linked<X> {
    /// The member, with references that keep what they refer to.
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
        X::decode(input).map(Self)
    }
}
