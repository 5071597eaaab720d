//! Exact transfers: the loops that repeat partial transfers until all octets are transferred, the same for
//! every family.

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

/// Calls `send` until it has taken all of `slices`; they are advanced past the octets sent.
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

/// Calls `recv` until all of `slices` are full; they are advanced past the octets received.
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

/// One step of a loop: at least one octet, or the error that ends the loop.
#[inline]
fn some(transferred: usize, step: io::Result<usize>, on_zero: io::ErrorKind) -> Result<usize, TransferError> {
    match step {
        Ok(0) => Err(TransferError { transferred, cause: on_zero.into() }),
        Ok(n) => Ok(n),
        Err(cause) => Err(TransferError { transferred, cause }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A peer that takes, or gives, the numbers of octets in `steps`, and zero after them.
    struct Peer<'a> {
        steps: std::slice::Iter<'a, usize>,
        octets: Vec<u8>,
    }

    impl Peer<'_> {
        fn take(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            let Some(&step) = self.steps.next() else { return Err(io::ErrorKind::WouldBlock.into()) };
            let before = self.octets.len();
            self.octets.extend(slices.iter().flat_map(|s| s.iter()).take(step));
            Ok(self.octets.len() - before)
        }

        fn give(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
            let step = self.steps.next().copied().unwrap_or(0).min(self.octets.len());
            let mut given = self.octets.drain(..step);
            slices.iter_mut().flat_map(|s| s.iter_mut()).zip(given.by_ref()).for_each(|(to, octet)| *to = octet);
            let left: Vec<_> = given.collect();
            let given = step - left.len();
            self.octets.splice(..0, left);
            Ok(given)
        }
    }

    /// Octets to transfer, their division into slices, and the peer's steps.
    fn cases() -> impl Strategy<Value = (Vec<u8>, Vec<usize>, Vec<usize>)> {
        let cuts = proptest::collection::vec(0..9_usize, 0..20);
        let steps = proptest::collection::vec(1..30_usize, 0..40);
        (proptest::collection::vec(any::<u8>(), 0..150), cuts, steps)
    }

    fn pieces(mut data: &[u8], cuts: Vec<usize>) -> Vec<&[u8]> {
        let mut pieces = Vec::new();
        for cut in cuts {
            let (piece, rest) = data.split_at(cut.min(data.len()));
            pieces.push(piece);
            data = rest;
        }
        pieces.push(data);
        pieces
    }

    fn check(result: Result<(), TransferError>, done: usize, all: usize, kind: io::ErrorKind) {
        match result {
            Ok(()) => assert_eq!(done, all),
            Err(error) => {
                assert!(done < all);
                assert_eq!((error.transferred, error.kind()), (done, kind));
            }
        }
    }

    proptest! {
        #[test]
        fn everything_is_sent_or_the_count_is_right((data, cuts, steps) in cases()) {
            let mut peer = Peer { steps: steps.iter(), octets: Vec::new() };
            let result = send_n(&data, |data| peer.take(&[IoSlice::new(data)]));
            check(result, peer.octets.len(), data.len(), io::ErrorKind::WouldBlock);
            prop_assert_eq!(&peer.octets, &data[..peer.octets.len()]);

            let mut peer = Peer { steps: steps.iter(), octets: Vec::new() };
            let mut slices: Vec<_> = pieces(&data, cuts).into_iter().map(IoSlice::new).collect();
            let result = send_n_v(&mut slices, |slices| peer.take(slices));
            check(result, peer.octets.len(), data.len(), io::ErrorKind::WouldBlock);
            prop_assert_eq!(&peer.octets, &data[..peer.octets.len()]);
        }

        #[test]
        fn everything_is_received_or_the_count_is_right((data, cuts, steps) in cases()) {
            let mut peer = Peer { steps: steps.iter(), octets: data.clone() };
            let mut received = vec![0; data.len()];
            let result = recv_n(&mut received, |buffer| peer.give(&mut [IoSliceMut::new(buffer)]));
            let transferred = data.len() - peer.octets.len();
            check(result, transferred, data.len(), io::ErrorKind::UnexpectedEof);
            prop_assert_eq!(&received[..transferred], &data[..transferred]);

            let mut peer = Peer { steps: steps.iter(), octets: data.clone() };
            let mut received = vec![0; data.len()];
            let mut rest = &mut received[..];
            let mut slices = Vec::new();
            for cut in cuts {
                let (piece, after) = rest.split_at_mut(cut.min(rest.len()));
                slices.push(IoSliceMut::new(piece));
                rest = after;
            }
            slices.push(IoSliceMut::new(rest));
            let result = recv_n_v(&mut slices, |slices| peer.give(slices));
            let transferred = data.len() - peer.octets.len();
            check(result, transferred, data.len(), io::ErrorKind::UnexpectedEof);
            prop_assert_eq!(&received[..transferred], &data[..transferred]);
        }
    }

    #[test]
    fn a_send_of_zero_octets_does_not_spin() {
        let error = send_n(b"octets", |_| Ok(0)).unwrap_err();
        assert_eq!((error.transferred, error.kind()), (0, io::ErrorKind::WriteZero));
    }
}
