//! The threads that accept, read and run servants.

use std::io;

use spandrel_sync::thread;

/// Starts a thread. Nobody joins it: connections say themselves when they have ended.
pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(run).map(drop)
}
