//! The replies of asynchronous servants that have waited: those that a thread of their executor has ready one after the
//! other leave in one write.
//!
//! A short reply is held if further deferred requests of the connection are unanswered. The first one that is held
//! schedules a task, which writes all of them: it runs in the same executor, behind the futures that are ready now. So it
//! needs no thread to be woken that does not run anyway, and a reply waits for the other replies that come at once,
//! not for those whose servants still wait for something. Executors of applications have orders of their own: there the
//! task yields until no further reply is held meanwhile.
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
//!
//! While the thread that reads serves further requests from memory, it [holds](super::held_replies) all of them in
//! place of the task.

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
        if !PollScope::is_job_of(self.orb.instance()) || !held_replies::record_for_task(&self.weak_self) {
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

    /// Writes the replies that were held for the task, unless the thread that reads holds them meanwhile.
    fn end_uncork_task(&self) {
        if let Some(progress) = self.link.end_uncork_task() {
            self.go_on_writing(progress);
            self.pipeline.end_schedule();
            // Checked afterwards: a thread that began to close, or ended the reading, meanwhile found replies held.
            self.after_deferred();
        }
    }

    fn schedule_uncork(&self) {
        self.resources.upcall_monitor.record_upcall();
        // The ORB's own executors run tasks in their order. Others may run the last one first, unless it has yielded.
        let yields = self.resources.settings.spawner.is_some();
        let mut task = Some(UncorkTask { connection: self.shared(), yields, octets_before: 0, idle_polls: 0 });
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

/// How often the task runs in succession without a further reply before it writes those that are held. The executor of
/// tokio may run it twice before it takes the next task that another thread has spawned.
const MAX_IDLE_POLLS: u32 = 2;

/// The task that writes the held replies of a connection, at the latest when it is dropped.
struct UncorkTask {
    connection: Arc<ServerConnection>,
    /// Whether it yields as long as further replies are held each time.
    yields: bool,
    /// The octets that were held at the last poll.
    octets_before: usize,
    /// The polls in succession before which no further reply was held.
    idle_polls: u32,
}

impl Future for UncorkTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let octets = if self.yields { self.connection.link.octets_held_for_task() } else { None };
        let Some(octets) = octets else { return Poll::Ready(()) };
        self.idle_polls = if octets == self.octets_before { self.idle_polls + 1 } else { 0 };
        if self.idle_polls >= MAX_IDLE_POLLS {
            return Poll::Ready(());
        }
        self.octets_before = octets;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for UncorkTask {
    fn drop(&mut self) {
        // A forked copy would write into the replies of the original.
        if !self.connection.orb.is_copied() {
            self.connection.end_uncork_task();
        }
    }
}
