//! Messages for several sockets, sent by one system call.
//!
//! Each message is a send request of an `io_uring` that does not wait, so that it is completed within its submission
//! (`io_uring_enter(2)`, `send(2)` with MSG_DONTWAIT). So no memory is lent to the kernel beyond the call.

use std::io;
use std::os::fd::AsRawFd as _;

use io_uring::types::Fd;
use io_uring::{IoUring, Probe, opcode};
use rustix::event::{EventfdFlags, eventfd};
use spandrel_ipc::Handle;

const MAX_MESSAGES: usize = 64;
/// The result of a message without a completion.
const MISSING: i32 = i32::MIN;

/// Sends messages on several sockets by one system call. None of them waits.
pub struct BatchSender(Ring);

/// The ring of a sender.
enum Ring {
    /// It is created for the first batch of several messages.
    Unneeded,
    Open(Box<IoUring>),
    /// The system has none, or forbids it, or it had an error, or no descriptor was left for it: messages are sent one after
    /// the other.
    Absent,
}

impl BatchSender {
    /// The most messages of one system call.
    pub const MAX_MESSAGES: usize = MAX_MESSAGES;

    /// Creates a sender. It creates an `io_uring` of its own when it is first needed; where the system has none, or
    /// forbids it, or where it would take the last descriptor, messages are sent one after the other.
    ///
    /// # Errors
    /// None on this system.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Ring::Unneeded))
    }

    /// Whether messages are sent by one system call, as far as is known. If not, they are sent one after the other.
    #[must_use]
    pub fn sends_together(&self) -> bool {
        !matches!(self.0, Ring::Absent)
    }

    /// Sends each message on its stream socket as far as the socket takes it at once. `sent` is called for each message,
    /// in their order, with the number of octets that were sent. One system call sends at most
    /// [`MAX_MESSAGES`](Self::MAX_MESSAGES) of them.
    ///
    /// The error of a socket that takes nothing is `WouldBlock`.
    pub fn send<'m>(
        &mut self,
        mut messages: impl Iterator<Item = (Handle<'m>, &'m [u8])> + Clone,
        mut sent: impl FnMut(io::Result<usize>),
    ) {
        loop {
            self.send_batch(messages.clone().take(MAX_MESSAGES), &mut sent);
            if messages.nth(MAX_MESSAGES - 1).is_none() {
                return;
            }
        }
    }

    fn send_batch<'m>(
        &mut self,
        messages: impl Iterator<Item = (Handle<'m>, &'m [u8])> + Clone,
        sent: &mut impl FnMut(io::Result<usize>),
    ) {
        let mut results = [MISSING; MAX_MESSAGES];
        let has_several = messages.clone().nth(1).is_some();
        if has_several
            && let Some(ring) = self.0.open()
            && let Err(error) = submit(ring, messages.clone(), &mut results)
        {
            tracing::error!(%error, "messages are sent one by one from now on");
            // Requests that were not submitted never are.
            self.0 = Ring::Absent;
        }
        for ((socket, octets), result) in messages.zip(results) {
            sent(match result {
                MISSING => send_one(socket, octets),
                count => usize::try_from(count).map_err(|_| io::Error::from_raw_os_error(-count)),
            });
        }
    }
}

impl Ring {
    /// The ring, created if that was not tried before.
    fn open(&mut self) -> Option<&mut IoUring> {
        if let Self::Unneeded = self {
            *self = match create() {
                Ok(ring) => Self::Open(Box::new(ring)),
                Err(error) => {
                    tracing::debug!(%error, "messages are sent one by one: there is no io_uring");
                    Self::Absent
                }
            };
        }
        match self {
            Self::Open(ring) => Some(ring),
            Self::Unneeded | Self::Absent => None,
        }
    }
}

