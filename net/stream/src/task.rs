//! Tasks, and the contexts in which their methods run.

use std::fmt;

use spandrel_sync::{Arc, Mutex, ThreadContext};

use crate::control::{Answer, Query};
use crate::flow::TaskThreads;
use crate::wait::WaitEnd;
use crate::{DequeueError, Flush, Message, MessageKind, QueueStrategy, TaskQueue, Wait};

/// A position in the queue of a task.
pub(crate) type PositionIn<L> = <<L as QueueStrategy>::Queue as TaskQueue>::Position;

/// The direction of a task's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Up: from the tail to the application.
    Reader,
    /// Down: from the application to the tail.
    Writer,
}

impl Side {
    /// The side for messages in the other direction.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Reader => Self::Writer,
            Self::Writer => Self::Reader,
        }
    }
}

/// One direction of a module: it receives messages, processes them, and passes them on (`ACE_Task`; paper 002, 2.3.2).
///
/// Its methods run in threads of its neighbours, of the application, and its own, at the same time. `L` is the
/// strategy of its queue: a lock, or [`LockFree`](crate::LockFree).
pub trait Task<L: QueueStrategy = Mutex>: Send + Sync + 'static {
    /// Called before the module becomes part of a stream. A task that has threads of its own starts them here
    /// ([`OpenContext::activate`]).
    ///
    /// # Errors
    /// An error refuses the module; the stream is unchanged then.
    fn open(&self, context: &OpenContext<'_>) -> Result<(), TaskError> {
        _ = context;
        Ok(())
    }

    /// Called once after [`open`](Self::open), when the module belongs to no stream any more, and no thread is inside another
    /// method or can enter one.
    fn close(&self) {}

    /// Receives a message from the task before it, in the thread of that task. It processes the message and passes it on
    /// ([`Context::put_next`]), or queues it for [`svc`](Self::svc) ([`Context::putq`]).
    ///
    /// # Errors
    /// [`PutError`] with the message, if it cannot be processed.
    fn put(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError>;

    /// Runs in each thread of the task: takes messages from the queue until it is closed. A panic ends the thread; when
    /// the last one has ended so, messages for the task are refused ([`PutFailure::Failed`]).
    fn svc(&self, context: &mut ServiceContext<'_, L>) {
        _ = context;
    }

    /// Receives a message of the kind [`MessageKind::Flush`] or [`MessageKind::Request`]. Such messages pass queues.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    fn control(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
        context.control(message)
    }
}

/// The reason for which a task cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the task cannot be opened: {0}")]
pub struct TaskError(pub String);

/// The reason for which a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutFailure {
    /// The stream is closed.
    Closed,
    /// A queue was full for as long as the caller could wait.
    Full,
    /// The message came to the end of the stream, and nothing takes it there.
    Unclaimed,
    /// A task refuses the message.
    Refused,
    /// All threads of a task on its way have panicked.
    Failed,
}

/// A message that was not taken.
#[derive(thiserror::Error)]
#[error("the message was not taken: {}", match reason {
    PutFailure::Closed => "the stream is closed",
    PutFailure::Full => "a queue is full",
    PutFailure::Unclaimed => "nothing takes it at the end of the stream",
    PutFailure::Refused => "a task refuses it",
    PutFailure::Failed => "all threads of a task on its way have panicked",
})]
pub struct PutError {
    /// The state of the stream or task that prevented it.
    pub reason: PutFailure,
    /// The message, returned to its sender.
    pub message: Message,
}

impl PutError {
    /// The refusal of a message, which returns to its sender.
    #[must_use]
    pub fn refused(message: Message) -> Self {
        Self { reason: PutFailure::Refused, message }
    }
}

impl fmt::Debug for PutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The sender of a message.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'s> {
    /// The threads to which the current one belongs, if it is that of a task.
    pub(crate) origin: Option<&'s Arc<TaskThreads>>,
    /// The time that a queue may make the message wait.
    pub(crate) wait: Wait,
}

impl Sender<'_> {
    /// The application, or anything else outside of tasks.
    pub(crate) fn outside(wait: Wait) -> Self {
        Self { origin: None, wait }
    }
}

/// The place of a task: the index of its module, and the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) module: usize,
    pub(crate) side: Side,
}

impl Place {
    /// The task of the other direction of the same module.
    fn opposite(self) -> Self {
        Self { side: self.side.opposite(), ..self }
    }
}

