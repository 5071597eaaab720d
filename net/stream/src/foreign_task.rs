//! Modules of shared libraries as tasks of a stream.

use std::cell::RefCell;
use std::error::Error;

use spandrel_configurator::plugin::{ForeignKind, ForeignMessage, ModuleSide, ModuleThread, NextTask, RefusedMessage};
use spandrel_configurator::{ForeignModule, ServiceContext, SharedObject as _};
use spandrel_sync::Arc;
use spandrel_sync::atomic::{AtomicUsize, Ordering};

use crate::{Context, Message, MessageKind, Module, OpenContext, PutError, Side, Task, TaskError};

/// The reader and the writer of a module of a library.
struct ForeignTask {
    shared: Arc<Shared>,
    side: ModuleSide,
}

struct Shared {
    module: ForeignModule,
    name: String,
    /// The number of its tasks that are not closed.
    tasks: AtomicUsize,
}

/// Initializes a module of a library, and makes a module of a stream of it.
pub(crate) fn foreign_module(
    module: ForeignModule,
    context: &ServiceContext<'_>,
    arguments: &[String],
) -> Result<Module, Box<dyn Error + Send + Sync>> {
    module.init(context, arguments)?;
    let shared = Arc::new(Shared { module, name: context.name().to_owned(), tasks: AtomicUsize::new(2) });
    let task = |side| ForeignTask { shared: Arc::clone(&shared), side };
    Ok(Module::new(context.name(), task(ModuleSide::Reader), task(ModuleSide::Writer)))
}

impl Task for ForeignTask {
    fn open(&self, context: &OpenContext<'_>) -> Result<(), TaskError> {
        if self.side == ModuleSide::Reader && self.shared.module.has_thread() { context.activate(1) } else { Ok(()) }
    }

    fn put(&self, context: &Context<'_>, mut message: Message) -> Result<(), PutError> {
        let kind = match message.kind() {
            MessageKind::Protocol => ForeignKind::Protocol,
            _ => ForeignKind::Data,
        };
        // A message without data has nothing for a library.
        let Some(block) = message.take_block() else { return context.put_next(message) };
        let priority = message.priority();
        let message = ForeignMessage::of_block(kind, priority, block, Box::new(message));
        let next = Neighbours { context: *context };
        self.shared
            .module
            .put(self.side, message, &next)
            .map_err(|RefusedMessage(message)| PutError::refused(message_of(message)))
    }

    fn svc(&self, context: &mut crate::ServiceContext<'_>) {
        self.shared.module.svc(&ForeignThread(RefCell::new(context)));
    }

    fn close(&self) {
        if self.shared.tasks.fetch_sub(1, Ordering::AcqRel) == 1
            && let Err(error) = self.shared.module.fini()
        {
            tracing::warn!(module = self.shared.name, %error, "a module of a library has failed at its end");
        }
    }
}

/// The message that was given to a library, or one that it has made.
fn message_of(message: ForeignMessage) -> Message {
    let (kind, priority) = (message.kind(), message.priority());
    let (block, carrier) = message.into_block();
    let carrier = carrier.and_then(|carrier| carrier.downcast::<Message>().ok());
    let mut message = carrier.map_or_else(
        || {
            let kind = if kind == ForeignKind::Protocol { MessageKind::Protocol } else { MessageKind::Data };
            Message::new(kind).with_priority(priority)
        },
        |message| *message,
    );
    message.set_block(block);
    message
}

/// Whether a message was passed; the failure is logged.
fn is_passed(passed: Result<(), PutError>, side: Side) -> bool {
    passed.inspect_err(|error| tracing::debug!(%error, ?side, "a message of a library's module is lost")).is_ok()
}

struct Neighbours<'a> {
    context: Context<'a>,
}

impl NextTask for Neighbours<'_> {
    fn put_next(&self, message: ForeignMessage) -> bool {
        is_passed(self.context.put_next(message_of(message)), self.context.side())
    }

    fn reply(&self, message: ForeignMessage) -> bool {
        is_passed(self.context.reply(message_of(message)), self.context.side())
    }
}

/// The thread of a module of a library.
struct ForeignThread<'a, 's>(RefCell<&'a mut crate::ServiceContext<'s>>);

impl NextTask for ForeignThread<'_, '_> {
    fn put_next(&self, message: ForeignMessage) -> bool {
        Neighbours { context: self.0.borrow().context() }.put_next(message)
    }

    fn reply(&self, message: ForeignMessage) -> bool {
        Neighbours { context: self.0.borrow().context() }.reply(message)
    }
}

impl ModuleThread for ForeignThread<'_, '_> {
    fn is_running(&self) -> bool {
        self.0.borrow_mut().is_running()
    }
}
