//! Threads that serve one connection each, without a manager.

use std::io;

/// Starts a thread that serves one connection, with a stack of `stack` octets, and ends with it (paper 004, section
/// 4.4). It has no name, and is not joined: its [entry](crate::ConnectionEntry) tells the end of the connection.
///
/// On UNIX the start costs what the system needs for it. A thread of the standard library has a second stack besides, on
/// which the overflow of the first is reported, at the cost of eight system calls; here an overflow ends the process by
/// SIGSEGV without a message. A panic ends the thread only.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] beyond the limits of the system; [`io::ErrorKind::InvalidInput`] if it does not allow
/// a stack of that size.
pub fn start_connection_thread(stack: usize, serve: impl FnOnce() + Send + 'static) -> io::Result<()> {
    #[cfg(unix)]
    let started = crate::sys::thread::start_detached(stack, serve);
    #[cfg(not(unix))]
    let started = spandrel_sync::thread::Builder::new().stack_size(stack).spawn(serve).map(drop);
    started
}
