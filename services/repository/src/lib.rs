//! The CORBA Interface Repository (CORBA 3.3 Part 1, clause 14): definitions of IDL at run time.
//!
//! [`InterfaceRepository::start`] adds it to an ORB. Its definitions are kept in one file; each change is durable
//! before it is acknowledged. `spandrel idl --to-repository` fills it.
#![forbid(unsafe_code)]

mod core;
mod describe;
mod errors;
mod limits;
mod model;
mod servant;
mod service;
mod store;
mod types;

/// The types, servant traits and skeletons of definitions.
mod generated {
    spandrel::include_idl!("InterfaceRepository");
}

/// The records of the store.
mod records {
    spandrel::include_idl!("records");
}

pub use limits::{KEY, Limits};
pub use service::{ADAPTER, InterfaceRepository, RepositoryError, RepositoryOptions, STORE_FILE};
pub use store::{StoreError, check_store};
