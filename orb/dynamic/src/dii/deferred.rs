//! Requests that are sent now and answered later.

use std::{future::Future, task::Poll};

use spandrel_giop::{SystemException, minor};

use super::{
    Request, RequestError,
    pending::Pending,
    request::{State, bad_inv_order},
};

/// Sending now what is answered later (11.2.5 to 11.2.7).
impl Request {
    /// Sends it, and returns at once: the answer is asked for later.
    ///
    /// # Errors
    /// BAD_INV_ORDER if it was sent before and is still to be answered. What keeps it from being sent is said by
    /// [`Request::get_response`].
    pub fn send_deferred(&mut self) -> Result<(), SystemException> {
        self.check_not_pending()?;
        self.state = State::Idle;
        let answer =
            self.described(|| self.target.invoke_raw_async(self.operation.clone(), true, |out| self.write(out)));
        self.state = State::Pending(Pending(answer));
        self.was_deferred = true;
        Ok(())
    }

    /// True if it was sent and its answer was not taken yet.
    #[must_use]
    pub fn is_response_expected(&self) -> bool {
        matches!(self.state, State::Pending(_))
    }

    /// True once its answer has come. Does not wait.
    ///
    /// # Errors
    /// BAD_INV_ORDER if it was not sent, if it was not sent to be answered later, or if its answer was taken.
    pub fn poll_response(&self) -> Result<bool, SystemException> {
        Ok(self.pending()?.has_come())
    }

    pub(super) fn pending(&self) -> Result<&Pending, SystemException> {
        match &self.state {
            State::Pending(pending) => Ok(pending),
            State::Idle => Err(bad_inv_order(minor::REQUEST_NOT_SENT)),
            _ if self.was_deferred => Err(bad_inv_order(minor::RESULT_ALREADY_RECEIVED)),
            _ => Err(bad_inv_order(minor::REQUEST_IS_SYNCHRONOUS)),
        }
    }

    /// Waits for its answer, as long as the reference's time-out says.
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

    /// Sends it at once; the future is ready when the answer has come, and what came back is this request's then. Dropping the
    /// future before abandons the answer.
    pub fn invoke_async(&mut self) -> impl Future<Output = Result<(), RequestError>> + Send + '_ {
        let sent = self.send_deferred().map(|()| Abandons(self));
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

/// A future that waits for a request's answer. Dropped before, it abandons it.
struct Abandons<'r>(&'r mut Request);

impl Drop for Abandons<'_> {
    fn drop(&mut self) {
        if matches!(self.0.state, State::Pending(_)) {
            self.0.state = State::Idle;
        }
    }
}
