//! Named pipes of Windows: creating, listening, receiving. Sending is in [`outgoing`].
//!
//! All handles are opened for overlapped operations. The system reads and writes what an operation points at until that is over,
//! which nothing here leaves to chance: a wait that ends early cancels the operation and then waits for its end.

mod outgoing;

use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::ptr;
use std::time::Duration;

use spandrel_sync::Arc;
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_IO_PENDING, ERROR_NO_DATA, ERROR_OPERATION_ABORTED, ERROR_PIPE_BUSY,
    ERROR_PIPE_CONNECTED, ERROR_SEM_TIMEOUT, INVALID_HANDLE_VALUE, LocalFree, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_DUPLEX, ReadFile, SECURITY_IDENTIFICATION,
};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Pipes::{
    ConnectNamedPipe, CreateNamedPipeW, GetNamedPipeClientProcessId, GetNamedPipeServerProcessId, PIPE_READMODE_BYTE,
    PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE, PIPE_WAIT, WaitNamedPipeW,
};
use windows_sys::Win32::System::Threading::{CreateEventW, INFINITE, SetEvent, WaitForMultipleObjects};

use crate::deadline::Deadline;
pub(crate) use outgoing::Outgoing;

/// Something to wait for, that stays set until an operation begins that uses it.
#[derive(Debug)]
pub(crate) struct Event(OwnedHandle);

impl Event {
    /// Not set.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: without attributes and without a name there is nothing to point at.
        let handle = unsafe { CreateEventW(ptr::null(), 1, 0, ptr::null()) };
        // SAFETY: the handle is new and nobody else's.
        owned(handle).map(Self)
    }

    /// Wakes all who wait, now and later.
    pub(crate) fn set(&self) {
        // SAFETY: the handle is open as long as `self` is. It fails for no event.
        unsafe { SetEvent(self.raw()) };
    }

    /// Waits for it to be set; false when the time is over.
    pub(crate) fn wait(&self, deadline: Deadline) -> io::Result<bool> {
        Ok(wait([self], deadline)?.is_some())
    }

    /// Whether it is set.
    pub(crate) fn is_set(&self) -> io::Result<bool> {
        self.wait(Deadline::after(Some(Duration::ZERO)))
    }

    fn raw(&self) -> RawHandle {
        self.0.as_raw_handle()
    }
}

/// Takes over a handle that a call has just made, or says why it did not.
fn owned(handle: RawHandle) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all callers give what the system has just made for them alone.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Waits for one of several events, which are not the same: which one, or `None` when the time is over.
fn wait<const N: usize>(events: [&Event; N], deadline: Deadline) -> io::Result<Option<usize>> {
    let handles = events.map(Event::raw);
    let count = N as u32; // two at most
    loop {
        let left = deadline.left();
        // SAFETY: so many handles, open as long as the borrowed events are.
        let woken = unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, milliseconds(left)) };
        match woken {
            WAIT_TIMEOUT if deadline.left().is_some_and(|left| left.is_zero()) => return Ok(None),
            WAIT_TIMEOUT => {} // of a time longer than the system can count
            _ if woken.wrapping_sub(WAIT_OBJECT_0) < count => return Ok(Some((woken - WAIT_OBJECT_0) as usize)),
            _ => return Err(io::Error::last_os_error()),
        }
    }
}

/// As the system counts a wait, rounded up; at most 49 days, unless it is for ever.
fn milliseconds(time: Option<Duration>) -> u32 {
    match time {
        Some(time) => u32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX).min(INFINITE - 1),
        None => INFINITE,
    }
}

/// How an instance of a pipe is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance {
    /// How many there may be of its name.
    pub(crate) limit: u8,
    /// What the system keeps for the side that makes it, each way, in octets.
    pub(crate) queues: [u32; 2],
}

/// Who may do what, as the system reads it (Security Descriptor Definition Language): all to the owner, to administrators and to
/// the system. Without this, everybody may open a pipe to receive from it.
const ACCESS: &str = "D:P(A;;GA;;;OW)(A;;GA;;;BA)(A;;GA;;;SY)";

/// A security descriptor of the system's.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Descriptor {
    fn new(text: &str) -> io::Result<Self> {
        let text = wide(text);
        let mut descriptor = ptr::null_mut();
        // SAFETY: the text ends with a zero, and `descriptor` is there for the answer.
        let made = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &mut descriptor,
                ptr::null_mut(),
            )
        };
        if made == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(descriptor)) }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the system made it for us to be freed so.
        unsafe { LocalFree(self.0) };
    }
}

/// One end of a named pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    handle: OwnedHandle,
    /// Whether this end is that of the acceptor.
    is_server: bool,
}

