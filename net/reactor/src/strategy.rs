//! How an [`Acceptor`](crate::Acceptor) or [`Connector`](crate::Connector) makes handlers, whom it lets in, and who runs what it made.
//!
//! Each is a type parameter with a default that is right for most: a new handler for each connection, everybody is let in, the reactor
//! runs them all.

mod acceptance;
mod concurrency;
mod creation;
#[cfg(target_os = "linux")]
mod process;

pub use acceptance::{AcceptAll, Acceptance, AtMost};
pub use concurrency::{Concurrency, Reactive, ThreadPerConnection, ThreadPool};
pub use creation::{Creation, Pooled, Recycled, Shared, Singleton};
#[cfg(target_os = "linux")]
pub use process::{ProcessPerConnection, handed_connection, serve_handed};
