//! Process architectures as type parameters: the same processing in the caller's thread or in threads of its own.

use std::num::NonZero;

use spandrel_sync::Mutex;

use crate::{Context, Message, OpenContext, PutError, QueueStrategy, ServiceContext, Task, TaskError};

/// The processing of one direction of a module, without the choice of its threads.
pub trait Service<L: QueueStrategy = Mutex>: Send + Sync + 'static {
    /// Processes a message in the thread that the task has chosen, and passes it or others on.
    ///
    /// # Errors
    /// [`PutError`].
    fn process(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError>;

    /// Treats a message that could not be processed in a thread of the task, where nothing waits for the error. It is
    /// dropped without this.
    fn failed(&self, error: PutError) {
        drop(error);
    }
}

/// A task that processes each message in the thread that brings it (paper 002, figure 3 (1)).
#[derive(Clone, Copy, Debug)]
pub struct Synchronous<S>(pub S);

impl<L: QueueStrategy, S: Service<L>> Task<L> for Synchronous<S> {
    #[inline]
    fn put(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
        self.0.process(context, message)
    }
}

/// A task that queues messages, and processes them in threads of its own (paper 002, figure 3 (2)).
///
/// With more than one thread, messages may be passed on in another order.
#[derive(Clone, Copy, Debug)]
pub struct Asynchronous<S> {
    service: S,
    threads: NonZero<usize>,
}

impl<S> Asynchronous<S> {
    /// A task whose one thread processes the queued messages in order.
    pub fn new(service: S) -> Self {
        Self { service, threads: NonZero::<usize>::MIN }
    }

    /// A task whose threads process the queued messages in parallel.
    pub fn with_threads(service: S, threads: NonZero<usize>) -> Self {
        Self { service, threads }
    }
}

impl<L: QueueStrategy, S: Service<L>> Task<L> for Asynchronous<S>
where
    L::Queue: Send + Sync,
{
    fn open(&self, context: &OpenContext<'_>) -> Result<(), TaskError> {
        context.activate(self.threads.get())
    }

    fn put(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
        context.putq(message)
    }

    fn svc(&self, context: &mut ServiceContext<'_, L>) {
        while let Ok(message) = context.getq() {
            if let Err(error) = self.service.process(&context.context(), message) {
                self.service.failed(error);
            }
        }
    }
}
