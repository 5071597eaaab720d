//! A disk that fails on command: power loss, errors of input and output, and no space.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

/// The size of the blocks that a disk writes in whole.
const BLOCK: usize = 512;

/// A file of a disk with two files. Its clones are the same file; both files have the same failures and the same space.
#[derive(Clone, Default)]
pub struct Disk {
    state: Arc<Mutex<State>>,
    file: usize,
}

#[derive(Default)]
struct State {
    files: [Octets; 2],
    /// The changes since the last synchronization of their file.
    pending: Vec<(usize, Change)>,
    changes: usize,
    synchronizations: usize,
    /// The number of changes after which operations fail.
    fails_after: Option<usize>,
    /// The number of operations that fail then; `None` for all.
    failures: Option<usize>,
    /// The size of the disk.
    space: Option<u64>,
}

/// The octets of a file.
#[derive(Clone, Default)]
struct Octets {
    /// As a program reads them.
    written: Vec<u8>,
    /// As they survive a loss of power.
    synced: Vec<u8>,
}

#[derive(Clone)]
enum Change {
    Length(u64),
    Write(u64, Vec<u8>),
}

impl Change {
    fn apply(&self, octets: &mut Vec<u8>) {
        match self {
            Self::Length(length) => octets.resize(usize::try_from(*length).unwrap(), 0),
            Self::Write(offset, data) => {
                let start = usize::try_from(*offset).unwrap();
                if octets.len() < start + data.len() {
                    octets.resize(start + data.len(), 0);
                }
                octets[start..start + data.len()].copy_from_slice(data);
            }
        }
    }
}

impl Disk {
    /// The other file of the disk.
    #[must_use]
    pub fn log(&self) -> Self {
        Self { state: Arc::clone(&self.state), file: 1 - self.file }
    }

    /// The number of changes of both files so far.
    pub fn changes(&self) -> usize {
        self.state.lock().unwrap().changes
    }

    /// The number of synchronizations of both files so far.
    pub fn synchronizations(&self) -> usize {
        self.state.lock().unwrap().synchronizations
    }

    /// Lets the power fail at the change after this number of changes.
    pub fn cut_power_after(&self, changes: usize) {
        let mut state = self.state.lock().unwrap();
        (state.fails_after, state.failures) = (Some(changes), None);
    }

    /// Lets the next operations fail, this many after this number of changes.
    pub fn fail_after(&self, changes: usize, operations: usize) {
        let mut state = self.state.lock().unwrap();
        (state.fails_after, state.failures) = (Some(changes), Some(operations));
    }

    /// Ends the failures of [`cut_power_after`](Self::cut_power_after) without a loss: those were errors of input and
    /// output.
    pub fn restore_power(&self) {
        self.state.lock().unwrap().fails_after = None;
    }

    /// Limits the space of both files together; `None` is no limit.
    pub fn set_space(&self, octets: Option<u64>) {
        self.state.lock().unwrap().space = octets;
    }

    /// Changes octets of the file behind the back of the store, wherever they are.
    pub fn replace(&self, old: &[u8], new: &[u8]) {
        let Octets { written, synced } = &mut self.state.lock().unwrap().files[self.file];
        for octets in [written, synced] {
            let places: Vec<usize> =
                (0..=octets.len() - old.len()).filter(|place| octets[*place..].starts_with(old)).collect();
            assert!(!places.is_empty());
            places.into_iter().for_each(|place| octets[place..place + new.len()].copy_from_slice(new));
        }
    }

    /// The octets of the file.
    pub fn contents(&self) -> Vec<u8> {
        self.state.lock().unwrap().files[self.file].written.clone()
    }

    /// Replaces the octets of the file behind the back of the store.
    pub fn set_contents(&self, octets: &[u8]) {
        let mut state = self.state.lock().unwrap();
        state.files[self.file] = Octets { written: octets.to_vec(), synced: octets.to_vec() };
        state.pending.retain(|(file, _)| *file != self.file);
    }

    /// The size of both files in octets.
    pub fn used(&self) -> u64 {
        self.state.lock().unwrap().used()
    }

    /// The file after the power returned: of the changes of both files that were not synchronized a random part was
    /// made, in a random order, and the last one perhaps in part.
    pub fn after_power_loss(&self, random: &mut fastrand::Rng) -> Self {
        let state = self.state.lock().unwrap();
        let mut files = state.files.clone();
        let mut made: Vec<_> = state.pending.iter().filter(|_| random.bool()).cloned().collect();
        random.shuffle(&mut made);
        if random.bool()
            && let Some((_, Change::Write(offset, data))) = made.last_mut()
        {
            let start = usize::try_from(*offset).unwrap() % BLOCK;
            let end = (start + random.usize(..=data.len())) / BLOCK * BLOCK;
            data.truncate(end.saturating_sub(start));
        }
        made.iter().for_each(|(file, change)| change.apply(&mut files[*file].synced));
        files.iter_mut().for_each(|file| file.written.clone_from(&file.synced));
        let state = State { files, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), file: self.file }
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let end = match &change {
            Change::Length(length) => *length,
            Change::Write(offset, data) => offset + data.len() as u64,
        };
        let growth = end.saturating_sub(state.files[self.file].written.len() as u64);
        if growth > 0 && state.space.is_some_and(|space| state.used() + growth > space) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        state.fail()?;
        state.changes += 1;
        change.apply(&mut state.files[self.file].written);
        state.pending.push((self.file, change));
        Ok(())
    }
}

impl State {
    fn used(&self) -> u64 {
        self.files.iter().map(|file| file.written.len() as u64).sum()
    }

    /// Fails as commanded.
    fn fail(&mut self) -> io::Result<()> {
        if self.fails_after.is_none_or(|limit| self.changes < limit) {
            return Ok(());
        }
        if let Some(failures) = &mut self.failures {
            *failures -= 1;
            if *failures == 0 {
                self.fails_after = None;
            }
        }
        Err(io::Error::other("the power is off"))
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().unwrap().files[self.file].written.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let octets =
            state.files[self.file].written.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(octets);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(Change::Length(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.fail()?;
        state.synchronizations += 1;
        let State { files, pending, .. } = &mut *state;
        let synced = &mut files[self.file].synced;
        pending.extract_if(.., |(file, _)| *file == self.file).for_each(|(_, change)| change.apply(synced));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Change::Write(offset, data.to_vec()))
    }
}
