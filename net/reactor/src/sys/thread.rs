//! Starting threads by POSIX alone.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

type Body = Box<dyn FnOnce() + Send>;

/// Starts a detached thread with a stack of `stack` octets.
pub(crate) fn start_detached(stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let body: Box<Body> = Box::new(Box::new(body));
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the attributes are initialised by the first call, used only if it succeeds, and destroyed by the last.
    // The body is `Send`; it belongs to the thread once that is started, and to this function otherwise.
    unsafe {
        result(libc::pthread_attr_init(attributes.as_mut_ptr()))?;
        let set = result(libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED))
            .and_then(|()| result(libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack)));
        let body = Box::into_raw(body);
        let mut thread = MaybeUninit::uninit();
        let started = set.and_then(|()| {
            result(libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, body.cast::<c_void>()))
        });
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        if started.is_err() {
            drop(Box::from_raw(body));
        }
        started
    }
}

/// The body of a thread. A panic, which its hook has reported, ends the thread only.
extern "C" fn run(body: *mut c_void) -> *mut c_void {
    // SAFETY: the pointer is that of `start_detached`, which gave the body away.
    let body = unsafe { Box::from_raw(body.cast::<Body>()) };
    let _ = catch_unwind(AssertUnwindSafe(body));
    ptr::null_mut()
}

/// The result of a call that returns the number of an error.
fn result(number: libc::c_int) -> io::Result<()> {
    if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_its_body() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let here = std::thread::current().id();
        start_detached(128 << 10, move || sender.send(std::thread::current().id()).unwrap()).unwrap();
        assert_ne!(receiver.recv().unwrap(), here);
    }

    #[test]
    fn a_panic_ends_the_thread_only() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let body = move || {
            let _sender = sender;
            std::panic::resume_unwind(Box::new("a panic that no hook reports"));
        };
        start_detached(128 << 10, body).unwrap();
        assert!(receiver.recv().is_err(), "the body is dropped by unwinding");
    }

    #[test]
    fn the_body_is_dropped_when_the_thread_cannot_be_started() {
        let body = std::sync::Arc::new(());
        let held = std::sync::Arc::clone(&body);
        let error = start_detached(1, move || drop(held)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "a stack of one octet");
        assert_eq!(std::sync::Arc::strong_count(&body), 1);
    }
}
