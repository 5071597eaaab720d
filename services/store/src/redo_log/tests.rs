//! Tests of logs on a disk that fails.

use redb::Database;
use spandrel_test_support::disk::Disk;

use super::*;
use crate::service::Service;
use crate::storage::{Layout, begin_write};

static LAYOUT: Layout =
    Layout { service: Service::Naming, version: 3, create: |_| Ok(()), convert: |_, _| Ok(()), copy: |_, _| Ok(()) };

const SIZE: u64 = 512 + 400;

fn storage(disk: &Disk) -> Storage {
    let (database, log) = (disk.log(), disk.clone());
    Storage::backend(move || database.clone()).with_log(move || log.clone())
}

/// A log of this size, its database and its file.
struct Fixture {
    log: RedoLog,
    database: Database,
    disk: Disk,
}

impl Fixture {
    fn new(size: u64) -> Self {
        Self::open(&Disk::default(), size).0
    }

    /// A store in use, after a checkpoint, whose log has these payloads.
    fn with(payloads: &[&[u8]]) -> Self {
        let mut fixture = Self::new(SIZE);
        fixture.checkpoint();
        payloads.iter().for_each(|payload| fixture.log.append(payload).unwrap());
        fixture
    }

    fn open(disk: &Disk, size: u64) -> (Self, Replay) {
        let (database, store) = storage(disk).open(&LAYOUT, 1 << 20).unwrap();
        let (mut log, replay) = RedoLog::open(&storage(disk), store, size).unwrap();
        log.preallocate().unwrap();
        (Self { log, database, disk: disk.clone() }, replay)
    }

    fn checkpoint(&mut self) {
        self.log.checkpoint(begin_write(&self.database).unwrap()).unwrap();
    }

    /// The records that an opening repeats after the end of the process.
    fn replay(self) -> Vec<Vec<u8>> {
        let (Self { disk, database, .. }, ..) = (self, ());
        std::mem::forget(database);
        Self::open(&disk, SIZE).1.records
    }
}

#[test]
fn preallocation_writes_the_header_and_the_missing_octets_durably() {
    let fixture = Fixture::new(SIZE);
    let lost = fixture.disk.after_power_loss(&mut fastrand::Rng::with_seed(1));
    let octets = lost.contents();
    assert_eq!(octets.len() as u64, SIZE);
    assert!(LogHeader::decode(&octets[..SECTOR]).is_some() && is_zero(&octets[SECTOR..]));
    // A log that has its size is not written again.
    let disk = fixture.disk.clone();
    drop(fixture);
    let (database, store) = storage(&disk).open(&LAYOUT, 1 << 20).unwrap();
    let (mut log, _) = RedoLog::open(&storage(&disk), store, SIZE).unwrap();
    disk.cut_power_after(0);
    log.preallocate().unwrap();
    disk.restore_power();
    drop(database);
    assert_eq!(Fixture::open(&disk, SIZE + 100).0.disk.contents().len() as u64, SIZE + 100);
}

#[test]
fn a_log_has_room_for_records_up_to_its_size() {
    for (size, payload, has_room) in [(32, 4, true), (32, 5, false), (40, 12, true), (39, 12, false), (47, 13, false)] {
        let mut fixture = Fixture::new(512 + size);
        assert!(!fixture.log.has_room(0), "it has no salt");
        fixture.checkpoint();
        assert_eq!(fixture.log.has_room(payload), has_room, "{size} {payload}");
    }
    let mut fixture = Fixture::new(512 + 64);
    fixture.checkpoint();
    fixture.log.append(b"1").unwrap();
    assert!(fixture.log.has_room(4) && !fixture.log.has_room(5));
    fixture.log.append(b"1234").unwrap();
    assert!(!fixture.log.has_room(0));
}

#[test]
fn records_are_repeated_in_order_until_the_next_checkpoint() {
    let payloads: [&[u8]; 4] = [b"a", b"", b"123456789", b"1234"];
    assert_eq!(Fixture::with(&payloads).replay(), payloads);
    let mut fixture = Fixture::with(&payloads);
    fixture.checkpoint();
    let disk = fixture.disk.clone();
    assert!(is_zero(&disk.contents()[SECTOR..]), "the records of before are erased");
    assert!(fixture.replay().is_empty());
    let (mut fixture, _) = Fixture::open(&disk, SIZE);
    fixture.checkpoint();
    fixture.log.append(b"b").unwrap();
    assert_eq!(fixture.replay(), [b"b"]);
}

#[test]
fn checkpoints_without_records_between_them_leave_a_log_that_is_accepted() {
    let mut fixture = Fixture::with(&[b"a"]);
    (0..3).for_each(|_| fixture.checkpoint());
    let disk = fixture.disk.clone();
    assert!(fixture.replay().is_empty());
    let (mut fixture, _) = Fixture::open(&disk, SIZE);
    (0..3).for_each(|_| fixture.checkpoint());
    fixture.log.append(b"b").unwrap();
    assert_eq!(fixture.replay(), [b"b"]);
}

#[test]
fn a_log_that_is_not_needed_takes_no_record() {
    let mut fixture = Fixture::with(&[b"a"]);
    fixture.log.finish(begin_write(&fixture.database).unwrap()).unwrap();
    assert!(!fixture.log.has_room(0) && !fixture.log.store().needs_log());
    let before = fixture.disk.contents();
    assert!(fixture.log.append(b"b").unwrap_err().is_erased, "it will not be replayed");
    fixture.log.erase_last().unwrap();
    assert_eq!(fixture.disk.contents(), before);
    assert!(fixture.replay().is_empty());
}

