//! The redo log of a store: changes that are durable before the database has them on the disk.
//!
//! A batch of changes is one record. The file has a constant size and was written before, so the synchronization of a
//! record concerns its octets alone: one `pwrite` and one `fdatasync`, in place of the pages of a commit of the
//! database. The database keeps the changes in memory until its next durable commit, the *checkpoint*. The log then
//! starts again from its beginning.
//!
//! Each checkpoint begins a *generation*: it writes the number of the generation and a new random number, the *salt*,
//! into the header of the store. Then it fills the log with zeros. The first record of the generation is written
//! together with the header of the log, which has the same numbers.
//!
//! So the header of the log has the present generation, or one before it, and then no records that are needed. The
//! header of the store has the least generation that is possible. Any other log belongs to another store, or to another
//! state of this one, and is an error.
//!
//! The header has 512 octets, with numbers in little-endian order:
//!
//! | octets | contents |
//! | --- | --- |
//! | 8 | `SpandLog` |
//! | 4 | version: 1 |
//! | 16 | name of the service, filled up with NUL |
//! | 16 | id of the store |
//! | 8 | generation |
//! | 8 | salt; 0 before the first record |
//! | 4 | CRC-32 of the octets above |
//! | | zeros |
//!
//! A record, at a multiple of eight octets:
//!
//! | octets | contents |
//! | --- | --- |
//! | 4 | CRC-32 of the next 20 octets |
//! | 4 | length of the payload |
//! | 8 | salt |
//! | 8 | number of records with this salt before this one |
//! | 4 | CRC-32 of the payload |
//! | | payload; padding |
//!
//! A record is written once the one before it is durable. So the last one alone may be there in part, after a loss of
//! power: at least one of its sectors is as before, and all octets behind it are zeros. Its change was not
//! acknowledged, and is dropped. Any other octets behind the records are damage. (Zeros in place of the last records
//! cannot be told from records that were never written.)

mod earlier;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use redb::{StorageBackend, WriteTransaction};

use crate::error::RedoLogError;
use crate::header::{Fields, LogState, StoreHeader};
use crate::storage::{LogPolicy, Storage};

pub use earlier::EarlierLog;

/// The size of a disk's sectors, which are written as a whole; and of the header.
const SECTOR: usize = 512;
const MAGIC: &[u8; 8] = b"SpandLog";
const VERSION: u32 = 1;
/// The header without its checksum.
const CHECKED: usize = 8 + 4 + 16 + 16 + 8 + 8;

const RECORD_HEADER: usize = 28;
const ALIGNMENT: usize = 8;

/// The largest file that is read as a log, in octets.
const MAX_FILE: u64 = 1 << 30;

/// An error of the file system while a record was appended.
#[derive(Debug)]
pub struct AppendError {
    /// The error of the operating system.
    pub cause: io::Error,
    /// Whether the record will not be replayed. Otherwise that is unknown.
    pub is_erased: bool,
}

/// The changes of a log that its database has not.
#[derive(Debug)]
pub struct Replay {
    /// The payloads of the records, in their order.
    pub records: Vec<Vec<u8>>,
    /// Whether others were dropped, as [`LogPolicy::DropDamaged`] says.
    pub is_partial: bool,
}

/// A redo log that is open for replay and appending.
#[derive(Debug)]
pub struct RedoLog {
    file: Box<dyn StorageBackend>,
    /// The size of the file in octets, once it is preallocated.
    size: u64,
    /// The header of the store, as its database has it.
    store: StoreHeader,
    /// `None` until a checkpoint.
    position: Option<Position>,
    /// The octets from here on are zeros.
    dirty_end: u64,
    /// Whether the file has no header of this store yet.
    is_foreign: bool,
    /// The generation that the header in the file has at least.
    floor: u64,
}

/// The place of the next record.
#[derive(Clone, Copy, Debug)]
struct Position {
    salt: u64,
    /// The number of records before it.
    count: u64,
    offset: u64,
    /// The offset of the record before it.
    last: u64,
}

