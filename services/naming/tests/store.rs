//! The store: its operations, a loss of power at every write, and a full disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use spandrel::services::cos_naming::{BindingType, NameComponent};
use spandrel::types::Ior;
use spandrel_naming::store::{ContextId, IfBound, Store, StoreError, Target};
use spandrel_naming::{RedbStore, RedbStoreOptions, Synchronization};
use spandrel_store::Storage;
use spandrel_test_support::disk::Disk;

pub(crate) fn step(id: &str) -> NameComponent {
    NameComponent { id: id.to_owned(), kind: String::new() }
}

pub(crate) fn object(nth: usize) -> Target {
    Target::Object(Ior { type_id: format!("IDL:Object{nth}:1.0"), profiles: Vec::new() })
}

/// The storage of a store on a disk, with its redo log.
pub(crate) fn storage(disk: &Disk) -> Storage {
    let (database, log) = (disk.clone(), disk.log());
    Storage::backend(move || database.clone()).with_log(move || log.clone())
}

pub(crate) fn open(disk: &Disk) -> RedbStore {
    open_with_log(disk, RedbStoreOptions::default().log_size)
}

/// A store whose log has this size in octets.
pub(crate) fn open_with_log(disk: &Disk, log_size: u64) -> RedbStore {
    RedbStore::open_in(storage(disk), &RedbStoreOptions { log_size, ..RedbStoreOptions::default() }).unwrap()
}

/// All names from the root context on, with their targets; contexts without their ids.
pub(crate) fn all_names(store: &dyn Store) -> Names {
    fn add(store: &dyn Store, context: ContextId, path: &str, names: &mut Names) {
        for (name, binding_type) in store.list(context, None, usize::MAX).unwrap() {
            let path = format!("{path}/{}", name.id);
            let target = store.lookup(context, &name).unwrap();
            assert_eq!(target.binding_type(), binding_type);
            match target {
                Target::Context(id) => {
                    names.insert(path.clone(), "context".to_owned());
                    add(store, id, &path, names);
                }
                other => _ = names.insert(path, format!("{other:?}")),
            }
        }
    }
    let mut names = BTreeMap::new();
    add(store, ContextId::ROOT, "", &mut names);
    names
}

#[test]
fn a_listing_continues_after_any_name() {
    let store = open(&Disk::default());
    let context = store.bind_new_context(ContextId::ROOT, &step("many")).unwrap();
    for nth in 0..100 {
        store.bind(context, &step(&format!("{nth:03}")), &object(nth), IfBound::Fail).unwrap();
    }
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.list(context, after.as_ref(), 7).unwrap();
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        // A binding that is removed meanwhile ends nothing.
        _ = store.unbind(context, last);
        found.extend(page.into_iter().map(|(name, _)| name.id));
    }
    assert_eq!(found, (0..100).map(|nth| format!("{nth:03}")).collect::<Vec<_>>());
    assert_eq!(store.list(ContextId::ROOT, None, 10).unwrap(), [(step("many"), BindingType::Ncontext)]);
}

#[test]
fn of_a_destruction_and_a_binding_one_succeeds() {
    let store = Arc::new(open(&Disk::default()));
    for _ in 0..50 {
        let context = store.new_context().unwrap();
        let binding = {
            let store = Arc::clone(&store);
            std::thread::spawn(move || store.bind(context, &step("x"), &object(1), IfBound::Fail))
        };
        let destroyed = store.destroy(context);
        match (binding.join().unwrap(), destroyed) {
            (Ok(()), Err(StoreError::NotEmpty(_))) | (Err(StoreError::NoContext(_)), Ok(())) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_path_of_a_context_is_that_by_which_it_was_made() {
    let store = open(&Disk::default());
    let a = store.bind_new_context(ContextId::ROOT, &step("a/1")).unwrap();
    let b = store.bind_new_context(a, &NameComponent { id: "b".into(), kind: "k".into() }).unwrap();
    let unnamed = store.new_context().unwrap();
    let below = store.bind_new_context(unnamed, &step("c")).unwrap();
    let paths = [ContextId::ROOT, a, b, unnamed, below].map(|context| store.path(context).unwrap());
    assert_eq!(paths, [Some(String::new()), Some(r"a\/1".into()), Some(r"a\/1/b.k".into()), None, None]);
}

/// The names of a store, with their targets; contexts without their ids.
pub(crate) type Names = BTreeMap<String, String>;

/// Changes a small tree until a change fails. Returns the names by the acknowledged changes, and those with the failed
/// change, if it may have been made.
pub(crate) fn change_until_failure(store: &dyn Store, seed: u64) -> (Names, Names) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut names = Names::new();
    let mut contexts = vec![(ContextId::ROOT, String::new())];
    for nth in 0..40 {
        let (context, path) = contexts[random.usize(..contexts.len())].clone();
        let name = step(&format!("n{}", random.usize(..6)));
        let path = format!("{path}/{}", name.id);
        let mut wanted = names.clone();
        let outcome = match random.usize(..6) {
            0 => {
                wanted.insert(path.clone(), "context".to_owned());
                store.bind_new_context(context, &name).map(|created| contexts.push((created, path)))
            }
            1 => {
                let below = format!("{path}/");
                wanted.retain(|known, _| *known != path && !known.starts_with(&below));
                store
                    .unbind(context, &name)
                    .map(|()| contexts.retain(|(_, known)| *known != path && !known.starts_with(&below)))
            }
            _ => {
                wanted.insert(path, format!("{:?}", object(nth)));
                store.bind(context, &name, &object(nth), IfBound::Replace)
            }
        };
        match outcome {
            Ok(()) => names = wanted,
            Err(StoreError::Unavailable(_)) => return (names.clone(), names),
            Err(StoreError::Uncertain(_)) => return (names, wanted),
            Err(_) => {} // nothing was changed
        }
    }
    (names.clone(), names)
}

pub(crate) fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap())
}

