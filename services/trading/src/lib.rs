//! The OMG's trading service (Trading Object Service 1.0, formal/00-06-27): objects that are found by the properties of
//! their offers.
//!
//! [`TradingService::start`] adds a trader to an ORB, and keeps its service types and offers on disk or in memory. The
//! executable `spandrel-trading` does so in a process of its own.
//!
//! # Indices
//! Offers are indexed by service type, and by each property that is a boolean, a number or a text. A query takes the
//! index whose access finds the fewest offers: a comparison of a property with a literal, a boolean property alone, or
//! an `or` of such. The access is counted no further than the best one so far, so that the choice costs no more than the
//! result. A type with many subtypes uses the common index of all types with supertypes, unless the types' own indices
//! are cheaper. Without an index all offers of the service type and its subtypes are examined, in the time of
//! [`TradingOptions::query_time`].
//!
//! # Decisions
//! The specification leaves these to the implementation:
//!
//! - A masked service type has no new offers: their export is `UnknownServiceType`. It is found by queries.
//! - The offers of a removed type remain. They are found again when the type is added again.
//! - Properties that a type does not declare have any type, and are optional and modifiable.
//! - `search_card` counts the offers whose constraint is evaluated: those that an index excludes do not count.
//! - Policies with names that the specification does not have are for linked traders.
//! - `export` raises `InterfaceTypeMismatch` with [`TradingOptions::checks_interfaces`] alone.
//! - `add_type` compares the interface with those of the supertypes where the ORB has the initial reference
//!   `InterfaceRepository`. Without it, a warning tells that they are believed. An interface that the repository does not
//!   have is believed, too; a repository that does not answer is TRANSIENT.
#![forbid(unsafe_code)]

mod admin;
mod attributes;
mod components;
pub mod dynamic;
mod dynamic_cache;
mod edit;
pub mod federation;
mod interfaces;
mod iterators;
mod limits;
mod links;
mod lookup;
mod names;
mod offer;
mod offers;
mod plan;
mod policies;
mod proxies;
mod proxy_query;
mod purge;
mod query;
mod register;
mod repository;
mod service;
mod state;
mod store;
mod trader;
mod types;
mod wait;

#[doc(hidden)]
pub use spandrel;

pub use attributes::Attributes;
pub use limits::Limits;
pub use query::QUERY_TIME;
pub use service::{ADAPTER, LOOKUP_KEY, STORE_FILE, TradingError, TradingOptions, TradingService};
pub use spandrel_daemon::{IteratorOptions, PurgeOptions};
pub use store::{StoreError, check_store};
