//! One operation in an `io_uring`: its entries, and what follows their results.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::types::Fd;
use io_uring::{opcode, squeue};

use crate::sys::proactor::completion::{OperationHandle, OperationKind};

/// The features of the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features {
    /// Whether it reports no completion of an entry that is marked so and succeeds.
    pub(super) skips_success: bool,
    /// Whether one entry can accept many connections.
    pub(super) has_multishot_accept: bool,
}

/// An operation that has not been completed.
pub(super) struct Operation {
    pub(super) key: u64,
    pub(super) task: Task,
    /// The kernel holds the file, but a handle that is closed early would make its number that of another.
    pub(super) handle: OperationHandle,
    pub(super) data: Vec<u8>,
    /// The octets of `data` that are sent.
    pub(super) sent: usize,
    pub(super) buffer: Vec<u8>,
    /// The number of completions that the kernel still reports.
    pub(super) awaited: u8,
    /// The result of sending, if not everything was sent.
    pub(super) failure: Option<i32>,
    pub(super) is_cancelled: bool,
}

/// The task of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Accept(AcceptCount),
    /// The wait before the next attempt to accept from a nonblocking handle.
    AwaitConnection(AcceptCount),
    Receive,
    Send,
    Exchange,
}

/// The number of connections that an operation accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AcceptCount {
    One,
    /// All until it is cancelled.
    Each,
}

/// The consequence of a result of the kernel.
pub(super) enum Step {
    /// Wait for another result of the same submission.
    Await,
    /// One connection of several. Unless the kernel goes on, the operation is submitted again.
    Accepted { handle: i32, is_submitted: bool },
    /// Another submission; its failure has this kind.
    Submit(OperationKind),
    /// The end of the operation.
    Finish(OperationKind, io::Result<i32>),
}

impl Operation {
    pub(super) fn new(key: u64, task: Task, handle: OperationHandle, data: Vec<u8>, buffer: Vec<u8>) -> Self {
        let (sent, awaited, failure, is_cancelled) = (0, 0, None, false);
        Self { key, task, handle, data, sent, buffer, awaited, failure, is_cancelled }
    }

    /// The entries that the kernel gets at present. They refer to the handle and to the memory of the buffers.
    pub(super) fn entries(&mut self, slot: usize, features: Features) -> (squeue::Entry, Option<squeue::Entry>) {
        let handle = Fd(self.handle.as_fd().as_raw_fd());
        self.awaited = 1;
        match self.task {
            Task::Accept(AcceptCount::Each) if features.has_multishot_accept => {
                let entry = opcode::AcceptMulti::new(handle).flags(libc::SOCK_CLOEXEC);
                (entry.build().user_data(token(slot)), None)
            }
            Task::Accept(_) => {
                let entry = opcode::Accept::new(handle, std::ptr::null_mut(), std::ptr::null_mut());
                (entry.flags(libc::SOCK_CLOEXEC).build().user_data(token(slot)), None)
            }
            Task::AwaitConnection(_) => {
                // Exclusive: of several operations, a connection ends one wait.
                let events = (libc::EPOLLIN | libc::EPOLLEXCLUSIVE).cast_unsigned();
                (opcode::PollAdd::new(handle, events).build().user_data(token(slot)), None)
            }
            Task::Receive => (receive_entry(handle, &mut self.buffer, slot), None),
            Task::Send => (send_entry(handle, &self.data[self.sent..], slot), None),
            Task::Exchange => {
                let mut flags = squeue::Flags::IO_LINK;
                if features.skips_success {
                    // A failure of the first entry is reported, and then the second is not.
                    flags |= squeue::Flags::SKIP_SUCCESS;
                } else {
                    self.awaited = 2;
                }
                let sending = send_entry(handle, &self.data[self.sent..], slot).flags(flags);
                (sending, Some(receive_entry(handle, &mut self.buffer, slot)))
            }
        }
    }

