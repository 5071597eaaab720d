//! The octets of one datagram, in one slice or in several.

use std::io::{self, IoSlice, IoSliceMut};

/// The maximum of one system call on the known systems (`IOV_MAX`).
pub(super) const MAX_SLICES: usize = 1024;

/// The octets to send.
#[derive(Clone, Copy)]
pub(crate) enum Data<'a> {
    One(&'a [u8]),
    Several(&'a [IoSlice<'a>]),
}

/// The buffer to receive into.
pub(crate) enum Room<'a, 'b> {
    One(&'a mut [u8]),
    Several(&'a mut [IoSliceMut<'b>]),
}

impl Data<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(data) => data.len(),
            Self::Several(slices) => slices.iter().map(|slice| slice.len()).sum(),
        }
    }

    /// A datagram cannot be split over two calls, so more slices than one call takes are an error.
    #[inline]
    pub(super) fn check(&self) -> io::Result<()> {
        match self {
            Self::Several(slices) if slices.len() > MAX_SLICES => Err(too_many_slices()),
            _ => Ok(()),
        }
    }
}

#[cold]
fn too_many_slices() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a datagram can be gathered from 1,024 slices at most")
}

impl Room<'_, '_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(buffer) => buffer.len(),
            Self::Several(slices) => slices.iter().take(MAX_SLICES).map(|slice| slice.len()).sum(),
        }
    }
}