/// The numbers in the header of a log.
#[derive(Debug, Eq, PartialEq)]
struct LogHeader {
    service: [u8; 16],
    store: u128,
    generation: u64,
    salt: u64,
}

impl RedoLog {
    /// Opens the log of a store. Returns the changes that its database has not; they are durable.
    ///
    /// # Errors
    /// A file that cannot be read, is missing, is damaged, or belongs to another store.
    pub fn open(storage: &Storage, store: StoreHeader, size: u64) -> Result<(Self, Replay), RedoLogError> {
        let file = storage.open_log()?;
        // A process that was killed may have written a record without synchronizing it.
        file.sync_data()?;
        let octets = read_all(&*file)?;
        let used = used_length(&octets);
        let size = size.max(SECTOR as u64);
        let mut log = Self { file, size, store, position: None, dirty_end: used as u64, is_foreign: false, floor: 0 };
        let (records, error) = log.needed_records(&octets, used, &storage.log_path());
        let is_partial = match error {
            None => false,
            Some(error) if storage.policy() == LogPolicy::Refuse || matches!(error, RedoLogError::Io(_)) => {
                return Err(error);
            }
            Some(error) => {
                let (log_path, repeated) = (storage.log_path(), records.len());
                tracing::warn!(log = %log_path.display(), repeated, "changes of the redo log are lost: {error}");
                log.is_foreign = true;
                true
            }
        };
        Ok((log, Replay { records, is_partial }))
    }

    /// The payloads that the database has not, and the reason why they are not all.
    fn needed_records(&mut self, octets: &[u8], used: usize, path: &Path) -> (Vec<Vec<u8>>, Option<RedoLogError>) {
        let nothing = |error| (Vec::new(), error);
        let needed = match self.store.log {
            LogState::Needed { salt, size, floor } => Some((salt, size, floor)),
            LogState::Complete | LogState::Earlier => None,
        };
        let header = octets.get(..SECTOR).and_then(LogHeader::decode);
        let Some(header) = header else {
            self.is_foreign = true;
            return match needed {
                Some((_, size, _)) if used == 0 || (octets.len() as u64) < size => {
                    nothing(Some(RedoLogError::Incomplete { octets: used as u64, size }))
                }
                None if used == 0 || self.store.log == LogState::Earlier => nothing(None),
                _ => nothing(Some(RedoLogError::Header)),
            };
        };
        let changes = || scan(octets, header.salt).0.len();
        if (header.service, header.store) != (self.store.service_field(), self.store.id) {
            self.is_foreign = true;
            let is_of_origin = header.store == self.store.origin && needed.is_none();
            if !is_of_origin {
                return nothing(Some(RedoLogError::OtherStore { changes: changes() }));
            }
            let (log, changes) = (path.display(), changes());
            tracing::warn!(%log, changes, "the store is a backup, and the redo log of the former store is dropped");
            return nothing(None);
        }
        let own = self.store.generation;
        if header.generation > own {
            return nothing(Some(RedoLogError::Newer { changes: changes() }));
        }
        self.floor = header.generation;
        let Some((salt, size, floor)) = needed else { return nothing(None) };
        if (octets.len() as u64) < size {
            return nothing(Some(RedoLogError::Incomplete { octets: used as u64, size }));
        }
        if header.generation < floor {
            return nothing(Some(RedoLogError::Older));
        }
        if header.generation < own {
            return nothing(None); // the generation has no record yet
        }
        if header.salt != salt {
            return nothing(Some(RedoLogError::Header));
        }
        let (records, end) = scan(octets, salt);
        match end {
            End::Sound => (records, None),
            End::Incomplete => {
                let log = path.display();
                tracing::warn!(%log, "the last change in the redo log is incomplete, was not acknowledged, and is dropped");
                (records, None)
            }
            End::Damaged { offset, later } => {
                let error = RedoLogError::Damaged { offset, sound: records.len(), later };
                (records, Some(error))
            }
        }
    }

    /// The size of the file in octets, once it is preallocated, or less.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The header of the store to which the log belongs.
    #[must_use]
    pub fn store(&self) -> &StoreHeader {
        &self.store
    }

