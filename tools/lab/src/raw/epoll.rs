//! Waiting for many sockets: the calls of epoll, level-triggered, for input.

use std::io;

use libc::c_int;

use super::{Socket, check};

/// An epoll instance, with room for events.
#[derive(Debug)]
pub(crate) struct Epoll {
    instance: Socket, // a descriptor, closed when dropped
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    /// Opens an instance that reports up to `batch` events at a time.
    ///
    /// # Errors
    /// The errors of `epoll_create1`.
    pub(crate) fn open(batch: usize) -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let instance = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } as isize)?;
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; batch.clamp(1, 4096)];
        Ok(Self { instance: Socket(instance as c_int), events })
    }

    /// Reports input at `socket` as `token` from now on, until the socket is closed.
    ///
    /// # Errors
    /// The errors of `epoll_ctl`.
    pub(crate) fn add(&self, socket: &Socket, token: usize) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token as u64 };
        // SAFETY: the event lives until the call returns; both descriptors are open.
        let added = unsafe { libc::epoll_ctl(self.instance.0, libc::EPOLL_CTL_ADD, socket.0, &raw mut event) };
        check(added as isize)?;
        Ok(())
    }

    /// Waits for input, up to `millis`, and returns the tokens of the ready sockets; none on a timeout or a
    /// signal.
    ///
    /// # Errors
    /// The errors of `epoll_wait`.
    #[inline]
    pub(crate) fn wait(&mut self, millis: c_int) -> io::Result<impl Iterator<Item = usize>> {
        let room = self.events.len() as c_int;
        // SAFETY: `events` has room for that many, and is borrowed exclusively until the call returns.
        let count =
            check(unsafe { libc::epoll_wait(self.instance.0, self.events.as_mut_ptr(), room, millis) } as isize);
        let count = match count {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            count => count?,
        };
        Ok(self.events[..count].iter().map(|event| event.u64 as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pair;
    use super::super::{recv, send};
    use super::*;

    #[test]
    fn sockets_are_reported_until_their_input_is_read() {
        let (quiet, _quiet_peer) = pair("127.0.0.1:0");
        let (busy, peer) = pair("127.0.0.1:0");
        let mut epoll = Epoll::open(8).unwrap();
        epoll.add(&quiet, 1).unwrap();
        epoll.add(&busy, 2).unwrap();
        assert_eq!(epoll.wait(0).unwrap().count(), 0);
        send(&peer, b"x").unwrap();
        for _ in 0..2 {
            assert_eq!(epoll.wait(10_000).unwrap().collect::<Vec<_>>(), [2], "level-triggered: it is reported again");
        }
        recv(&busy, &mut [0; 8]).unwrap();
        assert_eq!(epoll.wait(0).unwrap().count(), 0);
    }
}
