//! The redo log of a store: changes that are durable before the database has them on the disk.
//!
//! A batch of changes is one record. The file has a constant size and was written before, so the synchronization of a
//! record concerns its octets alone: one `pwrite` and one `fdatasync`, in place of the pages of a commit of the
//! database. The database keeps the changes in memory until its next durable commit, the *checkpoint*. The log then
//! starts again from its beginning.
//!
//! Each checkpoint writes a new random number, the *salt*, into the database, and the records after it have this salt.
//! *Replay* applies the records that have the salt of the database. All others are ignored: those before the checkpoint,
//! those of another store, and those that are younger than a restored copy of the database.
//!
//! A record, at a multiple of eight octets, with numbers in little-endian order:
//!
//! | octets | contents |
//! | --- | --- |
//! | 4 | CRC-32 of the octets below, without the padding |
//! | 4 | length of the payload |
//! | 8 | salt |
//! | 8 | number of records with this salt before this one |
//! | | payload; padding |
//!
//! A record is written once the one before it is durable. So the last one alone may be there in part, after a loss of
//! power; its changes were not acknowledged. An invalid record before a valid one is damage.

use std::io;

use redb::StorageBackend;

use crate::store::StoreError;

const HEADER: usize = 24;
const ALIGNMENT: usize = 8;

/// The reason why a redo log cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedoLogError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file does not exist, or has become shorter, and the store was not closed in order.
    #[error(
        "it has {octets} of {size} octets, and the last changes of the store are missing; a file of {size} zeros in its \
         place opens the store without them"
    )]
    Incomplete {
        /// The size of the file.
        octets: u64,
        /// The size that it had.
        size: u64,
    },
    /// A record before others cannot be read.
    #[error("the record at octet {0} is damaged, and acknowledged changes follow it")]
    Damaged(usize),
    /// A record has contents that this version does not know.
    #[error("a record cannot be repeated")]
    Contents(#[source] StoreError),
}

/// The failure to append a record.
#[derive(Debug)]
pub(crate) struct AppendError {
    pub(crate) cause: io::Error,
    /// Whether the record will not be replayed. Otherwise that is unknown.
    pub(crate) is_erased: bool,
}

/// An open redo log.
#[derive(Debug)]
pub(crate) struct RedoLog {
    file: Box<dyn StorageBackend>,
    /// The size of the file in octets, once it is preallocated.
    size: u64,
    /// `None` until a checkpoint.
    position: Option<Position>,
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

impl RedoLog {
    pub(crate) fn new(file: Box<dyn StorageBackend>, size: u64) -> Self {
        Self { file, size, position: None }
    }

    /// The payloads of the records with a salt, in their order, from a log that had at least `size` octets. They are
    /// durable.
    ///
    /// # Errors
    /// A file that cannot be read, is missing, or is damaged.
    pub(crate) fn replay(&self, salt: u64, size: Option<u64>) -> Result<Vec<Vec<u8>>, RedoLogError> {
        // A process that was killed may have written a record without synchronizing it.
        self.file.sync_data()?;
        let octets = self.file.len()?;
        if octets < size.unwrap_or(1) {
            return Err(RedoLogError::Incomplete { octets, size: size.unwrap_or(self.size) });
        }
        let mut octets = vec![0; usize::try_from(octets).map_err(io::Error::other)?];
        self.file.read(0, &mut octets)?;
        let (mut payloads, mut offset) = (Vec::new(), 0);
        while let Some(record) = record_at(&octets, offset, salt).filter(|record| record.count == payloads.len() as u64)
        {
            payloads.push(record.payload.to_vec());
            offset = record.end;
        }
        let mut later = (offset..octets.len()).step_by(ALIGNMENT).filter_map(|place| record_at(&octets, place, salt));
        match later.next() {
            Some(_) => Err(RedoLogError::Damaged(offset)),
            None => Ok(payloads),
        }
    }