    /// Gives the file its size and the header of this store, durably. The database must have all changes of the log,
    /// unless the log has the header already.
    ///
    /// # Errors
    /// A file that cannot be written, also because the disk is full.
    pub fn preallocate(&mut self) -> io::Result<()> {
        let present = self.file.len()?;
        if self.is_foreign {
            let mut octets = LogHeader::of(&self.store, 0).encode().to_vec();
            octets.resize(usize::try_from(self.size.max(present)).map_err(io::Error::other)?, 0);
            self.write(0, &octets)?;
            self.dirty_end = SECTOR as u64;
            (self.is_foreign, self.floor) = (false, self.store.generation);
        } else if present < self.size {
            let missing = usize::try_from(self.size - present).map_err(io::Error::other)?;
            self.write(present, &vec![0; missing])?;
        }
        Ok(())
    }

    /// Commits a transaction durably in the database, with all that were committed before it, and begins a generation
    /// of the log.
    ///
    /// # Errors
    /// Those of `redb` before the commit, and those of the commit.
    pub fn checkpoint(&mut self, transaction: WriteTransaction) -> Result<(), CheckpointError> {
        self.position = None;
        let next = self.store.next_generation(self.size, self.floor).map_err(CheckpointError::Before)?;
        next.write(&transaction).map_err(CheckpointError::Before)?;
        transaction.commit().map_err(CheckpointError::Commit)?;
        self.store = next;
        // The change is durable without the log. If it cannot be written, the next change is a checkpoint, too.
        if let Err(error) = self.restart() {
            tracing::error!(%error, "the redo log could not be written");
        }
        Ok(())
    }

    /// Commits a transaction durably in the database, which needs no log then, until the next checkpoint.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn finish(&mut self, transaction: WriteTransaction) -> Result<(), CheckpointError> {
        let completed = self.store.completed();
        completed.write(&transaction).map_err(CheckpointError::Before)?;
        transaction.commit().map_err(CheckpointError::Commit)?;
        (self.store, self.position) = (completed, None);
        Ok(())
    }

    /// Removes the records of the generation before, durably.
    fn restart(&mut self) -> io::Result<()> {
        let LogState::Needed { salt, .. } = self.store.log else { return Ok(()) };
        let start = SECTOR as u64;
        if self.dirty_end > start {
            let length = usize::try_from(self.dirty_end - start).map_err(io::Error::other)?;
            self.write(start, &vec![0; length])?;
            self.dirty_end = start;
        }
        self.position = Some(Position { salt, count: 0, offset: start, last: start });
        Ok(())
    }

    /// Whether a record with a payload of this length can be appended. If not, a checkpoint is necessary.
    #[must_use]
    pub fn has_room(&self, payload: usize) -> bool {
        self.position.is_some_and(|position| position.offset + size(payload) as u64 <= self.size)
    }

    /// Appends a record, durably. There must be room for it.
    ///
    /// # Errors
    /// A file that cannot be written. The record is erased; if that fails too, a checkpoint is necessary.
    pub fn append(&mut self, payload: &[u8]) -> Result<(), AppendError> {
        let Some(position) = self.position else {
            return Err(AppendError { cause: io::Error::other("the redo log has no salt"), is_erased: true });
        };
        let record = encode(position.salt, position.count, payload);
        let end = position.offset + record.len() as u64;
        self.dirty_end = self.dirty_end.max(end);
        let written = if position.count == 0 {
            let header = LogHeader::of(&self.store, position.salt).encode();
            self.write(0, &[header.as_slice(), &record].concat())
        } else {
            self.write(position.offset, &record)
        };
        if let Err(cause) = written {
            let is_erased = self.write(position.offset, &vec![0; record.len()]).is_ok();
            if !is_erased {
                self.position = None;
            }
            return Err(AppendError { cause, is_erased });
        }
        self.floor = self.store.generation;
        self.position = Some(Position { count: position.count + 1, offset: end, last: position.offset, ..position });
        Ok(())
    }

    /// Erases the last record, durably. A checkpoint is necessary then.
    ///
    /// # Errors
    /// A file that cannot be written. Whether the record will be replayed is unknown.
    pub fn erase_last(&mut self) -> io::Result<()> {
        let Some(position) = self.position.take() else { return Ok(()) };
        let length = usize::try_from(position.offset - position.last).map_err(io::Error::other)?;
        self.write(position.last, &vec![0; length])
    }

    fn write(&self, offset: u64, octets: &[u8]) -> io::Result<()> {
        self.file.write(offset, octets)?;
        self.file.sync_data()
    }
}

