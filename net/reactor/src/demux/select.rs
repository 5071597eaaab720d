//! `select(2)`: on UNIX for handles with small numbers; registration of others fails. On Windows for a small number of
//! handles.

use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;

use super::scan::{Scan, WatchedHandle};
use crate::Backend;
use crate::sys::{RawHandle, scan};

#[derive(Debug)]
pub(crate) struct Select;

impl Scan for Select {
    const BACKEND: Backend = Backend::Select;

    fn check(handle: RawHandle) -> io::Result<()> {
        scan::check(handle)
    }

    fn scan(&mut self, watched: &mut [WatchedHandle], timeout: Option<Duration>) -> io::Result<()> {
        let kinds = [Interest::INPUT, Interest::OUTPUT, Interest::EXCEPTION];
        let mut sets = kinds.map(|_| scan::Set::new());
        for watched in watched.iter() {
            for (kind, set) in kinds.iter().zip(&mut sets) {
                if set_interest(watched.interest).contains(*kind) {
                    set.insert(watched.handle);
                }
            }
        }
        let micros = timeout.map(|timeout| u64::try_from(timeout.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX));
        let [input, output, exception] = &mut sets;
        match scan::select(input, output, exception, micros) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            // A handle was closed under its handler, which gets the error on its next transfer.
            Err(error) if scan::is_closed(&error) => return mark_closed(watched, error),
            Err(error) => return Err(error),
        }
        for watched in watched {
            let held = kinds.iter().zip(&sets).filter(|(_, set)| set.contains(watched.handle));
            let ready = held.fold(Interest::NONE, |all, (kind, _)| all | *kind);
            watched.ready = if watched.interest.contains(ready) { ready } else { Interest::ALL };
        }
        Ok(())
    }
}

/// The sets in which a handle is. On Windows a failed attempt to connect is shown as an exception only.
fn set_interest(interest: Interest) -> Interest {
    if cfg!(windows) && interest.contains(Interest::OUTPUT) { interest | Interest::EXCEPTION } else { interest }
}

/// Marks closed handles as ready for everything.
fn mark_closed(watched: &mut [WatchedHandle], error: io::Error) -> io::Result<()> {
    let mut error = Err(error);
    for watched in watched {
        if !scan::is_open(watched.handle) {
            watched.ready = Interest::ALL;
            error = Ok(());
        }
    }
    error
}