    /// The size of the file in octets, once it is preallocated, or less.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Writes zeros up to the size of the log, durably.
    ///
    /// # Errors
    /// A file that cannot be written, also because the disk is full.
    pub(crate) fn preallocate(&self) -> io::Result<()> {
        let present = self.file.len()?;
        if present < self.size {
            let missing = usize::try_from(self.size - present).map_err(io::Error::other)?;
            self.write(present, &vec![0; missing])?;
        }
        Ok(())
    }

    /// Starts from the beginning, after a checkpoint with this salt.
    pub(crate) fn restart(&mut self, salt: u64) {
        self.position = Some(Position { salt, count: 0, offset: 0, last: 0 });
    }

    /// Accepts no record until the next checkpoint.
    pub(crate) fn stop(&mut self) {
        self.position = None;
    }

    /// Whether a record with a payload of this length can be appended. If not, a checkpoint is necessary.
    pub(crate) fn has_room(&self, payload: usize) -> bool {
        self.position.is_some_and(|position| position.offset + size(payload) as u64 <= self.size)
    }

    /// Appends a record, durably. There must be room for it.
    ///
    /// # Errors
    /// A file that cannot be written. The record is erased; if that fails too, a checkpoint is necessary.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<(), AppendError> {
        let Some(position) = self.position else {
            return Err(AppendError { cause: io::Error::other("the redo log has no salt"), is_erased: true });
        };
        let record = encode(position.salt, position.count, payload);
        if let Err(cause) = self.write(position.offset, &record) {
            let is_erased = self.write(position.offset, &[0; HEADER]).is_ok();
            if !is_erased {
                self.position = None;
            }
            return Err(AppendError { cause, is_erased });
        }
        let offset = position.offset + record.len() as u64;
        self.position = Some(Position { count: position.count + 1, offset, last: position.offset, ..position });
        Ok(())
    }

    /// Erases the last record, durably. A checkpoint is necessary then.
    ///
    /// # Errors
    /// A file that cannot be written. Whether the record will be replayed is unknown.
    pub(crate) fn erase_last(&mut self) -> io::Result<()> {
        let Some(position) = self.position.take() else { return Ok(()) };
        self.write(position.last, &[0; HEADER])
    }

    fn write(&self, offset: u64, octets: &[u8]) -> io::Result<()> {
        self.file.write(offset, octets)?;
        self.file.sync_data()
    }
}

/// The size of a record.
fn size(payload: usize) -> usize {
    (HEADER + payload).next_multiple_of(ALIGNMENT)
}

fn encode(salt: u64, count: u64, payload: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(size(payload.len()));
    record.extend([0; 4]);
    record.extend(u32::try_from(payload.len()).expect("a record has at most the size of the log").to_le_bytes());
    record.extend(salt.to_le_bytes());
    record.extend(count.to_le_bytes());
    record.extend(payload);
    let checksum = crc32fast::hash(&record[4..]);
    record[..4].copy_from_slice(&checksum.to_le_bytes());
    record.resize(size(payload.len()), 0);
    record
}

struct Record<'l> {
    count: u64,
    payload: &'l [u8],
    /// The offset of the next record.
    end: usize,
}

/// The valid record with a salt at an offset.
fn record_at(octets: &[u8], offset: usize, salt: u64) -> Option<Record<'_>> {
    let record = octets.get(offset..)?;
    let (checksum, checked) = record.split_first_chunk::<4>()?;
    let (length, rest) = checked.split_first_chunk::<4>()?;
    let (found, rest) = rest.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*found) != salt {
        return None;
    }
    let (count, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let payload = rest.get(..length)?;
    let is_valid = crc32fast::hash(&checked[..HEADER - 4 + length]) == u32::from_le_bytes(*checksum);
    is_valid.then(|| Record { count: u64::from_le_bytes(*count), payload, end: offset + size(length) })
}