/// The reason why a checkpoint has failed, and whether it may have happened.
#[derive(Debug)]
pub enum CheckpointError {
    /// An error before anything was written.
    Before(redb::Error),
    /// The commit failed, perhaps after its writes.
    Commit(redb::CommitError),
}

fn read_all(file: &dyn StorageBackend) -> io::Result<Vec<u8>> {
    let length = file.len()?;
    if length > MAX_FILE {
        return Err(io::Error::other(format!("the file has more than {MAX_FILE} octets")));
    }
    let mut octets = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read(0, &mut octets)?;
    Ok(octets)
}

impl LogHeader {
    fn of(store: &StoreHeader, salt: u64) -> Self {
        Self { service: store.service_field(), store: store.id, generation: store.generation, salt }
    }

    fn encode(&self) -> [u8; SECTOR] {
        let mut octets = Vec::with_capacity(SECTOR);
        octets.extend(MAGIC);
        octets.extend(VERSION.to_le_bytes());
        octets.extend(self.service);
        octets.extend(self.store.to_le_bytes());
        octets.extend(self.generation.to_le_bytes());
        octets.extend(self.salt.to_le_bytes());
        octets.extend(crc32fast::hash(&octets).to_le_bytes());
        let mut sector = [0; SECTOR];
        sector[..octets.len()].copy_from_slice(&octets);
        sector
    }

    /// The header in a sector. `None` for other octets.
    fn decode(sector: &[u8]) -> Option<Self> {
        let (checked, rest) = sector.split_at_checked(CHECKED)?;
        let (checksum, zeros) = rest.split_first_chunk::<4>()?;
        let mut fields = Fields(checked);
        let is_header = fields.take::<8>() == *MAGIC && fields.take::<4>() == VERSION.to_le_bytes();
        if !is_header || crc32fast::hash(checked) != u32::from_le_bytes(*checksum) || !is_zero(zeros) {
            return None;
        }
        let service = fields.take();
        let store = u128::from_le_bytes(fields.take());
        let [generation, salt] = [0; 2].map(|_| u64::from_le_bytes(fields.take()));
        Some(Self { service, store, generation, salt })
    }
}

/// The size of a record.
fn size(payload: usize) -> usize {
    (RECORD_HEADER + payload).next_multiple_of(ALIGNMENT)
}

fn encode(salt: u64, count: u64, payload: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(size(payload.len()));
    record.extend([0; 4]);
    record.extend(u32::try_from(payload.len()).expect("a record has at most the size of the log").to_le_bytes());
    record.extend(salt.to_le_bytes());
    record.extend(count.to_le_bytes());
    let checksum = crc32fast::hash(&record[4..]);
    record[..4].copy_from_slice(&checksum.to_le_bytes());
    record.extend(crc32fast::hash(payload).to_le_bytes());
    record.extend(payload);
    record.resize(size(payload.len()), 0);
    record
}

/// The header of a record.
struct RecordHeader {
    count: u64,
    length: usize,
    checksum: u32,
}

impl RecordHeader {
    /// The valid header with a salt at an offset.
    fn at(octets: &[u8], offset: usize, salt: u64) -> Option<Self> {
        let mut fields = Fields(octets.get(offset..offset + RECORD_HEADER)?);
        let checksum = u32::from_le_bytes(fields.take());
        let is_valid = crc32fast::hash(&fields.0[..20]) == checksum;
        let length = u32::from_le_bytes(fields.take());
        let [found, count] = [0; 2].map(|_| u64::from_le_bytes(fields.take()));
        let checksum = u32::from_le_bytes(fields.take());
        let length = usize::try_from(length).ok()?;
        (is_valid && found == salt).then_some(Self { count, length, checksum })
    }
}

