//! The usual head and tail of a stream.

use spandrel_sync::Monitor;

use crate::task::PassError;
use crate::{Context, Message, PutError, PutFailure, Side, Task};

/// The upper end: passes messages to a multiplexor above, or queues them for the application.
pub(crate) struct Head;

impl<L: Monitor> Task<L> for Head {
    fn put(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
        if context.side() == Side::Writer {
            return context.put_next(message);
        }
        match context.put_beyond(message) {
            Ok(()) => Ok(()),
            Err(PassError::Nothing(message)) => context.putq(message),
            Err(PassError::Put(error)) => Err(error),
        }
    }
}

/// The lower end: passes messages to a linked stream, or to a multiplexor below.
pub(crate) struct Tail;

impl<L: Monitor> Task<L> for Tail {
    fn put(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
        if context.side() == Side::Reader {
            return context.put_next(message);
        }
        match context.put_beyond(message) {
            Ok(()) => Ok(()),
            Err(PassError::Nothing(message)) => Err(PutError { reason: PutFailure::Unclaimed, message }),
            Err(PassError::Put(error)) => Err(error),
        }
    }
}
