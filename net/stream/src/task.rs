//! Tasks, and the contexts in which their methods run.

use std::fmt;
use std::time::Duration;

use spandrel_sync::{Arc, Monitor, Mutex, ThreadContext};

use crate::control::{Answer, Query};
use crate::flow::TaskThreads;
use crate::module::ModuleCore;
use crate::stream::StreamCore;
use crate::topology::Topology;
use crate::{DequeueError, EnqueueFailure, Flush, Message, MessageKind, MessageQueue, Position, Wait};

/// The time after which a thread that waits for room looks again for a circle of waits.
const CIRCLE_CHECK: Duration = Duration::from_millis(50);

/// The direction of a task's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Up: from the tail to the application.
    Reader,
    /// Down: from the application to the tail.
    Writer,
}

impl Side {
    /// The other direction.
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
/// Its methods run in threads of its neighbours, of the application, and its own, at the same time. `L` is the locking
/// strategy of its queue.
pub trait Task<L: Monitor = Mutex>: Send + Sync + 'static {
    /// Called before the module becomes part of a stream. A task that has threads of its own starts them here
    /// ([`OpenContext::activate`]).
    ///
    /// # Errors
    /// An error refuses the module; the stream is unchanged then.
    fn open(&self, context: &OpenContext<'_, L>) -> Result<(), TaskError> {
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

    /// Runs in each thread of the task: takes messages from the queue until it is closed.
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
}

/// A message that was not taken.
#[derive(thiserror::Error)]
#[error("the message was not taken: {}", match reason {
    PutFailure::Closed => "the stream is closed",
    PutFailure::Full => "a queue is full",
    PutFailure::Unclaimed => "nothing takes it at the end of the stream",
    PutFailure::Refused => "a task refuses it",
})]
pub struct PutError {
    /// The reason.
    pub reason: PutFailure,
    /// The message.
    pub message: Message,
}

impl PutError {
    /// The refusal of a message by a task.
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

/// A task with what a stream keeps for it.
pub(crate) struct TaskSlot<L: Monitor> {
    pub(crate) task: Box<dyn Task<L>>,
    pub(crate) queue: MessageQueue<Message, L>,
    pub(crate) threads: Arc<TaskThreads>,
}

/// The place of a task in its stream, for one message: argument of [`Task::put`] and [`Task::control`].
pub struct Context<'s, L: Monitor = Mutex> {
    pub(crate) stream: &'s Arc<StreamCore<L>>,
    pub(crate) topology: &'s Arc<Topology<L>>,
    /// The index of the module in the topology.
    pub(crate) position: usize,
    pub(crate) side: Side,
    /// The threads to which the current one belongs, if it is that of a task.
    pub(crate) origin: Option<&'s Arc<TaskThreads>>,
    /// The time that a queue may make the message wait.
    pub(crate) wait: Wait,
}

impl<L: Monitor> Clone for Context<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Monitor> Copy for Context<'_, L> {}

