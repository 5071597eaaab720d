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
#[cfg(not(any(windows, target_vendor = "apple")))]
mod elf;
mod export;
mod factory;
mod foreign;
mod host;
pub(crate) mod library;
mod message;
mod module;
mod object;
mod own_reactor;

pub use abi::{Abi, RawService};
pub use export::{exported_module, exported_service};
pub(crate) use factory::{ForeignFactory, make};
pub use foreign::ForeignModule;
pub(crate) use library::{FileStamp, Libraries, Library, LibraryUse, find_library, standard_folders};
pub use message::{ForeignKind, ForeignMessage};
pub use module::{ModuleObject, ModuleSide, ModuleThread, NextTask, RefusedMessage};
