//! Threads that serve one connection each, without a manager: on UNIX started by POSIX alone.

#[cfg(unix)]
use std::ffi::c_void;
use std::io;
#[cfg(unix)]
use std::mem::MaybeUninit;
#[cfg(unix)]
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(unix)]
use std::ptr;

use spandrel_sync::Arc;

/// A connection that a thread of its own serves.
pub trait ConnectionThread: Send + Sync + 'static {
    /// Serves the connection until its end.
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
    let started = start_detached(stack, connection);
    #[cfg(not(unix))]
    let started = {
        let served = Arc::clone(&connection);
        let thread = spandrel_sync::thread::Builder::new().stack_size(stack);
        thread.spawn(|| served.run()).map(drop).map_err(|error| (error, connection))
    };
    started
}

/// Starts it by POSIX alone.
#[cfg(unix)]
fn start_detached<T: ConnectionThread>(stack: usize, connection: Arc<T>) -> Result<(), (io::Error, Arc<T>)> {
    let mut attributes = MaybeUninit::uninit();
    let pointer = Arc::into_raw(connection);
    // SAFETY: the attributes are initialised by the first call, used only if it succeeds, and destroyed by the last.
    // The connection is `Send` and `Sync`; the pointer belongs to the thread once that is started, and to this function
    // otherwise.
    unsafe {
        let started = result(libc::pthread_attr_init(attributes.as_mut_ptr())).and_then(|()| {
            let set = result(libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED))
                .and_then(|()| result(libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack)));
            let mut thread = MaybeUninit::uninit();
            let argument = pointer.cast_mut().cast::<c_void>();
            let started = set.and_then(|()| {
                result(libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run::<T>, argument))
            });
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            started
        });
        started.map_err(|error| (error, Arc::from_raw(pointer)))
    }
}

/// The body of a thread. A panic, which its hook has reported, ends the thread only.
#[cfg(unix)]
extern "C" fn run<T: ConnectionThread>(connection: *mut c_void) -> *mut c_void {
    // SAFETY: the pointer is that of `start_detached` with the same type, which gave it away.
    let connection = unsafe { Arc::from_raw(connection.cast::<T>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| connection.run()));
    ptr::null_mut()
}

/// The result of a call that returns the number of an error.
#[cfg(unix)]
fn result(number: libc::c_int) -> io::Result<()> {
    if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number)) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Calls a function in the thread.
    struct Body<F>(F);

    impl<F: Fn() + Send + Sync + 'static> ConnectionThread for Body<F> {
        fn run(self: Arc<Self>) {
            (self.0)();
        }
    }

    #[test]
    fn a_thread_serves_its_connection() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let here = std::thread::current().id();
        let body = Body(move || sender.send(std::thread::current().id()).unwrap());
        start_connection_thread(128 << 10, Arc::new(body)).map_err(|(error, _)| error).unwrap();
        assert_ne!(receiver.recv().unwrap(), here);
    }

    #[test]
    fn a_panic_ends_the_thread_only() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let body = Body(move || {
            let _sender = &sender;
            std::panic::resume_unwind(Box::new("a panic that no hook reports"));
        });
        start_connection_thread(128 << 10, Arc::new(body)).map_err(|(error, _)| error).unwrap();
        assert!(receiver.recv().is_err(), "the connection is dropped by unwinding");
    }

    #[test]
    fn the_connection_comes_back_when_the_thread_cannot_be_started() {
        let body = Arc::new(Body(|| {}));
        let (error, back) = start_connection_thread(1, Arc::clone(&body)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "a stack of one octet");
        assert!(Arc::ptr_eq(&body, &back) && Arc::strong_count(&body) == 2);
    }
}
