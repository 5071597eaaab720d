//! Values whose type is forgotten: what can be done with one is said by functions that know it.

use std::any::Any;
use std::sync::Arc;

use crate::{CdrError, Encoder};

/// Who wants a value in one form, and takes it if it is offered.
#[derive(Debug)]
pub struct Cast<'a>(&'a mut dyn Any);

impl Cast<'_> {
    /// Offers a value as a `T`.
    pub fn offer<T: ?Sized + 'static>(&mut self, value: impl FnOnce() -> Arc<T>) {
        if let Some(wanted) = self.0.downcast_mut::<Option<Arc<T>>>()
            && wanted.is_none()
        {
            *wanted = Some(value());
        }
    }
}

pub(crate) type Shared = Arc<dyn Any + Send + Sync>;

/// A value whose type is known only by itself: what a [`ValueFactory`](crate::ValueFactory) makes.
#[derive(Clone)]
pub struct Entry {
    pub(crate) value: Shared,
    pub(crate) about: &'static About,
}

/// What an [`Entry`] can do.
pub(crate) struct About {
    /// As [`ConcreteValue::IDS`](crate::ConcreteValue::IDS).
    pub(crate) ids: &'static [&'static str],
    /// Whether its state is written in chunks even where it is not inside another value that is.
    pub(crate) is_chunked: bool,
    pub(crate) cast: fn(&Shared, &mut Cast<'_>),
    pub(crate) encode: for<'a> fn(&'a (dyn Any + Send + Sync), &mut Encoder<'a>) -> Result<(), CdrError>,
}

impl Entry {
    pub(crate) fn about(&self) -> &'static About {
        self.about
    }

    /// The value in one form, if it has it.
    pub(crate) fn cast<T: ?Sized + 'static>(&self) -> Option<Arc<T>> {
        let mut wanted: Option<Arc<T>> = None;
        (self.about.cast)(&self.value, &mut Cast(&mut wanted));
        wanted
    }

    /// The value as the Rust type that implements it.
    pub(crate) fn implementation<I: Any>(&self) -> Option<&I> {
        self.value.downcast_ref()
    }

    pub(crate) fn encode_state<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        (self.about.encode)(&*self.value, out)
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entry({})", self.about.ids[0])
    }
}
