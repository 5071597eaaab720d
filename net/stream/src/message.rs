//! Messages, which tasks pass to each other by pointer.

use std::any::Any;
use std::fmt;

use spandrel_message::MessageBlock;
use spandrel_sync::time::Instant;

use crate::control::Request;

/// The meaning of a message to the modules that it passes.
#[derive(Debug)]
pub enum MessageKind {
    /// Data of the application.
    Data,
    /// Data between modules of a protocol, such as an acknowledgement.
    Protocol,
    /// Discards queued messages (see [`Flush`]).
    Flush(Flush),
    /// A request of [`Stream::control`](crate::Stream::control).
    Request(Request),
}

/// The queues that a message of the kind [`MessageKind::Flush`] empties, in each module that it passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Those of the tasks that pass messages up.
    Reader,
    /// Those of the tasks that pass messages down.
    Writer,
    /// Those of both directions.
    Both,
}

/// A message: its kind, optionally a control block, and optionally data (paper 002, 2.3.3).
///
/// A *simple* message has data or a control block; a *composite* message has a control block followed by data, which is a
/// chain of one or more [`MessageBlock`]s. A message is one pointer: tasks and queues move it and copy nothing.
///
/// ```
/// use spandrel_message::MessageBlock;
/// use spandrel_stream::Message;
///
/// struct Destination(u16);
///
/// let mut message = Message::data(MessageBlock::from(b"hello")).with_control(Destination(7)).with_priority(3);
/// assert_eq!(message.octets(), 5);
/// assert_eq!(message.control::<Destination>().unwrap().0, 7);
/// assert_eq!(&**message.block().unwrap(), b"hello");
/// ```
pub struct Message(Box<Parts>);

struct Parts {
    kind: MessageKind,
    priority: u32,
    deadline: Option<Instant>,
    control: Option<Box<dyn Any + Send>>,
    data: Option<MessageBlock>,
}

impl Message {
    /// A message without data.
    #[must_use]
    pub fn new(kind: MessageKind) -> Self {
        Self(Box::new(Parts { kind, priority: 0, deadline: None, control: None, data: None }))
    }

    /// A message with data of the application, without a priority of its own.
    #[must_use]
    pub fn data(block: MessageBlock) -> Self {
        let mut message = Self::new(MessageKind::Data);
        message.0.data = Some(block);
        message
    }

    /// Adds a control block: values for the next tasks, such as addresses.
    #[must_use]
    pub fn with_control<C: Any + Send>(mut self, control: C) -> Self {
        self.0.control = Some(Box::new(control));
        self
    }

    /// Sets the priority, by which [`Position::Priority`](crate::Position::Priority) orders messages; 0 without it.
    /// Higher numbers come first.
    #[must_use]
    pub fn with_priority(mut self, priority: u32) -> Self {
        self.0.priority = priority;
        self
    }

    /// Sets the time by which [`Position::Deadline`](crate::Position::Deadline) orders messages.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.0.deadline = Some(deadline);
        self
    }

    /// The purpose of the message: data, flush or request.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> &MessageKind {
        &self.0.kind
    }

    /// The priority, for queues that are ordered by it; higher ones come first.
    #[must_use]
    pub fn priority(&self) -> u32 {
        self.0.priority
    }

    /// The control block, if it is a `C`.
    #[must_use]
    pub fn control<C: Any>(&self) -> Option<&C> {
        self.0.control.as_ref()?.downcast_ref()
    }

    /// The control block for changes, if it is a `C`.
    #[must_use]
    pub fn control_mut<C: Any>(&mut self) -> Option<&mut C> {
        self.0.control.as_mut()?.downcast_mut()
    }

    /// Takes the control block out, if it is a `C`.
    #[must_use]
    pub fn take_control<C: Any>(&mut self) -> Option<Box<C>> {
        self.0.control.take_if(|control| control.is::<C>())?.downcast().ok()
    }

    /// The first block of the data; `None` for a message without data.
    #[inline]
    #[must_use]
    pub fn block(&self) -> Option<&MessageBlock> {
        self.0.data.as_ref()
    }

    /// The data for changes, such as a header in front.
    #[inline]
    #[must_use]
    pub fn block_mut(&mut self) -> Option<&mut MessageBlock> {
        self.0.data.as_mut()
    }

    /// Takes the data out.
    #[must_use]
    pub fn take_block(&mut self) -> Option<MessageBlock> {
        self.0.data.take()
    }

    /// Replaces the data; the kind and priority stay.
    pub fn set_block(&mut self, block: MessageBlock) {
        self.0.data = Some(block);
    }

    /// The octets of its data, all blocks of the chain together.
    #[inline]
    #[must_use]
    pub fn octets(&self) -> usize {
        self.0.data.as_ref().map_or(0, MessageBlock::total_len)
    }

    /// The kind and what belongs to it, by value.
    pub(crate) fn into_kind(self) -> MessageKind {
        self.0.kind
    }
}

impl crate::Queued for Message {
    #[inline]
    fn octets(&self) -> usize {
        Message::octets(self)
    }

    fn priority(&self) -> u32 {
        self.0.priority
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }
}

impl From<MessageBlock> for Message {
    fn from(block: MessageBlock) -> Self {
        Self::data(block)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = &*self.0;
        f.debug_struct("Message")
            .field("kind", &parts.kind)
            .field("octets", &self.octets())
            .field("priority", &parts.priority)
            .field("has_control", &parts.control.is_some())
            .finish_non_exhaustive()
    }
}
