//! The shared memory of one connection: how it is laid out, made, described to the peer, and checked on receipt.
//!
//! ```text
//! page 0   0  tail of the forward ring     256  tail of the backward ring
//!        128  head of the forward ring     384  head of the backward ring
//!        512  place of the connector       640  place of the acceptor
//! page 1 on   octets of the forward ring (from the connector to the acceptor), then of the backward ring
//! ```
//!
//! The words lie two cache lines apart, because processors fetch lines in pairs. How large the rings are is said in the greeting, which
//! each side copies once; nothing that governs an access is read from shared memory. A place is one more than the number of the processor
//! on which that side last began to wait; only [`patience`](super::patience) believes it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU32; // shared with another process: those of the machine

use rustix::fs::{FileType, MemfdFlags, SealFlags};

use super::ring::{Ground, MAX_CAPACITY, word};
use crate::sys::shm::Memory;

/// Where the octets begin.
const PAGE: usize = 4096;
/// Between two words.
const APART: usize = 128;

/// The smallest ring, in octets.
pub(super) const MIN: u32 = 4096;
/// The largest ring, in octets.
pub(super) const MAX: u32 = MAX_CAPACITY;

/// What the first octets on the socket are.
const MAGIC: [u8; 8] = *b"SPNDLshm";
const VERSION: u8 = 1;
/// The length of a greeting in octets.
pub(super) const GREETING: usize = 16;

/// What must not happen to the memory any more: with these, no access within its size can fail (`SIGBUS`).
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// How large the two rings are, in octets; powers of two from [`MIN`] to [`MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// From the connector to the acceptor.
    pub(super) forward: u32,
    /// From the acceptor to the connector.
    pub(super) backward: u32,
}

impl Layout {
    /// With at least so many octets each.
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

    /// What the connector says first.
    pub(super) fn greeting(self) -> [u8; GREETING] {
        let mut octets = [0; GREETING];
        octets[..8].copy_from_slice(&MAGIC);
        octets[8] = VERSION;
        octets[9] = self.forward.trailing_zeros() as u8;
        octets[10] = self.backward.trailing_zeros() as u8;
        octets
    }

    /// From what a connector said; rings of more than `limit` octets are refused.
    pub(super) fn from_greeting(octets: &[u8], limit: u32) -> io::Result<Self> {
        let octets: &[u8; GREETING] = octets.try_into().map_err(|_| refused("the greeting has another length"))?;
        if octets[..8] != MAGIC {
            return Err(refused("the peer does not speak of shared memory"));
        }
        if octets[8] != VERSION {
            return Err(refused("the peer speaks another version"));
        }
        let size = |log: u8| 1_u32.checked_shl(log.into()).filter(|size| (MIN..=limit.min(MAX)).contains(size));
        match (size(octets[9]), size(octets[10])) {
            (Some(forward), Some(backward)) => Ok(Self { forward, backward }),
            _ => Err(refused("the rings are smaller or larger than they may be")),
        }
    }
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Makes shared memory that can be neither shrunk nor grown.
pub(super) fn create(layout: Layout) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Old kernels do not know the flag that says that it will never be executed.
    let file = rustix::fs::memfd_create(c"spandrel-shm", flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(c"spandrel-shm", flags))?;
    rustix::fs::ftruncate(&file, layout.len() as u64)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// Maps the memory of a connection, whoever made it, once it is sure that it has the size and will keep it.
pub(super) fn map(file: impl AsFd, layout: Layout) -> io::Result<Memory> {
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size != layout.len() as i64 {
        return Err(refused("the memory does not have the size that was said"));
    }
    let seals = rustix::fs::fcntl_get_seals(&file).map_err(|_| refused("what was passed is no sealed memory"))?;
    if !seals.contains(SEALS) {
        return Err(refused("the memory is not sealed against a change of its size"));
    }
    Memory::map(file.as_fd(), layout.len())
}

/// Which of the two rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the connector to the acceptor.
    Forward,
    /// From the acceptor to the connector.
    Backward,
}

/// Which side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Connector,
    Acceptor,
}

impl Side {
    /// Where a side says where it runs.
    pub(super) fn place(self, memory: &Memory) -> &AtomicU32 {
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

impl Ground for SharedRing<'_> {
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
