//! Notice of flow control: tasks that wait until the peer takes data again.
//!
//! The transport tells whether it takes data. Each end of the write queue notifies the tasks, as does the end of the
//! connection. They look again then, since other threads write, too.

use std::{task::Waker, time::Duration};

use spandrel_giop::SystemException;
use spandrel_ipc::{Interest, wait_ready};
use spandrel_sync::{Arc, Mutex};

use super::{super::ClientConnection, wake};
use crate::client::ClientReactor;

/// The tasks that wait until a connection's peer takes data.
#[derive(Debug, Default)]
pub(super) struct FlowWaiters(Mutex<Vec<Waker>>);

impl FlowWaiters {
    fn add(&self, waker: &Waker) {
        // Cloned outside of the lock: it runs code of the program.
        let mut waker = Some(waker.clone());
        let mut wakers = self.0.lock();
        if !wakers.iter().any(|other| waker.as_ref().is_some_and(|waker| other.will_wake(waker))) {
            wakers.extend(waker.take());
        }
        drop(wakers);
        drop(waker);
    }

    pub(super) fn notify(&self) {
        let wakers = std::mem::take(&mut *self.0.lock());
        wakers.into_iter().for_each(wake);
    }
}

impl ClientConnection {
    /// Whether a message would wait here, because the peer does not take data.
    pub(crate) fn is_flow_controlled(&self) -> bool {
        let has_room = |ready: Interest| ready.intersects(Interest::OUTPUT);
        let pollable = self.transport.pollable().filter(|_| !self.is_retired());
        // After an error the next write reports it.
        pollable
            .is_some_and(|pollable| !wait_ready(pollable, Interest::OUTPUT, Some(Duration::ZERO)).is_ok_and(has_room))
    }

    /// Has a task notified when the peer may take data again, or the connection has ended.
    ///
    /// # Errors
    /// NO_RESOURCES if the reactor cannot be started.
    pub(crate) fn notify_of_flow(
        self: &Arc<Self>,
        client_reactor: &ClientReactor,
        waker: &Waker,
    ) -> Result<(), SystemException> {
        client_reactor.register_connection(self)?;
        self.async_state().flow_waiters.add(waker);
        self.async_state().registration.want_output();
        Ok(())
    }
}
