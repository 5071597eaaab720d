//! The usual head and tail of a stream.

use crate::task::PassError;
use crate::{Context, Message, PutError, PutFailure, QueueStrategy, Side, Task};

/// An end of a stream, at which messages of this direction leave it: the head for those on their way up, the tail for
/// those on their way down. They go on in a linked stream or a multiplexor. Without these the head queues them for the
/// application, and the tail refuses them.
pub(crate) struct End(pub(crate) Side);

impl<L: QueueStrategy> Task<L> for End {
    fn put(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
        if context.side() != self.0 {
            return context.put_next(message);
        }
        match (context.put_beyond(message), self.0) {
            (Ok(()), _) => Ok(()),
            (Err(PassError::Nothing(message)), Side::Reader) => context.putq(message),
            (Err(PassError::Nothing(message)), Side::Writer) => {
                Err(PutError { reason: PutFailure::Unclaimed, message })
            }
            (Err(PassError::Put(error)), _) => Err(error),
        }
    }
}
