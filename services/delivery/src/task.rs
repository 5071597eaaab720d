//! The end of tasks, which another thread causes.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use spandrel::net::sync::Mutex;

/// Tells a connection's task to end. Shared by the task and the threads that disconnect its proxy.
#[derive(Debug, Default)]
pub struct TaskEnd(Mutex<TaskState>);

#[derive(Debug, Default)]
struct TaskState {
    has_ended: bool,
    waker: Option<Waker>,
}

impl TaskEnd {
    /// Ends the task at its next wait.
    pub fn end(&self) {
        let waker = {
            let mut state = self.0.lock();
            state.has_ended = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The output of a future; `None` if the task is to end before.
    pub async fn or<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            {
                let mut state = self.0.lock();
                if state.has_ended {
                    return Poll::Ready(None);
                }
                if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                    state.waker = Some(context.waker().clone());
                }
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }
}
