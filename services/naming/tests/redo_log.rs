//! The redo log: replay, damage, failed writes, and other copies of the store.

use std::fs;
use std::mem;
use std::time::Duration;

use spandrel_naming::store::{ContextId, IfBound, Store, StoreError};
use spandrel_naming::{RedbStore, RedbStoreOptions, Synchronization};
use spandrel_store::{LogPolicy, OpenCause, RedoLogError};
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
    match RedbStore::open_in(storage(disk), &RedbStoreOptions::default()).map_err(|error| error.cause) {
        Err(OpenCause::RedoLog { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

/// The names of a store that is opened without the changes of its log that cannot be read, and then as always.
fn recovered(disk: &Disk) -> Vec<String> {
    let recover = storage(disk).with_policy(LogPolicy::DropDamaged);
    let found = names(&RedbStore::open_in(recover, &RedbStoreOptions::default()).unwrap());
    assert_eq!(names(&open(disk)), found);
    found
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
fn the_log_of_another_store_is_refused() {
    let (disk, other) = (killed(&["a", "b"]), killed(&["c", "d", "e"]));
    disk.log().set_contents(&other.log().contents());
    assert!(matches!(log_error(&disk), RedoLogError::OtherStore { changes: 2 }));
    // The store has all changes after an end in order, and its log is missed nevertheless.
    let closed = Disk::default();
    bind(&open(&closed), "x").unwrap();
    closed.log().set_contents(&other.log().contents());
    assert!(matches!(log_error(&closed), RedoLogError::OtherStore { changes: 2 }));
    assert_eq!(recovered(&disk), ["a"]);
    assert_eq!(recovered(&closed), ["x"]);
    let store = open(&disk);
    bind(&store, "f").unwrap();
    bind(&store, "g").unwrap();
    kill(store);
    assert_eq!(names(&open(&disk)), ["a", "f", "g"]);
}

#[test]
fn a_backup_in_place_of_the_store_drops_its_log_and_no_other_one() {
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
    let former = disk.contents();
    disk.set_contents(&fs::read(&copy).unwrap());
    let store = open(&disk);
    assert_eq!(names(&store), ["a"]);
    bind(&store, "e").unwrap();
    bind(&store, "f").unwrap();
    kill(store);
    assert_eq!(names(&open(&disk)), ["a", "e", "f"]);
    disk.set_contents(&former);
    assert!(matches!(log_error(&disk), RedoLogError::OtherStore { .. }));
    disk.set_contents(&fs::read(&copy).unwrap());
    disk.log().set_contents(&killed(&["x", "y"]).log().contents());
    assert!(matches!(log_error(&disk), RedoLogError::OtherStore { changes: 1 }));
}

#[test]
fn an_older_copy_of_the_store_or_of_its_log_is_refused() {
    let disk = Disk::default();
    bind(&open(&disk), "a").unwrap();
    let (copy, log) = (disk.contents(), disk.log().contents());
    for _ in 0..2 {
        let store = open(&disk);
        bind(&store, "b").unwrap();
        bind(&store, "c").unwrap();
        for name in ["b", "c"] {
            store.unbind(ContextId::ROOT, &step(name)).unwrap();
        }
        kill(store);
    }
    let present = (disk.contents(), disk.log().contents());
    disk.set_contents(&copy);
    assert!(matches!(log_error(&disk), RedoLogError::Newer { changes: 3 }));
    assert_eq!(recovered(&disk), ["a"]);
    disk.set_contents(&present.0);
    disk.log().set_contents(&log);
    assert!(matches!(log_error(&disk), RedoLogError::Older));
}

/// Logs that are not as the store left them.
fn damaged_logs(log: &[u8]) -> Vec<(String, Vec<u8>)> {
    let used = log.iter().rposition(|octet| *octet != 0).unwrap() + 1;
    let mut damaged = Vec::new();
    let mut add = |text: &str, places: &mut dyn Iterator<Item = usize>| {
        let mut octets = log.to_vec();
        places.for_each(|place| octets[place] ^= 0xff);
        damaged.push((text.to_owned(), octets));
    };
    add("the last 2,000 octets in use", &mut (used - 2_000..used));
    add("the last 20 octets in use", &mut (used - 20..used));
    add("all", &mut (0..log.len()));
    add("all in use", &mut (0..used));
    add("all records", &mut (512..used));
    for step in [7, 50, 512, 4_096] {
        for start in [0, 49] {
            add(&format!("every {step}th octet from {start}"), &mut (start..log.len()).step_by(step));
            add(&format!("every {step}th octet in use from {start}"), &mut (start..used).step_by(step));
        }
    }
    for place in (0..used).step_by(307) {
        add(&format!("octet {place}"), &mut (place..=place));
    }
    damaged
}

#[test]
fn a_damaged_log_is_refused_and_recovered_up_to_the_damage() {
    let disk = Disk::default();
    let store = open(&disk);
    let expected: Vec<String> = (0..60).map(|nth| format!("name {nth:02}")).collect();
    expected.iter().for_each(|name| bind(&store, name).unwrap());
    kill(store);
    let (database, log) = (disk.contents(), disk.log().contents());
    for (text, damaged) in damaged_logs(&log) {
        if damaged == log {
            continue;
        }
        disk.set_contents(&database);
        disk.log().set_contents(&damaged);
        println!("{text}"); // shown with a failure
        let error = log_error(&disk);
        assert!(matches!(error, RedoLogError::Damaged { .. } | RedoLogError::Header), "{text}: {error}");
        let found = recovered(&disk);
        assert!(expected.starts_with(&found) && !found.is_empty(), "{text}: {found:?}");
        if let RedoLogError::Damaged { sound, .. } = error {
            assert_eq!(found.len(), sound + 1, "{text}");
        }
    }
    // Octets far behind the records may be those of a record whose beginning was not written.
    let end = log.len();
    let unused: Vec<u8> = [&log[..end - 2_000], &[0xff; 2_000]].concat();
    for log in [unused, log] {
        disk.set_contents(&database);
        disk.log().set_contents(&log);
        assert_eq!(names(&open(&disk)), expected);
    }
}

#[test]
fn a_record_that_a_loss_of_power_left_in_part_is_dropped() {
    let disk = Disk::default();
    let store = open(&disk);
    bind(&store, "a").unwrap();
    bind(&store, "b").unwrap();
    let before = disk.log().contents();
    bind(&store, &"c".repeat(2_300)).unwrap();
    kill(store);
    let (database, after) = (disk.contents(), disk.log().contents());
    let sectors: Vec<usize> =
        (0..after.len()).step_by(512).filter(|at| before[*at..at + 512] != after[*at..at + 512]).collect();
    assert!(sectors.len() > 4, "{sectors:?}");
    for written in 0..1_u32 << sectors.len() {
        let mut log = before.clone();
        for (_, at) in sectors.iter().enumerate().filter(|(nth, _)| written >> nth & 1 == 1) {
            log[*at..at + 512].copy_from_slice(&after[*at..at + 512]);
        }
        disk.set_contents(&database);
        disk.log().set_contents(&log);
        let count = if written + 1 == 1 << sectors.len() { 3 } else { 2 };
        assert_eq!(names(&open(&disk)).len(), count, "{written:b}");
    }
}

#[test]
fn a_missing_or_shortened_log_is_an_error_unless_the_store_was_closed() {
    let disk = killed(&["a", "b"]);
    let (database, log) = (disk.contents(), disk.log().contents());
    for octets in [0, 1, 100, 512, log.len() - 1] {
        disk.log().set_contents(&log[..octets]);
        let size = log.len() as u64;
        assert!(
            matches!(log_error(&disk), RedoLogError::Incomplete { size: needed, .. } if needed == size),
            "{octets}"
        );
    }
    disk.log().set_contents(&vec![0; log.len()]);
    assert!(matches!(log_error(&disk), RedoLogError::Incomplete { octets: 0, .. }));
    assert_eq!(recovered(&disk), ["a"]);
    disk.set_contents(&database);
    disk.log().set_contents(&log);
    bind(&open(&disk), "c").unwrap();
    disk.log().set_contents(&[]);
    assert_eq!(names(&open(&disk)), ["a", "b", "c"]);
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
fn a_store_without_a_log_gets_one() {
    let disk = Disk::default();
    bind(&open_at_intervals(&disk), "a").unwrap();
    assert_eq!(disk.log().contents().len(), 0);
    let store = open(&disk);
    bind(&store, "b").unwrap();
    bind(&store, "c").unwrap();
    kill(store);
    assert_eq!(names(&open(&disk)), ["a", "b", "c"]);
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
