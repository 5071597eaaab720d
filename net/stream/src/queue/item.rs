//! The items of queues, their limits, and the reasons for which they are not queued or taken.

use std::fmt;

use spandrel_sync::time::Instant;

/// An item of a [`MessageQueue`](crate::MessageQueue).
pub trait Queued {
    /// The octets for which it counts against the water marks.
    fn octets(&self) -> usize;

    /// The priority for [`Position::Priority`]; higher numbers come first.
    fn priority(&self) -> u32 {
        0
    }

    /// The time for [`Position::Deadline`]; items without one come last.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// The place at which an item enters a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Behind all items in the queue.
    Tail,
    /// Before all items in the queue.
    Head,
    /// Behind the last item of the same or a higher priority.
    Priority,
    /// Behind the last item with the same or an earlier deadline.
    Deadline,
}

/// The octets and items at which a queue begins and ends flow control.
///
/// A queue that has reached `high` octets is *flow controlled*: producers wait until its octets have fallen
/// to `low` and below `high`. So it holds at most `high` octets and one item more. It also holds at most `messages`
/// items, because items without octets need memory, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaterMarks {
    /// The octets from which on producers wait.
    pub high: usize,
    /// The octets at which waiting producers go on; at most `high`.
    pub low: usize,
    /// The most items, whatever their octets.
    pub messages: usize,
}

impl WaterMarks {
    /// 64 KiB and 32 KiB, and 4,096 items.
    pub const DEFAULT: Self = Self { high: 64 << 10, low: 32 << 10, messages: 4096 };

    /// These water marks in octets, and 4,096 items. A low water mark above the high one counts as equal to
    /// it.
    #[must_use]
    pub const fn new(high: usize, low: usize) -> Self {
        Self { high, low: if low < high { low } else { high }, messages: Self::DEFAULT.messages }
    }

    /// Sets the most items, whatever their octets.
    #[must_use]
    pub const fn messages(mut self, messages: usize) -> Self {
        self.messages = messages;
        self
    }
}

impl Default for WaterMarks {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The reason for which an item was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueFailure {
    /// The queue was flow controlled for all the time that the operation could wait.
    Full,
    /// The queue is closed.
    Closed,
}

/// An item that was not queued, returned to its producer.
#[derive(thiserror::Error)]
#[error("the item was not queued: {}", match reason {
    EnqueueFailure::Full => "the queue is full",
    EnqueueFailure::Closed => "the queue is closed",
})]
pub struct EnqueueError<T> {
    /// The state of the queue that prevented it.
    pub reason: EnqueueFailure,
    /// The item, returned to its producer.
    pub item: T,
}

impl<T> fmt::Debug for EnqueueError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The reason for which no item was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DequeueError {
    /// There was none for all the time that the operation could wait, or the queue was paused.
    #[error("the queue is empty")]
    Empty,
    /// The queue is closed and empty.
    #[error("the queue is closed")]
    Closed,
    /// [`MessageQueue::pulse`](crate::MessageQueue::pulse) was called during the wait.
    #[error("the wait was ended")]
    Pulsed,
}
