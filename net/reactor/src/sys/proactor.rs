//! Asynchronous operations in an `io_uring`, whose memory the ring owns while the kernel uses it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use spandrel_sync::Arc;

/// The capacity of the submission queue.
const SUBMISSIONS: u32 = 256;
/// The token of cancellations, whose completions are ignored.
const CANCEL: u64 = u64::MAX;
/// The number of waits for cancelled operations before their memory is given up.
const LAST_WAITS: usize = 100;
/// The time of each of these waits.
const LAST_WAIT: Duration = Duration::from_millis(10);

/// Starts operations on handles, and reports their completions (the Proactor pattern).
///
/// A reactor reports that an operation is possible; a proactor carries it out, and reports its result. All operations
/// that are started between two waits, and the wait itself, are one system call. For one thread: operations end with
/// the thread that started them.
pub struct Proactor {
    ring: IoUring,
    /// The operations that the kernel carries out, by their tokens.
    operations: Vec<Option<Operation>>,
    free: Vec<usize>,
    limit: usize,
}

/// A handle that operations use and keep open.
pub type SharedHandle = Arc<dyn AsFd + Send + Sync>;

/// An operation that has not been completed.
struct Operation {
    key: u64,
    kind: OperationKind,
    buffer: Vec<u8>,
    /// The kernel holds the file, but a handle that is closed early would make its number that of another.
    _handle: SharedHandle,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// [`Proactor::accept`].
    Accept,
    /// [`Proactor::receive`].
    Receive,
    /// [`Proactor::send`].
    Send,
    /// [`Proactor::wait_readable`].
    Readable,
}

/// The result of an operation.
#[derive(Debug)]
pub struct Completion {
    /// The key that the operation was started with.
    pub key: u64,
    /// Its kind.
    pub kind: OperationKind,
    /// The number of octets transferred; or zero.
    pub result: io::Result<usize>,
    /// The buffer of a transfer.
    pub buffer: Vec<u8>,
    /// The accepted connection.
    pub accepted: Option<OwnedFd>,
}

impl std::fmt::Debug for Proactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proactor").field("operations", &self.len()).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Proactor {
    /// A proactor of at most `limit` operations at a time.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the system's io_uring is missing or too old;
    /// [`io::ErrorKind::PermissionDenied`] where it is forbidden; others of the system.
    pub fn new(limit: usize) -> io::Result<Self> {
        let ring = IoUring::builder().dontfork().setup_cqsize(SUBMISSIONS * 16).build(SUBMISSIONS)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Accept::CODE,
            opcode::Recv::CODE,
            opcode::Send::CODE,
            opcode::PollAdd::CODE,
            opcode::AsyncCancel::CODE,
        ];
        let is_new_enough = ring.params().is_feature_ext_arg() && ring.params().is_feature_nodrop();
        if !is_new_enough || !needed.iter().all(|code| probe.is_supported(*code)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this system's io_uring is too old"));
        }
        Ok(Self { ring, operations: Vec::new(), free: Vec::new(), limit })
    }

    /// The number of operations that have not been completed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len() - self.free.len()
    }

    /// Whether all operations have been completed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Accepts a connection. On a nonblocking handle it may be completed with [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] beyond the limit of operations; those of the system.
    pub fn accept(&mut self, acceptor: SharedHandle, key: u64) -> io::Result<()> {
        let entry = |handle, _: &mut [u8]| {
            opcode::Accept::new(handle, std::ptr::null_mut(), std::ptr::null_mut()).flags(libc::SOCK_CLOEXEC).build()
        };
        self.start(OperationKind::Accept, acceptor, Vec::new(), key, entry)
    }

    /// Receives into `buffer`, as far as its length allows.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn receive(&mut self, stream: SharedHandle, buffer: Vec<u8>, key: u64) -> io::Result<()> {
        let entry = |handle, buffer: &mut [u8]| opcode::Recv::new(handle, buffer.as_mut_ptr(), len(buffer)).build();
        self.start(OperationKind::Receive, stream, buffer, key, entry)
    }

    /// Sends octets of `data`, possibly not all.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn send(&mut self, stream: SharedHandle, data: Vec<u8>, key: u64) -> io::Result<()> {
        let entry = |handle, data: &mut [u8]| {
            opcode::Send::new(handle, data.as_ptr(), len(data)).flags(libc::MSG_NOSIGNAL).build()
        };
        self.start(OperationKind::Send, stream, data, key, entry)
    }

    /// Waits until a handle is ready for input, or has ended.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn wait_readable(&mut self, handle: SharedHandle, key: u64) -> io::Result<()> {
        let events = u32::from(libc::POLLIN.cast_unsigned());
        let entry = |handle, _: &mut [u8]| opcode::PollAdd::new(handle, events).build();
        self.start(OperationKind::Readable, handle, Vec::new(), key, entry)
    }

    /// Cancels the operations with this key. They are completed with an error, unless they have just succeeded.
    ///
    /// # Errors
    /// Those of the system.
    pub fn cancel(&mut self, key: u64) -> io::Result<()> {
        let is_meant = |operation: &Option<Operation>| operation.as_ref().is_some_and(|operation| operation.key == key);
        let tokens: Vec<u64> = self
            .operations
            .iter()
            .enumerate()
            .filter(|(_, operation)| is_meant(operation))
            .map(|(at, _)| at as u64)
            .collect();
        for token in tokens {
            let entry = opcode::AsyncCancel::new(token).build().user_data(CANCEL);
            // SAFETY: a cancellation lends no memory.
            unsafe { push(&mut self.ring, &entry) }?;
        }
        Ok(())
    }

    /// Submits the started operations, waits until one is completed, a signal arrives, or the timeout passes, and
    /// appends the completions.
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait(&mut self, timeout: Option<Duration>, completions: &mut Vec<Completion>) -> io::Result<()> {
        let mut time = Timespec::new();
        let mut args = SubmitArgs::new();
        if let Some(timeout) = timeout {
            time = time.sec(timeout.as_secs()).nsec(timeout.subsec_nanos());
            args = args.timespec(&time);
        }
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => {}
            // Interrupted, timed out, or there are completions to be taken first.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN)) => {}
            Err(error) => return Err(error),
        }
        let Self { ring, operations, free, .. } = self;
        completions.extend(ring.completion().filter_map(|entry| complete(operations, free, &entry)));
        Ok(())
    }

    fn start(
        &mut self,
        kind: OperationKind,
        handle: SharedHandle,
        buffer: Vec<u8>,
        key: u64,
        entry: impl FnOnce(Fd, &mut [u8]) -> squeue::Entry,
    ) -> io::Result<()> {
        if self.len() >= self.limit {
            let text = format!("{} operations are not completed, the limit of the proactor", self.limit);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        let token = self.free.pop().unwrap_or_else(|| {
            self.operations.push(None);
            self.operations.len() - 1
        });
        let number = Fd(handle.as_fd().as_raw_fd());
        let operation = self.operations[token].insert(Operation { key, kind, buffer, _handle: handle });
        let entry = entry(number, &mut operation.buffer).user_data(token as u64);
        // SAFETY: the entry refers to the handle and to the memory of the buffer, which the operation owns. It is
        // neither used nor dropped before its completion, nor when the proactor is dropped before.
        let pushed = unsafe { push(&mut self.ring, &entry) };
        if pushed.is_err() {
            self.operations[token] = None; // the kernel has not seen it
            self.free.push(token);
        }
        pushed
    }
}

