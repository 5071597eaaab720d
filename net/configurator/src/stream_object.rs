//! The interface to streams, which this crate does not know.

use std::any::Any;

use spandrel_sync::Arc;

use crate::{ForeignModule, ServiceContext, ServiceObject, ServiceResult};

/// A stream that the `stream` directive configures.
pub trait StreamObject: ServiceObject {
    /// The names of its modules, from the head to the tail, without these two.
    fn modules(&self) -> Vec<String>;

    /// Inserts a module below another one, or below the head (`None`), and initializes it with its arguments. The context
    /// has the module's name.
    ///
    /// # Errors
    /// An error refuses the module; the stream is unchanged then.
    fn insert_module(
        &self,
        context: &ServiceContext<'_>,
        above: Option<&str>,
        module: Box<dyn Any + Send>,
        arguments: &[String],
    ) -> ServiceResult;

    /// Takes a module out of the stream.
    ///
    /// # Errors
    /// There is no such module; or its threads have not ended.
    fn remove_module(&self, name: &str) -> ServiceResult;

    /// Makes the tasks of a module stand still, or go on.
    ///
    /// # Errors
    /// There is no such module.
    fn set_module_suspended(&self, name: &str, is_suspended: bool) -> ServiceResult;
}

/// An implementation of streams, to be given to the [`Configurator`](crate::Configurator) at its creation.
pub trait StreamSupport: Send + Sync {
    /// A new stream without modules, for a `stream` directive with a name that the program does not contain.
    fn make_stream(&self, name: &str) -> Arc<dyn StreamObject>;

    /// Wraps a shared library's module as one of the host's streams.
    fn make_foreign_module(&self, name: &str, module: ForeignModule) -> Box<dyn Any + Send>;
}
