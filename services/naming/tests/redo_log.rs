//! The redo log: replay, damage, failed writes, and other copies of the store.

use std::fs;
use std::mem;
use std::time::Duration;

use redb::{Builder, ReadableDatabase as _, TableDefinition};
use spandrel_naming::store::{ContextId, IfBound, Store, StoreError};
use spandrel_naming::{OpenError, RedbStore, RedbStoreOptions, RedoLogError, Synchronization};
use spandrel_test_support::disk::Disk;

use crate::store::{SMALL_LOG, all_names, change_until_failure, object, open, open_with_log, seed, step, storage};

/// Ends the use of a store as the end of its process does: nothing is written.
fn kill(store: RedbStore) {
    mem::forget(store);
}

fn bind(store: &RedbStore, name: &str) -> Result<(), StoreError> {
    store.bind(ContextId::ROOT, &step(name), &object(name.len()), IfBound::Fail)
}

/// The names in the root context, which has no other contexts.
fn names(store: &RedbStore) -> Vec<String> {
    let bindings = store.list(ContextId::ROOT, None, usize::MAX).unwrap();
    bindings.into_iter().map(|(name, _)| name.id).collect()
}

/// A disk whose store had these names when its process was killed. All but the first are in the log alone.
fn killed(names: &[&str]) -> Disk {
    let disk = Disk::default();
    let store = open(&disk);
    names.iter().for_each(|name| bind(&store, name).unwrap());
    kill(store);
    disk
}

fn open_at_intervals(disk: &Disk) -> RedbStore {
    let synchronization = Synchronization::Every(Duration::from_secs(3600));
    RedbStore::open_in(storage(disk), &RedbStoreOptions { synchronization, ..RedbStoreOptions::default() }).unwrap()
}

