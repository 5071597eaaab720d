//! Windows named pipes: creating, listening, receiving. Sending is in [`outgoing`].
//!
//! All handles are opened for overlapped operations.

mod outgoing;

use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, OwnedHandle, RawHandle};
use std::ptr;
use std::time::Duration;

use spandrel_sync::Arc;
use spandrel_sync::time::Deadline;
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_IO_PENDING, ERROR_NO_DATA, ERROR_PIPE_BUSY, ERROR_PIPE_CONNECTED, ERROR_SEM_TIMEOUT,
    LocalFree,
};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_DUPLEX, ReadFile, SECURITY_IDENTIFICATION,
};
use windows_sys::Win32::System::IO::GetOverlappedResult;
use windows_sys::Win32::System::Pipes::{
    ConnectNamedPipe, CreateNamedPipeW, GetNamedPipeClientProcessId, GetNamedPipeServerProcessId, PIPE_READMODE_BYTE,
    PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE, PIPE_WAIT, WaitNamedPipeW,
};

use super::overlapped::{Event, Overlapped, is_aborted, milliseconds, owned, wait};
pub(crate) use outgoing::Outgoing;

/// The parameters of an instance of a pipe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance {
    /// The maximum number of instances of its name.
    pub(crate) limit: u8,
    /// The queue sizes of the creating side, each way, in octets.
    pub(crate) queues: [u32; 2],
}

/// The access rights, in the Security Descriptor Definition Language: all rights for the owner,
/// administrators and the system. Without this, any user may open a pipe to receive from it.
const ACCESS: &str = "D:P(A;;GA;;;OW)(A;;GA;;;BA)(A;;GA;;;SY)";

/// A security descriptor allocated by the system.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Descriptor {
    fn new(text: &str) -> io::Result<Self> {
        let text = wide(text);
        let mut descriptor = ptr::null_mut();
        // SAFETY: the text ends with a zero, and `descriptor` outlives the call.
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
        // SAFETY: allocated by the system, to be freed with this call.
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
    /// A new instance, not yet connected: the first of its name, or a further one. Only the user of this
    /// process, administrators and the system may open it.
    pub(crate) fn create(name: &str, instance: &Instance, first: bool) -> io::Result<Self> {
        let wide = wide(name);
        let access = Descriptor::new(ACCESS)?;
        let attributes = SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: access.0,
            bInheritHandle: 0,
        };
        let first = if first { FILE_FLAG_FIRST_PIPE_INSTANCE } else { 0 };
        // SAFETY: the name ends with a zero; it, the attributes and the descriptor outlive the call.
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

    /// Opens the other end of a free instance. Its creator may identify this process, but not impersonate it.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).share_mode(0);
        options.custom_flags(FILE_FLAG_OVERLAPPED).security_qos_flags(SECURITY_IDENTIFICATION);
        Ok(Self { handle: options.open(name)?.into(), is_server: false })
    }

    /// The process at the other end when the connection was made.
    pub(crate) fn peer_process_id(&self) -> io::Result<u32> {
        let mut id = 0;
        let ask = if self.is_server { GetNamedPipeClientProcessId } else { GetNamedPipeServerProcessId };
        // SAFETY: the handle is open as long as `self` is, and `id` outlives the call.
        match unsafe { ask(self.raw(), &mut id) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(id),
        }
    }

    /// Waits for octets and returns their number; see [`Received`] for the other results.
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        event: &Event,
        stop: &Event,
        deadline: Deadline,
    ) -> io::Result<Received> {
        let overlapped = Overlapped::new(event);
        let len = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        // SAFETY: the buffer is borrowed exclusively, and `settle` returns only when the system has finished
        // with it and with `overlapped`; nothing in between panics.
        let settled = unsafe {
            let began = ReadFile(self.raw(), buffer.as_mut_ptr(), len, ptr::null_mut(), overlapped.as_ptr());
            self.settle(began, &overlapped, [event, stop], deadline)
        };
        match settled {
            Ok(Some(0)) => Ok(Received::Empty),
            Ok(Some(octets)) => Ok(Received::Octets(octets)),
            Ok(None) => Ok(Received::Stopped),
            Err(error) if is_peer_closed(&error) => Ok(Received::End),
            Err(error) => Err(error),
        }
    }

    /// Waits for an operation to end, or cancels it on a stop event or at the deadline: then `None`, unless
    /// it had completed after all.
    ///
    /// # Safety
    /// `began` is the result of the call that was given `overlapped` just now, on the handle of this pipe.
    unsafe fn settle(
        &self,
        began: i32,
        overlapped: &Overlapped,
        events: [&Event; 2],
        deadline: Deadline,
    ) -> io::Result<Option<usize>> {
        let mut is_cancelled = false;
        if began == 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(ERROR_IO_PENDING as i32) {
                return Err(error); // it has not started
            }
            is_cancelled = !overlapped.settle(self.raw(), events, deadline);
        }
        match self.result(overlapped) {
            Err(error) if is_cancelled && is_aborted(&error) => Ok(None),
            result => result.map(Some),
        }
    }

    /// The result of an operation, which has ended: the number of octets.
    fn result(&self, overlapped: &Overlapped) -> io::Result<usize> {
        let mut octets = 0;
        // SAFETY: handle and `overlapped` are borrowed for the call, and `octets` outlives it.
        match unsafe { GetOverlappedResult(self.raw(), overlapped.as_ptr(), &mut octets, 0) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(octets as usize),
        }
    }

    fn raw(&self) -> RawHandle {
        self.handle.as_raw_handle()
    }
}