/// The length of a buffer for the kernel.
fn len(buffer: &[u8]) -> u32 {
    u32::try_from(buffer.len()).unwrap_or(u32::MAX)
}

/// Puts an entry into the submission queue, and submits what is there if it is full.
///
/// # Safety
/// The memory and the handle that the entry refers to stay valid until its completion.
unsafe fn push(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<()> {
    loop {
        // SAFETY: as promised by the caller.
        if unsafe { ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        match ring.submit() {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

/// Takes the operation of a completion; none for a cancellation.
fn complete(operations: &mut [Option<Operation>], free: &mut Vec<usize>, entry: &cqueue::Entry) -> Option<Completion> {
    let token = usize::try_from(entry.user_data()).ok()?;
    let Operation { key, kind, buffer, .. } = operations.get_mut(token)?.take()?;
    free.push(token);
    let result = match entry.result() {
        number if number < 0 => Err(io::Error::from_raw_os_error(-number)),
        number => Ok(usize::try_from(number).expect("not negative")),
    };
    let (result, accepted) = match (kind, result) {
        (OperationKind::Accept, Ok(_)) => {
            // SAFETY: the result of a successful accept is a new handle, which belongs to nothing else.
            (Ok(0), Some(unsafe { OwnedFd::from_raw_fd(entry.result()) }))
        }
        (_, result) => (result, None),
    };
    Some(Completion { key, kind, result, buffer, accepted })
}

impl Drop for Proactor {
    /// Cancels all operations, and waits for their completions. If these do not come, the memory is never freed.
    fn drop(&mut self) {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build().user_data(CANCEL);
        let mut completions = Vec::new();
        for _ in 0..LAST_WAITS {
            // SAFETY: a cancellation lends no memory.
            if self.is_empty() || unsafe { push(&mut self.ring, &entry) }.is_err() {
                break;
            }
            if self.wait(Some(LAST_WAIT), &mut completions).is_err() {
                break;
            }
        }
        if !self.is_empty() {
            std::mem::forget(std::mem::take(&mut self.operations));
        }
    }
}
