//! The connection of a proxy with its peer, and the end of tasks that serve it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use spandrel::net::sync::Mutex;
use spandrel::services::cos_event_channel_admin::AlreadyConnected;
use spandrel::{CompletionStatus, ObjectRef, SystemException};

/// The state of a proxy. A proxy connects once.
#[derive(Clone, Debug)]
pub(crate) enum Connection {
    Unconnected,
    /// The connection is being made durable.
    Connecting,
    /// With the reference of the peer; without one the peer gets no notice of a disconnection.
    Connected(Option<ObjectRef>),
    Disconnected,
}

/// The connection of a proxy, for several threads.
#[derive(Debug)]
pub(crate) struct ConnectionCell(Mutex<Connection>);

impl ConnectionCell {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Connection::Unconnected))
    }

    pub(crate) fn get(&self) -> Connection {
        self.0.lock().clone()
    }

    pub(crate) fn is_connected(&self) -> bool {
        matches!(*self.0.lock(), Connection::Connected(_))
    }

    pub(crate) fn is_unconnected(&self) -> bool {
        matches!(*self.0.lock(), Connection::Unconnected)
    }

    /// Connects the proxy after `store`, which makes the connection durable. No lock is held meanwhile. If the proxy is
    /// disconnected at the same time, `undo` removes the stored connection.
    ///
    /// # Errors
    /// `AlreadyConnected`; OBJECT_NOT_EXIST after a disconnection; the error of `store`.
    pub(crate) fn connect<E: From<AlreadyConnected> + From<SystemException>>(
        &self,
        peer: Option<&ObjectRef>,
        store: impl FnOnce() -> Result<(), SystemException>,
        undo: impl FnOnce(),
    ) -> Result<(), E> {
        let is_gone = || E::from(SystemException::object_not_exist(0, CompletionStatus::No));
        {
            let mut connection = self.0.lock();
            match *connection {
                Connection::Unconnected => *connection = Connection::Connecting,
                Connection::Connecting | Connection::Connected(_) => return Err(AlreadyConnected {}.into()),
                Connection::Disconnected => return Err(is_gone()),
            }
        }
        let stored = store();
        let mut connection = self.0.lock();
        match (&*connection, stored) {
            (Connection::Connecting, Ok(())) => {
                *connection = Connection::Connected(peer.cloned());
                Ok(())
            }
            (Connection::Connecting, Err(exception)) => {
                *connection = Connection::Unconnected;
                Err(exception.into())
            }
            _ => {
                drop(connection);
                undo();
                Err(is_gone())
            }
        }
    }

    /// Ends the connection. Returns the state before.
    pub(crate) fn disconnect(&self) -> Connection {
        std::mem::replace(&mut *self.0.lock(), Connection::Disconnected)
    }
}

/// The end of a task, which another thread causes.
#[derive(Debug, Default)]
pub(crate) struct TaskEnd(Mutex<TaskState>);

#[derive(Debug, Default)]
struct TaskState {
    has_ended: bool,
    waker: Option<Waker>,
}

impl TaskEnd {
    /// Ends the task at its next wait.
    pub(crate) fn end(&self) {
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
    pub(crate) async fn or<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            {
                let mut state = self.0.lock();
                if state.has_ended {
                    return Poll::Ready(None);
                }
                state.waker = Some(context.waker().clone());
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }
}
