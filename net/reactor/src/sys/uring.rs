//! An `io_uring` for poll requests only.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode};
use spandrel_sync::Mutex;

/// The capacity of the submission queue.
const SUBMISSIONS: u32 = 256;
/// The capacity of the completion queue.
const COMPLETIONS: u32 = 4096;

/// A completed request to the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The token of the request.
    pub(crate) token: u64,
    /// The ready events, as for `poll(2)`, or a negative error.
    pub(crate) result: i32,
    /// Whether the request continues.
    pub(crate) goes_on: bool,
}

/// Poll requests. They lend no memory to the kernel, so that any of them is safe to submit.
pub(crate) struct Ring {
    ring: IoUring,
    /// Held while requests are submitted.
    submitting: Mutex<()>,
    /// Held while taking completions.
    completing: Mutex<()>,
}

impl Ring {
    /// # Errors
    /// `Unsupported` where the system has no `io_uring`, or one that is too old; those of the system where it
    /// is forbidden.
    pub(crate) fn new() -> io::Result<Self> {
        let ring = IoUring::builder().setup_cqsize(COMPLETIONS).dontfork().build(SUBMISSIONS)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let has_requests =
            [opcode::PollAdd::CODE, opcode::PollRemove::CODE].iter().all(|code| probe.is_supported(*code));
        let has_features = ring.params().is_feature_ext_arg() && ring.params().is_feature_nodrop();
        if !has_requests || !has_features {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this system's io_uring is too old"));
        }
        Ok(Self { ring, submitting: Mutex::new(()), completing: Mutex::new(()) })
    }

    /// Queues a request for `events`, as for `poll(2)`: reported once, or at each change.
    pub(crate) fn add(&self, handle: RawFd, events: u32, token: u64, is_multishot: bool) -> io::Result<()> {
        self.push(&opcode::PollAdd::new(Fd(handle), events).multi(is_multishot).build().user_data(token))
    }

    /// Queues the cancellation of a request. Its own completion has the token `answer`.
    pub(crate) fn remove(&self, token: u64, answer: u64) -> io::Result<()> {
        self.push(&opcode::PollRemove::new(token).build().user_data(answer))
    }

    fn push(&self, entry: &io_uring::squeue::Entry) -> io::Result<()> {
        let _submitting = self.submitting.lock();
        loop {
            // SAFETY: the lock excludes other users of the submission queue; and the request lends no memory.
            let is_in = unsafe { self.ring.submission_shared().push(entry).is_ok() };
            if is_in {
                return Ok(());
            }
            retry_interrupted(|| self.ring.submit())?;
        }
    }

    /// Submits the queued requests.
    pub(crate) fn submit(&self) -> io::Result<()> {
        retry_interrupted(|| self.ring.submit()).map(drop)
    }

    /// Submits the queued requests, and waits until one is completed, a signal arrives, or the timeout
    /// passes.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        submit_and_wait(&self.ring, timeout)
    }

    /// Takes up to `max` completions.
    pub(crate) fn take(&self, max: usize, mut each: impl FnMut(Completion)) {
        let _completing = self.completing.lock();
        // SAFETY: the lock excludes other users of the completion queue.
        let queue = unsafe { self.ring.completion_shared() };
        for entry in queue.take(max) {
            let goes_on = cqueue::more(entry.flags());
            each(Completion { token: entry.user_data(), result: entry.result(), goes_on });
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

fn retry_interrupted<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Submits the queued entries of a ring, and waits until one is completed, a signal arrives, or the timeout passes.
pub(crate) fn submit_and_wait(ring: &IoUring, timeout: Option<Duration>) -> io::Result<()> {
    let submitted = match timeout {
        None => ring.submit_and_wait(1),
        Some(timeout) => {
            let time = Timespec::new().sec(timeout.as_secs()).nsec(timeout.subsec_nanos());
            ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
        }
    };
    match submitted {
        Ok(_) => Ok(()),
        // Interrupted, timed out, or there are completions to be taken first.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN)) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}
