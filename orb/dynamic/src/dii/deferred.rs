//! Deferred requests: sent now and answered later.

mod multiple;
mod pending;

use std::{any::Any, future::Future, task::Poll};

use spandrel_giop::{SystemException, minor};

use super::{
    Request, RequestError,
    request::{DeferredReply, State, bad_inv_order},
};
pub use multiple::{MultipleRequests, Responses};
use pending::Pending;

/// The reply of a deferred request; `None` once it was collected.
type Reply = Option<Pending>;

impl DeferredReply for Reply {
    fn is_expected(&self) -> bool {
        self.is_some()
    }
}

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
        self.deferred = Some(Box::new(Some(Pending(answer))));
        Ok(())
    }

    /// Whether it was sent and its reply was not collected yet.
    #[must_use]
    pub fn is_response_expected(&self) -> bool {
        self.check_not_pending().is_err()
    }

    /// Whether its reply has arrived. Does not wait.
    ///
    /// # Errors
    /// BAD_INV_ORDER if it was not sent, if it was not sent deferred, or if its reply was collected.
    pub fn poll_response(&self) -> Result<bool, SystemException> {
        Ok(self.pending()?.has_arrived())
    }

    fn pending(&self) -> Result<&Pending, SystemException> {
        let reply = self.deferred.as_deref().and_then(|reply| (reply as &dyn Any).downcast_ref::<Reply>());
        match (reply, &self.state) {
            (Some(reply), _) => reply.as_ref().ok_or_else(|| bad_inv_order(minor::RESULT_ALREADY_RECEIVED)),
            (None, State::Idle) => Err(bad_inv_order(minor::REQUEST_NOT_SENT)),
            (None, _) => Err(bad_inv_order(minor::REQUEST_IS_SYNCHRONOUS)),
        }
    }

    /// The outstanding reply, to be collected.
    fn reply(&mut self) -> Option<&mut Reply> {
        self.deferred.as_deref_mut().and_then(|reply| (reply as &mut dyn Any).downcast_mut())
    }

    /// Waits for its reply, up to the reference's time-out.
    ///
    /// # Errors
    /// As [`Request::invoke`]; BAD_INV_ORDER as [`Request::poll_response`].
    pub fn get_response(&mut self) -> Result<(), RequestError> {
        self.pending()?;
        self.state = State::Failed;
        let Some(mut pending) = self.reply().and_then(Option::take) else {
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
            let answered = std::future::poll_fn(|cx| match abandons.0.reply() {
                Some(Some(pending)) => pending.poll(cx),
                _ => Poll::Ready(Err(bad_inv_order(minor::REQUEST_NOT_SENT))),
            });
            let answered = answered.await;
            let request = &mut *abandons.0;
            request.state = State::Failed;
            request.reply().map(Option::take);
            request.accept(answered?)
        }
    }

    /// As [`send_oneway`](Self::send_oneway), asynchronously: the future is ready when the transport has accepted the request.
    ///
    /// # Errors
    /// As [`send_oneway`](Self::send_oneway).
    pub fn send_oneway_async(&mut self) -> impl Future<Output = Result<(), SystemException>> + Send + use<> {
        let sent = self
            .begin()
            .map(|()| self.described(|| self.target.send_oneway_async(self.operation.clone(), |out| self.write(out))));
        async move { sent?.await }
    }
}

/// A future that waits for a request's reply. Dropped before, it abandons the reply.
struct AbandonOnDrop<'r>(&'r mut Request);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        if self.0.is_response_expected() {
            self.0.deferred = None;
        }
    }
}
