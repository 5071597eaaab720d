//! Sending over named pipes: through a queue of one's own, of one write.
//!
//! The system has an overlapped write under way until the peer has made room for all of it, and if it is cancelled before, nobody
//! knows how much the peer has received. So what is sent is copied first, and from then on counts as sent; what may time out is
//! the wait for the write before it. A write that goes on when its sender no longer waits must not end with the sender's thread,
//! as all operations do but those that tell a completion port of their end: so there is one such port in the process, and a
//! thread that listens to it.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr;
use std::time::Duration;

use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Condition, Mutex, Weak, thread};
use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{SetFileCompletionNotificationModes, WriteFile};
use windows_sys::Win32::System::IO::{
    CancelIoEx, CreateIoCompletionPort, GetQueuedCompletionStatus, OVERLAPPED, PostQueuedCompletionStatus,
};
use windows_sys::Win32::System::WindowsProgramming::FILE_SKIP_COMPLETION_PORT_ON_SUCCESS;

use super::{Pipe, is_gone, milliseconds, owned};
use crate::deadline::Deadline;

/// How many octets one write takes at most.
const ROOM: usize = 64 * 1024;

/// How long a write may go on that nobody waits for any more.
const LINGER: Duration = Duration::from_secs(10);

/// What is on its way to the peer.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pipe: Mutex<Option<Arc<Pipe>>>,
    state: Mutex<State>,
    changed: Condition,
    port: Arc<Port>,
}

#[derive(Debug, Default)]
struct State {
    /// The write that was, for the next one.
    idle: Option<Box<Write>>,
    /// The write that is under way.
    under_way: Option<UnderWay>,
    /// How many writes were under way, and how many of them are over.
    begun: u64,
    over: u64,
    /// Why there will be no more; a number of the system's.
    failure: Option<i32>,
    closed: bool,
}

/// One write: what the system is told, and the octets.
#[repr(C)] // the system knows it by the address of its first field
#[derive(Debug)]
struct Write {
    overlapped: Told,
    octets: Vec<u8>,
    /// Set while it is under way.
    sender: Option<Arc<Outgoing>>,
}

/// What the system is told about an operation.
#[repr(transparent)]
struct Told(UnsafeCell<OVERLAPPED>);

// SAFETY: nobody looks into it but the system.
unsafe impl Send for Told {}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Told")
    }
}

/// A [`Write`] that the system has, until its end is taken from the port.
#[derive(Debug)]
struct UnderWay {
    write: *mut Write,
    pipe: Arc<Pipe>,
}

// SAFETY: the pointer is only ever given to the system.
unsafe impl Send for UnderWay {}

impl Outgoing {
    /// For an end that is connected.
    pub(crate) fn new(pipe: Arc<Pipe>) -> io::Result<Arc<Self>> {
        let port = Port::of_process()?;
        port.adopt(&pipe)?;
        let (state, changed) = (Mutex::new(State::default()), Condition::new());
        Ok(Arc::new(Self { pipe: Mutex::new(Some(pipe)), state, changed, port }))
    }

    /// The end; none once it was closed.
    pub(crate) fn pipe(&self) -> Option<Arc<Pipe>> {
        self.pipe.lock().clone()
    }

