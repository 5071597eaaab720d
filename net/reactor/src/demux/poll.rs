//! `poll(2)`: for few handles, and for systems without a better mechanism.

use std::io;
use std::time::Duration;

use libc::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, pollfd};
use spandrel_ipc::Interest;

use super::demultiplexer::whole_millis;
use super::scan::{Scan, WatchedHandle};
use crate::Backend;
use crate::sys::{RawHandle, scan};

#[derive(Default)]
pub(crate) struct Poll {
    handles: Vec<pollfd>,
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Poll")
    }
}

/// The flags of `poll(2)` for each kind of event.
const FLAGS: [(i16, Interest); 3] =
    [(POLLIN, Interest::INPUT), (POLLOUT, Interest::OUTPUT), (POLLPRI, Interest::EXCEPTION)];

impl Scan for Poll {
    const BACKEND: Backend = Backend::Poll;

    fn check(_handle: RawHandle) -> io::Result<()> {
        Ok(())
    }

    fn scan(&mut self, watched: &mut [WatchedHandle], timeout: Option<Duration>) -> io::Result<()> {
        self.handles.clear();
        self.handles.extend(watched.iter().map(|watched| {
            let flag_of = |(flag, kind)| if watched.interest.contains(kind) { flag } else { 0 };
            pollfd { fd: watched.handle, events: FLAGS.map(flag_of).iter().fold(0, |all, flag| all | flag), revents: 0 }
        }));
        match scan::poll(&mut self.handles, whole_millis(timeout)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        for (watched, seen) in watched.iter_mut().zip(&self.handles) {
            watched.ready = ready(seen.revents);
        }
        Ok(())
    }
}

fn ready(seen: i16) -> Interest {
    if seen == 0 {
        return Interest::NONE;
    }
    if seen & (POLLERR | POLLHUP | POLLNVAL) != 0 {
        return Interest::ALL;
    }
    FLAGS.iter().filter(|(flag, _)| seen & flag != 0).fold(Interest::NONE, |all, (_, kind)| all | *kind)
}
