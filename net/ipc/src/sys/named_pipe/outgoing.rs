//! Sending over named pipes, through a private queue of one write.
//!
//! An overlapped write is pending until the peer has made room for all of it; if it is cancelled before, the
//! number of octets that the peer has received is unknown. So the octets are copied first, and from then on
//! count as sent; a timeout applies to the wait for the previous write. A pending write must outlive the
//! sender's thread, while Windows cancels all operations of a thread that ends, except those of a completion
//! port. So the process has one such port, and a thread that serves it.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr;
use std::time::Duration;

use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Condition, Mutex, Weak, thread};
use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{SetFileCompletionNotificationModes, WriteFile};
use windows_sys::Win32::System::IO::{
    CancelIoEx, CreateIoCompletionPort, GetQueuedCompletionStatus, OVERLAPPED, PostQueuedCompletionStatus,
};
use windows_sys::Win32::System::WindowsProgramming::FILE_SKIP_COMPLETION_PORT_ON_SUCCESS;

use super::{Pipe, is_peer_closed};
use crate::sys::overlapped::{milliseconds, owned};

/// The maximum number of octets of one write.
const ROOM: usize = 64 * 1024;

/// The time limit of a write after its sender has stopped waiting.
const LINGER: Duration = Duration::from_secs(10);

/// The octets on their way to the peer.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pipe: Mutex<Option<Arc<Pipe>>>,
    state: Mutex<State>,
    changed: Condition,
    port: Arc<Port>,
}

#[derive(Debug, Default)]
struct State {
    /// The previous write, for reuse.
    idle: Option<Box<Write>>,
    /// The write that the system has not completed.
    pending: Option<PendingWrite>,
    /// The number of writes started, and the number of those that have ended.
    started: u64,
    ended: u64,
    /// The reason why there will be no more; a system error code.
    failure: Option<i32>,
    closed: bool,
}

/// One write: its OVERLAPPED structure, and the octets.
#[repr(C)] // the system knows it by the address of its first field
#[derive(Debug)]
struct Write {
    overlapped: OverlappedCell,
    octets: Vec<u8>,
    /// Set while it is pending.
    sender: Option<Arc<Outgoing>>,
}

/// The OVERLAPPED structure of an operation.
#[repr(transparent)]
struct OverlappedCell(UnsafeCell<OVERLAPPED>);

// SAFETY: only the system reads or writes it.
unsafe impl Send for OverlappedCell {}

impl std::fmt::Debug for OverlappedCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OverlappedCell")
    }
}

/// A [`Write`] owned by the system, until its completion is taken from the port.
#[derive(Debug)]
struct PendingWrite {
    write: *mut Write,
    pipe: Arc<Pipe>,
}

// SAFETY: the pointer is only ever given to the system.
unsafe impl Send for PendingWrite {}

impl Outgoing {
    /// For a connected end.
    pub(crate) fn new(pipe: Arc<Pipe>) -> io::Result<Arc<Self>> {
        let port = Port::of_process()?;
        port.adopt(&pipe)?;
        let (state, changed) = (Mutex::new(State::default()), Condition::new());
        Ok(Arc::new(Self { pipe: Mutex::new(Some(pipe)), state, changed, port }))
    }

    /// The end; none after it was closed.
    pub(crate) fn pipe(&self) -> Option<Arc<Pipe>> {
        self.pipe.lock().clone()
    }

