//! Strategies of an [`Acceptor`](crate::Acceptor) or [`Connector`](crate::Connector): creation of handlers,
//! admission of connections, and the threads that run the services.
//!
//! Each is a type parameter with a default that suits most: a new handler for each connection, all
//! connections are admitted, the reactor runs all services.

mod acceptance;
mod concurrency;
mod creation;
#[cfg(target_os = "linux")]
mod process;

pub use acceptance::{AcceptAll, Acceptance, AtMost};
pub use concurrency::{Concurrency, Reactive, ThreadPerConnection, ThreadPool};
pub use creation::Creation;
#[cfg(target_os = "linux")]
pub use process::{ProcessPerConnection, handed_connection, serve_handed};
