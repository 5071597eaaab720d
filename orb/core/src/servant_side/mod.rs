//! The core's share in serving requests: settings of the server side, descriptions of adapters and upcalls.
//!
//! The crate `spandrel-server` serves the requests; the core reaches it as
//! `ServerSide`, a trait in `orb`.

pub(crate) mod adapter;
pub(crate) mod concurrency;
pub(crate) mod held_replies;
pub(crate) mod server_settings;
pub(crate) mod upcall_scope;
