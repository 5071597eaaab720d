//! The transfer traits of `spandrel-ipc`.

use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use spandrel_ipc::{Receive, Shutdown, Transfer, TransferError, Transmit};

use crate::Stream;
use crate::wait::Wait;

// Transfers with their own timeout wait as `recv` does, rather than on the handle: another thread may be
// completing the handshake.
impl<S: Transfer> Receive for Stream<S> {
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv_as(&mut [IoSliceMut::new(buffer)], self.recv_wait())
    }
    fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.recv_as(slices, self.recv_wait())
    }
    fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv_as(&mut [IoSliceMut::new(buffer)], Wait::No)
    }
    fn try_recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.recv_as(slices, Wait::No)
    }
    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.keep_recv_timeout(timeout)
    }
    fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<usize> {
        self.recv_as(&mut [IoSliceMut::new(buffer)], Wait::within(timeout))
    }
    fn recv_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> io::Result<usize> {
        self.recv_as(slices, Wait::within(timeout))
    }
    fn recv_n_within(&self, buffer: &mut [u8], timeout: Duration) -> Result<(), TransferError> {
        self.recv_n_v_within(&mut [IoSliceMut::new(buffer)], timeout)
    }
    fn recv_n_v_within(&self, mut slices: &mut [IoSliceMut<'_>], timeout: Duration) -> Result<(), TransferError> {
        let wait = Wait::within(timeout);
        let mut transferred = 0;
        IoSliceMut::advance_slices(&mut slices, 0); // past empty ones
        while !slices.is_empty() {
            let octets = match self.recv_as(slices, wait) {
                Ok(0) => return Err(TransferError { transferred, cause: io::ErrorKind::UnexpectedEof.into() }),
                Ok(octets) => octets,
                Err(cause) => return Err(TransferError { transferred, cause }),
            };
            transferred += octets;
            IoSliceMut::advance_slices(&mut slices, octets);
        }
        Ok(())
    }
}

impl<S: Transfer> Transmit for Stream<S> {
    fn send(&self, data: &[u8]) -> io::Result<usize> {
        self.send_as(&[IoSlice::new(data)], self.send_wait())
    }
    fn send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send_as(slices, self.send_wait())
    }
    fn try_send(&self, data: &[u8]) -> io::Result<usize> {
        self.send_as(&[IoSlice::new(data)], Wait::No)
    }
    fn try_send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send_as(slices, Wait::No)
    }
    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.keep_send_timeout(timeout)
    }
    fn send_within(&self, data: &[u8], timeout: Duration) -> io::Result<usize> {
        self.send_as(&[IoSlice::new(data)], Wait::within(timeout))
    }
    fn send_v_within(&self, slices: &[IoSlice<'_>], timeout: Duration) -> io::Result<usize> {
        self.send_as(slices, Wait::within(timeout))
    }
    fn send_n_within(&self, data: &[u8], timeout: Duration) -> Result<(), TransferError> {
        self.send_n_v_within(&mut [IoSlice::new(data)], timeout)
    }
    fn send_n_v_within(&self, mut slices: &mut [IoSlice<'_>], timeout: Duration) -> Result<(), TransferError> {
        let wait = Wait::within(timeout);
        let mut transferred = 0;
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            let octets = self.send_as(slices, wait).map_err(|cause| TransferError { transferred, cause })?;
            transferred += octets;
            IoSlice::advance_slices(&mut slices, octets);
        }
        Ok(())
    }
}

impl<S: Transfer> Transfer for Stream<S> {
    fn is_established(&self) -> bool {
        !self.is_handshaking()
    }

    fn handshake_left(&self) -> Option<Duration> {
        if self.is_handshaking() { self.handshake_end.remaining() } else { None }
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.keep_nonblocking(on);
        Ok(())
    }
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.shut(how)
    }
    fn abort(&self) -> io::Result<()> {
        self.shut_both(S::abort)
    }
}

mod over_inet {
    use spandrel_ipc::inet;
    spandrel_ipc::inherent_transfer!(crate::Stream<inet::Stream>);
}

#[cfg(unix)]
mod over_unix {
    use spandrel_ipc::unix;
    spandrel_ipc::inherent_transfer!(crate::Stream<unix::Stream>);
}