/// The size of a log that has room for a few changes.
pub(crate) const SMALL_LOG: u64 = 512 + 500;

#[test]
fn acknowledged_changes_survive_a_loss_of_power_at_every_write() {
    for log_size in [SMALL_LOG, 1 << 16] {
        lose_power_at_every_write(seed(), log_size);
    }
}

fn lose_power_at_every_write(seed: u64, log_size: u64) {
    let whole = Disk::default();
    let first = {
        let store = open_with_log(&whole, log_size);
        let first = whole.changes();
        change_until_failure(&store, seed);
        first
    };
    let last = whole.changes();
    assert!(last - first > 25, "{first} {last}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut uncertain = 0;
    for cut in first..=last {
        let disk = Disk::default();
        let store = open_with_log(&disk, log_size);
        disk.cut_power_after(cut);
        let (acknowledged, perhaps) = change_until_failure(&store, seed);
        uncertain += usize::from(acknowledged != perhaps);
        for _ in 0..2 {
            let found = all_names(&open_with_log(&disk.after_power_loss(&mut random), log_size));
            assert!(
                found == acknowledged || found == perhaps,
                "seed {seed}, power lost after {cut} changes: {found:?}\nexpected {acknowledged:?}\nor {perhaps:?}"
            );
        }
    }
    assert!(uncertain > 20, "{uncertain}");
}

#[test]
fn changes_that_are_committed_together_survive_a_loss_of_power() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..30 {
        let disk = Disk::default();
        let store = Arc::new(open(&disk));
        disk.cut_power_after(disk.changes() + random.usize(1..200));
        let workers: Vec<_> = (0..8)
            .map(|worker| {
                let store = Arc::clone(&store);
                std::thread::spawn(move || {
                    let bind = |nth: &usize| {
                        let name = step(&format!("{worker}-{nth}"));
                        store.bind(ContextId::ROOT, &name, &object(*nth), IfBound::Fail).is_ok()
                    };
                    (0..).take_while(bind).count()
                })
            })
            .collect();
        let bound: Vec<usize> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        let found = all_names(&open(&disk.after_power_loss(&mut random)));
        for (worker, bound) in bound.iter().enumerate() {
            for nth in 0..*bound {
                assert!(found.contains_key(&format!("/{worker}-{nth}")), "seed {seed}, round {round}: {worker}-{nth}");
            }
        }
        // Of each worker one change may have been made and not acknowledged.
        let acknowledged: usize = bound.iter().sum();
        assert!((acknowledged..=acknowledged + 8).contains(&found.len()), "seed {seed}: {acknowledged} {found:?}");
    }
}

#[test]
fn a_full_disk_ends_no_service() {
    let disk = Disk::default();
    let store = open(&disk);
    store.bind(ContextId::ROOT, &step("before"), &object(0), IfBound::Fail).unwrap();
    disk.set_space(Some(disk.used()));
    let large = Target::Object(Ior { type_id: "x".repeat(50_000), profiles: Vec::new() });
    let mut bound = 0;
    let failure = loop {
        match store.bind(ContextId::ROOT, &step(&format!("large{bound}")), &large, IfBound::Fail) {
            Ok(()) => bound += 1,
            Err(failure) => break failure,
        }
        assert!(bound < 10_000);
    };
    assert!(matches!(failure, StoreError::Unavailable(_)), "{failure}");
    // Nothing that was acknowledged is lost, and reading goes on.
    for _ in 0..3 {
        let failed = store.bind(ContextId::ROOT, &step(&format!("large{bound}")), &large, IfBound::Fail);
        assert!(matches!(failed, Err(StoreError::Unavailable(_))));
        assert_eq!(store.lookup(ContextId::ROOT, &step("before")).unwrap(), object(0));
        assert_eq!(store.list(ContextId::ROOT, None, usize::MAX).unwrap().len(), bound + 1);
    }
    disk.set_space(None);
    store.bind(ContextId::ROOT, &step(&format!("large{bound}")), &large, IfBound::Fail).unwrap();
    drop(store);
    assert_eq!(open(&disk).list(ContextId::ROOT, None, usize::MAX).unwrap().len(), bound + 2);
}

