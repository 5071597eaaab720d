//! Construction of cyclic graphs of values.

use std::any::Any;
use std::sync::Arc;

use super::{ImplementedBy, ValueRef};
use crate::encoder::values::{Anchor, Entry, Graph, GraphPosition};

/// The mistake by which a graph of values cannot be built.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A value for a reference that this builder has not reserved.
    #[error("the reference was not reserved by this graph")]
    NotReserved,
    /// A second value for the same reference.
    #[error("the reference already has its value")]
    AlreadyDefined,
    /// A reserved reference without a value at the end of the closure.
    #[error("{count} reserved references have no value")]
    Undefined {
        /// The number of such references.
        count: usize,
    },
}
spandrel_error::debug_as_report!(GraphError);

/// A graph under construction. References to its values can be stored before the values exist, and
/// dereferenced after [`GraphBuilder::build`] has returned.
#[derive(Debug, Default)]
pub struct GraphBuilder {
    anchor: Arc<Anchor>,
    entries: Vec<Option<Entry>>,
}

impl GraphBuilder {
    /// Creates the values that `build` defines, and returns its result, with references that keep the graph
    /// alive.
    ///
    /// # Errors
    /// [`GraphError::Undefined`], or the error of `build`.
    pub fn build<R: Clone>(build: impl FnOnce(&mut Self) -> Result<R, GraphError>) -> Result<R, GraphError> {
        let mut builder = Self::default();
        let links = build(&mut builder)?;
        let count = builder.entries.iter().filter(|entry| entry.is_none()).count();
        if count > 0 {
            return Err(GraphError::Undefined { count });
        }
        let _graph = Graph::finish(builder.anchor, builder.entries.into_iter().flatten().collect());
        // The clone follows the links; the graph must exist meanwhile.
        Ok(links.clone())
    }

    /// A reference to a value that [`define`](Self::define) supplies later, so that values may refer to each
    /// other in circles.
    pub fn reserve<T: ?Sized + 'static>(&mut self) -> ValueRef<T> {
        self.entries.push(None);
        let index = u32::try_from(self.entries.len() - 1).expect("memory ends before the numbers do");
        ValueRef::link(GraphPosition { anchor: Arc::clone(&self.anchor), index })
    }

    /// Supplies the value of a reserved reference.
    ///
    /// # Errors
    /// [`GraphError::NotReserved`], [`GraphError::AlreadyDefined`].
    pub fn define<T, I>(&mut self, reserved: &ValueRef<T>, value: I) -> Result<(), GraphError>
    where
        T: ImplementedBy<I> + ?Sized,
        I: Any + Send + Sync,
    {
        let graph_position = reserved.graph_position();
        if !Arc::ptr_eq(&graph_position.anchor, &self.anchor) {
            return Err(GraphError::NotReserved);
        }
        let entry = self.entries.get_mut(graph_position.index as usize).ok_or(GraphError::NotReserved)?;
        if entry.is_some() {
            return Err(GraphError::AlreadyDefined);
        }
        *entry = Some(Entry::new::<T, I>(value));
        Ok(())
    }

    /// Adds a value to the graph, and refers to it. In a cycle, one value needs [`reserve`](Self::reserve)
    /// and [`define`](Self::define) instead.
    pub fn add<T, I>(&mut self, value: I) -> ValueRef<T>
    where
        T: ImplementedBy<I> + ?Sized,
        I: Any + Send + Sync,
    {
        let reserved = self.reserve();
        self.define(&reserved, value).expect("the reference was reserved just now");
        reserved
    }
}
