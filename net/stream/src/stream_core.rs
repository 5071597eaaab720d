//! The state of a stream, and the way of messages through it.

use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError}; // for all streams of the process, so not part of any model
use std::time::Duration;

use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spandrel_sync::{Arc, Condition, Mutex, RwLock, ThreadContext, ThreadManager, Weak};

use crate::excess::Excess;
use crate::flow::TaskThreads;
use crate::module::{HEAD, ModuleCore, TaskSlot};
use crate::strategy::Operations;
use crate::task::{PassError, Place, PositionIn, Route, Sender};
use crate::topology::Topology;
use crate::wait::WaitEnd;
use crate::{Context, EnqueueFailure, Message, PutError, PutFailure, QueueStrategy, Side, Task, Wait};

/// The time after which a thread that waits for room looks again for a circle of waits.
const CIRCLE_CHECK: Duration = Duration::from_millis(50);

/// The function of a task's threads.
pub(crate) type ThreadBody = Box<dyn Fn(&ThreadContext) + Send + Sync>;

/// Makes the function of a task's threads. A stream for one thread alone has none.
pub(crate) type MakeThreadBody<L> = fn(&Arc<StreamCore<L>>, &Arc<ModuleCore<L>>, Side) -> ThreadBody;

/// The state of a stream.
pub(crate) struct StreamCore<L: QueueStrategy> {
    pub(crate) name: String,
    pub(crate) topology: RwLock<Arc<Topology<L>>>,
    /// Held during a change of the stream.
    pub(crate) change: Mutex<()>,
    pub(crate) next_slot: AtomicU64,
    /// Counts the messages that queues hold beyond their limits.
    pub(crate) excess: Arc<Excess>,
    pub(crate) threads: ThreadManager,
    pub(crate) make_thread_body: Option<MakeThreadBody<L>>,
    pub(crate) is_closed: AtomicBool,
    pub(crate) is_suspended: Mutex<bool>,
    pub(crate) resumed: Condition,
    /// The receiver of messages above the head; without it, the head queues them for the application.
    pub(crate) above: RwLock<Option<Beyond<L>>>,
    /// The receiver of messages below the tail.
    pub(crate) below: RwLock<Option<Beyond<L>>>,
}

/// The receiver of messages beyond an end of a stream.
pub(crate) enum Beyond<L: QueueStrategy> {
    /// Another stream, whose tail is linked with this one's.
    Stream(Weak<StreamCore<L>>),
    Multiplexor(Arc<dyn Attachment<L> + Send + Sync>),
}

/// The attachment of one end of a stream to a multiplexor.
pub(crate) trait Attachment<L: QueueStrategy> {
    /// Passes a message on that comes from the end of the stream.
    fn pass(&self, message: Message, sender: Sender<'_>) -> Result<(), PutError>;

    /// The streams in which such messages may go on.
    fn next(&self) -> Vec<Arc<StreamCore<L>>>;

    /// Ends the binding of the stream.
    fn detach(&self);

    /// Whether the multiplexor exists.
    fn is_alive(&self) -> bool;
}

/// Held while streams are linked and attached, so that the search for circles sees all links.
pub(crate) fn linking() -> MutexGuard<'static, ()> {
    static LINKING: StdMutex<()> = StdMutex::new(());
    LINKING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<L: QueueStrategy> Beyond<L> {
    fn pass(&self, message: Message, sender: Sender<'_>) -> Result<(), PutError> {
        match self {
            Self::Stream(linked) => match linked.upgrade() {
                Some(linked) => linked.put_up(message, sender),
                None => Err(PutError { reason: PutFailure::Unclaimed, message }),
            },
            Self::Multiplexor(attachment) => attachment.pass(message, sender),
        }
    }

    /// Whether there is something that can take messages.
    pub(crate) fn is_alive(&self) -> bool {
        match self {
            Self::Stream(linked) => linked.strong_count() > 0,
            Self::Multiplexor(attachment) => attachment.is_alive(),
        }
    }
}

impl<L: QueueStrategy> Clone for Beyond<L> {
    fn clone(&self) -> Self {
        match self {
            Self::Stream(linked) => Self::Stream(Weak::clone(linked)),
            Self::Multiplexor(attachment) => Self::Multiplexor(Arc::clone(attachment)),
        }
    }
}

impl<L: QueueStrategy> StreamCore<L> {
    pub(crate) fn topology(&self) -> Arc<Topology<L>> {
        Arc::clone(&self.topology.read())
    }