#[cfg(test)]
mod tests {
    use spandrel_test_support::disk::Disk;

    use super::*;

    const SALT: u64 = 7;

    /// A log of this size after a checkpoint, and its file.
    fn log(size: u64) -> (RedoLog, Disk) {
        let disk = Disk::default();
        let mut log = RedoLog::new(Box::new(disk.clone()), size);
        log.preallocate().unwrap();
        log.restart(SALT);
        (log, disk)
    }

    /// A log with these payloads, and its file.
    fn log_with(payloads: &[&[u8]]) -> (RedoLog, Disk) {
        let (mut log, disk) = log(400);
        payloads.iter().for_each(|payload| log.append(payload).unwrap());
        (log, disk)
    }

    #[test]
    fn preallocation_writes_the_missing_octets_durably() {
        for present in [0, 1, 99] {
            let disk = Disk::default();
            disk.set_contents(&vec![3; present]);
            RedoLog::new(Box::new(disk.clone()), 100).preallocate().unwrap();
            let expected = [vec![3; present], vec![0; 100 - present]].concat();
            assert_eq!(disk.contents(), expected);
            let lost = disk.after_power_loss(&mut fastrand::Rng::with_seed(1));
            assert_eq!(lost.contents(), expected, "the octets are synchronized");
        }
    }

    #[test]
    fn a_log_that_has_its_size_is_not_written_again() {
        for present in [100, 101] {
            let disk = Disk::default();
            disk.set_contents(&vec![3; present]);
            // A write or a synchronization would fail.
            disk.cut_power_after(0);
            RedoLog::new(Box::new(disk.clone()), 100).preallocate().unwrap();
            assert_eq!(disk.contents(), vec![3; present]);
        }
    }

    #[test]
    fn a_log_has_room_for_records_up_to_its_size() {
        for (size, payload, has_room) in [(24, 0, true), (23, 0, false), (32, 8, true), (31, 8, false), (39, 9, false)]
        {
            assert_eq!(log(size).0.has_room(payload), has_room, "{size} {payload}");
        }
        let (mut log, _) = log(64);
        log.append(b"1").unwrap();
        assert!(log.has_room(8) && !log.has_room(9));
        log.append(b"12345678").unwrap();
        assert!(!log.has_room(0));
        assert_eq!(log.size(), 64);
    }

    #[test]
    fn records_are_replayed_in_order_up_to_the_end_of_the_log() {
        let payloads: [&[u8]; 4] = [b"a", b"", b"123456789", b"12345678"];
        let (log, disk) = log_with(&payloads);
        assert_eq!(log.replay(SALT, Some(400)).unwrap(), payloads);
        assert!(log.replay(SALT + 1, Some(400)).unwrap().is_empty(), "records of another salt are ignored");
        // The records fill the log.
        let size = 32 + 24 + 40 + 32;
        disk.set_contents(&disk.contents()[..size]);
        assert_eq!(log.replay(SALT, None).unwrap(), payloads);
    }

    #[test]
    fn a_log_without_a_checkpoint_takes_no_record() {
        let (mut log, disk) = log_with(&[b"a"]);
        log.stop();
        assert!(!log.has_room(0));
        let before = disk.contents();
        let failure = log.append(b"b").unwrap_err();
        assert!(failure.is_erased, "it will not be replayed");
        log.erase_last().unwrap();
        assert_eq!(disk.contents(), before);
        log.restart(SALT + 1);
        log.append(b"c").unwrap();
        assert_eq!(log.replay(SALT + 1, None).unwrap(), [b"c"]);
        assert!(log.replay(SALT, None).unwrap().is_empty());
    }

    #[test]
    fn the_last_record_alone_is_erased() {
        let (mut log, _) = log_with(&[b"a", b"b", b"c"]);
        log.erase_last().unwrap();
        assert_eq!(log.replay(SALT, None).unwrap(), [b"a", b"b"]);
        assert!(!log.has_room(0), "a checkpoint is necessary");
    }

