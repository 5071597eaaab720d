//! Operations in an `io_uring`, whose memory the table of operations owns while the kernel uses it.
//!
//! The two halves of an exchange are linked and submitted together. The kernel starts the second after the first has
//! sent everything; if it has not, the second is cancelled.

mod operation;

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};

use self::operation::{AcceptCount, Features, Operation, Step, Task, sending, token};
use super::completion::{Completion, OperationHandle, OperationKind, SharedHandle};
use super::table::{OperationId, Table};
use super::waker::{Doorbell, Waker};
use crate::sys::uring::submit_and_wait;

/// The capacity of the submission queue.
const SUBMISSIONS: u32 = 256;
/// The capacity of the completion queue.
const COMPLETIONS: u32 = SUBMISSIONS * 16;
/// The token of entries whose completions are ignored: cancellations, and the closing of handles.
const IGNORED: u64 = u64::MAX;
/// The token of the doorbell.
const DOORBELL: u64 = u64::MAX - 1;

/// The state of a proactor.
pub(super) struct Ring {
    ring: IoUring,
    operations: Table<Operation>,
    waker: Waker,
    features: Features,
}

impl Ring {
    pub(super) fn new(limit: usize) -> io::Result<Self> {
        let ring = create()?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Accept::CODE,
            opcode::Recv::CODE,
            opcode::Send::CODE,
            opcode::Close::CODE,
            opcode::PollAdd::CODE,
            opcode::AsyncCancel::CODE,
        ];
        let is_new_enough = ring.params().is_feature_ext_arg() && ring.params().is_feature_nodrop();
        if !is_new_enough || !needed.iter().all(|code| probe.is_supported(*code)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this system's io_uring is too old"));
        }
        use rustix::event::{EventfdFlags, eventfd};
        let doorbell = Doorbell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let features = Features {
            skips_success: ring.params().is_feature_skip_cqe_on_success(),
            has_multishot_accept: probe.is_supported(opcode::Socket::CODE), // also since 5.19
        };
        let (operations, waker) = (Table::new(limit), Waker::new(doorbell));
        let mut this = Self { ring, operations, waker, features };
        this.watch_doorbell()?;
        Ok(this)
    }

    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Any handle can be used without preparation.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the completion port of Windows differs")]
    pub(super) fn attach(&mut self, _stream: &SharedHandle) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn accept(&mut self, acceptor: SharedHandle, key: u64) -> io::Result<OperationId> {
        self.start(Task::Accept(AcceptCount::One), acceptor.into(), Vec::new(), Vec::new(), key)
    }

    pub(super) fn accept_each(&mut self, acceptor: SharedHandle, key: u64) -> io::Result<OperationId> {
        self.start(Task::Accept(AcceptCount::Each), acceptor.into(), Vec::new(), Vec::new(), key)
    }

    pub(super) fn receive(&mut self, stream: OperationHandle, buffer: Vec<u8>, key: u64) -> io::Result<OperationId> {
        self.start(Task::Receive, stream, Vec::new(), buffer, key)
    }

    pub(super) fn send(&mut self, stream: OperationHandle, data: Vec<u8>, key: u64) -> io::Result<OperationId> {
        self.start(Task::Send, stream, data, Vec::new(), key)
    }

    pub(super) fn exchange(
        &mut self,
        stream: OperationHandle,
        data: Vec<u8>,
        buffer: Vec<u8>,
        key: u64,
    ) -> io::Result<OperationId> {
        self.start(Task::Exchange, stream, data, buffer, key)
    }

    pub(super) fn close(&mut self, connection: OwnedFd) {
        let number = connection.into_raw_fd();
        let mut entry = opcode::Close::new(Fd(number)).build().user_data(IGNORED);
        if self.features.skips_success {
            entry = entry.flags(squeue::Flags::SKIP_SUCCESS);
        }
        // SAFETY: the entry owns the handle, and lends no memory.
        if unsafe { push(&mut self.ring, &[entry]) }.is_err() {
            // SAFETY: the kernel has not seen the entry, so that the handle still belongs to this function.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }

    pub(super) fn cancel(&mut self, id: OperationId) -> io::Result<()> {
        let Some(operation) = self.operations.get_mut(id) else { return Ok(()) };
        operation.is_cancelled = true;
        let tokens = [sending(id.slot()), token(id.slot())];
        let entries = tokens.map(|token| opcode::AsyncCancel::new(token).build().user_data(IGNORED));
        // SAFETY: a cancellation lends no memory.
        unsafe { push(&mut self.ring, &entries) }
    }

    pub(super) fn cancel_all(&mut self) -> io::Result<()> {
        self.operations.iter_mut().for_each(|operation| operation.is_cancelled = true);
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build().user_data(IGNORED);
        // SAFETY: a cancellation lends no memory.
        unsafe { push(&mut self.ring, &[entry]) }
    }

    pub(super) fn end_input(&mut self, id: OperationId) -> io::Result<()> {
        let Some(operation) = self.operations.get_mut(id) else { return Ok(()) };
        match rustix::net::shutdown(operation.handle.as_fd(), rustix::net::Shutdown::Read) {
            Err(rustix::io::Errno::NOTCONN) | Ok(()) => Ok(()), // the peer has ended it
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn wait(&mut self, timeout: Option<Duration>, completions: &mut Vec<Completion>) -> io::Result<()> {
        submit_and_wait(&self.ring, timeout)?;
        loop {
            let Some(entry) = self.ring.completion().next() else { return Ok(()) };
            self.complete(&entry, completions)?;
        }
    }

    fn start(
        &mut self,
        task: Task,
        handle: OperationHandle,
        data: Vec<u8>,
        buffer: Vec<u8>,
        key: u64,
    ) -> io::Result<OperationId> {
        let id = self.operations.insert(Operation::new(key, task, handle, data, buffer))?;
        let submitted = self.submit(id.slot());
        if submitted.is_err() {
            self.operations.remove(id.slot()); // the kernel has not seen it
        }
        submitted.map(|()| id)
    }

    /// Puts the entries of an operation into the submission queue.
    fn submit(&mut self, slot: usize) -> io::Result<()> {
        let Self { ring, operations, features, .. } = self;
        let (_, operation) = operations.slot_mut(slot).expect("submitted before its end");
        match operation.entries(slot, *features) {
            // SAFETY: the entry refers to the handle and to the memory of a buffer, which the operation owns. They are
            // neither used nor dropped before the last completion, nor when the proactor is dropped before.
            (first, None) => unsafe { push(ring, &[first]) },
            // SAFETY: as above, for both buffers.
            (first, Some(second)) => unsafe { push(ring, &[first, second]) },
        }
    }

    /// Takes one completion of the kernel.
    fn complete(&mut self, entry: &cqueue::Entry, completions: &mut Vec<Completion>) -> io::Result<()> {
        match entry.user_data() {
            IGNORED => return Ok(()),
            DOORBELL => {
                self.waker.answered();
                return if cqueue::more(entry.flags()) { Ok(()) } else { self.watch_doorbell() };
            }
            _ => {}
        }
        let slot = usize::try_from(entry.user_data() >> 1).expect("an index");
        let Some((_, operation)) = self.operations.slot_mut(slot) else { return Ok(()) };
        match operation.advance(entry.result(), entry.user_data() & 1 == 1, cqueue::more(entry.flags())) {
            Step::Await => {}
            Step::Accepted { handle, is_submitted } => {
                self.report(slot, OperationKind::Accept, Ok(handle), true, completions);
                if !is_submitted {
                    self.resubmit(slot, OperationKind::Accept, completions);
                }
            }
            Step::Submit(kind) => self.resubmit(slot, kind, completions),
            Step::Finish(kind, result) => self.report(slot, kind, result, false, completions),
        }
        Ok(())
    }

    /// Submits an operation again. Its end by a failure has this kind.
    fn resubmit(&mut self, slot: usize, kind: OperationKind, completions: &mut Vec<Completion>) {
        if let Err(error) = self.submit(slot) {
            self.report(slot, kind, Err(error), false, completions);
        }
    }

    /// Adds a completion of an operation, which goes on or ends with it.
    fn report(
        &mut self,
        slot: usize,
        kind: OperationKind,
        result: io::Result<i32>,
        goes_on: bool,
        completions: &mut Vec<Completion>,
    ) {
        let Some((id, operation)) = self.operations.slot_mut(slot) else { return };
        let key = operation.key;
        let ended = if goes_on { None } else { self.operations.remove(slot) };
        let parts = ended.map(|Operation { data, buffer, handle, .. }| (data, buffer, handle.into_owned()));
        let (data, buffer, owned) = parts.unwrap_or_default();
        let (result, connection) = match (kind, result) {
            // SAFETY: the result of a successful accept is a new handle, which belongs to nothing else.
            (OperationKind::Accept, Ok(handle)) => (Ok(0), Some(unsafe { OwnedFd::from_raw_fd(handle) })),
            (OperationKind::Send, Ok(_)) => (Ok(data.len()), owned),
            (_, result) => (result.map(|count| usize::try_from(count).expect("not negative")), owned),
        };
        completions.push(Completion { id, key, kind, goes_on, result, data, buffer, connection });
    }

    /// Lets the ring report each ring of the doorbell. It is watched for edges, so that it need not be read.
    fn watch_doorbell(&mut self) -> io::Result<()> {
        let events = u32::from(libc::POLLIN.cast_unsigned());
        let handle = Fd(self.waker.doorbell().0.as_raw_fd());
        let entry = opcode::PollAdd::new(handle, events).multi(true).build().user_data(DOORBELL);
        // SAFETY: the entry lends no memory, and the ring has the doorbell.
        unsafe { push(&mut self.ring, &[entry]) }
    }
}

impl Drop for Ring {
    /// Closes the last connections. If operations are pending, their memory is never freed.
    fn drop(&mut self) {
        if !self.ring.submission().is_empty() {
            let _ = self.ring.submit();
        }
        if self.len() > 0 {
            std::mem::forget(std::mem::replace(&mut self.operations, Table::new(0)));
        }
    }
}

/// A ring for one thread, whose completions the kernel prepares only while that thread waits for them. Kernels before
/// 6.1 lack these flags.
fn create() -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.dontfork().setup_cqsize(COMPLETIONS);
    let all = builder.clone().setup_single_issuer().setup_defer_taskrun().build(SUBMISSIONS);
    match all {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => builder.build(SUBMISSIONS),
        all => all,
    }
}

/// Puts entries into the submission queue, so that they are submitted together. Submits what is there if it is full.
///
/// # Safety
/// The memory and the handles that the entries refer to stay valid until their completions.
unsafe fn push(ring: &mut IoUring, entries: &[squeue::Entry]) -> io::Result<()> {
    loop {
        // SAFETY: as promised by the caller.
        if unsafe { ring.submission().push_multiple(entries) }.is_ok() {
            return Ok(());
        }
        match ring.submit() {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use spandrel_sync::Arc;

    use super::*;

    /// A ring for a kernel that reports all completions; none where the system forbids io_uring.
    fn ring() -> Option<Ring> {
        let mut ring = Ring::new(4).ok()?;
        ring.features = Features { skips_success: false, has_multishot_accept: false };
        Some(ring)
    }

    fn shared(stream: &Arc<UnixStream>) -> OperationHandle {
        OperationHandle::Shared(Arc::clone(stream) as _)
    }

    /// Waits for one completion, which is the only one.
    fn next(ring: &mut Ring) -> Completion {
        let mut completions = Vec::new();
        while ring.len() > 0 {
            ring.wait(None, &mut completions).unwrap();
        }
        assert_eq!(completions.len(), 1);
        completions.remove(0)
    }

    #[test]
    fn an_exchange_is_completed_once_if_the_kernel_reports_both_halves() {
        let Some(mut ring) = ring() else { return };
        let (here, mut there) = UnixStream::pair().unwrap();
        let here = Arc::new(here);
        ring.exchange(shared(&here), b"text".to_vec(), vec![0; 8], 1).unwrap();
        there.write_all(b"next").unwrap();
        let completion = next(&mut ring);
        assert_eq!((completion.kind, completion.result.unwrap()), (OperationKind::Receive, 4));
        there.read_exact(&mut [0; 4]).unwrap();

        drop(there);
        ring.exchange(shared(&here), b"text".to_vec(), vec![0; 8], 2).unwrap();
        let completion = next(&mut ring);
        assert_eq!((completion.kind, completion.buffer.len()), (OperationKind::Send, 8));
        assert_eq!(completion.result.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        ring.close(Arc::into_inner(here).unwrap().into());
    }

    #[test]
    fn connections_are_accepted_one_after_another_without_a_multishot_entry() {
        let Some(mut ring) = ring() else { return };
        let listener = Arc::new(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let id = ring.accept_each(Arc::clone(&listener) as _, 1).unwrap();
        let _clients = [(); 3].map(|()| std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let mut completions = Vec::new();
        while completions.len() < 3 {
            ring.wait(None, &mut completions).unwrap();
        }
        assert!(completions.drain(..).all(|completion| completion.goes_on && completion.connection.is_some()));
        ring.cancel(id).unwrap();
        let last = next(&mut ring);
        assert!(!last.goes_on && last.connection.is_none() && last.result.is_err());
    }

    #[test]
    fn the_rest_of_octets_that_are_sent_in_part_follows() {
        let Some(mut ring) = ring() else { return };
        let (here, mut there) = UnixStream::pair().unwrap();
        let id = ring.exchange(shared(&Arc::new(here)), b"text".to_vec(), vec![0; 8], 1).unwrap();
        // As if an older kernel had sent the half.
        let (_, operation) = ring.operations.slot_mut(id.slot()).unwrap();
        operation.awaited = 2;
        assert!(matches!(operation.advance(2, true, false), Step::Await));
        assert!(matches!(operation.advance(-libc::ECANCELED, false, false), Step::Submit(OperationKind::Send)));
        assert_eq!(operation.sent, 2);
        // Now cancelled, and so there is no rest.
        operation.awaited = 1;
        operation.is_cancelled = true;
        assert!(matches!(operation.advance(1, true, false), Step::Finish(OperationKind::Send, Err(_))));
        operation.awaited = 2;
        operation.sent = 0;
        operation.is_cancelled = false;
        there.write_all(b"next").unwrap();
        assert_eq!(next(&mut ring).kind, OperationKind::Receive);
    }
}
