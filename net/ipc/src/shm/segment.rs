//! The shared memory of one connection: its layout, creation, description to the peer, and check on receipt.
//!
//! ```text
//! page 0   0  tail of the forward ring     256  tail of the backward ring
//!        128  head of the forward ring     384  head of the backward ring
//!        512  place of the connector       640  place of the acceptor
//! page 1 on   octets of the forward ring (from the connector to the acceptor), then of the backward ring
//! ```
//!
//! The words lie two cache lines apart, because processors fetch lines in pairs. The ring sizes are in the
//! handshake, which each side copies once; no value that controls an access is read from shared memory. The
//! two processor words hold one more than the number of the processor on which that side last began to wait;
//! only [`adaptive_wait`](super::adaptive_wait) relies on them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU32; // shared with another process: those of the machine

use rustix::fs::{FileType, MemfdFlags, SealFlags};

use super::ring::{MAX_CAPACITY, RingMemory, word};
use crate::sys::shm::Memory;

/// The offset of the octets.
const PAGE: usize = 4096;
/// The distance of two words.
const APART: usize = 128;

/// The smallest ring, in octets.
pub(super) const MIN: u32 = 4096;
/// The largest ring, in octets.
pub(super) const MAX: u32 = MAX_CAPACITY;

/// The first octets of the handshake.
const MAGIC: [u8; 8] = *b"SPNDLshm";
const VERSION: u8 = 1;
/// The length of a handshake in octets.
pub(super) const HANDSHAKE_OCTETS: usize = 16;

/// Seals against a change of the size: with these, no access within the size can fail (`SIGBUS`).
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// The sizes of the two rings in octets; powers of two from [`MIN`] to [`MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// From the connector to the acceptor.
    pub(super) forward: u32,
    /// From the acceptor to the connector.
    pub(super) backward: u32,
}

impl Layout {
    /// With at least that many octets each.
    pub(super) fn with(forward: usize, backward: usize) -> io::Result<Self> {
        let fit = |octets: usize| match octets.checked_next_power_of_two() {
            Some(octets) if octets <= MAX as usize => Ok((octets as u32).max(MIN)),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a ring of {octets} octets is too large: the largest has {MAX}"),
            )),
        };
        Ok(Self { forward: fit(forward)?, backward: fit(backward)? })
    }

    /// The size of the memory.
    fn len(self) -> usize {
        PAGE + self.forward as usize + self.backward as usize
    }

    /// The connector's first message.
    pub(super) fn handshake(self) -> [u8; HANDSHAKE_OCTETS] {
        let mut octets = [0; HANDSHAKE_OCTETS];
        octets[..8].copy_from_slice(&MAGIC);
        octets[8] = VERSION;
        octets[9] = self.forward.trailing_zeros() as u8;
        octets[10] = self.backward.trailing_zeros() as u8;
        octets
    }

    /// Parses the connector's first message; rings of more than `limit` octets are refused.
    pub(super) fn from_handshake(octets: &[u8], limit: u32) -> io::Result<Self> {
        let octets: &[u8; HANDSHAKE_OCTETS] =
            octets.try_into().map_err(|_| refused("the handshake has a wrong length"))?;
        if octets[..8] != MAGIC {
            return Err(refused("the peer's handshake is not for shared memory"));
        }
        if octets[8] != VERSION {
            return Err(refused("the peer's handshake has another version"));
        }
        let size = |log: u8| 1_u32.checked_shl(log.into()).filter(|size| (MIN..=limit.min(MAX)).contains(size));
        match (size(octets[9]), size(octets[10])) {
            (Some(forward), Some(backward)) => Ok(Self { forward, backward }),
            _ => Err(refused("a ring size is out of range")),
        }
    }
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Creates shared memory with a fixed size.
pub(super) fn create(layout: Layout) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Old kernels lack the flag that forbids execution.
    let file = rustix::fs::memfd_create(c"spandrel-shm", flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(c"spandrel-shm", flags))?;
    rustix::fs::ftruncate(&file, layout.len() as u64)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// Maps the memory of a connection, made by either side, after checking that its size is right and fixed.
pub(super) fn map(file: impl AsFd, layout: Layout) -> io::Result<Memory> {
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size != layout.len() as i64 {
        return Err(refused("the memory does not have the size in the handshake"));
    }
    let seals = rustix::fs::fcntl_get_seals(&file).map_err(|_| refused("the descriptor is not sealed memory"))?;
    if !seals.contains(SEALS) {
        return Err(refused("the memory is not sealed against a change of its size"));
    }
    Memory::map(file.as_fd(), layout.len())
}

/// The direction of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the connector to the acceptor.
    Forward,
    /// From the acceptor to the connector.
    Backward,
}

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Connector,
    Acceptor,
}

impl Side {
    /// The word in which a side publishes its processor.
    pub(super) fn cpu_word(self, memory: &Memory) -> &AtomicU32 {
        memory.word(APART * if self == Self::Connector { 4 } else { 5 })
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::Connector => Self::Acceptor,
            Self::Acceptor => Self::Connector,
        }
    }
}

/// One ring in shared memory.
#[derive(Debug)]
pub(super) struct SharedRing<'a> {
    memory: &'a Memory,
    words: usize,
    data: usize,
    capacity: u32,
}

impl<'a> SharedRing<'a> {
    #[inline]
    pub(super) fn new(memory: &'a Memory, layout: Layout, direction: Direction) -> Self {
        match direction {
            Direction::Forward => Self { memory, words: 0, data: PAGE, capacity: layout.forward },
            Direction::Backward => {
                Self { memory, words: 2 * APART, data: PAGE + layout.forward as usize, capacity: layout.backward }
            }
        }
    }
}

impl RingMemory for SharedRing<'_> {
    type Word = AtomicU32;

    #[inline]
    fn capacity(&self) -> u32 {
        self.capacity
    }
    #[inline]
    fn tail(&self) -> &AtomicU32 {
        self.memory.word(self.words)
    }
    #[inline]
    fn head(&self) -> &AtomicU32 {
        self.memory.word(self.words + APART)
    }
    #[inline]
    fn write(&self, at: u32, data: &[u8]) {
        self.memory.write(self.data + at as usize, data);
    }
    #[inline]
    fn read(&self, at: u32, buffer: &mut [u8]) {
        self.memory.read(self.data + at as usize, buffer);
    }
}

word!(AtomicU32);
