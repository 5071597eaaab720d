//! Services of shared libraries.
//!
//! The boundary between a process and a library is that of `include/spandrel_service.h`: C functions and structures, so that
//! a library can be written in C, and no type of Rust crosses it. A library in Rust implements
//! [`ServiceObject`](crate::ServiceObject), and exports it by [`export_services!`](crate::export_services).
//!
//! Each library is mapped from a private copy of its file: so a file that was built again is a new library, also while the old
//! one is in use. (Libraries that it names by paths relative to its own place, `$ORIGIN`, are not found from the copy.) It is
//! unmapped when its last service, handler, thread and call have ended; a service that leaves threads behind is reported, and
//! its library stays.

mod abi;
mod export;
mod foreign;
mod host;
mod library;
mod message;

use std::time::Duration;

pub use abi::{Abi, RawService};
pub use export::{exported_module, exported_service};
pub use foreign::{ForeignModule, RefusedMessage};
pub(crate) use library::{FileStamp, ForeignFactory, Libraries, Library, LibraryUse, find_library, standard_folders};
pub use message::{ForeignKind, ForeignMessage};

use crate::SharedObject;

/// The maximum length of a service's description, in octets.
const MAX_INFO: usize = 4096;
/// The time that a factory may take.
const MAKE_TIME: Duration = Duration::from_secs(10);

/// The direction of a message through a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleSide {
    /// Up: to the application.
    Reader = 0,
    /// Down: from the application.
    Writer = 1,
}

/// The neighbours of a module, during one call.
pub trait NextTask {
    /// Passes a message to the next module in the same direction. False if it was not taken; it is gone all the same.
    fn put_next(&self, message: ForeignMessage) -> bool;

    /// Sends a message back, to the module from which messages of this direction come.
    fn reply(&self, message: ForeignMessage) -> bool;
}

/// A module that a shared library exports: a layer of a stream.
pub trait ModuleObject: SharedObject {
    /// Processes a message, and passes it or others on. Several threads may call it at the same time.
    ///
    /// # Errors
    /// The message, if the module refuses it.
    fn put(&self, side: ModuleSide, message: ForeignMessage, next: &dyn NextTask) -> Result<(), RefusedMessage>;
}
