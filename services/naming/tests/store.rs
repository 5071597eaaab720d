//! The store: its operations, a loss of power at every write, and a full disk.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use spandrel::services::cos_naming::{BindingType, NameComponent};
use spandrel::types::Ior;
use spandrel_naming::store::{ContextId, Done, IfBound, Store, StoreError, Target};
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

#[test]
fn each_refusal_has_its_reason() {
    let store = open(&Disk::default());
    let [bound, absent] = ["bound", "absent"].map(step);
    let root = ContextId::ROOT;
    store.bind(root, &bound, &object(1), IfBound::Fail).unwrap();
    let context = Target::Context(store.new_context().unwrap());
    assert!(matches!(store.bind(root, &bound, &object(2), IfBound::Fail), Err(StoreError::AlreadyBound)));
    let other_type = store.bind(root, &bound, &context, IfBound::Replace);
    assert!(matches!(other_type, Err(StoreError::OtherType(BindingType::Nobject))), "{other_type:?}");
    assert!(matches!(store.bind_new_context(root, &bound), Err(StoreError::AlreadyBound)));
    assert!(matches!(store.destroy(root), Err(StoreError::NotEmpty(ContextId::ROOT))));
    assert!(matches!(store.lookup(root, &absent), Err(StoreError::NotBound)));
    assert!(matches!(store.unbind(root, &absent), Err(StoreError::NotBound)));
    assert!(matches!(store.unbind_target(root, &absent, &object(1)), Err(StoreError::NotBound)));
    assert!(matches!(store.unbind_target(root, &bound, &object(2)), Err(StoreError::NotBound)));
    assert_eq!(store.lookup(root, &bound).unwrap(), object(1), "no refused change was made");
    store.unbind_target(root, &bound, &object(1)).unwrap();
    assert_eq!(store.list(root, None, 10).unwrap(), []);
    assert!(matches!(store.destroy(root), Err(StoreError::Root)));
}

#[test]
fn a_destroyed_context_is_refused_by_every_operation() {
    let store = open(&Disk::default());
    let gone = store.bind_new_context(ContextId::ROOT, &step("gone")).unwrap();
    store.destroy(gone).unwrap();
    let name = step("x");
    let outcomes = [
        store.lookup(gone, &name).map(drop),
        store.bind(gone, &name, &object(1), IfBound::Replace),
        store.unbind(gone, &name),
        store.unbind_target(gone, &name, &object(1)),
        store.bind_new_context(gone, &name).map(drop),
        store.destroy(gone),
        store.list(gone, None, 10).map(drop),
        store.path(gone).map(drop),
    ];
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        assert!(matches!(error, StoreError::NoContext(context) if context == gone), "{error:?}");
        assert_eq!(error.to_string(), format!("context {} does not exist", gone.0));
    }
}

/// A store that writes changes at this interval.
fn open_with_interval(disk: &Disk, interval: Duration) -> RedbStore {
    let synchronization = Synchronization::Every(interval);
    RedbStore::open_in(storage(disk), &RedbStoreOptions { synchronization, ..RedbStoreOptions::default() }).unwrap()
}

#[test]
fn deferred_changes_are_reported_with_their_outcome() {
    for synchronization in [Synchronization::Always, Synchronization::Every(Duration::from_secs(3600))] {
        let options = RedbStoreOptions { synchronization, ..RedbStoreOptions::default() };
        let store = RedbStore::open_in(storage(&Disk::default()), &options).unwrap();
        assert_eq!(store.defers(), synchronization == Synchronization::Always);
        assert!(format!("{store:?}").contains(&format!("{synchronization:?}")), "{store:?}");
        let (outcomes, reported) = mpsc::channel();
        let done = || {
            let outcomes = outcomes.clone();
            Box::new(move |outcome| outcomes.send(outcome).unwrap())
        };
        let next = || reported.recv_timeout(Duration::from_secs(20)).expect("an outcome");
        store.bind_then(ContextId::ROOT, &step("a"), &object(1), IfBound::Fail, done());
        next().unwrap();
        assert_eq!(store.lookup(ContextId::ROOT, &step("a")).unwrap(), object(1));
        store.bind_then(ContextId::ROOT, &step("a"), &object(2), IfBound::Fail, done());
        assert!(matches!(next(), Err(StoreError::AlreadyBound)));
        store.unbind_then(ContextId::ROOT, &step("a"), done());
        next().unwrap();
        store.unbind_then(ContextId::ROOT, &step("a"), done());
        assert!(matches!(next(), Err(StoreError::NotBound)));
    }
}

/// The committer calls the function of a change that was made while another thread applied changes.
#[test]
fn a_store_whose_last_user_is_the_function_of_a_change_is_closed() {
    const LIMIT: Duration = Duration::from_secs(20);
    let disk = Disk::default();
    let store = Arc::new(open(&disk));
    let bind = |name: &str, done: Done| store.bind_then(ContextId::ROOT, &step(name), &object(1), IfBound::Fail, done);
    let [(begun, is_begun), (go_on, goes_on), (is_last, becomes_last)] = [(); 3].map(|()| mpsc::channel());
    let (closed, is_closed) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let done = move |outcome: Result<(), StoreError>| {
                begun.send(()).unwrap();
                goes_on.recv_timeout(LIMIT).unwrap();
                outcome.unwrap();
            };
            bind("a", Box::new(done));
        });
        is_begun.recv_timeout(LIMIT).unwrap();
        let last = Arc::clone(&store);
        let done = move |outcome| {
            becomes_last.recv_timeout(LIMIT).unwrap();
            drop(last);
            closed.send(outcome).unwrap();
        };
        bind("b", Box::new(done));
        go_on.send(()).unwrap();
    });
    drop(store);
    is_last.send(()).unwrap();
    is_closed.recv_timeout(LIMIT).expect("the store is closed").unwrap();
    // A closed store needs no log.
    disk.log().set_contents(&[]);
    assert_eq!(open(&disk).list(ContextId::ROOT, None, 10).unwrap().len(), 2);
}

#[test]
fn changes_are_written_after_their_interval() {
    let disk = Disk::default();
    let store = open_with_interval(&disk, Duration::from_millis(1));
    store.bind(ContextId::ROOT, &step("a"), &object(1), IfBound::Fail).unwrap();
    let is_durable = || {
        let lost = disk.after_power_loss(&mut fastrand::Rng::with_seed(seed()));
        !open(&lost).list(ContextId::ROOT, None, 1).unwrap().is_empty()
    };
    spandrel_test_support::wait_until("a durable binding", is_durable);
    drop(store);
}

/// The thread that writes at intervals has ended then.
#[test]
fn a_store_that_writes_at_intervals_can_be_opened_once_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("naming.redb");
    for _ in 0..30 {
        let synchronization = Synchronization::Every(Duration::from_micros(1));
        RedbStore::open(&file, &RedbStoreOptions { synchronization, ..RedbStoreOptions::default() }).unwrap();
    }
}

#[test]
fn damage_of_a_value_is_found_by_the_check_of_an_open_store() {
    let disk = Disk::default();
    let mut store = open(&disk);
    for nth in 0..1_000 {
        store.bind(ContextId::ROOT, &step(&format!("name{nth}")), &object(nth), IfBound::Fail).unwrap();
    }
    store.synchronize().unwrap();
    disk.replace(b"IDL:Object777:1.0", b"IDL:Object778:1.0");
    let error = store.check().unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
}