    /// Takes a result of the kernel: perhaps that of sending, perhaps with `more` to come from the same entry.
    pub(super) fn advance(&mut self, result: i32, is_sending: bool, more: bool) -> Step {
        use OperationKind::{Accept, Receive, Send};
        if more {
            return Step::Accepted { handle: result, is_submitted: true };
        }
        self.awaited -= 1;
        if is_sending {
            self.sent += usize::try_from(result).unwrap_or_default();
            self.failure = (self.sent < self.data.len()).then_some(result);
        }
        if self.awaited > 0 {
            return Step::Await;
        }
        let checked = if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result) };
        match (self.task, self.failure.take()) {
            // Kernels before 5.19 send a part. The rest follows.
            (_, Some(1..)) if !self.is_cancelled => Step::Submit(Send),
            (_, Some(0)) => Step::Finish(Send, Err(io::ErrorKind::WriteZero.into())),
            (_, Some(part)) if part > 0 => Step::Finish(Send, Err(cancelled())),
            (_, Some(failure)) if failure == -libc::EINTR => self.interrupted(Send),
            (_, Some(failure)) => Step::Finish(Send, Err(io::Error::from_raw_os_error(-failure))),
            (Task::Accept(_), None) if result == -libc::EINTR => self.interrupted(Accept),
            (Task::Receive | Task::Exchange, None) if result == -libc::EINTR => {
                self.task = Task::Receive; // everything is sent
                self.interrupted(Receive)
            }
            (Task::Accept(_), None) if result == -libc::EAGAIN && self.is_cancelled => {
                Step::Finish(Accept, Err(cancelled()))
            }
            (Task::Accept(count), None) if result == -libc::EAGAIN => {
                self.task = Task::AwaitConnection(count);
                Step::Submit(Accept)
            }
            // Also after a cancellation: no other wait is told of a connection that has ended this one.
            (Task::AwaitConnection(count), None) => {
                self.task = Task::Accept(if self.is_cancelled { AcceptCount::One } else { count });
                Step::Submit(Accept)
            }
            (Task::Accept(AcceptCount::Each), None) if result >= 0 && !self.is_cancelled => {
                Step::Accepted { handle: result, is_submitted: false }
            }
            (Task::Accept(_), None) => Step::Finish(Accept, checked),
            (Task::Send, None) => Step::Finish(Send, checked),
            (Task::Receive | Task::Exchange, None) => Step::Finish(Receive, checked),
        }
    }

    /// After a signal, or a stop of the process, has ended the kernel's wait: submits what is not done.
    fn interrupted(&self, kind: OperationKind) -> Step {
        if self.is_cancelled { Step::Finish(kind, Err(cancelled())) } else { Step::Submit(kind) }
    }
}

fn cancelled() -> io::Error {
    io::Error::from_raw_os_error(libc::ECANCELED)
}

/// The user data by which a completion finds the slot of its operation.
pub(super) fn token(slot: usize) -> u64 {
    (slot as u64) << 1
}

/// The user data of an entry that sends, with a mark that tells it from the second entry of an exchange.
pub(super) fn sending(slot: usize) -> u64 {
    token(slot) | 1
}

fn send_entry(handle: Fd, data: &[u8], slot: usize) -> squeue::Entry {
    // The kernel sends everything, or reports a failure.
    let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
    opcode::Send::new(handle, data.as_ptr(), len(data)).flags(flags).build().user_data(sending(slot))
}

fn receive_entry(handle: Fd, buffer: &mut [u8], slot: usize) -> squeue::Entry {
    opcode::Recv::new(handle, buffer.as_mut_ptr(), len(buffer)).build().user_data(token(slot))
}

/// The length of a buffer for the kernel.
fn len(buffer: &[u8]) -> u32 {
    u32::try_from(buffer.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use spandrel_sync::Arc;

    use super::*;

    const FEATURES: Features = Features { skips_success: true, has_multishot_accept: true };

    fn operation(task: Task) -> Operation {
        let (handle, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let handle: crate::SharedHandle = Arc::new(handle);
        let mut operation = Operation::new(1, task, handle.into(), vec![7; 10], vec![0; 10]);
        operation.entries(0, FEATURES);
        operation
    }

    #[test]
    fn an_interrupted_operation_is_submitted_again() {
        let interrupted = -libc::EINTR;
        for (task, is_sending, expected) in [
            (Task::Accept(AcceptCount::One), false, OperationKind::Accept),
            (Task::Accept(AcceptCount::Each), false, OperationKind::Accept),
            (Task::Receive, false, OperationKind::Receive),
            (Task::Send, true, OperationKind::Send),
            (Task::Exchange, true, OperationKind::Send),
            (Task::Exchange, false, OperationKind::Receive),
        ] {
            let mut interrupted_operation = operation(task);
            let step = interrupted_operation.advance(interrupted, is_sending, false);
            assert!(matches!(step, Step::Submit(kind) if kind == expected), "{task:?}");
            let (_, second) = interrupted_operation.entries(0, FEATURES);
            assert_eq!(second.is_some(), task == Task::Exchange && is_sending, "{task:?}");
            let mut cancelled = operation(task);
            cancelled.is_cancelled = true;
            let Step::Finish(kind, Err(error)) = cancelled.advance(interrupted, is_sending, false) else {
                panic!("{task:?}: a cancelled operation ends");
            };
            assert_eq!((kind, error.raw_os_error()), (expected, Some(libc::ECANCELED)), "{task:?}");
        }
    }
}
