//! A disk that fails on command: power loss, and no space.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

/// A disk. Its clones are the same disk.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The octets as a program reads them.
    written: Vec<u8>,
    /// The octets that survive a loss of power.
    synced: Vec<u8>,
    /// The changes since the last synchronization.
    pending: Vec<Change>,
    changes: usize,
    /// The number of changes after which the power is lost.
    power_until: Option<usize>,
    /// The size of the disk.
    space: Option<u64>,
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
    /// The number of changes so far.
    pub fn changes(&self) -> usize {
        self.0.lock().unwrap().changes
    }

    /// Lets the power fail at the change after this number of changes.
    pub fn cut_power_after(&self, changes: usize) {
        self.0.lock().unwrap().power_until = Some(changes);
    }

    /// Ends the failures of [`cut_power_after`](Self::cut_power_after) without a loss: those were errors of input and
    /// output.
    pub fn restore_power(&self) {
        self.0.lock().unwrap().power_until = None;
    }

    /// Limits the space; `None` is no limit.
    pub fn set_space(&self, octets: Option<u64>) {
        self.0.lock().unwrap().space = octets;
    }

    /// Changes octets behind the back of the store, wherever they are.
    pub fn replace(&self, old: &[u8], new: &[u8]) {
        let State { written, synced, .. } = &mut *self.0.lock().unwrap();
        for octets in [written, synced] {
            let places: Vec<usize> =
                (0..=octets.len() - old.len()).filter(|place| octets[*place..].starts_with(old)).collect();
            assert!(!places.is_empty());
            places.into_iter().for_each(|place| octets[place..place + new.len()].copy_from_slice(new));
        }
    }

    /// The size of the file in octets.
    pub fn used(&self) -> u64 {
        self.0.lock().unwrap().written.len() as u64
    }

    /// The disk after the power returned: of the changes that were not synchronized a random part was made, in a
    /// random order, and the last one perhaps in part.
    pub fn after_power_loss(&self, random: &mut fastrand::Rng) -> Self {
        let state = self.0.lock().unwrap();
        let mut octets = state.synced.clone();
        let mut made: Vec<Change> = state.pending.iter().filter(|_| random.bool()).cloned().collect();
        random.shuffle(&mut made);
        if let Some(Change::Write(_, data)) = made.last_mut() {
            data.truncate((random.usize(..=data.len()) / 512) * 512);
        }
        made.iter().for_each(|change| change.apply(&mut octets));
        let state = State { written: octets.clone(), synced: octets, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let end = match &change {
            Change::Length(length) => *length,
            Change::Write(offset, data) => offset + data.len() as u64,
        };
        if end > state.written.len() as u64 && state.space.is_some_and(|space| end > space) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        if state.power_until.is_some_and(|limit| state.changes >= limit) {
            return Err(io::Error::other("the power is off"));
        }
        state.changes += 1;
        change.apply(&mut state.written);
        state.pending.push(change);
        Ok(())
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.used())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let octets = state.written.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(octets);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(Change::Length(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.power_until.is_some_and(|limit| state.changes >= limit) {
            return Err(io::Error::other("the power is off"));
        }
        let State { synced, pending, .. } = &mut *state;
        pending.drain(..).for_each(|change| change.apply(synced));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Change::Write(offset, data.to_vec()))
    }
}
