//! The usual head and tail of a stream.

use spandrel_sync::{Monitor, Weak};

use crate::{Context, Message, PutError, PutFailure, Side, Task};

/// The upper end: queues messages for the application.
pub(crate) struct Head;

impl<L: Monitor> Task<L> for Head {
    fn put(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
        match context.side() {
            Side::Writer => context.put_next(message),
            Side::Reader => context.putq(message),
        }
    }
}

/// The lower end: passes messages to a linked stream.
pub(crate) struct Tail;

impl<L: Monitor> Task<L> for Tail {
    fn put(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
        if context.side() == Side::Reader {
            return context.put_next(message);
        }
        let linked = context.stream.link.read().as_ref().and_then(Weak::upgrade);
        match linked {
            Some(linked) => linked.put_up(message, context.origin, context.wait),
            None => Err(PutError { reason: PutFailure::Unclaimed, message }),
        }
    }
}
