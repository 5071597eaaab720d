//! The replies of asynchronous servants: those that a thread of their executor has ready one after the other leave in one
//! write.
//!
//! A short reply is held if further deferred requests of the connection are unanswered. The first one that is held
//! schedules a task, which writes all of them: it runs in the same executor, behind the futures that are ready now. So it
//! needs no thread to be woken that does not run anyway, and a reply waits for the other replies that come at once,
//! not for those whose servants still wait for something.
//!
//! The held replies leave earlier
//!
//! - with the reply of the last deferred request, with that of a synchronous servant, and with any that is sent by a
//!   thread which polls no request;
//! - with a reply 500 µs after the first of them, and beyond 16 KiB;
//! - before a call that blocks the thread which has held one, a request of this side over the connection, the end of the
//!   reading and CloseConnection;
//! - at the next look of the [monitor](crate::monitor), if a servant blocks the executor;
//! - when the executor drops the task.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use spandrel_cdr::Encoder;
use spandrel_orb::internal::{PollScope, held_replies};
use spandrel_sync::Arc;

use super::{ServerConnection, link::HeldUntilTask};
use crate::upcall::origin::UpcallServices as _;

impl ServerConnection {
    /// Holds the reply to a deferred request while others are unanswered. False if it must be sent at once.
    #[cold]
    pub(super) fn hold_for_others(&self, answer: &Encoder<'_>) -> bool {
        if !self.is_polled_here() || !held_replies::record_for_task(&self.weak_self) {
            return false;
        }
        let begin = || self.pipeline.begin_schedule();
        let Some(HeldUntilTask { progress, needs_task }) = self.link.hold_until_task(answer, begin) else {
            return false;
        };
        self.go_on_writing(progress);
        if needs_task {
            self.schedule_uncork();
        }
        true
    }

    /// Whether this thread polls a request of the ORB.
    fn is_polled_here(&self) -> bool {
        // Models answer deferred requests in threads of their own.
        if cfg!(shuttle) {
            self.resources.settings.spawner.is_some()
        } else {
            PollScope::is_inside_of(self.orb.instance())
        }
    }

    fn schedule_uncork(&self) {
        self.resources.upcall_monitor.record_upcall();
        // The ORB's own executors run tasks in their order. Others may run the last one first, unless it has yielded.
        let must_yield = self.resources.settings.spawner.is_some();
        let mut task = Some(UncorkTask { connection: self.shared(), must_yield });
        let spawned = self.resources.with_spawner(&mut |spawner| {
            if let Some(task) = task.take() {
                spawner.spawn(Box::pin(task));
            }
        });
        if let Err(error) = spawned {
            tracing::debug!(%error, "no thread to write held replies");
        }
    }
}

/// The task that writes the held replies of a connection, at the latest when it is dropped.
struct UncorkTask {
    connection: Arc<ServerConnection>,
    must_yield: bool,
}

impl Future for UncorkTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !std::mem::take(&mut self.must_yield) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for UncorkTask {
    fn drop(&mut self) {
        // A forked copy would write into the replies of the original.
        if !self.connection.orb.is_copied() {
            self.connection.link.end_uncork_task();
            self.connection.end_holding();
        }
    }
}
