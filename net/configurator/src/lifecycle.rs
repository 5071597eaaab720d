//! Calls of services' methods, each in a thread of its own and with a limit of time: a service that panics or never returns
//! stops nothing else.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Condition, Mutex, thread};

use crate::ServiceResult;

/// The failure of a call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{0}")]
    Refused(String),
    #[error("it has panicked: {0}")]
    Panicked(String),
    #[error("it has not returned after {0:?}, and is left alone")]
    StillRunning(Duration),
    #[error("no thread can be started for it: {0}")]
    NoThread(io::Error),
}

enum State<T> {
    Running,
    Returned(Result<T, CallError>),
    /// The caller does not wait any more.
    Abandoned,
}

/// Calls a function in a thread of its own. If it returns too late, its result is given to `late`.
pub(crate) fn call<T: Send + 'static>(
    service: &str,
    method: &str,
    timeout: Duration,
    function: impl FnOnce() -> Result<T, Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    late: impl FnOnce(T) + Send + 'static,
) -> Result<T, CallError> {
    let shared = Arc::new((Mutex::new(State::Running), Condition::new()));
    let callee = Arc::clone(&shared);
    let name = format!("{service}-{method}");
    let body = move || {
        let result = match catch_unwind(AssertUnwindSafe(function)) {
            Ok(returned) => returned.map_err(|error| CallError::Refused(in_line(&*error))),
            Err(panic) => Err(CallError::Panicked(panic_text(&*panic))),
        };
        let mut state = callee.0.lock();
        if let State::Abandoned = *state {
            drop(state);
            if let Ok(returned) = result {
                late(returned);
            }
            return;
        }
        *state = State::Returned(result);
        drop(state);
        callee.1.notify_one();
    };
    let thread = thread::Builder::new().name(name).spawn(body).map_err(CallError::NoThread)?;
    let deadline = Deadline::after(timeout);
    let mut state = shared.0.lock();
    loop {
        if let State::Returned(_) = *state {
            let State::Returned(result) = std::mem::replace(&mut *state, State::Running) else { unreachable!() };
            drop(state);
            // The end of the thread belongs to the call: so no destructor of a thread's variables is left in a library.
            _ = thread.join();
            return result;
        }
        if deadline.is_over() {
            *state = State::Abandoned;
            return Err(CallError::StillRunning(timeout));
        }
        shared.1.wait_until(&mut state, deadline);
    }
}

/// As [`call`], for methods whose late return needs nothing.
pub(crate) fn call_simply(
    service: &str,
    method: &str,
    timeout: Duration,
    function: impl FnOnce() -> ServiceResult + Send + 'static,
) -> Result<(), CallError> {
    call(service, method, timeout, function, drop)
}

/// An error and its causes in one line.
pub(crate) fn in_line(error: &(dyn std::error::Error + 'static)) -> String {
    spandrel_error::report_in_line(error).replace('\n', "; ")
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a text".to_owned())
}
