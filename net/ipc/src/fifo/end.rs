//! The common part of both ends of a FIFO.
//!
//! Pipes have neither a flag for a single nonblocking transfer nor timeouts. So the handle never blocks, and
//! a transfer that may wait waits for readiness.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, openat, statat};
use rustix::io::retry_on_intr;
use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicBool, Ordering};

use super::Addr;
use crate::{Handle, Interest, Pollable, wait_ready};

#[derive(Debug)]
pub(super) struct End {
    handle: OwnedFd,
    nonblocking: AtomicBool,
    timeout: Mutex<Option<Duration>>,
}

impl End {
    /// Takes over an open handle of a pipe. It becomes nonblocking for all processes that share the file
    /// description.
    pub(super) fn new(handle: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&handle, fcntl_getfl(&handle)? | OFlags::NONBLOCK)?;
        Ok(Self { handle, nonblocking: AtomicBool::new(false), timeout: Mutex::new(None) })
    }

    /// Takes over a handle made elsewhere, if it is a pipe open for `access`. Otherwise it is closed.
    pub(super) fn adopt(handle: OwnedFd, access: OFlags) -> io::Result<Self> {
        is_fifo(fstat(&handle)?.st_mode)?;
        let open_for = fcntl_getfl(&handle)? & OFlags::RWMODE;
        if open_for != access && open_for != OFlags::RDWR {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the handle is the other end of a pipe"));
        }
        Self::new(handle)
    }

    /// Opens the FIFO; a file of another kind is not opened.
    pub(super) fn open(addr: &Addr, flags: OFlags) -> io::Result<Self> {
        is_fifo(statat(CWD, addr.as_path(), rustix::fs::AtFlags::empty())?.st_mode)?;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        let handle = retry_on_intr(|| openat(CWD, addr.as_path(), flags, Mode::empty()))?;
        is_fifo(fstat(&handle)?.st_mode)?; // the file may have been replaced
        Self::new(handle)
    }

    pub(super) fn set_nonblocking(&self, on: bool) {
        self.nonblocking.store(on, Ordering::Relaxed);
    }

    pub(super) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        *self.timeout.lock() = crate::socket::timeout(timeout)?;
        Ok(())
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            handle: self.handle.try_clone()?,
            nonblocking: AtomicBool::new(self.nonblocking.load(Ordering::Relaxed)),
            timeout: Mutex::new(*self.timeout.lock()),
        })
    }

    pub(super) fn into_handle(self) -> OwnedFd {
        self.handle
    }

    /// Makes one attempt, which never waits.
    #[inline]
    pub(super) fn attempt(&self, transfer: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<usize> {
        Ok(retry_on_intr(transfer)?)
    }

    /// Retries the attempt, with waits in between, as this end is configured.
    #[inline]
    pub(super) fn wait(
        &self,
        interest: Interest,
        mut transfer: impl FnMut() -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match self.attempt(&mut transfer) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && !self.nonblocking.load(Ordering::Relaxed) => {}
                result => return result,
            }
            let timeout = *self.timeout.lock();
            if wait_ready(self, interest, timeout)?.is_none() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

fn is_fifo(mode: rustix::fs::RawMode) -> io::Result<()> {
    match FileType::from_raw_mode(mode) {
        FileType::Fifo => Ok(()),
        other => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("not a FIFO but a file of type {other:?}"))),
    }
}

impl Pollable for End {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        self.handle.as_fd()
    }
}

/// The common methods of a reader and a writer, `$End` being a struct around an [`End`].
macro_rules! end {
    ($End:ident, $access:expr) => {
        impl $End {
            /// Another handle to the same end.
            ///
            /// # Errors
            /// Any error of the operating system, such as too many open files.
            pub fn try_clone(&self) -> ::std::io::Result<Self> {
                self.0.try_clone().map(Self)
            }

            /// Whether transfers fail at once with [`WouldBlock`](std::io::ErrorKind::WouldBlock) instead of
            /// waiting.
            pub fn set_nonblocking(&self, on: bool) {
                self.0.set_nonblocking(on);
            }

            /// The capacity of the pipe in octets (`F_GETPIPE_SZ`).
            ///
            /// # Errors
            /// Any error of the operating system.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            pub fn capacity(&self) -> ::std::io::Result<usize> {
                Ok(::rustix::pipe::fcntl_getpipe_size(self)?)
            }

            /// Requests a pipe capacity in octets, and returns the actual one (`F_SETPIPE_SZ`).
            ///
            /// # Errors
            /// [`PermissionDenied`](std::io::ErrorKind::PermissionDenied) beyond
            /// `/proc/sys/fs/pipe-max-size`; [`ResourceBusy`](std::io::ErrorKind::ResourceBusy) when more
            /// octets are in it; others of the operating system.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            pub fn set_capacity(&self, octets: usize) -> ::std::io::Result<usize> {
                Ok(::rustix::pipe::fcntl_setpipe_size(self, octets)?)
            }
        }

        impl $crate::Pollable for $End {
            #[inline]
            fn handle(&self) -> $crate::Handle<'_> {
                $crate::Pollable::handle(&self.0)
            }
        }

        impl ::std::os::fd::AsFd for $End {
            #[inline]
            fn as_fd(&self) -> ::std::os::fd::BorrowedFd<'_> {
                $crate::Pollable::handle(&self.0)
            }
        }

        /// Its file description is nonblocking.
        impl From<$End> for ::std::os::fd::OwnedFd {
            fn from(end: $End) -> Self {
                end.0.into_handle()
            }
        }

        /// Takes over an end of a pipe, named or unnamed, made elsewhere. It becomes nonblocking for all
        /// processes that share its file description.
        ///
        /// # Errors
        /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a handle that is not a pipe, or is the
        /// other end; it is closed.
        impl TryFrom<::std::os::fd::OwnedFd> for $End {
            type Error = ::std::io::Error;

            fn try_from(handle: ::std::os::fd::OwnedFd) -> ::std::io::Result<Self> {
                $crate::fifo::end::End::adopt(handle, $access).map(Self)
            }
        }
    };
}

pub(super) use end;