#[test]
fn the_last_record_alone_is_erased_and_a_failed_one_is_written_over() {
    let mut fixture = Fixture::with(&[b"a", b"b", b"c"]);
    fixture.log.erase_last().unwrap();
    assert!(!fixture.log.has_room(0), "a checkpoint is necessary");
    assert_eq!(fixture.replay(), [b"a", b"b"]);
    // The write fails, or the synchronization; of the first record, and of another one.
    for (changes, first) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut fixture = Fixture::with(if first { &[] } else { &[b"a"] });
        fixture.disk.fail_after(fixture.disk.changes() + changes, 1);
        assert!(fixture.log.append(&[7; 200]).unwrap_err().is_erased);
        fixture.log.append(b"c").unwrap();
        let expected: &[&[u8]] = if first { &[b"c"] } else { &[b"a", b"c"] };
        assert_eq!(fixture.replay(), expected, "{changes} {first}");
    }
}

#[test]
fn after_a_record_of_unknown_outcome_a_checkpoint_is_necessary() {
    for payloads in [&[][..], &[b"a".as_slice()]] {
        let mut fixture = Fixture::with(payloads);
        fixture.disk.cut_power_after(fixture.disk.changes() + 1);
        assert!(!fixture.log.append(b"b").unwrap_err().is_erased);
        fixture.disk.restore_power();
        assert!(!fixture.log.has_room(0));
        fixture.checkpoint();
        fixture.log.append(b"c").unwrap();
        assert_eq!(fixture.replay(), [b"c"]);
    }
}

#[test]
fn what_was_written_without_synchronization_is_durable_once_it_was_repeated() {
    let Fixture { log, database, disk } = Fixture::with(&[b"a"]);
    let Some(position) = log.position else { panic!("{log:?}") };
    StorageBackend::write(&disk, position.offset, &encode(position.salt, 1, b"b")).unwrap();
    std::mem::forget(database);
    let (fixture, replay) = Fixture::open(&disk, SIZE);
    assert_eq!(replay.records, [b"a", b"b"]);
    std::mem::forget(fixture.database);
    let lost = disk.after_power_loss(&mut fastrand::Rng::with_seed(1));
    assert_eq!(Fixture::open(&lost, SIZE).1.records, [b"a", b"b"]);
}

const SALT: u64 = 7;

/// A log with these octets behind its header.
fn octets(records: &[u8]) -> Vec<u8> {
    [&[0; SECTOR], records, &[0; 4_096]].concat()
}

#[test]
fn a_record_with_any_changed_octet_is_damage() {
    let record = encode(SALT, 0, b"12345");
    assert_eq!((record.len(), size(5)), (40, 40));
    assert_eq!(scan(&octets(&record), SALT), (vec![b"12345".to_vec()], End::Sound));
    assert_eq!(scan(&octets(&record), SALT + 1), (Vec::new(), End::Damaged { offset: SECTOR, later: 0 }));
    for place in 0..record.len() {
        let mut changed = record.clone();
        changed[place] ^= 1;
        let (payloads, end) = scan(&octets(&changed), SALT);
        assert_eq!((payloads.len(), end), (0, End::Damaged { offset: SECTOR, later: 0 }), "{place}");
    }
    let behind = [vec![0; 8], record].concat();
    assert_eq!(scan(&octets(&behind), SALT).1, End::Damaged { offset: SECTOR, later: 1 });
    for length in 0..=octets(&[]).len() {
        scan(&octets(&encode(SALT, 0, &[1; 3_000]))[..length], SALT);
    }
}

#[test]
fn a_record_is_incomplete_if_a_sector_of_it_was_not_written() {
    // The header of the second record is in two sectors, after that of a first one of 488 octets.
    let first = encode(SALT, 0, &[9; 460]);
    let second = encode(SALT, 1, &[9; 2_000]);
    for (before, record) in [(&[][..], encode(SALT, 0, &[9; 2_000])), (&first, second)] {
        let whole = octets(&[before, &record].concat());
        let end = SECTOR + before.len() + record.len();
        let sectors: Vec<usize> = (SECTOR + before.len() / SECTOR * SECTOR..end).step_by(SECTOR).collect();
        for missing in 1..1_u32 << sectors.len() {
            let mut log = whole.clone();
            for (nth, at) in sectors.iter().enumerate().filter(|(nth, _)| missing >> nth & 1 == 1) {
                _ = nth;
                log[(*at).max(SECTOR + before.len())..(at + SECTOR).min(end)].fill(0);
            }
            let (payloads, state) = scan(&log, SALT);
            assert_eq!(payloads.len(), usize::from(!before.is_empty()), "{missing:b}");
            let is_whole = missing + 1 == 1 << sectors.len();
            assert!(state == End::Incomplete || (is_whole && state == End::Sound), "{missing:b}: {state:?}");
        }
    }
}

#[test]
fn any_octets_are_a_log_or_an_error() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..2_000 {
        let mut log: Vec<u8> = octets(&[encode(SALT, 0, b"a"), encode(SALT, 1, &[1; 700])].concat());
        for _ in 0..random.usize(..4) {
            let position = random.usize(..log.len());
            log[position] = random.u8(..);
        }
        log.truncate(random.usize(..=log.len()));
        scan(&log, SALT);
        log.get(..SECTOR).map(LogHeader::decode);
    }
}
