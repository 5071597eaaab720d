//! The `stream` directive of `svc.conf` files.

use std::any::Any;
use std::error::Error;
use std::time::Duration;

use spandrel_configurator::{
    ForeignModule, ServiceContext, ServiceObject, ServiceResult, SharedObject, StreamObject, StreamSupport,
};
use spandrel_sync::Arc;

use crate::foreign_task::foreign_module;
use crate::{Answer, HEAD, Module, Query, Stream, TAIL};

/// The time that the threads of a module, or of a stream, may take to end.
const END: Duration = Duration::from_secs(5);
/// The time that a module may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

/// Makes a module of a name and arguments.
pub(crate) type MakeModule =
    Box<dyn FnOnce(&ServiceContext<'_>, &[String]) -> Result<Module, Box<dyn Error + Send + Sync>> + Send>;

/// The streams of a [`Configurator`](spandrel_configurator::Configurator), for its
/// [`streams`](spandrel_configurator::Configurator::streams).
///
/// ```
/// use spandrel_configurator::{Catalogue, Configurator};
/// use spandrel_stream::{
///     ConfiguredStream, Message, Module, PassThrough, StreamDirectives, Wait, module_factory,
/// };
///
/// let reactor = spandrel_reactor::Reactor::new()?;
/// let catalogue = Catalogue::new().module("Quiet", module_factory(|context, _| {
///     Ok(Module::writer(context.name(), PassThrough))
/// }));
/// let configurator = Configurator::new(reactor.registry(), catalogue).streams(StreamDirectives);
/// configurator.process_text("stream static Log { static Quiet }")?;
/// let log = configurator.repository().find::<ConfiguredStream>("Log").unwrap();
/// assert_eq!(log.stream().modules(), ["head", "Quiet", "tail"]);
/// configurator.process_text("stream Log { remove Quiet }")?;
/// assert_eq!(log.stream().modules(), ["head", "tail"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamDirectives;

impl StreamSupport for StreamDirectives {
    fn make_stream(&self, name: &str) -> Arc<dyn StreamObject> {
        Arc::new(ConfiguredStream::new(name))
    }

    fn make_foreign_module(&self, _name: &str, module: ForeignModule) -> Box<dyn Any + Send> {
        let make: MakeModule = Box::new(move |context, arguments| foreign_module(module, context, arguments));
        Box::new(make)
    }
}

/// The factory of a module, for [`Catalogue::module`](spandrel_configurator::Catalogue::module). It gets the arguments of
/// the directive, and a context with the module's name.
pub fn module_factory<M>(make: M) -> impl Fn() -> Box<dyn Any + Send> + Send + Sync + 'static
where
    M: Fn(&ServiceContext<'_>, &[String]) -> Result<Module, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
{
    let make = Arc::new(make);
    move || {
        let make = Arc::clone(&make);
        let make: MakeModule = Box::new(move |context, arguments| make(context, arguments));
        Box::new(make)
    }
}

/// A stream that a `svc.conf` file configures. It is suspended until all services of the file are linked.
#[derive(Debug)]
pub struct ConfiguredStream(Stream);

impl ConfiguredStream {
    /// A stream to which directives add modules.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Stream::new(name))
    }

    /// The stream of modules that the directive built.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.0
    }
}

impl SharedObject for ConfiguredStream {
    fn init(&self, _: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        if !arguments.is_empty() {
            return Err("a stream without a factory takes no parameters".into());
        }
        self.0.suspend();
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        Ok(self.0.close(END)?)
    }

    fn metrics(&self) -> String {
        self.0.status().render_metrics()
    }

    fn info(&self) -> String {
        format!("stream {}", self.0.modules().join(" | "))
    }
}

impl ServiceObject for ConfiguredStream {
    fn suspend(&self) -> ServiceResult {
        self.0.suspend();
        Ok(())
    }

    fn resume(&self) -> ServiceResult {
        self.0.resume();
        Ok(())
    }
}

impl StreamObject for ConfiguredStream {
    fn modules(&self) -> Vec<String> {
        let mut modules = self.0.modules();
        modules.retain(|name| name != HEAD && name != TAIL);
        modules
    }

    fn insert_module(
        &self,
        context: &ServiceContext<'_>,
        above: Option<&str>,
        module: Box<dyn Any + Send>,
        arguments: &[String],
    ) -> ServiceResult {
        let make = module.downcast::<MakeModule>().map_err(|_| "its factory was not made by `module_factory`")?;
        Ok(self.0.insert(above.unwrap_or(HEAD), make(context, arguments)?)?)
    }

    fn remove_module(&self, name: &str) -> ServiceResult {
        let removal = self.0.remove(name)?;
        if removal.wait(END) { Ok(()) } else { Err(format!("threads of the module `{name}` have not ended").into()) }
    }

    fn set_module_suspended(&self, name: &str, is_suspended: bool) -> ServiceResult {
        let query = if is_suspended { Query::Stop } else { Query::Start };
        match self.0.control(Some(name), query, None, ANSWER)? {
            Answer::Done => Ok(()),
            other => Err(format!("the module `{name}` has answered {other:?}").into()),
        }
    }
}
