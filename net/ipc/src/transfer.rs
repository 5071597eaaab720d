//! Exact transfers: the loops that turn "some octets" into "all of them", the same for every family.

use std::io::{self, IoSlice, IoSliceMut};

use crate::TransferError;

/// Calls `send` until it has taken all of `data`.
#[inline]
pub(crate) fn send_n(data: &[u8], mut send: impl FnMut(&[u8]) -> io::Result<usize>) -> Result<(), TransferError> {
    let mut sent = 0;
    while sent < data.len() {
        sent += some(sent, send(&data[sent..]), io::ErrorKind::WriteZero)?;
    }
    Ok(())
}

/// Calls `send` until it has taken all of `slices`; they are advanced past what was sent.
#[inline]
pub(crate) fn send_n_v(
    mut slices: &mut [IoSlice<'_>],
    mut send: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
) -> Result<(), TransferError> {
    let mut sent = 0;
    IoSlice::advance_slices(&mut slices, 0); // leading empty slices would make `send` return zero
    while !slices.is_empty() {
        let n = some(sent, send(slices), io::ErrorKind::WriteZero)?;
        sent += n;
        IoSlice::advance_slices(&mut slices, n);
    }
    Ok(())
}

/// Calls `recv` until `buffer` is full.
#[inline]
pub(crate) fn recv_n(
    buffer: &mut [u8],
    mut recv: impl FnMut(&mut [u8]) -> io::Result<usize>,
) -> Result<(), TransferError> {
    let mut received = 0;
    while received < buffer.len() {
        received += some(received, recv(&mut buffer[received..]), io::ErrorKind::UnexpectedEof)?;
    }
    Ok(())
}

/// Calls `recv` until all of `slices` are full; they are advanced past what was received.
#[inline]
pub(crate) fn recv_n_v(
    mut slices: &mut [IoSliceMut<'_>],
    mut recv: impl FnMut(&mut [IoSliceMut<'_>]) -> io::Result<usize>,
) -> Result<(), TransferError> {
    let mut received = 0;
    IoSliceMut::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let n = some(received, recv(slices), io::ErrorKind::UnexpectedEof)?;
        received += n;
        IoSliceMut::advance_slices(&mut slices, n);
    }
    Ok(())
}

/// One step of a loop: at least one octet, or the reason why the loop ends.
#[inline]
fn some(transferred: usize, step: io::Result<usize>, on_zero: io::ErrorKind) -> Result<usize, TransferError> {
    match step {
        Ok(0) => Err(TransferError { transferred, cause: on_zero.into() }),
        Ok(n) => Ok(n),
        Err(cause) => Err(TransferError { transferred, cause }),
    }
}
