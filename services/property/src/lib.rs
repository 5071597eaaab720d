//! The OMG's property service (Property Service 1.0, formal/00-06-22): sets of named values with modes.
//!
//! [`PropertyService::start`] adds the factories to an ORB, and keeps the sets on disk or in memory. The executable
//! `spandrel-property` does so in a process of its own.
//!
//! [`LocalPropertySet`] is a set for the servants of other services, whose interfaces derive from `PropertySet`:
//! [`delegate_property_set!`] implements the inherited operations.
//!
//! # Decisions
//! The specification leaves these to the implementation:
//!
//! - Properties are listed in the order of their names.
//! - Types are compared by equivalence: aliases and names of members make no difference.
//! - The mode of a property changes from `normal` to each other mode, and from `read_only` and `fixed_normal` to
//!   `fixed_readonly`; anything else is `UnsupportedMode`.
//! - A set with constraints is created empty. An allowed property restricts the type of the value, unless its own value is
//!   of the type `null` or `void`, and the mode, unless its own mode is `undefined`. In a `PropertySet` the mode of an
//!   allowed property is `fixed_normal`.
//! - A request with several properties is one change on the disk. A system exception, such as IMP_LIMIT for too many
//!   properties, leaves no part of it.
#![forbid(unsafe_code)]

mod delegation;
mod edit;
mod encoding;
mod iterators;
mod journal;
mod limits;
mod refusal;
mod registry;
mod service;
mod set;
mod state;
mod store;
mod table;

#[doc(hidden)]
pub use spandrel;

pub use iterators::PropertyIterators;
pub use limits::{Limits, ServiceLimits};
pub use service::{
    ADAPTER, FACTORY_KEY, PropertyError, PropertyOptions, PropertyService, SET_DEF_FACTORY_KEY, STORE_FILE,
};
pub use set::LocalPropertySet;
pub use spandrel_daemon::IteratorOptions;
pub use store::{StoreError, check_store};
