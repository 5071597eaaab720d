//! Type-erased values, with a table of functions for each type.

use std::any::Any;
use std::sync::Arc;

use crate::{CdrError, Encoder};

/// A request for a value in one form, fulfilled if the form is offered.
#[derive(Debug)]
pub struct Cast<'a>(&'a mut dyn Any);

impl Cast<'_> {
    /// Gives the caller the value, if it has asked for a `T` and has none yet.
    pub fn offer<T: ?Sized + 'static>(&mut self, value: impl FnOnce() -> Arc<T>) {
        if let Some(target) = self.0.downcast_mut::<Option<Arc<T>>>()
            && target.is_none()
        {
            *target = Some(value());
        }
    }
}

pub(crate) type Shared = Arc<dyn Any + Send + Sync>;

/// A type-erased value, created by a [`ValueFactory`](crate::ValueFactory).
#[derive(Clone)]
pub struct Entry {
    pub(crate) value: Shared,
    pub(crate) vtable: &'static EntryVtable,
}

/// The functions of an [`Entry`]'s type.
pub(crate) struct EntryVtable {
    /// The repository ids, as [`ConcreteValue::IDS`](crate::ConcreteValue::IDS).
    pub(crate) ids: &'static [&'static str],
    /// Whether its state is always in chunks, even outside chunked values.
    pub(crate) is_chunked: bool,
    pub(crate) cast: fn(&Shared, &mut Cast<'_>),
    pub(crate) encode: for<'a> fn(&'a (dyn Any + Send + Sync), &mut Encoder<'a>) -> Result<(), CdrError>,
}

impl Entry {
    pub(crate) fn vtable(&self) -> &'static EntryVtable {
        self.vtable
    }

    /// The value in one form, if it has that form.
    pub(crate) fn cast<T: ?Sized + 'static>(&self) -> Option<Arc<T>> {
        let mut target: Option<Arc<T>> = None;
        (self.vtable.cast)(&self.value, &mut Cast(&mut target));
        target
    }

    /// The value as the Rust type that implements it.
    pub(crate) fn implementation<I: Any>(&self) -> Option<&I> {
        self.value.downcast_ref()
    }

    pub(crate) fn encode_state<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        (self.vtable.encode)(&*self.value, out)
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entry({})", self.vtable.ids[0])
    }
}