/// The failure to open a store because of its log.
fn log_error(disk: &Disk) -> RedoLogError {
    match RedbStore::open_in(storage(disk), &RedbStoreOptions::default()) {
        Err(OpenError::RedoLog { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

/// The version of the layout. No program has the database open.
fn format(disk: &Disk) -> u64 {
    let database = Builder::new().create_with_backend(disk.clone()).unwrap();
    let meta = database.begin_read().unwrap().open_table(TableDefinition::<&str, u64>::new("meta")).unwrap();
    meta.get("format").unwrap().unwrap().value()
}

#[test]
fn a_killed_process_loses_nothing_and_what_was_read_afterwards_survives_a_loss_of_power() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut cut, mut ended) = (1, false);
    while !ended {
        let disk = Disk::default();
        let store = open_with_log(&disk, SMALL_LOG);
        let limit = disk.changes() + cut;
        disk.cut_power_after(limit);
        let (acknowledged, perhaps) = change_until_failure(&store, seed);
        kill(store);
        disk.restore_power();
        let again = open_with_log(&disk, SMALL_LOG);
        let read = all_names(&again);
        assert!(read == acknowledged || read == perhaps, "seed {seed}, after {cut}: {read:?}\n{acknowledged:?}");
        kill(again);
        let found = all_names(&open_with_log(&disk.after_power_loss(&mut random), SMALL_LOG));
        assert_eq!(found, read, "seed {seed}, after {cut}");
        ended = disk.changes() < limit;
        cut += 1;
    }
    assert!(cut > 40, "{cut}");
}

#[test]
fn a_loss_of_power_at_every_write_of_a_recovery_loses_nothing() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..4 {
        let disk = Disk::default();
        let store = open_with_log(&disk, SMALL_LOG);
        disk.cut_power_after(disk.changes() + random.usize(1..80));
        let (acknowledged, perhaps) = change_until_failure(&store, seed);
        let lost = disk.after_power_loss(&mut random);
        for cut in 0.. {
            let disk = lost.after_power_loss(&mut random);
            disk.cut_power_after(cut);
            // It is opened, changed and closed, as far as the power lasts.
            let opened = RedbStore::open_in(
                storage(&disk),
                &RedbStoreOptions { log_size: SMALL_LOG, ..RedbStoreOptions::default() },
            );
            let mut bound = 0;
            if let Ok(store) = &opened {
                bound = (0..6).take_while(|nth| bind(store, &format!("again{nth}")).is_ok()).count();
            }
            let is_whole = bound == 6 && opened.is_ok();
            drop(opened);
            let mut found = all_names(&open_with_log(&disk.after_power_loss(&mut random), SMALL_LOG));
            for nth in 0..bound {
                assert!(found.remove(&format!("/again{nth}")).is_some(), "seed {seed}, {cut}: {nth}");
            }
            found.remove(&format!("/again{bound}"));
            assert!(
                found == acknowledged || found == perhaps,
                "seed {seed}, power lost after {cut} changes: {found:?}\n{acknowledged:?}\n{perhaps:?}"
            );
            if is_whole && disk.changes() < cut {
                break;
            }
        }
    }
}

#[test]
fn the_log_of_another_store_is_ignored() {
    let (disk, other) = (killed(&["a", "b"]), killed(&["c", "d", "e"]));
    disk.log().set_contents(&other.log().contents());
    let store = open(&disk);
    assert_eq!(names(&store), ["a"]);
    bind(&store, "f").unwrap();
    bind(&store, "g").unwrap();
    kill(store);
    assert_eq!(names(&open(&disk)), ["a", "f", "g"]);
}

#[test]
fn the_log_is_ignored_by_a_backup_in_place_of_the_store() {
    let disk = Disk::default();
    let store = open(&disk);
    bind(&store, "a").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    store.back_up(&copy).unwrap();
    for name in ["b", "c", "d"] {
        bind(&store, name).unwrap();
    }
    kill(store);
    disk.set_contents(&fs::read(&copy).unwrap());
    assert_eq!(names(&open(&disk)), ["a"]);
}

#[test]
fn the_log_is_ignored_by_an_older_copy_of_the_closed_store() {
    let disk = Disk::default();
    bind(&open(&disk), "a").unwrap();
    let copy = disk.contents();
    let store = open(&disk);
    bind(&store, "b").unwrap();
    bind(&store, "c").unwrap();
    kill(store);
    disk.set_contents(&copy);
    assert_eq!(names(&open(&disk)), ["a"]);
}

#[test]
fn a_damaged_record_before_others_is_an_error_and_the_last_one_is_dropped() {
    let disk = killed(&["a", "bb", "ccc", "dddd"]);
    let log = disk.log().contents();
    let damage = |record: &[u8]| {
        let mut damaged = log.clone();
        let place = log.windows(record.len()).position(|octets| octets == record).unwrap();
        damaged[place] ^= 1;
        disk.log().set_contents(&damaged);
    };
    for record in [b"bb\0".as_slice(), b"ccc\0"] {
        damage(record);
        let error = log_error(&disk);
        assert!(matches!(error, RedoLogError::Damaged(_)), "{error}");
    }
    damage(b"dddd\0");
    assert_eq!(names(&open(&disk)), ["a", "bb", "ccc"]);
}

#[test]
fn a_missing_or_shortened_log_is_an_error_unless_the_store_was_closed() {
    let disk = killed(&["a", "b"]);
    let log = disk.log().contents();
    for octets in [0, 1, 100, log.len() - 1] {
        disk.log().set_contents(&log[..octets]);
        let (octets, size) = (octets as u64, log.len() as u64);
        assert!(
            matches!(log_error(&disk), RedoLogError::Incomplete { octets: found, size: needed } if (found, needed) == (octets, size))
        );
    }
    disk.log().set_contents(&vec![0; log.len()]);
    let store = open(&disk);
    assert_eq!(names(&store), ["a"]);
    bind(&store, "c").unwrap();
    drop(store);
    disk.log().set_contents(&[]);
    assert_eq!(names(&open(&disk)), ["a", "c"]);
}

#[test]
fn after_a_failed_write_of_the_log_the_next_change_is_made() {
    // The write or the synchronization fails, and the erasure of the record does not.
    for changes in [0, 1] {
        let disk = Disk::default();
        let store = open(&disk);
        bind(&store, "a").unwrap();
        disk.fail_after(disk.changes() + changes, 1);
        let failed = bind(&store, "b");
        assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
        assert_eq!(names(&store), ["a"]);
        bind(&store, "c").unwrap();
        kill(store);
        assert_eq!(names(&open(&disk.after_power_loss(&mut fastrand::Rng::new()))), ["a", "c"]);
    }
}

#[test]
fn a_record_of_unknown_outcome_is_ignored_after_the_next_change() {
    // The erasure of the record fails, too: its write, or its synchronization.
    for failures in [2, 3] {
        let disk = Disk::default();
        let store = open(&disk);
        bind(&store, "a").unwrap();
        bind(&store, "b").unwrap();
        disk.fail_after(disk.changes() + 1, failures);
        assert!(matches!(bind(&store, "c"), Err(StoreError::Uncertain(_))));
        disk.restore_power();
        assert_eq!(names(&store), ["a", "b"]);
        bind(&store, "d").unwrap();
        kill(store);
        assert_eq!(names(&open(&disk)), ["a", "b", "d"]);
        assert_eq!(names(&open(&disk.after_power_loss(&mut fastrand::Rng::new()))), ["a", "b", "d"]);
    }
}

#[test]
fn after_a_failure_at_any_operation_the_next_change_is_made() {
    for changes in 0..10 {
        let disk = Disk::default();
        let store = open_with_log(&disk, SMALL_LOG);
        let mut bound = Vec::new();
        for nth in 0..20 {
            // Some of these fail in a checkpoint.
            disk.fail_after(disk.changes() + changes, 1);
            bound.extend(
                [0, 1].map(|half| format!("name{nth}{half}")).into_iter().filter(|name| bind(&store, name).is_ok()),
            );
            disk.restore_power();
        }
        assert!(bound.len() >= 20, "{bound:?}");
        bind(&store, "z").unwrap();
        let found = names(&store);
        assert!(bound.iter().all(|name| found.contains(name)), "{bound:?} {found:?}");
        kill(store);
        assert_eq!(names(&open(&disk.after_power_loss(&mut fastrand::Rng::new()))), found);
    }
}

#[test]
fn a_store_without_a_log_gets_one_and_older_programs_refuse_it_while_it_is_needed() {
    let disk = Disk::default();
    bind(&open_at_intervals(&disk), "a").unwrap();
    assert_eq!((format(&disk), disk.log().contents().len()), (1, 0));
    let store = open(&disk);
    bind(&store, "b").unwrap();
    bind(&store, "c").unwrap();
    kill(store);
    assert_eq!(format(&disk), 2);
    assert_eq!(names(&open(&disk)), ["a", "b", "c"]); // and it is closed
    assert_eq!(format(&disk), 1);
}

#[test]
fn a_store_that_writes_at_intervals_takes_over_the_changes_of_the_log() {
    let disk = killed(&["a", "b", "c"]);
    let store = open_at_intervals(&disk);
    assert_eq!(names(&store), ["a", "b", "c"]);
    kill(store);
    disk.log().set_contents(&[]);
    let lost = disk.after_power_loss(&mut fastrand::Rng::new());
    assert_eq!(names(&open(&lost)), ["a", "b", "c"]);
}

#[test]
fn a_change_that_is_larger_than_the_log_is_durable() {
    let disk = Disk::default();
    let store = open_with_log(&disk, SMALL_LOG);
    bind(&store, "a").unwrap();
    bind(&store, &"large".repeat(1_000)).unwrap();
    bind(&store, "z").unwrap();
    kill(store);
    let found = names(&open(&disk.after_power_loss(&mut fastrand::Rng::new())));
    assert_eq!(found, ["a", &"large".repeat(1_000), "z"]);
}

#[test]
fn a_full_disk_at_a_checkpoint_ends_no_service() {
    let disk = Disk::default();
    let store = open_with_log(&disk, SMALL_LOG);
    let mut bound = 0;
    let large = |nth: usize| format!("{nth:05}{}", "x".repeat(20));
    bind(&store, &large(bound)).unwrap();
    disk.set_space(Some(disk.used()));
    let failure = loop {
        bound += 1;
        if let Err(failure) = bind(&store, &large(bound)) {
            break failure;
        }
    };
    assert!(matches!(failure, StoreError::Unavailable(_)), "{failure}");
    for _ in 0..3 {
        assert!(matches!(bind(&store, &large(bound)), Err(StoreError::Unavailable(_))));
        assert_eq!(names(&store).len(), bound);
    }
    kill(store);
    let store = open_with_log(&disk, SMALL_LOG);
    assert_eq!(names(&store).len(), bound);
    disk.set_space(None);
    bind(&store, &large(bound)).unwrap();
    assert_eq!(names(&store).len(), bound + 1);
}
