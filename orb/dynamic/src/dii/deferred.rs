//! Deferred requests: sent now and answered later.

use std::{future::Future, task::Poll};

use spandrel_giop::{SystemException, minor};

use super::{
    Request, RequestError,
    pending::Pending,
    request::{State, bad_inv_order},
};

/// Deferred sending (11.2.5 to 11.2.7).
impl Request {
    /// Sends the request, and returns at once: the reply is collected later.
    ///
    /// # Errors
    /// BAD_INV_ORDER while an earlier reply is outstanding. [`Request::get_response`] reports errors of
    /// sending.
    pub fn send_deferred(&mut self) -> Result<(), SystemException> {
        self.check_not_pending()?;
        self.state = State::Idle;
        let answer =
            self.described(|| self.target.invoke_raw_async(self.operation.clone(), true, |out| self.write(out)));
        self.state = State::Pending(Pending(answer));
        self.was_deferred = true;
        Ok(())
    }

    /// Whether it was sent and its reply was not collected yet.
    #[must_use]
    pub fn is_response_expected(&self) -> bool {
        matches!(self.state, State::Pending(_))
    }

    /// Whether its reply has arrived. Does not wait.
    ///
    /// # Errors
    /// BAD_INV_ORDER if it was not sent, if it was not sent deferred, or if its reply was collected.
    pub fn poll_response(&self) -> Result<bool, SystemException> {
        Ok(self.pending()?.has_arrived())
    }

    pub(super) fn pending(&self) -> Result<&Pending, SystemException> {
        match &self.state {
            State::Pending(pending) => Ok(pending),
            State::Idle => Err(bad_inv_order(minor::REQUEST_NOT_SENT)),
            _ if self.was_deferred => Err(bad_inv_order(minor::RESULT_ALREADY_RECEIVED)),
            _ => Err(bad_inv_order(minor::REQUEST_IS_SYNCHRONOUS)),
        }
    }

    /// Waits for its reply, up to the reference's time-out.
    ///
    /// # Errors
    /// As [`Request::invoke`]; BAD_INV_ORDER as [`Request::poll_response`].
    pub fn get_response(&mut self) -> Result<(), RequestError> {
        self.pending()?;
        let State::Pending(mut pending) = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(bad_inv_order(minor::REQUEST_NOT_SENT).into());
        };
        let answer = pending.wait()?;
        self.accept(answer)
    }

    /// Sends it at once. The future is ready when the reply has arrived, and stores the results in this
    /// request. A drop of the future before that abandons the reply.
    pub fn invoke_async(&mut self) -> impl Future<Output = Result<(), RequestError>> + Send + '_ {
        let sent = self.send_deferred().map(|()| AbandonOnDrop(self));
        async move {
            let abandons = sent?;
            let answered = std::future::poll_fn(|cx| match &mut abandons.0.state {
                State::Pending(pending) => pending.poll(cx),
                _ => Poll::Ready(Err(bad_inv_order(minor::REQUEST_NOT_SENT))),
            });
            let answered = answered.await;
            let request = &mut *abandons.0;
            request.state = State::Failed;
            request.accept(answered?)
        }
    }
}

/// A future that waits for a request's reply. Dropped before, it abandons the reply.
struct AbandonOnDrop<'r>(&'r mut Request);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        if matches!(self.0.state, State::Pending(_)) {
            self.0.state = State::Idle;
        }
    }
}
