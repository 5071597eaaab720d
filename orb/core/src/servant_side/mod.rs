//! The core's share in serving requests: settings of the server side, descriptions of adapters and upcalls.
//!
//! The crate `spandrel-server` serves the requests; the core reaches it as
//! [`ServerSide`](crate::orb::server_side::ServerSide).

pub(crate) mod adapter;
pub(crate) mod concurrency;
#[doc(hidden)]
pub mod server_settings;
#[doc(hidden)]
pub mod upcall_scope;
