//! Parts of an ORB that their first use makes.

use std::{any::Any, sync::OnceLock};

/// A part of an ORB that its first use makes. The ORB does not know its type, so that a program that never uses
/// the part does not contain it.
#[derive(Debug, Default)]
pub(crate) struct LazyPart(OnceLock<Box<dyn Any + Send + Sync>>);

impl LazyPart {
    /// The part, if it was made.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }

    /// The part, which is made if needed. It has the same type each time.
    pub(crate) fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make())).downcast_ref().expect("a part has one type")
    }
}
