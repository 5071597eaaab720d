//! The services that a program contains: those of `static` directives.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;

use spandrel_sync::Arc;

use crate::{ServiceKind, ServiceObject, StreamObject};

/// Makes a service of a registered type.
type MakeService = Arc<dyn Fn() -> Arc<dyn ServiceObject> + Send + Sync>;
/// Makes a module, in a type that the implementation of streams knows.
type MakeModule = Arc<dyn Fn() -> Box<dyn Any + Send> + Send + Sync>;
/// Makes a stream of a registered type.
type MakeStream = Arc<dyn Fn() -> Arc<dyn StreamObject> + Send + Sync>;

/// A factory of the program.
#[derive(Clone)]
pub(crate) enum Factory {
    Service(MakeService),
    Module(MakeModule),
    Stream(MakeStream),
}

impl Factory {
    pub(crate) fn kind(&self) -> ServiceKind {
        match self {
            Self::Service(_) => ServiceKind::ServiceObject,
            Self::Module(_) => ServiceKind::Module,
            Self::Stream(_) => ServiceKind::Stream,
        }
    }
}

/// The name of a factory function.
#[derive(Clone)]
struct Function {
    /// The service in the catalogue.
    service: String,
    /// Whether a directive may name it with a library.
    is_of_any_library: bool,
}

/// The services, modules and streams that a program contains, by their names (`ACE_Static_Svc_Descriptor`).
///
/// ```
/// use spandrel_configurator::{Catalogue, ServiceContext, ServiceObject, ServiceResult, SharedObject};
///
/// #[derive(Default)]
/// struct Beeper;
///
/// impl SharedObject for Beeper {
///     fn init(&self, _: &ServiceContext<'_>, _arguments: &[String]) -> ServiceResult {
///         Ok(())
///     }
///     fn info(&self) -> String {
///         "beeps".to_owned()
///     }
/// }
///
/// impl ServiceObject for Beeper {}
///
/// let catalogue = Catalogue::new().service("Beeper", Beeper::default).factory("_make_Beeper", "Beeper");
/// assert_eq!(catalogue.names().collect::<Vec<_>>(), ["Beeper"]);
/// ```
#[derive(Clone, Default)]
pub struct Catalogue {
    factories: BTreeMap<String, Factory>,
    /// Factory functions by their names.
    functions: BTreeMap<String, Function>,
    at_start: Vec<(String, String)>,
}

impl Catalogue {
    /// A catalogue to which services and streams are added.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service for the directive `static NAME`.
    #[must_use]
    pub fn service<S: ServiceObject>(self, name: &str, make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        self.add(name, Factory::Service(Arc::new(move || Arc::new(make()))))
    }

    /// Adds a module for streams, in the type that the implementation of streams expects.
    #[must_use]
    pub fn module(self, name: &str, make: impl Fn() -> Box<dyn Any + Send> + Send + Sync + 'static) -> Self {
        self.add(name, Factory::Module(Arc::new(make)))
    }

    /// Adds a stream for the directive `stream static NAME`.
    #[must_use]
    pub fn stream<S: StreamObject>(self, name: &str, make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        self.add(name, Factory::Stream(Arc::new(move || Arc::new(make()))))
    }

    /// Gives a service a factory function. Directives without a library then name the service by it: `dynamic
    /// X … :FUNCTION()`.
    #[must_use]
    pub fn factory(mut self, function: &str, service: &str) -> Self {
        let is_of_any_library = false;
        self.functions.insert(function.to_owned(), Function { service: service.to_owned(), is_of_any_library });
        self
    }

    /// Gives a service the factory function of another product, so that a file of that product can be used
    /// unchanged where this program contains a service in place of the other's. `dynamic` directives name the
    /// function with any library.
    #[must_use]
    pub fn factory_of_any_library(mut self, function: &str, service: &str) -> Self {
        let is_of_any_library = true;
        self.functions.insert(function.to_owned(), Function { service: service.to_owned(), is_of_any_library });
        self
    }

    /// Makes a service start without a directive if the options ask for that (`-y`).
    #[must_use]
    pub fn at_start(mut self, name: &str, parameters: &str) -> Self {
        self.at_start.push((name.to_owned(), parameters.to_owned()));
        self
    }

    /// The names of all services, modules and streams, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.factories.keys().map(String::as_str)
    }

    fn add(mut self, name: &str, factory: Factory) -> Self {
        self.factories.insert(name.to_owned(), factory);
        self
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Factory> {
        self.factories.get(name)
    }

    /// The name of the service with that factory function, as a directive names it.
    pub(crate) fn of_function(&self, function: &str, has_library: bool) -> Option<&str> {
        let entry = self.functions.get(function).filter(|entry| entry.is_of_any_library || !has_library);
        entry.map(|entry| entry.service.as_str())
    }

    pub(crate) fn started(&self) -> &[(String, String)] {
        &self.at_start
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue").field("names", &self.factories.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
