//! A task that is a service.

use std::error::Error;
use std::time::Duration;

use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};
use spandrel_sync::{Arc, Mutex};

use crate::{Message, Module, PutError, PutFailure, Stream, Task, Wait};

/// The time that the threads of a task may take to end.
const END: Duration = Duration::from_secs(5);

/// A task as a service of its own, such as one whose threads take work from its queue (`ACE_Task`, which is a
/// `ACE_Service_Object`).
///
/// `static` and `dynamic` directives link it: its arguments make the task, which is opened then, and closed when the service
/// is removed. A suspended service processes no messages; those that it gets wait.
pub struct TaskService<M> {
    make: M,
    stream: Mutex<Option<Arc<Stream>>>,
}

impl<M, T> TaskService<M>
where
    M: Fn(&ServiceContext<'_>, &[String]) -> Result<T, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    T: Task,
{
    /// A service whose task is made by a function of the service's name and arguments.
    pub fn new(make: M) -> Self {
        Self { make, stream: Mutex::new(None) }
    }

    /// Gives the task a message, through the stream that holds it.
    ///
    /// # Errors
    /// [`PutError`] with the message; [`PutFailure::Closed`] if the service is not linked.
    pub fn put(&self, message: Message, wait: Wait) -> Result<(), PutError> {
        let stream = self.stream.lock().clone(); // not locked while it waits
        match stream {
            Some(stream) => stream.put(message, wait),
            None => Err(PutError { reason: PutFailure::Closed, message }),
        }
    }
}

impl<M, T> SharedObject for TaskService<M>
where
    M: Fn(&ServiceContext<'_>, &[String]) -> Result<T, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    T: Task,
{
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let task = (self.make)(context, arguments)?;
        let stream = Stream::new(context.name());
        stream.suspend();
        stream.push(Module::writer(context.name(), task))?;
        *self.stream.lock() = Some(Arc::new(stream));
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        match self.stream.lock().take() {
            Some(stream) => Ok(stream.close(END)?),
            None => Ok(()),
        }
    }

    fn info(&self) -> String {
        let name = self.stream.lock().as_ref().map(|stream| stream.name().to_owned());
        format!("task {}", name.unwrap_or_default())
    }
}

impl<M, T> ServiceObject for TaskService<M>
where
    M: Fn(&ServiceContext<'_>, &[String]) -> Result<T, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    T: Task,
{
    fn suspend(&self) -> ServiceResult {
        self.stream.lock().as_ref().inspect(|stream| stream.suspend());
        Ok(())
    }

    fn resume(&self) -> ServiceResult {
        self.stream.lock().as_ref().inspect(|stream| stream.resume());
        Ok(())
    }
}

impl<M> std::fmt::Debug for TaskService<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskService").field("stream", &self.stream).finish_non_exhaustive()
    }
}
