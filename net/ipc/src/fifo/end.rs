//! What both ends of a FIFO have in common.
//!
//! Pipes have neither a flag for one transfer that must not wait nor time-outs of their own. So the handle never blocks, and whoever may
//! wait does so for readiness.

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
    /// Takes over an open handle of a pipe. All who share it find that it does not block any more.
    pub(super) fn new(handle: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&handle, fcntl_getfl(&handle)? | OFlags::NONBLOCK)?;
        Ok(Self { handle, nonblocking: AtomicBool::new(false), timeout: Mutex::new(None) })
    }

    /// Takes over a handle that comes from elsewhere, if it is of a pipe and open for `access`. If not, it is closed.
    pub(super) fn adopt(handle: OwnedFd, access: OFlags) -> io::Result<Self> {
        is_fifo(fstat(&handle)?.st_mode)?;
        let open_for = fcntl_getfl(&handle)? & OFlags::RWMODE;
        if open_for != access && open_for != OFlags::RDWR {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the handle is of the other end of a pipe"));
        }
        Self::new(handle)
    }

    /// Opens the FIFO; other kinds of files are not even touched.
    pub(super) fn open(addr: &Addr, flags: OFlags) -> io::Result<Self> {
        is_fifo(statat(CWD, addr.as_path(), rustix::fs::AtFlags::empty())?.st_mode)?;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        let handle = retry_on_intr(|| openat(CWD, addr.as_path(), flags, Mode::empty()))?;
        is_fifo(fstat(&handle)?.st_mode)?; // it may be another file by now
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

    /// Makes an attempt, which never waits.
    #[inline]
    pub(super) fn attempt(&self, transfer: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<usize> {
        Ok(retry_on_intr(transfer)?)
    }

    /// Makes attempts, with waits in between, as this end is set up to.
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
        other => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("not a FIFO but of type {other:?}"))),
    }
}

impl Pollable for End {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        self.handle.as_fd()
    }
}

/// What a reader and a writer have in common, `$End` being a struct around an [`End`].
macro_rules! end {
    ($End:ident, $access:expr) => {
        impl $End {
            /// The same end under another handle.
            ///
            /// # Errors
            /// Those of the operating system, such as too many open files.
            pub fn try_clone(&self) -> ::std::io::Result<Self> {
                self.0.try_clone().map(Self)
            }

            /// Whether transfers fail at once with [`WouldBlock`](std::io::ErrorKind::WouldBlock) instead of waiting.
            pub fn set_nonblocking(&self, on: bool) {
                self.0.set_nonblocking(on);
            }

            /// How many octets the pipe holds (`F_GETPIPE_SZ`).
            ///
            /// # Errors
            /// Those of the operating system.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            pub fn capacity(&self) -> ::std::io::Result<usize> {
                Ok(::rustix::pipe::fcntl_getpipe_size(self)?)
            }

            /// Asks for a pipe that holds this many octets, and says how many it will be (`F_SETPIPE_SZ`).
            ///
            /// # Errors
            /// [`PermissionDenied`](std::io::ErrorKind::PermissionDenied) beyond `/proc/sys/fs/pipe-max-size`;
            /// [`ResourceBusy`](std::io::ErrorKind::ResourceBusy) when more octets are in it; others of the operating system.
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

        /// Its file description does not block.
        impl From<$End> for ::std::os::fd::OwnedFd {
            fn from(end: $End) -> Self {
                end.0.into_handle()
            }
        }

        /// Takes over an end of a pipe, with a name or without, made elsewhere. Whoever shares its file description finds that it does
        /// not block any more.
        ///
        /// # Errors
        /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a handle that is no pipe's, or of the other end; it is closed.
        impl TryFrom<::std::os::fd::OwnedFd> for $End {
            type Error = ::std::io::Error;

            fn try_from(handle: ::std::os::fd::OwnedFd) -> ::std::io::Result<Self> {
                $crate::fifo::end::End::adopt(handle, $access).map(Self)
            }
        }
    };
}

pub(super) use end;