/// The result of a receive.
#[derive(Debug)]
pub(crate) enum Received {
    Octets(usize),
    /// The other side has written zero octets, which is possible, and is not the end.
    Empty,
    /// The deadline passed, or the wait was stopped.
    Stopped,
    /// The other side has closed, and all its octets were received.
    End,
}

/// An instance that waits for a client.
pub(crate) struct Listening {
    pipe: Arc<Pipe>,
    overlapped: Box<Overlapped>,
    event: Event,
    /// A client had connected before the wait began: there is no pending operation.
    is_connected: bool,
}

impl Listening {
    pub(crate) fn start(pipe: Arc<Pipe>) -> io::Result<Self> {
        let event = Event::new()?;
        let mut this = Self { pipe, overlapped: Box::new(Overlapped::new(&event)), event, is_connected: false };
        // SAFETY: `overlapped` lies on the heap, and dropping it ends the operation first.
        if unsafe { ConnectNamedPipe(this.pipe.raw(), this.overlapped.as_ptr()) } == 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error().map(i32::cast_unsigned) {
                Some(ERROR_IO_PENDING) => return Ok(this),
                // A client has connected; in the second case it has closed again, and its octets are still
                // queued.
                Some(ERROR_PIPE_CONNECTED | ERROR_NO_DATA) => {}
                _ => {
                    this.is_connected = true; // so that dropping it cancels nothing
                    return Err(error);
                }
            }
        }
        this.is_connected = true;
        this.event.set();
        Ok(this)
    }

    /// Waits for a client, a stop event or the deadline; false in the last case.
    pub(crate) fn wait(&self, stop: &Event, deadline: Deadline) -> io::Result<bool> {
        Ok(wait([&self.event, stop], deadline)?.is_some())
    }

    /// Whether a client has connected; an error when that will not happen any more.
    pub(crate) fn has_connected(&self) -> io::Result<bool> {
        if self.is_connected {
            return Ok(true);
        }
        if !self.event.is_set()? {
            return Ok(false);
        }
        self.pipe.result(&self.overlapped).map(|_| true)
    }

    pub(crate) fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if !self.is_connected {
            self.overlapped.end(self.pipe.raw(), &self.event);
        }
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("pipe", &self.pipe).finish_non_exhaustive()
    }
}

/// Waits for a free instance; false after the deadline. Another process may take it first.
pub(crate) fn wait_for_instance(name: &str, left: Option<Duration>) -> io::Result<bool> {
    let name = wide(name);
    // The system takes 0 for the default timeout of the pipe's creator, and 1 for no time.
    let time = milliseconds(left).max(2);
    // SAFETY: the name ends with a zero and outlives the call.
    if unsafe { WaitNamedPipeW(name.as_ptr(), time) } != 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(ERROR_SEM_TIMEOUT as i32) { Ok(false) } else { Err(error) }
}

/// Whether all instances are taken.
pub(crate) fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_PIPE_BUSY as i32)
}

/// Whether a first instance could not be created because the name exists.
pub(crate) fn is_in_use(error: &io::Error) -> bool {
    is_busy(error) || error.raw_os_error() == Some(ERROR_ACCESS_DENIED as i32)
}

/// Whether the other side has closed.
fn is_peer_closed(error: &io::Error) -> bool {
    use windows_sys::Win32::Foundation::{ERROR_BROKEN_PIPE, ERROR_PIPE_NOT_CONNECTED};
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(code, Some(ERROR_BROKEN_PIPE | ERROR_PIPE_NOT_CONNECTED | ERROR_NO_DATA))
}

/// A name in the system's encoding.
fn wide(name: &str) -> Vec<u16> {
    name.encode_utf16().chain([0]).collect()
}