/// Creates a ring, unless it would take the last descriptor of this process. An acceptor may have just released its spare
/// one, to accept a connection with it and close both: it would get it back from here.
///
/// # Errors
/// `Unsupported` where the system's `io_uring` is too old; those of the system where it has none, or forbids it, or where
/// there is no further descriptor.
fn create() -> io::Result<IoUring> {
    let ring = IoUring::builder().dontfork().build(MAX_MESSAGES as u32)?;
    drop(eventfd(0, EventfdFlags::CLOEXEC)?);
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    if !probe.is_supported(opcode::Send::CODE) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this system's io_uring is too old"));
    }
    Ok(ring)
}

impl std::fmt::Debug for BatchSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchSender").finish_non_exhaustive()
    }
}

/// Submits a request for each message, and takes their completions. After an error some have none; they were not
/// submitted.
fn submit<'m>(
    ring: &mut IoUring,
    messages: impl Iterator<Item = (Handle<'m>, &'m [u8])>,
    results: &mut [i32; MAX_MESSAGES],
) -> io::Result<()> {
    let mut missing = 0;
    for (nth, (socket, octets)) in messages.enumerate() {
        let len = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let entry = opcode::Send::new(Fd(socket.as_raw_fd()), octets.as_ptr(), len).flags(flags).build();
        // SAFETY: the socket and the octets are borrowed for longer than this function. A request with MSG_DONTWAIT ends
        // within its submission, and one that is not submitted here is dropped with the ring.
        if unsafe { ring.submission().push(&entry.user_data(nth as u64)) }.is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        missing += 1;
    }
    while missing > 0 {
        let submitted = ring.submit_and_wait(missing);
        for completion in ring.completion() {
            missing -= 1;
            if let Some(result) = results.get_mut(completion.user_data() as usize) {
                *result = completion.result();
            }
        }
        match submitted {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn send_one(socket: Handle<'_>, octets: &[u8]) -> io::Result<usize> {
    use rustix::net::SendFlags;
    Ok(rustix::net::send(socket, octets, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// The results of one batch, by a ring and one by one.
    fn results(messages: &[(&UnixStream, &[u8])]) -> Vec<Vec<Result<usize, io::ErrorKind>>> {
        let senders = [Ring::Unneeded, Ring::Absent].map(BatchSender);
        let results_of = |mut sender: BatchSender| {
            let mut results = Vec::new();
            let messages = messages.iter().map(|(socket, octets)| (socket.as_fd(), *octets));
            sender.send(messages, |result| results.push(result.map_err(|error| error.kind())));
            results
        };
        senders.map(results_of).into()
    }

    #[test]
    fn each_socket_gets_its_message() {
        let pairs: Vec<_> = (0..2 * MAX_MESSAGES + 1).map(|_| UnixStream::pair().unwrap()).collect();
        let messages: Vec<_> = pairs.iter().map(|(here, _)| (here, b"text".as_slice())).collect();
        let all = results(&messages);
        assert!(all.iter().all(|results| results == &vec![Ok(4); messages.len()]));
        for (_, there) in &pairs {
            let mut octets = vec![0; 4 * all.len()];
            (&*there).read_exact(&mut octets).unwrap();
            assert!(octets.chunks(4).all(|chunk| chunk == b"text"));
        }
    }

    #[test]
    fn a_full_socket_and_an_ended_one_delay_no_message() {
        let [(mut full, _reader), (ended, peer), (good, _other)] = [(); 3].map(|()| UnixStream::pair().unwrap());
        full.set_nonblocking(true).unwrap();
        while full.write(&[0; 4096]).is_ok() {}
        full.set_nonblocking(false).unwrap();
        drop(peer);
        let expected = [Err(io::ErrorKind::WouldBlock), Err(io::ErrorKind::BrokenPipe), Ok(1)];
        for results in results(&[(&full, &[0; 4096]), (&ended, b"x"), (&good, b"x")]) {
            assert_eq!(results, expected);
        }
    }

    #[test]
    fn a_message_is_sent_in_part_if_its_socket_takes_no_more() {
        let (here, _there) = UnixStream::pair().unwrap();
        let long = vec![0; 16 << 20];
        let count = results(&[(&here, &long)]).remove(0).remove(0);
        assert!(count.is_ok_and(|count| count > 0 && count < long.len()));
    }
}
