//! Requests that are rejected because they are too long or exceed a memory limit. They are answered with an
//! exception, and the connection goes on.

use spandrel_cdr::{Encoder, GiopVersion};
use spandrel_giop::{CompletionStatus, ReplyStatus, SystemException, begin_reply, exception_detail, ids, minor};
use spandrel_orb::statistics::Event;
use spandrel_transport::{DiscardedRequest, MemoryLimitExceeded, ReadError, RejectReason};

use super::ServerConnection;
use crate::upcall::origin::AnswerKind;

impl ServerConnection {
    /// Handles a failure to read a message. If it concerns one request only, that request is answered.
    ///
    /// # Errors
    /// Failures that end the connection.
    pub(super) fn handle_read_failure(&self, error: ReadError) -> Result<(), ReadError> {
        match error {
            ReadError::Discarded(request) => {
                self.answer_discarded(&request);
                Ok(())
            }
            other => Err(other),
        }
    }

    #[cold]
    fn answer_discarded(&self, request: &DiscardedRequest) {
        let exception = refusal(&request.reason);
        log_limited!(
            warn, self.resources, "request refused", peer = %self.link.peer(), request_id = request.request_id, %exception, "refused a request"
        );
        self.orb.statistics().note(match request.reason {
            RejectReason::TooLong { .. } => Event::RefusedTooLong,
            RejectReason::MemoryLimit(_) => Event::RefusedMemory,
        });
        if !request.expects_reply {
            return;
        }
        let mut out = Encoder::new(self.link.wire(GiopVersion::V1_2));
        let says_more = self.resources.settings.sends_exception_details;
        let detail = if says_more { exception_detail(&exception) } else { None };
        let body = begin_reply(&mut out, request.request_id, ReplyStatus::SystemException, detail.as_slice());
        match exception.encode(&mut out).and_then(|()| body.end(&mut out)) {
            Ok(()) => drop(self.send(&out, AnswerKind::Refusal)),
            Err(error) => tracing::error!(%error, "an exception could not be marshaled"),
        }
    }
}

/// The exception for a rejected request.
fn refusal(reason: &RejectReason) -> SystemException {
    match reason {
        RejectReason::TooLong { .. } => {
            SystemException::imp_limit(ids::IMP_LIMIT_MESSAGE, CompletionStatus::No).with_detail(|| reason.to_string())
        }
        RejectReason::MemoryLimit(exceeded) => no_memory(exceeded),
    }
}

/// TRANSIENT for a request that exceeds a memory limit at present.
pub(super) fn no_memory(exceeded: &MemoryLimitExceeded) -> SystemException {
    SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(|| exceeded.to_string())
}
