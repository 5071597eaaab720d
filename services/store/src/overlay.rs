//! Storage over a file that is only read: writes stay in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;
use redb::backends::FileBackend;

const BLOCK: u64 = 4_096;

/// The octets of a file, and the writes to them since it was opened, which end with this value.
pub(crate) struct Overlay {
    /// `None` for a file that does not exist. It is locked, so that no process writes to it.
    file: Option<FileBackend>,
    state: Mutex<State>,
}

struct State {
    length: u64,
    /// The octets of the file that are still part of the storage.
    of_file: u64,
    /// The blocks that were written, by number.
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    /// Opens a file, and locks it as readers do.
    ///
    /// # Errors
    /// A file that cannot be read; one that another process writes (`ResourceBusy`).
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
            // A file system without locks has none of other processes, either.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let length = file.metadata()?.len();
        let file = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Self { file: Some(file), state: Mutex::new(State { length, of_file: length, blocks: BTreeMap::new() }) })
    }

    /// The storage of a file that does not exist.
    pub(crate) fn empty() -> Self {
        Self { file: None, state: Mutex::new(State { length: 0, of_file: 0, blocks: BTreeMap::new() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block as it is now.
    fn block(&self, state: &State, number: u64) -> io::Result<Vec<u8>> {
        if let Some(block) = state.blocks.get(&number) {
            return Ok(block.clone());
        }
        let mut block = vec![0; BLOCK as usize];
        let start = number * BLOCK;
        let length = state.of_file.saturating_sub(start).min(BLOCK) as usize;
        if let Some(file) = self.file.as_ref().filter(|_| length > 0) {
            file.read(start, &mut block[..length])?;
        }
        Ok(block)
    }
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").field("file", &self.file).finish_non_exhaustive()
    }
}

/// The parts of a range of octets in each block: its number, and the ranges in it and in the octets.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let in_block = (at % BLOCK) as usize;
        let count = (BLOCK as usize - in_block).min(length - done);
        let part = (at / BLOCK, in_block, done..done + count);
        done += count;
        (count > 0).then_some(part)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, start, part) in parts(offset, out.len()) {
            let block = self.block(&state, number)?;
            let length = part.len();
            out[part].copy_from_slice(&block[start..start + length]);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.state();
        if length < state.length {
            // Octets that come back are zeros.
            state.of_file = state.of_file.min(length);
            state.blocks.retain(|number, _| number * BLOCK < length);
            let cut = (length % BLOCK) as usize;
            if let Some(block) = state.blocks.get_mut(&(length / BLOCK)) {
                block[cut..].fill(0);
            }
        }
        state.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        for (number, start, part) in parts(offset, data.len()) {
            let mut block = self.block(&state, number)?;
            block[start..start + part.len()].copy_from_slice(&data[part]);
            state.blocks.insert(number, block);
        }
        state.length = state.length.max(offset + data.len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn writes_and_lengths_are_those_of_a_file_and_the_file_is_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut random = fastrand::Rng::with_seed(7);
        let mut expected: Vec<u8> = (0..10_000).map(|_| random.u8(..)).collect();
        fs::write(&path, &expected).unwrap();
        let before = expected.clone();
        let overlay = Overlay::open(&path).unwrap();
        for _ in 0..300 {
            let at = random.usize(..=expected.len());
            if random.u8(..) < 40 {
                let length = random.usize(..20_000);
                overlay.set_len(length as u64).unwrap();
                expected.resize(length, 0);
            } else {
                let data: Vec<u8> = (0..random.usize(..9_000)).map(|_| random.u8(..)).collect();
                overlay.write(at as u64, &data).unwrap();
                expected.resize(expected.len().max(at + data.len()), 0);
                expected[at..at + data.len()].copy_from_slice(&data);
            }
            assert_eq!(overlay.len().unwrap(), expected.len() as u64);
            let mut read = vec![0; expected.len()];
            overlay.read(0, &mut read).unwrap();
            assert!(read == expected);
            assert!(overlay.read(1, &mut read).is_err() || read.is_empty());
        }
        assert!(fs::read(&path).unwrap() == before);
    }
}