    /// Sends some of `slices`: waits until what was sent before has gone, and then, as long as there is time, for this to go.
    pub(crate) fn send(self: &Arc<Self>, slices: &[IoSlice<'_>], deadline: Deadline) -> io::Result<usize> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0); // the peer would be told of it
        }
        let mut state = self.state.lock();
        while state.check()?.under_way.is_some() {
            if !self.wait(&mut state, deadline) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let taken = self.begin(&mut state, slices)?;
        let begun = state.begun;
        while state.under_way.is_some() && state.over < begun && !state.closed {
            if !self.wait(&mut state, deadline) {
                break;
            }
        }
        match state.failure {
            Some(code) => Err(failure(code)),
            None => Ok(taken),
        }
    }

    /// Closes this end once the write that is under way is over, which is given some time. Ends all waits.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if !state.closed {
            state.closed = true;
            state.idle = None;
            self.changed.notify_all();
            if state.under_way.is_some() {
                self.port.abandon(self);
            }
        }
        drop(state);
        let pipe = self.pipe.lock().take();
        drop(pipe);
    }

    /// Waits for a change; false when the time is over.
    fn wait(&self, state: &mut spandrel_sync::MutexGuard<'_, State>, deadline: Deadline) -> bool {
        match deadline.left() {
            Some(left) if left.is_zero() => return false,
            Some(left) => _ = self.changed.wait_for(state, left),
            None => self.changed.wait(state),
        }
        true
    }

    /// Begins a write of what there is room for.
    fn begin(self: &Arc<Self>, state: &mut State, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(pipe) = self.pipe() else { return Err(closed()) };
        let mut write = state.idle.take().unwrap_or_default();
        write.fill(slices);
        let taken = write.octets.len();
        match Write::begin(write, self, &pipe) {
            Began::Over(write) => state.idle = Some(write),
            Began::Failed(code) => {
                state.failure = Some(code);
                return Err(failure(code));
            }
            Began::UnderWay(write) => {
                state.begun += 1;
                state.under_way = Some(UnderWay { write, pipe });
            }
        }
        Ok(taken)
    }

    /// The write that was under way is over.
    fn end(&self, write: Box<Write>, octets: usize, error: Option<i32>) {
        let mut state = self.state.lock();
        let pipe = state.under_way.take();
        state.over += 1;
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

    /// Cancels the write that is under way; its end then comes as any.
    fn cancel(&self) {
        let state = self.state.lock();
        if let Some(UnderWay { write, pipe }) = &state.under_way {
            // SAFETY: while it stands in the state, which is locked, nobody has taken it back; it begins with what the system
            // knows it by. That it may be over is no harm.
            unsafe { CancelIoEx(pipe.raw(), write.cast()) };
        }
    }
}

impl State {
    /// Itself, unless nothing can be sent any more.
    fn check(&self) -> io::Result<&Self> {
        match self.failure {
            Some(code) => Err(failure(code)),
            None if self.closed => Err(closed()),
            None => Ok(self),
        }
    }
}

enum Began {
    Over(Box<Write>),
    UnderWay(*mut Write),
    Failed(i32),
}

