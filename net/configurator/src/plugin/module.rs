//! Modules of streams, on both sides of the boundary.

use super::message::ForeignMessage;
use crate::service_object::SharedObject;

/// A message that a module refuses, returned to its sender.
#[derive(Debug)]
pub struct RefusedMessage(pub ForeignMessage);

/// The direction of a message through a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleSide {
    /// Up: to the application.
    Reader = 0,
    /// Down: from the application.
    Writer = 1,
}

/// The neighbours of a module, during one call of [`ModuleObject::put`] or [`ModuleObject::svc`].
pub trait NextTask {
    /// Passes a message to the next module in the same direction. False if it was not taken; it is gone all the same.
    fn put_next(&self, message: ForeignMessage) -> bool;

    /// Sends a message back, to the module from which messages of this direction come.
    fn reply(&self, message: ForeignMessage) -> bool;
}

/// The thread of a module, during [`ModuleObject::svc`]. Its messages go up, to the application.
pub trait ModuleThread: NextTask {
    /// Whether the module is part of its stream. While the module or the stream is suspended, the call waits.
    fn is_running(&self) -> bool;
}

/// A module that a shared library exports: a layer of a stream.
pub trait ModuleObject: SharedObject {
    /// Processes a message, and passes it or others on. Several threads may call it at the same time.
    ///
    /// # Errors
    /// The message, if the module refuses it.
    fn put(&self, side: ModuleSide, message: ForeignMessage, next: &dyn NextTask) -> Result<(), RefusedMessage>;

    /// Whether [`svc`](Self::svc) runs in a thread of the module. Called once, before `init`.
    fn has_thread(&self) -> bool {
        false
    }

    /// Brings messages into the stream, in a thread that begins when the module is part of the stream. It returns soon after
    /// [`ModuleThread::is_running`] is false: the removal of the module waits five seconds for it.
    fn svc(&self, thread: &dyn ModuleThread) {
        _ = thread;
    }
}