impl Pipe {
    /// A new instance, not yet connected: the first of its name, which then nobody else may have, or one more. The user whose
    /// process this is, administrators and the system may open it, and nobody else.
    pub(crate) fn create(name: &str, instance: &Instance, first: bool) -> io::Result<Self> {
        let wide = wide(name);
        let access = Descriptor::new(ACCESS)?;
        let attributes = SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: access.0,
            bInheritHandle: 0,
        };
        let first = if first { FILE_FLAG_FIRST_PIPE_INSTANCE } else { 0 };
        // SAFETY: the name ends with a zero; it, the attributes and the descriptor are there until the call returns.
        let handle = unsafe {
            CreateNamedPipeW(
                wide.as_ptr(),
                PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | first,
                PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
                u32::from(instance.limit),
                instance.queues[0],
                instance.queues[1],
                0,
                &attributes,
            )
        };
        owned(handle).map(|handle| Self { handle, is_server: true })
    }

    /// The other end of an instance that nobody else has taken. Whoever made it may learn who comes, but not act in their name.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).share_mode(0);
        options.custom_flags(FILE_FLAG_OVERLAPPED).security_qos_flags(SECURITY_IDENTIFICATION);
        Ok(Self { handle: options.open(name)?.into(), is_server: false })
    }

    /// The process that has, or had, the other end when the two came together.
    pub(crate) fn peer_process_id(&self) -> io::Result<u32> {
        let mut id = 0;
        let ask = if self.is_server { GetNamedPipeClientProcessId } else { GetNamedPipeServerProcessId };
        // SAFETY: the handle is open as long as `self` is, and `id` is there for the answer.
        match unsafe { ask(self.raw(), &mut id) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(id),
        }
    }

    /// Receives what is there, waiting for it: how many octets; zero when the other side is gone, or sent nothing with much ado
    /// (see [`Received`]).
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        event: &Event,
        stop: &Event,
        deadline: Deadline,
    ) -> io::Result<Received> {
        let overlapped = Overlapped::new(event);
        let len = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        // SAFETY: the buffer is borrowed exclusively, and `settle` comes back only when the system has done with it and with
        // `overlapped`; nothing in between panics.
        let settled = unsafe {
            let began = ReadFile(self.raw(), buffer.as_mut_ptr(), len, ptr::null_mut(), overlapped.as_ptr());
            self.settle(began, &overlapped, [event, stop], deadline)
        };
        match settled {
            Ok(Some(0)) => Ok(Received::Nothing),
            Ok(Some(octets)) => Ok(Received::Octets(octets)),
            Ok(None) => Ok(Received::Waited),
            Err(error) if is_gone(&error) => Ok(Received::End),
            Err(error) => Err(error),
        }
    }

    /// Waits for an operation to be over, or ends it when one stops it or the time runs out: then, if it had not come about by
    /// itself after all, `None`.
    ///
    /// # Safety
    /// `began` is what the call said that was given `overlapped` just now, on the handle of this pipe.
    unsafe fn settle(
        &self,
        began: i32,
        overlapped: &Overlapped,
        events: [&Event; 2],
        deadline: Deadline,
    ) -> io::Result<Option<usize>> {
        let mut ended = false;
        if began == 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(ERROR_IO_PENDING as i32) {
                return Err(error); // it has not begun
            }
            if !matches!(wait(events, deadline), Ok(Some(0))) {
                ended = true;
                overlapped.end(self, events[0]);
            }
        }
        match overlapped.result(self) {
            Err(error) if ended && is_aborted(&error) => Ok(None),
            result => result.map(Some),
        }
    }

    fn raw(&self) -> RawHandle {
        self.handle.as_raw_handle()
    }
}

/// What a call to receive has brought.
#[derive(Debug)]
pub(crate) enum Received {
    Octets(usize),
    /// The other side has written nothing at all, which is possible, and is not the end.
    Nothing,
    /// The time is over, or the wait was stopped.
    Waited,
    /// The other side is gone, and everything it sent has been received.
    End,
}

/// What the system is told about an operation, and tells.
struct Overlapped(std::cell::UnsafeCell<OVERLAPPED>);

impl Overlapped {
    /// For an operation that sets `event` at its end, and tells no completion port.
    fn new(event: &Event) -> Self {
        let untold = event.raw().map_addr(|addr| addr | 1);
        Self(OVERLAPPED { hEvent: untold, ..OVERLAPPED::default() }.into())
    }

    fn as_ptr(&self) -> *mut OVERLAPPED {
        self.0.get()
    }

