//! The receiving end of a FIFO.

use std::io::{self, IoSliceMut};
use std::time::Duration;

use rustix::fs::OFlags;

use super::Addr;
use super::end::{End, end};
use crate::{Interest, Pollable, Receive};

/// Receives from a FIFO; cannot send.
///
/// The end of the stream is reported when there is no writer: after the last has closed it, but also before
/// the first has opened it, if the reader was opened with [`try_open`](Self::try_open).
#[derive(Debug)]
pub struct Reader(pub(super) End);

impl Reader {
    /// Opens the FIFO at `addr`; waits until a writer opens it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::PermissionDenied`] and others of the operating system;
    /// [`io::ErrorKind::InvalidInput`] if there is another kind of file.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        End::open(addr, OFlags::RDONLY).map(Self)
    }

    /// Opens the FIFO at `addr` without waiting for a writer.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn try_open(addr: &Addr) -> io::Result<Self> {
        End::open(addr, OFlags::RDONLY | OFlags::NONBLOCK).map(Self)
    }

    /// Opens the FIFO at `addr` without waiting for a writer, and never reports the end: after a writer
    /// closes, it waits for the next. To this end it opens the FIFO for writing too (undefined in POSIX,
    /// supported by all known systems), so it needs write permission.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_lasting(addr: &Addr) -> io::Result<Self> {
        End::open(addr, OFlags::RDWR | OFlags::NONBLOCK).map(Self)
    }
}

end!(Reader, OFlags::RDONLY);
crate::inherent_receive!(Reader);

impl Receive for Reader {
    #[inline]
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.wait(Interest::INPUT, || rustix::io::read(self.handle(), &mut *buffer))
    }
    #[inline]
    fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.wait(Interest::INPUT, || rustix::io::readv(self.handle(), slices))
    }
    #[inline]
    fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.attempt(|| rustix::io::read(self.handle(), &mut *buffer))
    }
    #[inline]
    fn try_recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.attempt(|| rustix::io::readv(self.handle(), slices))
    }
    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.set_timeout(timeout)
    }
}
