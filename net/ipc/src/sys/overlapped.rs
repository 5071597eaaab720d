//! Overlapped operations of Windows, and the events that end their waits.
//!
//! The system accesses the memory of an operation until it has ended. So a wait that ends early cancels the operation
//! and then waits for its end.

use std::cell::UnsafeCell;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::ptr;
use std::time::Duration;

use spandrel_sync::Mutex;
use spandrel_sync::time::Deadline;
use windows_sys::Win32::Foundation::{ERROR_OPERATION_ABORTED, INVALID_HANDLE_VALUE, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{CancelIoEx, OVERLAPPED};
use windows_sys::Win32::System::Threading::{CreateEventW, INFINITE, SetEvent, WaitForMultipleObjects};

/// A manual-reset event of the system.
#[derive(Debug)]
pub(crate) struct Event(OwnedHandle);

impl Event {
    /// A manual-reset event, not set. It stays set until an operation starts that uses it.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: without attributes and without a name there is nothing to refer to.
        let handle = unsafe { CreateEventW(ptr::null(), 1, 0, ptr::null()) };
        owned(handle).map(Self)
    }

    /// Wakes all waiting threads, now and later.
    pub(crate) fn set(&self) {
        // SAFETY: the handle is open as long as `self` is. The call fails for no event.
        unsafe { SetEvent(self.raw()) };
    }

    /// Waits for it to be set; false after the deadline.
    pub(crate) fn wait(&self, deadline: Deadline) -> io::Result<bool> {
        Ok(wait([self], deadline)?.is_some())
    }

    /// Whether it is set.
    pub(crate) fn is_set(&self) -> io::Result<bool> {
        self.wait(Deadline::after(Duration::ZERO))
    }

    /// Calls `with` with a manual-reset event, which an operation may use. Events are kept for further operations of
    /// the process: as many as there were at once.
    pub(crate) fn with_spare<R>(with: impl FnOnce(&Self) -> io::Result<R>) -> io::Result<R> {
        static SPARE: Mutex<Vec<Event>> = Mutex::new(Vec::new());
        let spare = SPARE.lock().pop();
        let event = spare.map_or_else(Self::new, Ok)?;
        let result = with(&event);
        SPARE.lock().push(event);
        result
    }

    pub(super) fn raw(&self) -> RawHandle {
        self.0.as_raw_handle()
    }
}

/// Takes over a handle that a call has just created, or returns the call's error.
pub(super) fn owned(handle: RawHandle) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all callers pass a handle that the system has just created for them alone.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Waits for one of several distinct events; returns its index, or `None` after the deadline.
pub(super) fn wait<const N: usize>(events: [&Event; N], deadline: Deadline) -> io::Result<Option<usize>> {
    let handles = events.map(Event::raw);
    let count = N as u32; // two at most
    loop {
        let left = deadline.remaining();
        // SAFETY: that many handles, open as long as the borrowed events are.
        let woken = unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, milliseconds(left)) };
        match woken {
            WAIT_TIMEOUT if deadline.is_over() => return Ok(None),
            WAIT_TIMEOUT => {} // of a time beyond the range of the system
            _ if woken.wrapping_sub(WAIT_OBJECT_0) < count => return Ok(Some((woken - WAIT_OBJECT_0) as usize)),
            _ => return Err(io::Error::last_os_error()),
        }
    }
}

/// A timeout in the system's unit, rounded up; at most 49 days, unless it is unlimited.
pub(super) fn milliseconds(time: Option<Duration>) -> u32 {
    match time {
        Some(time) => u32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX).min(INFINITE - 1),
        None => INFINITE,
    }
}

/// The OVERLAPPED structure of an operation.
pub(super) struct Overlapped(UnsafeCell<OVERLAPPED>);

impl Overlapped {
    /// For an operation that sets `event` at its end, and does not notify a completion port.
    pub(super) fn new(event: &Event) -> Self {
        let unreported = event.raw().map_addr(|addr| addr | 1);
        Self(OVERLAPPED { hEvent: unreported, ..OVERLAPPED::default() }.into())
    }

    pub(super) fn as_ptr(&self) -> *mut OVERLAPPED {
        self.0.get()
    }

    /// Waits for the end of the pending operation, and cancels it at the deadline or when another event is set.
    /// `events` begins with that of the operation. Returns whether the operation ended by itself.
    pub(super) fn settle<const N: usize>(&self, file: RawHandle, events: [&Event; N], deadline: Deadline) -> bool {
        let has_ended = matches!(wait(events, deadline), Ok(Some(0)));
        if !has_ended {
            self.end(file, events[0]);
        }
        has_ended
    }

    /// Cancels the operation on `file` and waits for its end. `event` is the event that it sets.
    pub(super) fn end(&self, file: RawHandle, event: &Event) {
        // SAFETY: the callers keep the handle open, and `self` is borrowed for the call. It fails when the operation has
        // already ended.
        unsafe { CancelIoEx(file, self.as_ptr()) };
        if !matches!(event.wait(Deadline::NEVER), Ok(true)) {
            // The system would still write to memory that is about to be reused. This does not happen.
            std::process::abort();
        }
    }
}

// SAFETY: a shared reference only passes its address to the system, which serialises calls of several
// threads.
unsafe impl Send for Overlapped {}
// SAFETY: as above.
unsafe impl Sync for Overlapped {}

/// Whether an operation was aborted: by us, or because its thread has ended.
pub(crate) fn is_aborted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_OPERATION_ABORTED as i32)
}