/// The payload of the valid record with a salt at an offset, its number, and the offset of the next record.
fn record_at(octets: &[u8], offset: usize, salt: u64) -> Option<(&[u8], u64, usize)> {
    let header = RecordHeader::at(octets, offset, salt)?;
    let payload = octets.get(offset + RECORD_HEADER..)?.get(..header.length)?;
    let end = offset + size(header.length);
    let is_valid = crc32fast::hash(payload) == header.checksum
        && is_zero(octets.get(offset + RECORD_HEADER + header.length..end)?);
    is_valid.then_some((payload, header.count, end))
}

/// The octets behind the records of a log.
#[derive(Debug, Eq, PartialEq)]
enum End {
    /// Zeros alone, or nothing.
    Sound,
    /// A part of a record, as a loss of power leaves it.
    Incomplete,
    /// Others, after this offset, with this number of records among them.
    Damaged { offset: usize, later: usize },
}

/// The payloads of the records with a salt, in their order, and what is behind them.
fn scan(octets: &[u8], salt: u64) -> (Vec<Vec<u8>>, End) {
    let (mut payloads, mut offset) = (Vec::new(), SECTOR);
    while let Some((payload, count, end)) = record_at(octets, offset, salt)
        && count == payloads.len() as u64
    {
        payloads.push(payload.to_vec());
        offset = end;
    }
    let rest = octets.get(offset..).unwrap_or_default();
    if is_zero(rest) {
        return (payloads, End::Sound);
    }
    let later = (offset..octets.len()).step_by(ALIGNMENT).filter(|at| record_at(octets, *at, salt).is_some()).count();
    let is_incomplete = later == 0 && is_incomplete(octets, offset, salt, payloads.len() as u64);
    (payloads, if is_incomplete { End::Incomplete } else { End::Damaged { offset, later } })
}

/// Whether the octets from an offset on are those of one record of which some sectors were not written.
fn is_incomplete(octets: &[u8], offset: usize, salt: u64, count: u64) -> bool {
    // The parts of sectors from an offset on.
    let sector_end = |at: usize| (at / SECTOR + 1) * SECTOR;
    if let Some(header) = RecordHeader::at(octets, offset, salt).filter(|header| header.count == count) {
        let end = offset.saturating_add(size(header.length)).min(octets.len());
        let mut at = offset;
        let mut parts = std::iter::from_fn(|| {
            let part = at..sector_end(at).min(end);
            at = part.end;
            (!part.is_empty()).then_some(part)
        });
        return parts.any(|part| is_zero(&octets[part])) && is_zero(&octets[end..]);
    }
    // The header was not written, or the first part of it, or the last.
    let first_end = sector_end(offset).min(octets.len());
    if is_zero(&octets[offset..first_end]) {
        return true;
    }
    let is_split = first_end - offset < RECORD_HEADER;
    let second_end = sector_end(first_end).min(octets.len());
    let expected = [salt.to_le_bytes(), count.to_le_bytes()].concat();
    let record_octets = octets[offset..first_end].get(8..).unwrap_or_default();
    is_split
        && record_octets.iter().zip(&expected).all(|(found, expected)| found == expected)
        && is_zero(&octets[first_end..second_end])
}

fn is_zero(octets: &[u8]) -> bool {
    octets.chunks(SECTOR).all(|part| *part == [0; SECTOR][..part.len()])
}

/// The length of octets without the sectors of zeros at their end.
fn used_length(octets: &[u8]) -> usize {
    let sectors = octets.chunks(SECTOR);
    let zeros = sectors.rev().take_while(|sector| is_zero(sector)).count();
    octets.len().min((octets.len().div_ceil(SECTOR) - zeros) * SECTOR)
}