    /// Sends some of `slices`: waits until the previous octets are written, and then, within the deadline,
    /// for these.
    pub(crate) fn send(self: &Arc<Self>, slices: &[IoSlice<'_>], deadline: Deadline) -> io::Result<usize> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0); // the peer would be notified of it
        }
        let mut state = self.state.lock();
        while state.check()?.pending.is_some() {
            if !self.wait(&mut state, deadline) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let accepted = self.begin(&mut state, slices)?;
        let started = state.started;
        while state.pending.is_some() && state.ended < started && !state.closed {
            if !self.wait(&mut state, deadline) {
                break;
            }
        }
        match state.failure {
            Some(code) => Err(failure(code)),
            None => Ok(accepted),
        }
    }

    /// Closes this end once the pending write has ended, within a time limit. Ends all waits.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if !state.closed {
            state.closed = true;
            state.idle = None;
            self.changed.notify_all();
            if state.pending.is_some() {
                self.port.abandon(self);
            }
        }
        drop(state);
        let pipe = self.pipe.lock().take();
        drop(pipe);
    }

    /// Waits for a change; false after the deadline.
    fn wait(&self, state: &mut spandrel_sync::MutexGuard<'_, State>, deadline: Deadline) -> bool {
        let is_over = deadline.is_over();
        self.changed.wait_until(state, deadline);
        !is_over
    }

    /// Starts a write of the octets that fit.
    fn begin(self: &Arc<Self>, state: &mut State, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(pipe) = self.pipe() else { return Err(closed()) };
        let mut write = state.idle.take().unwrap_or_default();
        write.fill(slices);
        let accepted = write.octets.len();
        match Write::begin(write, self, &pipe) {
            WriteStart::Completed(write) => state.idle = Some(write),
            WriteStart::Failed(code) => {
                state.failure = Some(code);
                return Err(failure(code));
            }
            WriteStart::PendingWrite(write) => {
                state.started += 1;
                state.pending = Some(PendingWrite { write, pipe });
            }
        }
        Ok(accepted)
    }

    /// Records the end of the pending write.
    fn end(&self, write: Box<Write>, octets: usize, error: Option<i32>) {
        let mut state = self.state.lock();
        let pipe = state.pending.take();
        state.ended += 1;
        state.failure = match error {
            None if octets < write.octets.len() => Some(SHORT),
            error => error,
        };
        if !state.closed {
            state.idle = Some(write);
        }
        drop(state);
        self.changed.notify_all();
        drop(pipe);
    }

    /// Cancels the pending write; its completion arrives as usual.
    fn cancel(&self) {
        let state = self.state.lock();
        if let Some(PendingWrite { write, pipe }) = &state.pending {
            // SAFETY: while it stands in the locked state, no other thread has taken it back; it begins with
            // the OVERLAPPED structure that identifies it. A write that has ended is not affected.
            unsafe { CancelIoEx(pipe.raw(), write.cast()) };
        }
    }
}

impl State {
    /// Itself, or the error if sending has ended.
    fn check(&self) -> io::Result<&Self> {
        match self.failure {
            Some(code) => Err(failure(code)),
            None if self.closed => Err(closed()),
            None => Ok(self),
        }
    }
}

enum WriteStart {
    Completed(Box<Write>),
    PendingWrite(*mut Write),
    Failed(i32),
}