/// The modules of a stream as their tasks see them: where messages go.
pub(crate) trait Route<L: QueueStrategy> {
    fn stream_name(&self) -> &str;
    fn module_name(&self, module: usize) -> &str;
    fn task(&self, place: Place) -> &dyn Task<L>;
    /// The task, which receives a message now.
    fn receiver(&self, place: Place) -> &dyn Task<L>;
    fn queue(&self, place: Place) -> &L::Queue;
    /// Passes a message to the next task in this direction.
    fn pass(&self, from: Place, message: Message, sender: Sender<'_>) -> Result<(), PutError>;
    /// Passes a message to what is beyond the end of the stream in this direction.
    fn pass_beyond(&self, side: Side, message: Message, sender: Sender<'_>) -> Result<(), PassError>;
    /// Queues a message for a task.
    fn putq(&self, place: Place, message: Message, position: PositionIn<L>, sender: Sender<'_>)
    -> Result<(), PutError>;
    /// Makes the threads of a module wait before their next message, or go on.
    fn set_stopped(&self, module: usize, is_stopped: bool);
}

/// The reason for which a message did not leave the stream.
pub(crate) enum PassError {
    /// There is nothing beyond the end.
    Nothing(Message),
    Put(PutError),
}

/// The place of a task in its stream, for one message: argument of [`Task::put`] and [`Task::control`].
pub struct Context<'s, L: QueueStrategy = Mutex> {
    route: &'s dyn Route<L>,
    place: Place,
    sender: Sender<'s>,
}

impl<L: QueueStrategy> Clone for Context<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: QueueStrategy> Copy for Context<'_, L> {}

impl<'s, L: QueueStrategy> Context<'s, L> {
    pub(crate) fn new(route: &'s dyn Route<L>, place: Place, sender: Sender<'s>) -> Self {
        Self { route, place, sender }
    }

    /// The name of the task's module.
    #[must_use]
    pub fn module_name(&self) -> &'s str {
        self.route.module_name(self.place.module)
    }

    /// The name of the stream.
    #[must_use]
    pub fn stream_name(&self) -> &'s str {
        self.route.stream_name()
    }

    /// The direction of the task.
    #[must_use]
    pub fn side(&self) -> Side {
        self.place.side
    }

    /// The task of the other direction of the same module.
    #[must_use]
    pub fn sibling(&self) -> &'s dyn Task<L> {
        self.route.task(self.place.opposite())
    }

    /// The queue in which this task keeps messages for its threads.
    #[must_use]
    pub fn queue(&self) -> &'s L::Queue {
        self.route.queue(self.place)
    }

    /// Passes a message to the next task of the same direction.
    ///
    /// # Errors
    /// [`PutError`] of the tasks after this one that process the message in this thread.
    #[inline]
    pub fn put_next(&self, message: Message) -> Result<(), PutError> {
        self.route.pass(self.place, message, self.sender)
    }

    /// Sends a message back: to the task of the opposite direction in the module from which this one receives.
    ///
    /// # Errors
    /// As [`put_next`](Self::put_next).
    pub fn reply(&self, message: Message) -> Result<(), PutError> {
        self.route.pass(self.place.opposite(), message, self.sender)
    }

    /// Passes a message to what is beyond this end of the stream.
    pub(crate) fn put_beyond(&self, message: Message) -> Result<(), PassError> {
        self.route.pass_beyond(self.place.side, message, self.sender)
    }

    /// Gives a message to the task of this context.
    #[inline]
    pub(crate) fn deliver(&self, message: Message) -> Result<(), PutError> {
        let task = self.route.receiver(self.place);
        match message.kind() {
            MessageKind::Data | MessageKind::Protocol => task.put(self, message),
            MessageKind::Flush(_) | MessageKind::Request(_) => task.control(self, message),
        }
    }

    /// Queues a message behind those that the task has not processed yet.
    ///
    /// A full queue makes the calling thread wait: that of an application as long as its call allows; that of a task
    /// until there is room, or at once with a message more than the limit where tasks would wait for each other in a
    /// circle.
    ///
    /// # Errors
    /// [`PutError`].
    pub fn putq(&self, message: Message) -> Result<(), PutError> {
        self.putq_at(message, L::Queue::TAIL)
    }

    /// As [`putq`](Self::putq), at another position of the queue.
    ///
    /// # Errors
    /// [`PutError`].
    pub fn putq_at(&self, message: Message, position: PositionIn<L>) -> Result<(), PutError> {
        self.route.putq(self.place, message, position, self.sender)
    }

    /// The usual treatment of a control message: it empties the queues that a flush names, answers the queries of
    /// [`Query`] that are for this module, and passes all others on.
    ///
    /// # Errors
    /// As [`put_next`](Self::put_next).
    pub fn control(&self, message: Message) -> Result<(), PutError> {
        match message.kind() {
            MessageKind::Flush(flush) => {
                for side in [Side::Reader, Side::Writer] {
                    if *flush == Flush::Both || (*flush == Flush::Reader) == (side == Side::Reader) {
                        self.route.queue(Place { side, ..self.place }).flush();
                    }
                }
                // At the end of the stream it is done.
                match self.put_next(message) {
                    Err(PutError { reason: PutFailure::Unclaimed, .. }) => Ok(()),
                    done => done,
                }
            }
            MessageKind::Request(request) => {
                let query = request.query();
                if !request.is_for(self.module_name()) || matches!(query, Query::Custom(_)) {
                    return self.put_next(message);
                }
                let answer = self.answer(query);
                if let MessageKind::Request(request) = message.into_kind() {
                    request.answer(answer);
                }
                Ok(())
            }
            MessageKind::Data | MessageKind::Protocol => self.put_next(message),
        }
    }

    fn answer(&self, query: Query) -> Answer {
        let [reader, writer] = [Side::Reader, Side::Writer].map(|side| self.route.queue(Place { side, ..self.place }));
        match query {
            Query::WaterMarks => Answer::WaterMarks { reader: reader.water_marks(), writer: writer.water_marks() },
            Query::SetWaterMarks(marks) => {
                reader.set_water_marks(marks);
                writer.set_water_marks(marks);
                Answer::Done
            }
            Query::Stop | Query::Start => {
                self.route.set_stopped(self.place.module, query == Query::Stop);
                Answer::Done
            }
            Query::Custom(_) => Answer::Custom(None),
        }
    }
}

