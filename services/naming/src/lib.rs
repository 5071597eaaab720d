//! The OMG's naming service (Naming Service 1.3, formal/04-10-03): names for object references, in contexts that
//! are kept on disk.
//!
//! [`NamingService::start`] adds the service to an ORB. The executable `spandrel-naming` does so in a process of its
//! own. A [`Store`] holds the graph; [`RedbStore`] keeps it in a file, with a redo log beside it.
//!
//! The service checks no identity of clients: [`NamingOptions::path_check`] is the place for that.
#![forbid(unsafe_code)]

mod arguments;
mod bootstrap;
mod context;
mod deferral;
pub mod encoding;
mod failure;
mod iterators;
pub mod omni_log;
mod purge;
mod redb_store;
mod service;
pub mod store;

pub use arguments::NamingArgs;
pub use redb_store::{RedbStore, RedbStoreOptions, Synchronization};
pub use service::{ADAPTER, BOOTSTRAP_KEY, NamingError, NamingOptions, NamingService, ROOT_KEY, STORE_FILE};
pub use spandrel_daemon::{IteratorOptions, PurgeOptions};
pub use spandrel_store::OpenError;
pub use store::Store;
