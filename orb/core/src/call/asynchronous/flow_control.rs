//! Notice of flow control: whether requests would wait for their server, and the end of that time.

use std::{
    future::{Future, poll_fn},
    task::{Poll, Waker},
};

use spandrel_giop::SystemException;
use spandrel_sync::Arc;

use crate::{ObjectRef, client::ClientConnection};

impl ObjectRef {
    /// Whether a further request would wait, because the server does not read a connection of this reference's calls.
    /// A synchronous one-way blocks its thread then, and an asynchronous call is queued up to `-ORBBufferLimit`.
    ///
    /// A program that must not wait asks before it calls, and calls again after [`flow_resumed`](Self::flow_resumed) or
    /// [`on_flow_resumed`](Self::on_flow_resumed). Other threads may call in between. Without an open connection the
    /// answer is `false`.
    ///
    /// # Errors
    /// As for a call by a reference without a usable profile; BAD_INV_ORDER after shutdown.
    pub fn is_flow_controlled(&self) -> Result<bool, SystemException> {
        Ok(self.flow_controlled_connection()?.is_some())
    }

    /// Waits until the server reads all connections of this reference's calls, or they have ended.
    ///
    /// The future fails as [`is_flow_controlled`](Self::is_flow_controlled) does.
    ///
    /// ```
    /// use spandrel_orb::{ObjectRef, SystemException};
    ///
    /// /// Sends samples until the server is behind, and the rest once it has caught up.
    /// async fn send(sensor: &ObjectRef, samples: &[i32]) -> Result<(), SystemException> {
    ///     for sample in samples {
    ///         if sensor.is_flow_controlled()? {
    ///             sensor.flow_resumed().await?;
    ///         }
    ///         sensor.send_oneway("sample", |out| Ok(out.i32(*sample)))?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn flow_resumed(&self) -> impl Future<Output = Result<(), SystemException>> + Send + 'static + use<> {
        let object = self.clone();
        poll_fn(move |cx| match object.poll_flow(cx.waker()) {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(Ok(())),
            Err(exception) => Poll::Ready(Err(exception)),
        })
    }

    /// Runs `callback` once the server reads again, as [`flow_resumed`](Self::flow_resumed); at once if it does now. The
    /// ORB's thread for asynchronous calls runs it, and it must not block.
    ///
    /// # Errors
    /// As [`Orb::spawn`](crate::Orb::spawn).
    pub fn on_flow_resumed(
        &self,
        callback: impl FnOnce(Result<(), SystemException>) + Send + 'static,
    ) -> Result<(), SystemException> {
        let resumed = self.flow_resumed();
        self.orb().spawn(async move { callback(resumed.await) })
    }

    /// The first connection of calls by this reference whose peer does not take data.
    fn flow_controlled_connection(&self) -> Result<Option<Arc<ClientConnection>>, SystemException> {
        self.orb().check_running()?;
        if let Some(binding) = self.orb().binding_policies()
            && let Some(route) = binding.begin_call(self)?.route
        {
            return route.flow_controlled_connection();
        }
        let forward = self.forwarded();
        let destinations = self.destinations(forward.as_deref())?;
        let mut connections = destinations.iter().flat_map(|destination| destination.peer.connections());
        Ok(connections.find(|connection| connection.is_flow_controlled()))
    }

    fn poll_flow(&self, waker: &Waker) -> Result<bool, SystemException> {
        while let Some(connection) = self.flow_controlled_connection()? {
            connection.notify_of_flow(self.orb().client_reactor(), waker)?;
            // The notification may have come before the task was added.
            if connection.is_flow_controlled() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
