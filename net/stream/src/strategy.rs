//! Queues of tasks as type parameters: with a lock, or without.

use std::fmt;

use spandrel_sync::{Arc, Monitor};

use crate::excess::Excess;
use crate::wait::WaitEnd;
use crate::{DequeueError, EnqueueError, LockFreeQueue, LockWaits, Message, MessageQueue, Position, Wait, WaterMarks};

/// A strategy for the queues of a stream: each locking strategy ([`MessageQueue`]), or [`LockFree`]
/// ([`LockFreeQueue`]).
///
/// A task that is written for any strategy works in streams of each:
///
/// ```
/// use std::time::Duration;
///
/// use spandrel_stream::{
///     Asynchronous, Context, LockFree, Message, Module, PutError, QueueStrategy, Service, Stream, Wait,
/// };
/// use spandrel_sync::Mutex;
///
/// struct Returning;
///
/// impl<L: QueueStrategy> Service<L> for Returning {
///     fn process(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
///         context.reply(message)
///     }
/// }
///
/// fn use_it<L: QueueStrategy<Queue: Send + Sync>>() -> Result<(), Box<dyn std::error::Error>> {
///     let stream = Stream::<L>::new("echo");
///     stream.push(Module::writer("returning", Asynchronous::new(Returning)))?;
///     stream.put(Message::data(b"hello".into()), Wait::Forever)?;
///     assert_eq!(&**stream.get(Wait::Forever)?.block().unwrap(), b"hello");
///     Ok(stream.close(Duration::from_secs(1))?)
/// }
/// use_it::<Mutex>()?;
/// use_it::<LockFree>()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait QueueStrategy: 'static {
    /// The queue in which a task keeps its messages.
    type Queue: TaskQueue;
}

impl<L: Monitor> QueueStrategy for L {
    type Queue = MessageQueue<Message, L>;
}

/// The strategy of a stream whose queues are [`LockFreeQueue`]s.
///
/// Its tasks queue messages at the tail alone. Another position does not compile:
///
/// ```compile_fail,E0308
/// use spandrel_stream::{Context, LockFree, Message, Position, PutError, Task};
///
/// struct Urgent;
///
/// impl Task<LockFree> for Urgent {
///     fn put(&self, context: &Context<'_, LockFree>, message: Message) -> Result<(), PutError> {
///         context.putq_at(message, Position::Head)
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum LockFree {}

impl QueueStrategy for LockFree {
    type Queue = LockFreeQueue<Message>;
}

/// The only position at which an item enters a [`LockFreeQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail;

/// The queue of a task, for tasks that are written for any strategy. The queues of this crate implement it.
pub trait TaskQueue: Sized + Operations<<Self as TaskQueue>::Position> {
    /// The position at which a message enters it.
    type Position: Copy + fmt::Debug;
    /// The position behind all others.
    const TAIL: Self::Position;

    /// The messages that are queued.
    fn len(&self) -> usize;
    /// Whether no message is queued.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The octets of the queued messages.
    fn octets(&self) -> usize;
    /// Whether flow control makes producers wait.
    fn is_full(&self) -> bool;
    /// The water marks in force.
    fn water_marks(&self) -> WaterMarks;
    /// Replaces the water marks; waiting producers see the new ones.
    fn set_water_marks(&self, marks: WaterMarks);
    /// Drops all messages; returns their number.
    fn flush(&self) -> usize;
    /// The waits for the queue's lock; none in a queue without one.
    fn lock_waits(&self) -> LockWaits;
}

/// The operations of streams on the queues of their tasks.
pub trait Operations<P>: 'static {
    fn with_limits(marks: WaterMarks, excess: Arc<Excess>) -> Self;
    fn enqueue_at(&self, message: Message, position: P, wait: Wait) -> Result<(), EnqueueError<Message>>;
    fn enqueue_beyond_at(&self, message: Message, position: P) -> Result<(), EnqueueError<Message>>;
    fn take(&self, known_pulses: &mut u64, end: WaitEnd) -> Result<Message, DequeueError>;
    fn pulse_count(&self) -> u64;
    fn pulse_all(&self);
    fn set_paused(&self, is_paused: bool);
    fn end(&self);
    fn has_ended(&self) -> bool;
}

/// Implements the traits by the methods of the same meaning.
macro_rules! task_queue {
    ($($parameters:ident: $bound:ident)?, $queue:ty, $position:ty, $tail:expr, $enqueue:expr, $beyond:expr) => {
        impl<$($parameters: $bound)?> TaskQueue for $queue {
            type Position = $position;
            const TAIL: $position = $tail;

            fn len(&self) -> usize {
                self.len()
            }
            fn octets(&self) -> usize {
                self.octets()
            }
            fn is_full(&self) -> bool {
                self.is_full()
            }
            fn water_marks(&self) -> WaterMarks {
                self.water_marks()
            }
            fn set_water_marks(&self, marks: WaterMarks) {
                self.set_water_marks(marks);
            }
            fn flush(&self) -> usize {
                self.flush()
            }
            fn lock_waits(&self) -> LockWaits {
                self.lock_waits()
            }
        }

        impl<$($parameters: $bound)?> Operations<$position> for $queue {
            fn with_limits(marks: WaterMarks, excess: Arc<Excess>) -> Self {
                let queue = Self::new(marks);
                queue.set_excess(excess);
                queue
            }
            #[inline]
            fn enqueue_at(&self, message: Message, at: $position, wait: Wait) -> Result<(), EnqueueError<Message>> {
                $enqueue(self, message, at, wait)
            }
            fn enqueue_beyond_at(&self, message: Message, at: $position) -> Result<(), EnqueueError<Message>> {
                $beyond(self, message, at)
            }
            #[inline]
            fn take(&self, known_pulses: &mut u64, end: WaitEnd) -> Result<Message, DequeueError> {
                self.dequeue_after(known_pulses, end)
            }
            fn pulse_count(&self) -> u64 {
                self.pulses()
            }
            fn pulse_all(&self) {
                self.pulse();
            }
            fn set_paused(&self, is_paused: bool) {
                self.pause(is_paused);
            }
            fn end(&self) {
                self.close();
            }
            fn has_ended(&self) -> bool {
                self.is_closed()
            }
        }
    };
}

task_queue!(L: Monitor, MessageQueue<Message, L>, Position, Position::Tail, Self::enqueue, Self::enqueue_beyond);
task_queue!(
    , LockFreeQueue<Message>, Tail, Tail,
    |queue: &Self, message, Tail, wait| queue.enqueue(message, wait),
    |queue: &Self, message, Tail| queue.enqueue_beyond(message)
);