impl<'s, L: Monitor> Context<'s, L> {
    fn module(&self) -> &'s ModuleCore<L> {
        &self.topology.modules[self.position]
    }

    fn slot(&self) -> &'s TaskSlot<L> {
        self.module().slot(self.side)
    }

    /// The name of the task's module.
    #[must_use]
    pub fn module_name(&self) -> &'s str {
        &self.module().name
    }

    /// The name of the stream.
    #[must_use]
    pub fn stream_name(&self) -> &'s str {
        &self.stream.name
    }

    /// The direction of the task.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// The task of the other direction of the same module.
    #[must_use]
    pub fn sibling(&self) -> &'s dyn Task<L> {
        &*self.module().slot(self.side.opposite()).task
    }

    /// The task's queue.
    #[must_use]
    pub fn queue(&self) -> &'s MessageQueue<Message, L> {
        &self.slot().queue
    }

    /// Passes a message to the next task of the same direction.
    ///
    /// # Errors
    /// [`PutError`] of the tasks after this one that process the message in this thread.
    #[inline]
    pub fn put_next(&self, message: Message) -> Result<(), PutError> {
        self.put_from(self.side, message)
    }

    /// Sends a message back: to the task of the opposite direction in the module from which this one receives.
    ///
    /// # Errors
    /// As [`put_next`](Self::put_next).
    pub fn reply(&self, message: Message) -> Result<(), PutError> {
        self.put_from(self.side.opposite(), message)
    }

    /// Passes a message to the neighbour in the given direction.
    fn put_from(&self, side: Side, message: Message) -> Result<(), PutError> {
        let next = match side {
            Side::Writer => self.position + 1,
            Side::Reader => self.position.wrapping_sub(1),
        };
        match self.topology.modules.get(next) {
            Some(module) if !module.is_removed() => Context { position: next, side, ..*self }.deliver(message),
            Some(_) => self.put_around(side, message),
            // Above the head and below the tail.
            None => Err(PutError { reason: self.end_failure(), message }),
        }
    }

    fn end_failure(&self) -> PutFailure {
        if self.stream.is_closed() { PutFailure::Closed } else { PutFailure::Unclaimed }
    }

    /// Passes a message on although the next module was removed: to its replacement, or to the next one that is still there.
    #[cold]
    fn put_around(&self, side: Side, message: Message) -> Result<(), PutError> {
        let current = self.stream.topology();
        let modules = &self.topology.modules;
        let present = |module: &Arc<ModuleCore<L>>| current.position_of_slot(module.slot_id());
        let next = match side {
            Side::Writer => modules[self.position + 1..].iter().find_map(present),
            Side::Reader => modules[..self.position].iter().rev().find_map(present),
        };
        match next {
            Some(position) => Context { topology: &current, position, side, ..*self }.deliver(message),
            None => Err(PutError { reason: PutFailure::Closed, message }),
        }
    }

    /// Gives a message to the task of this context.
    #[inline]
    pub(crate) fn deliver(&self, message: Message) -> Result<(), PutError> {
        let task = &*self.slot().task;
        match message.kind() {
            MessageKind::Data | MessageKind::Protocol => task.put(self, message),
            MessageKind::Flush(_) | MessageKind::Request(_) => task.control(self, message),
        }
    }

    /// Queues a message behind those that the task has not processed yet.
    ///
    /// A full queue makes the calling thread wait: that of an application as long as its call allows; that of a task
    /// until there is room, or at once with a message more than the limit where tasks would wait for each other in a
    /// circle. If the module is removed meanwhile, the message goes to the next one.
    ///
    /// # Errors
    /// [`PutError`].
    pub fn putq(&self, message: Message) -> Result<(), PutError> {
        self.putq_at(message, Position::Tail)
    }

    /// As [`putq`](Self::putq), at another place in the queue.
    ///
    /// # Errors
    /// As [`putq`](Self::putq).
    pub fn putq_at(&self, message: Message, position: Position) -> Result<(), PutError> {
        let queue = self.queue();
        let first_wait = if self.origin.is_some() { Wait::Never } else { self.wait };
        let refused = match queue.enqueue(message, position, first_wait) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        match (refused.reason, self.origin) {
            (EnqueueFailure::Closed, _) => self.put_past_closed(refused.item),
            (EnqueueFailure::Full, None) => Err(PutError { reason: PutFailure::Full, message: refused.item }),
            (EnqueueFailure::Full, Some(origin)) => self.putq_of_task(origin, refused.item, position),
        }
    }

    /// Waits for room, in a thread of a task.
    fn putq_of_task(
        &self,
        origin: &TaskThreads,
        mut message: Message,
        position: Position,
    ) -> Result<(), PutError> {
        let queue = self.queue();
        let wait = origin.wait_for(&self.slot().threads);
        loop {
            let is_in_circle = wait.is_in_circle();
            let refused = if is_in_circle {
                queue.enqueue_beyond(message, position)
            } else {
                queue.enqueue(message, position, Wait::For(CIRCLE_CHECK))
            };
            let Err(refused) = refused else { return Ok(()) };
            if refused.reason == EnqueueFailure::Closed {
                drop(wait);
                return self.put_past_closed(refused.item);
            }
            message = refused.item;
            if is_in_circle {
                return Err(PutError { reason: PutFailure::Full, message });
            }
        }
    }

    /// The queue is closed: the module was removed, or the stream is closed.
    fn put_past_closed(&self, message: Message) -> Result<(), PutError> {
        if !self.module().is_removed() {
            return Err(PutError { reason: PutFailure::Closed, message });
        }
        let current = self.stream.topology();
        match current.position_of_slot(self.module().slot_id()) {
            // Its replacement.
            Some(position) => Context { topology: &current, position, ..*self }.deliver(message),
            None => self.put_around(self.side, message),
        }
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
                        self.module().slot(side).queue.flush();
                    }
                }
                self.put_next(message)
            }
            MessageKind::Request(request) => {
                let query = request.query();
                if !request.is_for(&self.module().name) || matches!(query, Query::Custom(_)) {
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
        let [reader, writer] = [Side::Reader, Side::Writer].map(|side| &self.module().slot(side).queue);
        match query {
            Query::WaterMarks => Answer::WaterMarks { reader: reader.water_marks(), writer: writer.water_marks() },
            Query::SetWaterMarks(marks) => {
                reader.set_water_marks(marks);
                writer.set_water_marks(marks);
                Answer::Done
            }
            Query::Stop | Query::Start => {
                self.module().set_stopped(query == Query::Stop);
                self.stream.apply_pauses(self.module());
                Answer::Done
            }
            Query::Custom(_) => Answer::Custom(None),
        }
    }
}