impl Write {
    /// Copies the octets that fit.
    fn fill(&mut self, slices: &[IoSlice<'_>]) {
        self.octets.clear();
        for slice in slices {
            let room = ROOM - self.octets.len();
            self.octets.extend_from_slice(&slice[..slice.len().min(room)]);
        }
    }

    /// Gives it to the system, with everything it refers to until it has ended.
    fn begin(mut self: Box<Self>, sender: &Arc<Outgoing>, pipe: &Pipe) -> WriteStart {
        *self.overlapped.0.get_mut() = OVERLAPPED::default();
        self.sender = Some(Arc::clone(sender));
        let (octets, len) = (self.octets.as_ptr(), self.octets.len() as u32); // ROOM at most
        let write = Box::into_raw(self);
        // SAFETY: the octets and the OVERLAPPED belong to `write`. Only the system uses them until the
        // operation has ended: when the call reports success or failure at once, or when the completion has
        // come from the port. The pipe stays open meanwhile, since the sender's state has it.
        let began = unsafe { WriteFile(pipe.raw(), octets, len, ptr::null_mut(), write.cast()) };
        let error = io::Error::last_os_error().raw_os_error().unwrap_or_default();
        if began == 0 && error == ERROR_IO_PENDING as i32 {
            return WriteStart::PendingWrite(write);
        }
        // SAFETY: it came from a box just above, and with FILE_SKIP_COMPLETION_PORT_ON_SUCCESS the system has
        // finished with it: immediate success and immediate failure are not reported to the port.
        let mut write = unsafe { Box::from_raw(write) };
        write.sender = None;
        if began == 0 { WriteStart::Failed(error) } else { WriteStart::Completed(write) }
    }
}

impl Default for Write {
    fn default() -> Self {
        Self { overlapped: OverlappedCell(UnsafeCell::new(OVERLAPPED::default())), octets: Vec::new(), sender: None }
    }
}

/// The completion port of all writes of the process.
#[derive(Debug)]
struct Port {
    handle: OwnedHandle,
    /// Abandoned writes and the times at which to cancel them, in that order.
    abandoned: Mutex<VecDeque<(Deadline, Weak<Outgoing>)>>,
}

impl Port {
    /// The port of this process, with a thread that serves it.
    fn of_process() -> io::Result<Arc<Self>> {
        static PORT: Mutex<Option<Arc<Port>>> = Mutex::new(None);
        let mut slot = PORT.lock();
        if let Some(port) = &*slot {
            return Ok(Arc::clone(port));
        }
        // SAFETY: a new port, without any handle.
        let handle = owned(unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, ptr::null_mut(), 0, 1) })?;
        let port = Arc::new(Self { handle, abandoned: Mutex::new(VecDeque::new()) });
        let listener = Arc::clone(&port);
        thread::Builder::new().name("spandrel-pipes".to_owned()).spawn(move || listener.listen())?;
        *slot = Some(Arc::clone(&port));
        Ok(port)
    }

    /// Associates `pipe` with the port, for completions of writes that do not succeed at once.
    fn adopt(&self, pipe: &Pipe) -> io::Result<()> {
        // SAFETY: both handles are open as long as they are borrowed.
        let adopted = unsafe { CreateIoCompletionPort(pipe.raw(), self.handle.as_raw_handle(), 0, 0) };
        // SAFETY: as above.
        if adopted.is_null() || unsafe { SetFileCompletionNotificationModes(pipe.raw(), SKIP) } == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Lets the pending write of `sender` go on for a limited time.
    fn abandon(&self, sender: &Arc<Outgoing>) {
        self.abandoned.lock().push_back((Deadline::after(LINGER), Arc::downgrade(sender)));
        // SAFETY: the handle is open as long as `self` is, and there is no operation to refer to.
        unsafe { PostQueuedCompletionStatus(self.handle.as_raw_handle(), 0, 0, ptr::null()) };
    }

    /// Takes completions of writes, for the lifetime of the process.
    fn listen(&self) {
        loop {
            let (mut octets, mut key, mut overlapped) = (0, 0, ptr::null_mut());
            let time = milliseconds(self.cancel_abandoned());
            // SAFETY: the handle is open as long as `self` is, and the three variables outlive the call.
            let good = unsafe {
                GetQueuedCompletionStatus(self.handle.as_raw_handle(), &mut octets, &mut key, &mut overlapped, time)
            };
            let error = if good == 0 { io::Error::last_os_error().raw_os_error() } else { None };
            if !overlapped.is_null() {
                // SAFETY: only writes complete here, each once; it came from a box in `Write::begin`, and the
                // system has finished with it.
                let mut write: Box<Write> = unsafe { Box::from_raw(overlapped.cast()) };
                let sender = write.sender.take().expect("it was set when the write began");
                sender.end(write, octets as usize, error);
            }
        }
    }

    /// Cancels the writes abandoned too long ago, and returns the time until the next check.
    fn cancel_abandoned(&self) -> Option<Duration> {
        loop {
            let mut abandoned = self.abandoned.lock();
            let (deadline, sender) = abandoned.front()?;
            if !deadline.is_over() && sender.strong_count() > 0 {
                return deadline.remaining();
            }
            let sender = sender.upgrade();
            abandoned.pop_front();
            drop(abandoned); // a sender is locked before this mutex
            sender.inspect(|sender| sender.cancel());
        }
    }
}

const SKIP: u8 = FILE_SKIP_COMPLETION_PORT_ON_SUCCESS as u8;

/// For a write that ended before its last octet, which no pipe in byte mode does.
const SHORT: i32 = -1;

fn failure(code: i32) -> io::Error {
    let error = io::Error::from_raw_os_error(code);
    match code {
        SHORT => io::ErrorKind::WriteZero.into(),
        _ if is_peer_closed(&error) => io::Error::new(io::ErrorKind::BrokenPipe, error),
        _ => error,
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "this end was shut down")
}
