//! The sending end of a FIFO.

use std::io::{self, IoSlice};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use spandrel_sync::thread;
use spandrel_sync::time::Deadline;

use super::Addr;
use super::end::{End, end};
use crate::{Interest, Pollable, Transmit};

/// Sends to a FIFO; cannot receive.
///
/// Sending after the last reader has closed is an error ([`io::ErrorKind::BrokenPipe`]). The system also
/// raises SIGPIPE, which Rust programs ignore by default.
#[derive(Debug)]
pub struct Writer(pub(super) End);

impl Writer {
    /// Opens the FIFO at `addr`; waits until a reader opens it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::PermissionDenied`] and others of the operating system;
    /// [`io::ErrorKind::InvalidInput`] if there is another kind of file.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        End::open(addr, OFlags::WRONLY).map(Self)
    }

    /// Opens the FIFO at `addr` if it has a reader.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`io::ErrorKind::NotConnected`] without a reader.
    pub fn try_open(addr: &Addr) -> io::Result<Self> {
        match End::open(addr, OFlags::WRONLY | OFlags::NONBLOCK) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                Err(io::Error::new(io::ErrorKind::NotConnected, "no process has the FIFO open for reading"))
            }
            result => result.map(Self),
        }
    }

    /// Like [`open`](Self::open), but waits no longer than `timeout`. The system does not report a new
    /// reader, so this polls.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`io::ErrorKind::TimedOut`] on a timeout.
    pub fn open_within(addr: &Addr, timeout: Duration) -> io::Result<Self> {
        let deadline = Deadline::after(timeout);
        let mut pause = Duration::from_millis(1);
        loop {
            match Self::try_open(addr) {
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                result => return result,
            }
            let left = deadline.remaining().unwrap_or_default();
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::park_timeout(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

const LONGEST_PAUSE: Duration = Duration::from_millis(20);

end!(Writer, OFlags::WRONLY);
crate::inherent_transmit!(Writer);

impl Transmit for Writer {
    #[inline]
    fn send(&self, data: &[u8]) -> io::Result<usize> {
        self.0.wait(Interest::OUTPUT, || rustix::io::write(self.handle(), data))
    }
    #[inline]
    fn send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.wait(Interest::OUTPUT, || rustix::io::writev(self.handle(), slices))
    }
    #[inline]
    fn try_send(&self, data: &[u8]) -> io::Result<usize> {
        self.0.attempt(|| rustix::io::write(self.handle(), data))
    }
    #[inline]
    fn try_send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.attempt(|| rustix::io::writev(self.handle(), slices))
    }
    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.set_timeout(timeout)
    }
}
