//! The connection of a proxy with its peer.

use spandrel::net::sync::Mutex;
use spandrel::services::cos_event_channel_admin::AlreadyConnected;
use spandrel::{CompletionStatus, ObjectRef, SystemException};

/// How far a proxy's connection to its consumer or supplier has come. It never goes back.
#[derive(Clone, Debug, Default)]
pub enum Connection {
    /// No peer was connected yet.
    #[default]
    Unconnected,
    /// The connection is being made durable.
    Connecting,
    /// With the reference of the peer; without one the peer gets no notice of a disconnection.
    Connected(Option<ObjectRef>),
    /// The connection has ended, and the proxy with it.
    Disconnected,
}

/// The state of a proxy's connection, which the threads of several calls change.
#[derive(Debug, Default)]
pub struct ConnectionCell(Mutex<Connection>);

impl ConnectionCell {
    /// The state at present, with the peer.
    #[must_use]
    pub fn get(&self) -> Connection {
        self.0.lock().clone()
    }

    /// Whether a peer is connected, durably.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(*self.0.lock(), Connection::Connected(_))
    }

    /// Refuses a call of a peer that must be connected, and whose operations have no exception of their own for it.
    ///
    /// # Errors
    /// BAD_INV_ORDER before the connection; OBJECT_NOT_EXIST after it, as from the deactivated object.
    pub fn require_connected(&self) -> Result<(), SystemException> {
        match *self.0.lock() {
            Connection::Connected(_) => Ok(()),
            Connection::Unconnected | Connection::Connecting => {
                Err(SystemException::bad_inv_order(0, CompletionStatus::No)
                    .with_detail("the peer of the proxy is not connected"))
            }
            Connection::Disconnected => Err(SystemException::object_not_exist(0, CompletionStatus::No)
                .with_detail("the peer of the proxy was disconnected")),
        }
    }

    /// Whether no peer has begun to connect.
    #[must_use]
    pub fn is_unconnected(&self) -> bool {
        matches!(*self.0.lock(), Connection::Unconnected)
    }

    /// Connects the proxy after `store`, which makes the connection durable. No lock is held meanwhile. If the proxy is
    /// disconnected at the same time, `undo` removes the stored connection.
    ///
    /// # Errors
    /// `AlreadyConnected`; OBJECT_NOT_EXIST after a disconnection; the error of `store`.
    pub fn connect<E: From<AlreadyConnected> + From<SystemException>>(
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
    #[must_use]
    pub fn disconnect(&self) -> Connection {
        std::mem::replace(&mut *self.0.lock(), Connection::Disconnected)
    }
}
