//! Building graphs in which values refer to each other in circles.

use std::any::Any;
use std::sync::Arc;

use super::{ImplementedBy, ValueRef};
use crate::encoder::values::{Anchor, Entry, Graph, Place};

/// Why a graph could not be built.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A value was given for a reference that this builder has not reserved.
    #[error("the reference was not reserved by this graph")]
    NotReserved,
    /// A second value was given for the same reference.
    #[error("the reference already has its value")]
    AlreadyDefined,
    /// The closure ended while a reserved reference had no value.
    #[error("{count} of the references that were reserved have no value")]
    Undefined {
        /// How many.
        count: usize,
    },
}

/// A graph in the making. References to its values can be passed around before the values exist, and looked into when
/// [`GraphBuilder::build`] has returned.
#[derive(Debug, Default)]
pub struct GraphBuilder {
    anchor: Arc<Anchor>,
    entries: Vec<Option<Entry>>,
}

impl GraphBuilder {
    /// Makes the values that `build` defines, and returns what it returns, with references that keep the graph.
    ///
    /// # Errors
    /// [`GraphError::Undefined`], or what `build` fails with.
    pub fn build<R: Clone>(build: impl FnOnce(&mut Self) -> Result<R, GraphError>) -> Result<R, GraphError> {
        let mut builder = Self::default();
        let links = build(&mut builder)?;
        let count = builder.entries.iter().filter(|entry| entry.is_none()).count();
        if count > 0 {
            return Err(GraphError::Undefined { count });
        }
        let _graph = Graph::finish(builder.anchor, builder.entries.into_iter().flatten().collect());
        // The clone follows the links; the graph must be there while it does.
        Ok(links.clone())
    }

    /// A reference to a value that is given later.
    pub fn reserve<T: ?Sized + 'static>(&mut self) -> ValueRef<T> {
        self.entries.push(None);
        let index = u32::try_from(self.entries.len() - 1).expect("memory ends before the numbers do");
        ValueRef::link(Place { anchor: Arc::clone(&self.anchor), index })
    }

    /// Gives a reserved reference its value.
    ///
    /// # Errors
    /// [`GraphError::NotReserved`], [`GraphError::AlreadyDefined`].
    pub fn define<T, I>(&mut self, reserved: &ValueRef<T>, value: I) -> Result<(), GraphError>
    where
        T: ImplementedBy<I> + ?Sized,
        I: Any + Send + Sync,
    {
        let place = reserved.place();
        if !Arc::ptr_eq(&place.anchor, &self.anchor) {
            return Err(GraphError::NotReserved);
        }
        let entry = self.entries.get_mut(place.index as usize).ok_or(GraphError::NotReserved)?;
        if entry.is_some() {
            return Err(GraphError::AlreadyDefined);
        }
        *entry = Some(Entry::new::<T, I>(value));
        Ok(())
    }

    /// A reference to a value of this graph.
    pub fn add<T, I>(&mut self, value: I) -> ValueRef<T>
    where
        T: ImplementedBy<I> + ?Sized,
        I: Any + Send + Sync,
    {
        let reserved = self.reserve();
        self.define(&reserved, value).expect("it was reserved just now");
        reserved
    }
}
