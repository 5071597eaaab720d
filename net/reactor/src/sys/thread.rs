//! Starting threads by POSIX alone.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use spandrel_sync::Arc;

use crate::ConnectionThread;

/// Starts a detached thread with a stack of `stack` octets. If that fails, the connection comes back.
pub(crate) fn start_detached<T: ConnectionThread>(stack: usize, connection: Arc<T>) -> Result<(), (io::Error, Arc<T>)> {
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
extern "C" fn run<T: ConnectionThread>(connection: *mut c_void) -> *mut c_void {
    // SAFETY: the pointer is that of `start_detached` with the same type, which gave it away.
    let connection = unsafe { Arc::from_raw(connection.cast::<T>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| connection.run()));
    ptr::null_mut()
}

/// The result of a call that returns the number of an error.
fn result(number: libc::c_int) -> io::Result<()> {
    if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number)) }
}

#[cfg(test)]
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
        start_detached(128 << 10, Arc::new(body)).map_err(|(error, _)| error).unwrap();
        assert_ne!(receiver.recv().unwrap(), here);
    }

    #[test]
    fn a_panic_ends_the_thread_only() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let body = Body(move || {
            let _sender = &sender;
            std::panic::resume_unwind(Box::new("a panic that no hook reports"));
        });
        start_detached(128 << 10, Arc::new(body)).map_err(|(error, _)| error).unwrap();
        assert!(receiver.recv().is_err(), "the connection is dropped by unwinding");
    }

    #[test]
    fn the_connection_comes_back_when_the_thread_cannot_be_started() {
        let body = Arc::new(Body(|| {}));
        let (error, back) = start_detached(1, Arc::clone(&body)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "a stack of one octet");
        assert!(Arc::ptr_eq(&body, &back) && Arc::strong_count(&body) == 2);
    }
}
