//! Replies that have come over an adopted connection, until the reactor completes their calls.
//!
//! A call that is completed may call this peer again, and wait for a reply that the reading thread would have to read. So
//! the reactor completes the calls. Those whose replies come before it begins are completed together: their tasks are
//! woken once, and the requests that they append leave in one write.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use spandrel_sync::{Arc, Mutex};

use super::{
    super::{ClientConnection, CloseOnPanic, Reply, pending_calls::ReplyReceiver},
    AdoptedReader,
    registration::write_appended,
    wake_batch::WakeBatch,
};

/// The replies of one connection.
#[derive(Debug, Default)]
pub(super) struct ArrivedReplies(Mutex<Arrived>);

#[derive(Debug, Default)]
struct Arrived {
    replies: Vec<(Arc<dyn ReplyReceiver>, Reply)>,
    /// Whether a task of the reactor takes the replies.
    is_scheduled: bool,
}

impl ClientConnection {
    /// Has the reactor complete a call.
    pub(super) fn complete_in_other_thread(
        self: &Arc<Self>,
        adopted_reader: &dyn AdoptedReader,
        receiver: Arc<dyn ReplyReceiver>,
        reply: Reply,
    ) {
        let mut arrived = self.async_state().arrived.0.lock();
        arrived.replies.push((receiver, reply));
        if mem::replace(&mut arrived.is_scheduled, true) {
            return;
        }
        drop(arrived);
        // Without a reactor, its drop removes the reply.
        if let Err(exception) = adopted_reader.run_in_other_thread(Box::pin(Completion(Some(Arc::clone(self))))) {
            tracing::error!(%exception, "no thread could be started to notify a call of its reply");
        }
    }

    /// Completes the calls whose replies have arrived. Returns whether further ones have meanwhile.
    fn complete_arrived(&self) -> bool {
        let state = self.async_state();
        let replies = mem::take(&mut state.arrived.0.lock().replies);
        state.registration.begin_turn();
        let guard = CloseOnPanic(self);
        let batch = WakeBatch::begin();
        replies.into_iter().for_each(|(receiver, reply)| receiver.complete(Ok(Some(reply))));
        batch.wake_all(|| ());
        drop(batch);
        drop(guard);
        write_appended(self);
        state.registration.update_interest(true);
        let mut arrived = state.arrived.0.lock();
        arrived.is_scheduled = !arrived.replies.is_empty();
        arrived.is_scheduled
    }
}

/// The task that completes the calls of a connection; `None` once it has ended.
struct Completion(Option<Arc<ClientConnection>>);

impl Future for Completion {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.0.as_ref().is_some_and(|connection| connection.complete_arrived()) {
            self.0 = None;
            return Poll::Ready(());
        }
        // After the other connections of the reactor.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        // A reactor that has ended completes none. The calls would own their connection.
        let Some(connection) = self.0.take() else { return };
        let left = mem::take(&mut *connection.async_state().arrived.0.lock());
        drop(left);
    }
}