#[test]
fn a_copy_has_the_state_and_a_file_that_exists_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let [file, copy] = ["naming.redb", "copy"].map(|name| folder.path().join(name));
    let store = RedbStore::open(&file, &RedbStoreOptions::default()).unwrap();
    change_until_failure(&store, 7);
    store.back_up(&copy).unwrap();
    assert!(matches!(store.back_up(&copy), Err(StoreError::Unavailable(_))));
    let mut copied = RedbStore::open(&copy, &RedbStoreOptions::default()).unwrap();
    assert_eq!(all_names(&copied), all_names(&store));
    assert!(copied.check().unwrap() > 0);
    copied.bind_new_context(ContextId::ROOT, &step("new")).unwrap();
    let again = RedbStore::open(&file, &RedbStoreOptions::default());
    assert_eq!(
        again.unwrap_err().to_string(),
        format!("cannot open the store {}: another process uses it", file.display())
    );
}

#[test]
fn a_damaged_file_is_found_by_the_opening() {
    let disk = Disk::default();
    {
        let mut store = open(&disk);
        for nth in 0..1_000 {
            store.bind(ContextId::ROOT, &step(&format!("name{nth}")), &object(nth), IfBound::Fail).unwrap();
        }
        assert_eq!(store.check().unwrap(), 1_000);
        assert_eq!(store.list(ContextId::ROOT, None, usize::MAX).unwrap().len(), 1_000, "it is in use again");
    }
    disk.replace(b"IDL:Object777:1.0", b"IDL:Object778:1.0");
    let error = RedbStore::open_in(storage(&disk), &RedbStoreOptions::default()).unwrap_err();
    assert!(error.to_string().contains("orrupt"), "{error}");
}

#[test]
fn damage_while_a_store_is_open_is_no_panic_and_the_next_opening_finds_it() {
    for page in 1..6 {
        let disk = Disk::default();
        let options = RedbStoreOptions { cache: 0, ..RedbStoreOptions::default() };
        let store = RedbStore::open_in(storage(&disk), &options).unwrap();
        for nth in 0..100 {
            store.bind(ContextId::ROOT, &step(&format!("name{nth}")), &object(nth), IfBound::Fail).unwrap();
        }
        store.synchronize().unwrap();
        let mut damaged = disk.contents();
        damaged[page * 4_096..].iter_mut().for_each(|octet| *octet ^= 0xff);
        disk.set_contents(&damaged);
        for nth in 0..10 {
            _ = store.lookup(ContextId::ROOT, &step(&format!("name{nth}")));
            _ = store.bind(ContextId::ROOT, &step(&format!("other{nth}")), &object(nth), IfBound::Fail);
            _ = store.list(ContextId::ROOT, None, 1_000);
        }
        drop(store);
        disk.set_contents(&damaged);
        assert!(RedbStore::open_in(storage(&disk), &options).is_err(), "page {page}");
    }
}

#[test]
fn changes_that_are_written_at_intervals_are_visible_at_once() {
    let disk = Disk::default();
    let options = RedbStoreOptions {
        synchronization: Synchronization::Every(Duration::from_millis(2)),
        ..RedbStoreOptions::default()
    };
    let store = RedbStore::open_in(storage(&disk), &options).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let context = store.bind_new_context(ContextId::ROOT, &step(&format!("{worker}"))).unwrap();
                for nth in 0..300 {
                    let name = step(&format!("{}", nth % 10));
                    store.bind(context, &name, &object(nth), IfBound::Replace).unwrap();
                    assert_eq!(store.lookup(context, &name).unwrap(), object(nth));
                    assert_eq!(store.list(context, None, 100).unwrap().len(), 10.min(nth + 1));
                    assert!(matches!(store.destroy(context), Err(StoreError::NotEmpty(_))));
                }
            });
        }
    });
    let names = all_names(&store);
    assert_eq!(names.len(), 44);
    let folder = tempfile::tempdir().unwrap();
    store.back_up(&folder.path().join("copy")).unwrap();
    let copied = RedbStore::open(&folder.path().join("copy"), &RedbStoreOptions::default()).unwrap();
    assert_eq!(all_names(&copied), names);
    drop(store);
    assert_eq!(all_names(&open(&disk.after_power_loss(&mut fastrand::Rng::with_seed(seed())))), names);
}
