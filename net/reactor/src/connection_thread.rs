//! Threads that serve one connection each, without a manager.

use std::io;

use spandrel_sync::Arc;

/// A connection that a thread of its own serves.
pub trait ConnectionThread: Send + Sync + 'static {
    /// Serves it.
    fn run(self: Arc<Self>);
}

/// Starts a thread that serves one connection, with a stack of `stack` octets, and ends with it (paper 004, section
/// 4.4). It has no name, and is not joined.
///
/// On UNIX the start costs what the system needs for it. A thread of the standard library has a second stack besides, on
/// which the overflow of the first is reported, at the cost of eight system calls; here an overflow ends the process by
/// SIGSEGV without a message. The thread gets the pointer alone. If it also frees nothing, the C library gives it no
/// heap. A panic ends the thread only.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] beyond the limits of the system; [`io::ErrorKind::InvalidInput`] if it does not allow
/// a stack of that size. The connection comes back with the error.
pub fn start_connection_thread<T: ConnectionThread>(
    stack: usize,
    connection: Arc<T>,
) -> Result<(), (io::Error, Arc<T>)> {
    #[cfg(unix)]
    let started = crate::sys::thread::start_detached(stack, connection);
    #[cfg(not(unix))]
    let started = {
        let served = Arc::clone(&connection);
        let thread = spandrel_sync::thread::Builder::new().stack_size(stack);
        thread.spawn(|| served.run()).map(drop).map_err(|error| (error, connection))
    };
    started
}