    /// Cancels the operation and waits for its end. `event` is the one that it sets.
    fn end(&self, pipe: &Pipe, event: &Event) {
        // SAFETY: handle and `overlapped` are there as long as they are borrowed. It fails when the operation is already over.
        unsafe { CancelIoEx(pipe.raw(), self.as_ptr()) };
        if !matches!(event.wait(Deadline::after(None)), Ok(true)) {
            // The system will still write to memory that is about to be something else. This does not happen.
            std::process::abort();
        }
    }

    /// What came of the operation, which is over: how many octets.
    fn result(&self, pipe: &Pipe) -> io::Result<usize> {
        let mut octets = 0;
        // SAFETY: handle and `overlapped` are there as long as they are borrowed, and `octets` for the answer.
        match unsafe { GetOverlappedResult(pipe.raw(), self.as_ptr(), &mut octets, 0) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(octets as usize),
        }
    }
}

// SAFETY: whoever has a reference to it only passes its address to the system, which keeps calls from several threads apart.
unsafe impl Send for Overlapped {}
// SAFETY: as above.
unsafe impl Sync for Overlapped {}

/// An instance that waits for somebody to come.
pub(crate) struct Listening {
    pipe: Arc<Pipe>,
    overlapped: Box<Overlapped>,
    event: Event,
    /// Somebody had come before it began to wait: the system was not asked to.
    already: bool,
}

impl Listening {
    pub(crate) fn start(pipe: Arc<Pipe>) -> io::Result<Self> {
        let event = Event::new()?;
        let mut this = Self { pipe, overlapped: Box::new(Overlapped::new(&event)), event, already: false };
        // SAFETY: `overlapped` lies on the heap, and dropping it ends the operation first.
        if unsafe { ConnectNamedPipe(this.pipe.raw(), this.overlapped.as_ptr()) } == 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error().map(i32::cast_unsigned) {
                Some(ERROR_IO_PENDING) => return Ok(this),
                // Somebody came; in the second case they have left, and what they sent is still there.
                Some(ERROR_PIPE_CONNECTED | ERROR_NO_DATA) => {}
                _ => {
                    this.already = true; // so that dropping it ends nothing
                    return Err(error);
                }
            }
        }
        this.already = true;
        this.event.set();
        Ok(this)
    }

    /// Waits for somebody to come, for the wait to be stopped, or for the time to run out; false in the last case.
    pub(crate) fn wait(&self, stop: &Event, deadline: Deadline) -> io::Result<bool> {
        Ok(wait([&self.event, stop], deadline)?.is_some())
    }

    /// Whether somebody has come; an error when that will not happen any more.
    pub(crate) fn has_come(&self) -> io::Result<bool> {
        if self.already {
            return Ok(true);
        }
        if !self.event.is_set()? {
            return Ok(false);
        }
        self.overlapped.result(&self.pipe).map(|_| true)
    }

    pub(crate) fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if !self.already {
            self.overlapped.end(&self.pipe, &self.event);
        }
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("pipe", &self.pipe).finish_non_exhaustive()
    }
}

/// Waits for an instance that nobody has taken; false when the time is over. Another may take it first.
pub(crate) fn wait_for_instance(name: &str, left: Option<Duration>) -> io::Result<bool> {
    let name = wide(name);
    // The system takes 0 for a time that the pipe's maker chose, and 1 for no time.
    let time = milliseconds(left).max(2);
    // SAFETY: the name ends with a zero and is there until the call returns.
    if unsafe { WaitNamedPipeW(name.as_ptr(), time) } != 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(ERROR_SEM_TIMEOUT as i32) { Ok(false) } else { Err(error) }
}

/// Whether all instances that there may be are taken.
pub(crate) fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_PIPE_BUSY as i32)
}

/// Whether a first instance could not be made because there is one.
pub(crate) fn is_in_use(error: &io::Error) -> bool {
    is_busy(error) || error.raw_os_error() == Some(ERROR_ACCESS_DENIED as i32)
}

/// Whether an operation was ended: by us, or because the thread that began it has ended.
pub(crate) fn is_aborted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_OPERATION_ABORTED as i32)
}

/// Whether the other side is gone.
fn is_gone(error: &io::Error) -> bool {
    use windows_sys::Win32::Foundation::{ERROR_BROKEN_PIPE, ERROR_PIPE_NOT_CONNECTED};
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(code, Some(ERROR_BROKEN_PIPE | ERROR_PIPE_NOT_CONNECTED | ERROR_NO_DATA))
}

/// As the system takes a name.
fn wide(name: &str) -> Vec<u16> {
    name.encode_utf16().chain([0]).collect()
}