    #[test]
    fn a_log_is_incomplete_below_its_size() {
        let (log, disk) = log_with(&[b"a"]);
        let size_of_error = |needed: Option<u64>| match log.replay(SALT, needed) {
            Err(RedoLogError::Incomplete { octets, size }) => Some((octets, size)),
            other => other.map(|_| None).unwrap(),
        };
        assert_eq!(size_of_error(Some(400)), None);
        assert_eq!(size_of_error(Some(401)), Some((400, 401)));
        // A database of an older version has no size of its log.
        assert_eq!(size_of_error(None), None);
        disk.set_contents(&[0]);
        assert_eq!(size_of_error(None), None);
        disk.set_contents(&[]);
        assert_eq!(size_of_error(None), Some((0, 400)));
    }

    #[test]
    fn a_record_behind_the_last_one_is_damage() {
        let (log, disk) = log_with(&[b"a"]);
        let contents = disk.contents();
        for (number, place) in [(0, 40), (1, 40), (2, 32), (2, 40), (9, 376)] {
            let mut damaged = contents.clone();
            damaged[place..place + 24].copy_from_slice(&encode(SALT, number, b""));
            disk.set_contents(&damaged);
            let error = log.replay(SALT, None).unwrap_err();
            assert!(matches!(error, RedoLogError::Damaged(32)), "{number} at {place}: {error}");
        }
        let mut next = contents;
        next[32..56].copy_from_slice(&encode(SALT, 1, b""));
        disk.set_contents(&next);
        assert_eq!(log.replay(SALT, None).unwrap(), [b"a".as_slice(), b""]);
    }

    #[test]
    fn a_record_with_any_changed_octet_is_none() {
        let record = encode(SALT, 3, b"12345");
        assert_eq!((record.len(), size(5)), (32, 32));
        let read = record_at(&record, 0, SALT).unwrap();
        assert_eq!((read.count, read.payload, read.end), (3, b"12345".as_slice(), 32));
        for place in 0..HEADER + 5 {
            let mut changed = record.clone();
            changed[place] ^= 1;
            assert!(record_at(&changed, 0, SALT).is_none(), "{place}");
        }
        for length in 0..HEADER + 5 {
            assert!(record_at(&record[..length], 0, SALT).is_none(), "{length}");
        }
        let behind = [vec![0; 8], record].concat();
        assert_eq!(record_at(&behind, 8, SALT).unwrap().end, 40);
        assert!(record_at(&behind, 80, SALT).is_none());
    }

    #[test]
    fn what_was_written_without_synchronization_is_durable_once_it_was_replayed() {
        let (log, disk) = log(400);
        disk.write(0, &encode(SALT, 0, b"a")).unwrap();
        assert_eq!(log.replay(SALT, None).unwrap(), [b"a"]);
        let lost = disk.after_power_loss(&mut fastrand::Rng::with_seed(1));
        let again = RedoLog::new(Box::new(lost), 400);
        assert_eq!(again.replay(SALT, None).unwrap(), [b"a"]);
    }

    #[test]
    fn a_record_that_could_not_be_written_is_erased_and_its_place_is_used_again() {
        // The write fails, or the synchronization.
        for changes in [0, 1] {
            let (mut log, disk) = log_with(&[b"a"]);
            disk.fail_after(disk.changes() + changes, 1);
            assert!(log.append(b"b").unwrap_err().is_erased);
            log.append(b"c").unwrap();
            assert_eq!(log.replay(SALT, None).unwrap(), [b"a", b"c"]);
        }
        let (mut log, disk) = log_with(&[b"a"]);
        disk.cut_power_after(disk.changes() + 1);
        assert!(!log.append(b"b").unwrap_err().is_erased);
        disk.restore_power();
        assert!(!log.has_room(0), "a checkpoint is necessary");
    }
}