impl<L: Monitor> fmt::Debug for Context<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("module", &self.module_name()).field("side", &self.side).finish_non_exhaustive()
    }
}

/// The argument of [`Task::open`].
pub struct OpenContext<'s, L: Monitor = Mutex> {
    pub(crate) stream: &'s Arc<StreamCore<L>>,
    pub(crate) module: &'s Arc<ModuleCore<L>>,
    pub(crate) side: Side,
}

impl<L: Monitor> OpenContext<'_, L> {
    /// The name of the task's module.
    #[must_use]
    pub fn module_name(&self) -> &str {
        &self.module.name
    }

    /// The direction of the task.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// Starts threads that run [`Task::svc`]. They begin when the module is part of the stream.
    ///
    /// # Errors
    /// If the system has no more threads; none was started then.
    pub fn activate(&self, threads: usize) -> Result<(), TaskError>
    where
        MessageQueue<Message, L>: Send + Sync,
    {
        let (stream, module, side) = (Arc::clone(self.stream), Arc::clone(self.module), self.side);
        let slot = module.slot(side);
        slot.threads.started(threads);
        let name = format!("{}-{}", self.stream.name, module.name);
        let body = {
            let module = Arc::clone(&module);
            move |thread: &ThreadContext| ServiceContext::run(&stream, &module, side, thread)
        };
        module.group(self.stream).spawn_n(threads, name.as_str(), body).map_err(|error| {
            (0..threads).for_each(|_| slot.threads.ended());
            TaskError(error.to_string())
        })
    }
}

impl<L: Monitor> fmt::Debug for OpenContext<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = &self.module.name;
        f.debug_struct("OpenContext").field("module", module).field("side", &self.side).finish_non_exhaustive()
    }
}

/// A thread of a task: argument of [`Task::svc`].
pub struct ServiceContext<'s, L: Monitor = Mutex> {
    stream: &'s Arc<StreamCore<L>>,
    module: &'s Arc<ModuleCore<L>>,
    side: Side,
    thread: &'s ThreadContext,
    /// A topology with the module in it, and the module's index.
    topology: Arc<Topology<L>>,
    position: usize,
    /// The changes of the stream that are known, as pulses of the queue.
    pulses: u64,
}

impl<'s, L: Monitor> ServiceContext<'s, L> {
    /// Runs the task's `svc` in this thread.
    fn run(stream: &'s Arc<StreamCore<L>>, module: &'s Arc<ModuleCore<L>>, side: Side, thread: &'s ThreadContext) {
        struct Ended<'s>(&'s TaskThreads);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.ended();
            }
        }
        let slot = module.slot(side);
        let _ended = Ended(&slot.threads);
        let pulses = slot.queue.pulses();
        let topology = stream.topology();
        let Some(position) = topology.position_of(module) else { return }; // it was removed at once
        let mut context = Self { stream, module, side, thread, topology, position, pulses };
        slot.task.svc(&mut context);
    }

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
        loop {
            let taken = self.module.slot(self.side).queue.dequeue_after(&mut self.pulses, wait);
            self.refresh();
            match taken {
                Err(DequeueError::Pulsed) => {} // the stream has changed
                taken => return taken,
            }
        }
    }

    /// Continues with the stream's present modules. A removed module keeps its last neighbours.
    fn refresh(&mut self) {
        if self.stream.is_present(&self.topology) {
            return;
        }
        let topology = self.stream.topology();
        if let Some(position) = topology.position_of(self.module) {
            (self.topology, self.position) = (topology, position);
        }
    }

    /// The index of the thread among those that the task has started together, from zero.
    #[must_use]
    pub fn thread_index(&self) -> usize {
        self.thread.index()
    }

    /// The task's place in the stream for the message that was taken last.
    #[must_use]
    pub fn context(&self) -> Context<'_, L> {
        Context {
            stream: self.stream,
            topology: &self.topology,
            position: self.position,
            side: self.side,
            origin: Some(&self.module.slot(self.side).threads),
            wait: Wait::Forever,
        }
    }

    /// Passes a message to the next task ([`Context::put_next`]).
    ///
    /// # Errors
    /// [`PutError`].
    pub fn put_next(&self, message: Message) -> Result<(), PutError> {
        self.context().put_next(message)
    }
}

impl<L: Monitor> fmt::Debug for ServiceContext<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = &self.module.name;
        f.debug_struct("ServiceContext").field("module", module).field("side", &self.side).finish_non_exhaustive()
    }
}