impl Write {
    /// Copies what there is room for.
    fn fill(&mut self, slices: &[IoSlice<'_>]) {
        self.octets.clear();
        for slice in slices {
            let room = ROOM - self.octets.len();
            self.octets.extend_from_slice(&slice[..slice.len().min(room)]);
        }
    }

    /// Gives it to the system, and what it holds with it until it is over.
    fn begin(mut self: Box<Self>, sender: &Arc<Outgoing>, pipe: &Pipe) -> Began {
        *self.overlapped.0.get_mut() = OVERLAPPED::default();
        self.sender = Some(Arc::clone(sender));
        let (octets, len) = (self.octets.as_ptr(), self.octets.len() as u32); // ROOM at most
        let write = Box::into_raw(self);
        // SAFETY: the octets and the OVERLAPPED belong to `write`, which nobody touches from here on until the system has done
        // with it: when the call says that it is over or has not begun, or when its end has come from the port. The pipe is open
        // all the while, since the sender's state has it.
        let began = unsafe { WriteFile(pipe.raw(), octets, len, ptr::null_mut(), write.cast()) };
        let error = io::Error::last_os_error().raw_os_error().unwrap_or_default();
        if began == 0 && error == ERROR_IO_PENDING as i32 {
            return Began::UnderWay(write);
        }
        // SAFETY: it came from a box just above, and with FILE_SKIP_COMPLETION_PORT_ON_SUCCESS the system has done with it: what
        // is over at once, and what fails at once, is not told to the port.
        let mut write = unsafe { Box::from_raw(write) };
        write.sender = None;
        if began == 0 { Began::Failed(error) } else { Began::Over(write) }
    }
}

impl Default for Write {
    fn default() -> Self {
        Self { overlapped: Told(UnsafeCell::new(OVERLAPPED::default())), octets: Vec::new(), sender: None }
    }
}

/// Where the ends of writes are told, for the whole process.
#[derive(Debug)]
struct Port {
    handle: OwnedHandle,
    /// Writes that nobody waits for any more, and when they are to be cancelled; in that order.
    abandoned: Mutex<VecDeque<(Instant, Weak<Outgoing>)>>,
}

impl Port {
    /// The one of this process, with a thread that listens to it.
    fn of_process() -> io::Result<Arc<Self>> {
        static PORT: Mutex<Option<Arc<Port>>> = Mutex::new(None);
        let mut slot = PORT.lock();
        if let Some(port) = &*slot {
            return Ok(Arc::clone(port));
        }
        // SAFETY: a new port, of which nothing is asked.
        let handle = owned(unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, ptr::null_mut(), 0, 1) })?;
        let port = Arc::new(Self { handle, abandoned: Mutex::new(VecDeque::new()) });
        let listener = Arc::clone(&port);
        thread::Builder::new().name("spandrel-pipes".to_owned()).spawn(move || listener.listen())?;
        *slot = Some(Arc::clone(&port));
        Ok(port)
    }

    /// Has the ends of all writes over `pipe` told here, unless they are over at once.
    fn adopt(&self, pipe: &Pipe) -> io::Result<()> {
        // SAFETY: both handles are open as long as they are borrowed.
        let adopted = unsafe { CreateIoCompletionPort(pipe.raw(), self.handle.as_raw_handle(), 0, 0) };
        // SAFETY: as above.
        if adopted.is_null() || unsafe { SetFileCompletionNotificationModes(pipe.raw(), SKIP) } == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Lets what `sender` has under way go on for a while.
    fn abandon(&self, sender: &Arc<Outgoing>) {
        let end = Instant::now().checked_add(LINGER);
        self.abandoned.lock().push_back((end.expect("the clock goes on for some seconds"), Arc::downgrade(sender)));
        // SAFETY: the handle is open as long as `self` is, and there is no operation to point at.
        unsafe { PostQueuedCompletionStatus(self.handle.as_raw_handle(), 0, 0, ptr::null()) };
    }

    /// Takes the ends of writes, for as long as the process lives.
    fn listen(&self) {
        loop {
            let (mut octets, mut key, mut overlapped) = (0, 0, ptr::null_mut());
            let time = milliseconds(self.cancel_abandoned());
            // SAFETY: the handle is open as long as `self` is, and the three are there for the answer.
            let good = unsafe {
                GetQueuedCompletionStatus(self.handle.as_raw_handle(), &mut octets, &mut key, &mut overlapped, time)
            };
            let error = if good == 0 { io::Error::last_os_error().raw_os_error() } else { None };
            if !overlapped.is_null() {
                // SAFETY: only writes are told here, each once; it came from a box in `Write::begin`, and the system has done
                // with it.
                let mut write: Box<Write> = unsafe { Box::from_raw(overlapped.cast()) };
                let sender = write.sender.take().expect("it was set when the write began");
                sender.end(write, octets as usize, error);
            }
        }
    }

    /// Cancels what has been abandoned for long enough, and says when to look again.
    fn cancel_abandoned(&self) -> Option<Duration> {
        loop {
            let mut abandoned = self.abandoned.lock();
            let (end, sender) = abandoned.front()?;
            let left = end.saturating_duration_since(Instant::now());
            if !left.is_zero() && sender.strong_count() > 0 {
                return Some(left);
            }
            let sender = sender.upgrade();
            abandoned.pop_front();
            drop(abandoned); // a sender is locked before this is
            sender.inspect(|sender| sender.cancel());
        }
    }
}

const SKIP: u8 = FILE_SKIP_COMPLETION_PORT_ON_SUCCESS as u8;

/// For a write that ended before its end, which no pipe in byte mode does.
const SHORT: i32 = -1;

fn failure(code: i32) -> io::Error {
    let error = io::Error::from_raw_os_error(code);
    match code {
        SHORT => io::ErrorKind::WriteZero.into(),
        _ if is_gone(&error) => io::Error::new(io::ErrorKind::BrokenPipe, error),
        _ => error,
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "this end was shut down")
}