    pub(crate) fn is_present(&self, topology: &Arc<Topology<L>>) -> bool {
        Arc::ptr_eq(&self.topology.read(), topology)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Waits until no queue holds more than its limits allow, here and in a linked stream; returns whether that is so.
    fn has_room(&self, wait: Wait) -> bool {
        let end = if self.excess.is_none() { WaitEnd::Now } else { wait.end() };
        if !self.excess.until_none(end) {
            return false;
        }
        let linked = match &*self.below.read() {
            Some(Beyond::Stream(linked)) => linked.upgrade(),
            _ => None,
        };
        linked.is_none_or(|linked| linked.excess.is_none() || linked.excess.until_none(wait.end()))
    }

    /// Makes consumers of the module's queues wait if the stream is suspended or the module stopped.
    pub(crate) fn apply_pauses(&self, module: &ModuleCore<L>) {
        let is_suspended = self.is_suspended.lock();
        for side in [Side::Reader, Side::Writer] {
            // The application takes messages from the head, whatever the modules do.
            let is_head = module.name == HEAD;
            module.slot(side).queue.set_paused((*is_suspended && !is_head) || module.is_stopped());
        }
    }

    /// Passes a message up from below the lowest module.
    pub(crate) fn put_up(self: &Arc<Self>, message: Message, sender: Sender<'_>) -> Result<(), PutError> {
        let route = StreamRoute { stream: Arc::clone(self), topology: self.topology() };
        match route.topology.modules.len().checked_sub(1) {
            Some(module) => route.pass(Place { module, side: Side::Reader }, message, sender),
            None => Err(PutError { reason: PutFailure::Closed, message }),
        }
    }

    /// Passes a message down from above the highest module.
    pub(crate) fn put_down(self: &Arc<Self>, message: Message, sender: Sender<'_>) -> Result<(), PutError> {
        let route = StreamRoute { stream: Arc::clone(self), topology: self.topology() };
        if route.topology.modules.is_empty() {
            return Err(PutError { reason: PutFailure::Closed, message });
        }
        route.deliver(Place { module: 0, side: Side::Writer }, message, sender)
    }

    /// Ends the link of the tail, or its attachment; the caller holds [`linking`].
    pub(crate) fn unlink_below(&self) -> bool {
        let below = self.below.write().take();
        match &below {
            None => {}
            Some(Beyond::Stream(linked)) => _ = linked.upgrade().map(|linked| linked.below.write().take()),
            Some(Beyond::Multiplexor(attachment)) => attachment.detach(),
        }
        below.is_some_and(|below| below.is_alive())
    }

    /// Ends the attachment of the head; the caller holds [`linking`].
    pub(crate) fn unlink_above(&self) {
        let above = self.above.write().take();
        if let Some(Beyond::Multiplexor(attachment)) = above {
            attachment.detach();
        }
    }
}

/// A list of modules of a stream, by which messages go.
pub(crate) struct StreamRoute<L: QueueStrategy> {
    pub(crate) stream: Arc<StreamCore<L>>,
    pub(crate) topology: Arc<Topology<L>>,
}

impl<L: QueueStrategy> StreamRoute<L> {
    fn slot(&self, place: Place) -> &TaskSlot<L> {
        self.topology.modules[place.module].slot(place.side)
    }

    #[inline]
    fn deliver(&self, place: Place, message: Message, sender: Sender<'_>) -> Result<(), PutError> {
        Context::new(self, place, sender).deliver(message)
    }

    /// The stream's present list of modules.
    fn now(&self) -> Self {
        Self { stream: Arc::clone(&self.stream), topology: self.stream.topology() }
    }

    /// Passes a message on although the next module was removed: to its replacement, or to the next one that is still there.
    #[cold]
    fn pass_around(&self, from: Place, message: Message, sender: Sender<'_>) -> Result<(), PutError> {
        let (now, modules) = (self.now(), &self.topology.modules);
        let present = |module: &Arc<ModuleCore<L>>| now.topology.position_of_slot(module.slot_id());
        let next = match from.side {
            Side::Writer => modules[from.module + 1..].iter().find_map(present),
            Side::Reader => modules[..from.module].iter().rev().find_map(present),
        };
        match next {
            Some(module) => now.deliver(Place { module, ..from }, message, sender),
            None => Err(PutError { reason: PutFailure::Closed, message }),
        }
    }

