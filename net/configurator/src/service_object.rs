//! The interface of services to the process into which they are linked.

use std::any::Any;
use std::error::Error;
use std::fmt;

use spandrel_reactor::Registry;
use spandrel_sync::Arc;

/// The result of a service's method. The error is reported with the name of the service and the place of its directive.
pub type ServiceResult = Result<(), Box<dyn Error + Send + Sync>>;

/// An object that is linked into a process and out of it (`ACE_Shared_Object`; paper 002, 2.5.1).
///
/// Its methods are called by one thread at a time, but [`info`](Self::info) and [`metrics`](Self::metrics), which may be called at any time.
pub trait SharedObject: Any + Send + Sync {
    /// Initializes the object with the arguments of its directive. Event handlers that the calling thread registers here are
    /// those of the service: they do not wait for their handles until the service runs, nor while it is suspended, and
    /// they are removed with it.
    ///
    /// # Errors
    /// An error refuses the service. What the call has registered is removed then; [`fini`](Self::fini) is not called.
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult;

    /// Releases what the service holds, before it is unlinked. Its handlers are suspended by then, and are removed after it.
    ///
    /// # Errors
    /// An error is reported; the service is removed all the same.
    fn fini(&self) -> ServiceResult {
        Ok(())
    }

    /// Its numbers in Prometheus' text exposition format 0.0.4 ([`spandrel_metrics`]), for
    /// [`ServiceRepository::render_metrics`](crate::ServiceRepository::render_metrics). May be called at any time.
    fn metrics(&self) -> String {
        String::new()
    }

    /// The address and the purpose of the service, in one line for people, such as `127.0.0.1:7/tcp # echo`.
    fn info(&self) -> String;
}

/// A service that can be suspended (`ACE_Service_Object`; paper 002, 2.5.1).
///
/// A service is linked by [`init`](SharedObject::init), runs from [`resume`](Self::resume) on, and its handlers wait for
/// their handles while it runs. The reactor owns event handlers in this library: so a service does not *inherit* from an
/// event handler, but registers one or several in `init`.
pub trait ServiceObject: SharedObject {
    /// Called after the handlers of the service were suspended.
    ///
    /// # Errors
    /// An error is reported; the service counts as suspended all the same.
    fn suspend(&self) -> ServiceResult {
        Ok(())
    }

    /// Called before the handlers of the service wait for their handles: at its start, and after a suspension.
    ///
    /// # Errors
    /// An error leaves the service suspended. At its start, it refuses the service.
    fn resume(&self) -> ServiceResult {
        Ok(())
    }
}

/// The name, arguments and reactor that a service gets for [`SharedObject::init`].
#[derive(Clone, Copy)]
pub struct ServiceContext<'a> {
    name: &'a str,
    process: &'a dyn Process,
}

/// Parts of a process that are made when a service asks for them.
pub(crate) trait Process {
    fn registry(&self) -> &Registry;
    /// A service of the process; none in a shared library.
    fn find(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>>;
}

impl<'a> ServiceContext<'a> {
    pub(crate) fn new(name: &'a str, process: &'a dyn Process) -> Self {
        Self { name, process }
    }

    /// The name by which directives refer to the service.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The reactor that calls the handlers of services. A service of a shared library has a reactor of its own, with a
    /// thread that starts with the first call of this method.
    #[must_use]
    pub fn registry(&self) -> &'a Registry {
        self.process.registry()
    }

    /// Another service of this process that was linked before, if there is one of that name and type. The service depends on
    /// it from now on: it is linked again when the other one is, and the other one cannot be removed without it.
    ///
    /// Services of shared libraries are alone.
    #[must_use]
    pub fn find<S: ServiceObject>(&self, name: &str) -> Option<Arc<S>> {
        self.process.find(name)?.downcast().ok()
    }
}

impl fmt::Debug for ServiceContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceContext").field("name", &self.name).finish_non_exhaustive()
    }
}