impl<L: QueueStrategy> fmt::Debug for Context<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("module", &self.module_name())
            .field("side", &self.side())
            .finish_non_exhaustive()
    }
}

/// The module and the side of a task that is being opened.
pub struct OpenContext<'s> {
    pub(crate) module: &'s str,
    pub(crate) side: Side,
    /// Starts this number of threads that run `svc`.
    pub(crate) start: &'s dyn Fn(usize) -> Result<(), TaskError>,
}

impl OpenContext<'_> {
    /// The name of the task's module.
    #[must_use]
    pub fn module_name(&self) -> &str {
        self.module
    }

    /// The direction of the task.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// Starts threads that run [`Task::svc`]. They begin when the module is part of the stream.
    ///
    /// # Errors
    /// If the system has no more threads; none was started then. In a stream for one thread alone.
    pub fn activate(&self, threads: usize) -> Result<(), TaskError> {
        (self.start)(threads)
    }
}

impl fmt::Debug for OpenContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenContext").field("module", &self.module).field("side", &self.side).finish_non_exhaustive()
    }
}

/// A thread of a task in its stream.
pub(crate) trait TaskThread<L: QueueStrategy> {
    /// Takes the next message from the task's queue, and learns changes of the stream.
    fn take(&mut self, end: WaitEnd) -> Result<Message, DequeueError>;
    /// Waits while the stream or the module is suspended, and learns changes of the stream. False after the end.
    fn wait_until_running(&mut self) -> bool;
    fn route(&self) -> &dyn Route<L>;
    fn place(&self) -> Place;
    /// The threads of the task.
    fn threads(&self) -> &Arc<TaskThreads>;
}

/// The queue and the stream of a task's own thread, for [`Task::svc`].
pub struct ServiceContext<'s, L: QueueStrategy = Mutex> {
    pub(crate) running: &'s mut dyn TaskThread<L>,
    pub(crate) thread: &'s ThreadContext,
}

impl<L: QueueStrategy> ServiceContext<'_, L> {
    /// Takes the next message from the task's queue; waits while there is none.
    ///
    /// # Errors
    /// [`DequeueError::Closed`] when the module was removed or the stream closed, and the queue is empty.
    pub fn getq(&mut self) -> Result<Message, DequeueError> {
        self.getq_for(Wait::Forever)
    }

    /// As [`getq`](Self::getq), for a limited time.
    ///
    /// # Errors
    /// [`DequeueError::Closed`], or [`DequeueError::Empty`] after the time.
    pub fn getq_for(&mut self, wait: Wait) -> Result<Message, DequeueError> {
        self.running.take(wait.end())
    }

    /// Whether the module is part of its stream. While the stream or the module is suspended, the call waits. For a task that
    /// brings messages into the stream, and queues none: `getq` tells all others.
    pub fn is_running(&mut self) -> bool {
        self.running.wait_until_running()
    }

    /// The index of the thread among those that the task has started together, from zero.
    #[must_use]
    pub fn thread_index(&self) -> usize {
        self.thread.index()
    }

    /// The task's place in the stream for the message that was taken last.
    #[must_use]
    pub fn context(&self) -> Context<'_, L> {
        let sender = Sender { origin: Some(self.running.threads()), wait: Wait::Forever };
        Context::new(self.running.route(), self.running.place(), sender)
    }

    /// Passes a message to the next task ([`Context::put_next`]).
    ///
    /// # Errors
    /// [`PutError`].
    pub fn put_next(&self, message: Message) -> Result<(), PutError> {
        self.context().put_next(message)
    }
}

impl<L: QueueStrategy> fmt::Debug for ServiceContext<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceContext").field("context", &self.context()).finish_non_exhaustive()
    }
}
