//! `select(2)`: for handles with small numbers; registration of others fails.

use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;

use super::scan::{Scan, WatchedHandle};
use crate::Backend;
use crate::sys::{self, RawHandle, scan};

#[derive(Debug)]
pub(crate) struct Select;

impl Scan for Select {
    const BACKEND: Backend = Backend::Select;

    fn check(handle: RawHandle) -> io::Result<()> {
        if handle < scan::SET_SIZE {
            return Ok(());
        }
        let limit = scan::SET_SIZE;
        let text = format!("select(2) waits only for handles below {limit} (FD_SETSIZE), and this one is {handle}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }

    fn scan(&mut self, watched: &mut [WatchedHandle], timeout: Option<Duration>) -> io::Result<()> {
        let kinds = [Interest::INPUT, Interest::OUTPUT, Interest::EXCEPTION];
        let mut sets = kinds.map(|_| scan::Set::new());
        for watched in watched.iter() {
            for (kind, set) in kinds.iter().zip(&mut sets) {
                if watched.interest.contains(*kind) {
                    set.insert(watched.handle);
                }
            }
        }
        let limit = watched.iter().map(|watched| watched.handle + 1).max().unwrap_or(0);
        let micros = timeout.map(|timeout| u64::try_from(timeout.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX));
        let [input, output, exception] = &mut sets;
        match scan::select(limit, input, output, exception, micros) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            // A handle was closed under its handler, which gets the error on its next transfer.
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => return mark_closed(watched, error),
            Err(error) => return Err(error),
        }
        for watched in watched.iter_mut() {
            let held = kinds.iter().zip(&sets).filter(|(_, set)| set.contains(watched.handle));
            watched.ready = held.fold(Interest::NONE, |all, (kind, _)| all | *kind);
        }
        Ok(())
    }
}

/// Marks closed handles as ready for everything.
fn mark_closed(watched: &mut [WatchedHandle], error: io::Error) -> io::Result<()> {
    let mut error = Err(error);
    for watched in watched {
        if sys::lend(watched.handle, |handle| rustix::io::fcntl_getfd(handle)).is_err() {
            watched.ready = Interest::ALL;
            error = Ok(());
        }
    }
    error
}