    /// Waits for room in a queue, in a thread of a task.
    fn putq_of_task(
        &self,
        place: Place,
        mut message: Message,
        position: PositionIn<L>,
        origin: &TaskThreads,
        sender: Sender<'_>,
    ) -> Result<(), PutError> {
        let slot = self.slot(place);
        let wait = origin.wait_for(&slot.threads);
        loop {
            let is_in_circle = wait.is_in_circle();
            let refused = if is_in_circle {
                slot.queue.enqueue_beyond_at(message, position)
            } else {
                slot.queue.enqueue_at(message, position, Wait::For(CIRCLE_CHECK))
            };
            let Err(refused) = refused else { return Ok(()) };
            if refused.reason == EnqueueFailure::Closed {
                drop(wait);
                return self.put_past_closed(place, refused.item, sender);
            }
            message = refused.item;
        }
    }

    /// The queue is closed: the module was removed or has failed, or the stream is closed.
    fn put_past_closed(&self, place: Place, message: Message, sender: Sender<'_>) -> Result<(), PutError> {
        let module = &self.topology.modules[place.module];
        if !module.is_removed() {
            let reason = if self.slot(place).has_failed() { PutFailure::Failed } else { PutFailure::Closed };
            return Err(PutError { reason, message });
        }
        let now = self.now();
        match now.topology.position_of_slot(module.slot_id()) {
            // Its replacement.
            Some(module) => now.deliver(Place { module, ..place }, message, sender),
            None => self.pass_around(place, message, sender),
        }
    }
}

impl<L: QueueStrategy> Route<L> for StreamRoute<L> {
    fn stream_name(&self) -> &str {
        &self.stream.name
    }

    fn module_name(&self, module: usize) -> &str {
        &self.topology.modules[module].name
    }

    fn task(&self, place: Place) -> &dyn Task<L> {
        &*self.slot(place).task
    }

    #[inline]
    fn receiver(&self, place: Place) -> &dyn Task<L> {
        let slot = self.slot(place);
        slot.received.increase();
        &*slot.task
    }

    fn queue(&self, place: Place) -> &L::Queue {
        &self.slot(place).queue
    }

    #[inline]
    fn pass(&self, from: Place, message: Message, sender: Sender<'_>) -> Result<(), PutError> {
        let next = match from.side {
            Side::Writer => from.module + 1,
            Side::Reader => from.module.wrapping_sub(1),
        };
        match self.topology.modules.get(next) {
            Some(module) if !module.is_removed() => self.deliver(Place { module: next, ..from }, message, sender),
            Some(_) => self.pass_around(from, message, sender),
            // Above the head and below the tail.
            None => {
                let is_closed = self.stream.is_closed();
                let reason = if is_closed { PutFailure::Closed } else { PutFailure::Unclaimed };
                Err(PutError { reason, message })
            }
        }
    }

    fn pass_beyond(&self, side: Side, message: Message, sender: Sender<'_>) -> Result<(), PassError> {
        let end = match side {
            Side::Reader => &self.stream.above,
            Side::Writer => &self.stream.below,
        };
        // The lock is not held while other streams take the message.
        let beyond = end.read().clone();
        match beyond {
            Some(beyond) => beyond.pass(message, sender).map_err(PassError::Put),
            None => Err(PassError::Nothing(message)),
        }
    }

    fn putq(
        &self,
        place: Place,
        message: Message,
        position: PositionIn<L>,
        sender: Sender<'_>,
    ) -> Result<(), PutError> {
        // A thread of a task first looks whether others wait for it. A message from outside comes behind those that tasks
        // have queued beyond limits.
        let wait = if sender.origin.is_some() { Wait::Never } else { sender.wait };
        if sender.origin.is_none() && !self.stream.has_room(wait) {
            return Err(PutError { reason: PutFailure::Full, message });
        }
        let refused = match self.queue(place).enqueue_at(message, position, wait) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        match (refused.reason, sender.origin) {
            (EnqueueFailure::Closed, _) => self.put_past_closed(place, refused.item, sender),
            (EnqueueFailure::Full, None) => Err(PutError { reason: PutFailure::Full, message: refused.item }),
            (EnqueueFailure::Full, Some(origin)) => self.putq_of_task(place, refused.item, position, origin, sender),
        }
    }

    fn set_stopped(&self, module: usize, is_stopped: bool) {
        let module = &self.topology.modules[module];
        module.set_stopped(is_stopped);
        self.stream.apply_pauses(module);
    }
}
