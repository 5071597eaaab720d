//! Requests that are not taken: too long, or for want of memory. They are answered, and the connection goes on.

use spandrel_cdr::{Encoder, GiopVersion};
use spandrel_giop::{CompletionStatus, ReplyStatus, SystemException, begin_reply, exception_detail, ids, minor};

use super::ServerConnection;
use crate::{
    reader::{Dropped, NoRoom, ReadError, Why},
    server::origin::AnswerKind,
    statistics::Event,
};

impl ServerConnection {
    /// What came instead of a message. An error that concerns one request only is answered.
    ///
    /// # Errors
    /// What ends the connection.
    pub(super) fn go_on_after(&self, error: ReadError) -> Result<(), ReadError> {
        match error {
            ReadError::Dropped(dropped) => {
                self.answer_dropped(&dropped);
                Ok(())
            }
            other => Err(other),
        }
    }

    #[cold]
    fn answer_dropped(&self, dropped: &Dropped) {
        let exception = refusal(&dropped.why);
        log_limited!(
            warn, self.orb, "request refused", peer = %self.link.peer(), request_id = dropped.request_id, %exception, "refused a request"
        );
        self.orb.statistics().note(match dropped.why {
            Why::TooLong { .. } => Event::RefusedTooLong,
            Why::NoRoom(_) => Event::RefusedMemory,
        });
        if !dropped.is_answered {
            return;
        }
        let mut out = Encoder::new(self.link.wire(GiopVersion::V1_2));
        let says_more = self.orb.settings().serving.sends_exception_details;
        let detail = if says_more { exception_detail(&exception) } else { None };
        let body = begin_reply(&mut out, dropped.request_id, ReplyStatus::SystemException, detail.as_slice());
        match exception.encode(&mut out).and_then(|()| body.end(&mut out)) {
            Ok(()) => drop(self.send(&out, AnswerKind::Refusal)),
            Err(error) => tracing::error!(%error, "an exception could not be marshaled"),
        }
    }
}

/// The exception for a request that is not taken.
fn refusal(why: &Why) -> SystemException {
    match why {
        Why::TooLong { .. } => {
            SystemException::imp_limit(ids::IMP_LIMIT_MESSAGE, CompletionStatus::No).with_detail(|| why.to_string())
        }
        Why::NoRoom(no_room) => no_memory(no_room),
    }
}

/// The exception for a request that there is no memory for now.
pub(super) fn no_memory(no_room: &NoRoom) -> SystemException {
    SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(|| no_room.to_string())
}
