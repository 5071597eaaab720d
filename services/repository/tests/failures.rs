//! A loss of power at every write, errors of input and output, a full disk, and `kill -9` under load.

use std::path::Path;

use spandrel::services::repository::print;
use spandrel::{CompletionStatus, Endpoint, ObjectRef, Orb, SystemException, SystemExceptionKind};
use spandrel_repository::{InterfaceRepository, RepositoryOptions};
use spandrel_store::Storage;
use spandrel_test_support::disk::Disk;

use crate::support::{call, lookup_id, send};

/// A repository whose store is on this disk.
fn start(orb: &Orb, disk: &Disk) -> InterfaceRepository {
    let disk = disk.clone();
    let storage = Some(Storage::backend(move || disk.clone()));
    let options = RepositoryOptions { storage, ..RepositoryOptions::new(Path::new("none")) };
    InterfaceRepository::start(orb, options).expect("a repository")
}

fn orb() -> Orb {
    Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().expect("an ORB")
}

/// The definitions as IDL, and their number.
type State = (String, usize);

fn state(repository: &InterfaceRepository) -> State {
    (print(repository.reference(), None).expect("IDL"), repository.definitions())
}

/// The number of changes that a test makes.
const CHANGES: usize = 16;

fn module_id(nth: usize) -> String {
    format!("IDL:M{nth}:1.0")
}

/// Makes a random change of a few modules and interfaces. It depends on nothing but the state and the numbers.
fn change(root: &ObjectRef, random: &mut fastrand::Rng) -> Result<(), SystemException> {
    let [kind, nth, place] = [random.usize(..8), random.usize(..4), random.usize(..5)];
    let container = lookup_id(root, &module_id(place)).unwrap_or_else(|| root.clone());
    let module = lookup_id(root, &module_id(nth));
    match (kind, module) {
        (0, Some(module)) => send(&module, "destroy", &[]),
        (1, Some(module)) => send(&module, "move", &[&Some(container), &format!("M{nth}"), &"1.0"]),
        (2, Some(module)) => send(&module, "_set_documentation", &[&format!("{}", random.u32(..))]),
        (3..6, Some(module)) => {
            let name = format!("I{}", random.u32(..));
            let bases = Vec::<Option<ObjectRef>>::new();
            let arguments: [&dyn spandrel::generated::Encode; 4] = [&format!("IDL:{name}:1.0"), &name, &"1.0", &bases];
            call::<Option<ObjectRef>>(&module, "create_interface", &arguments).map(drop)
        }
        _ => {
            let arguments: [&dyn spandrel::generated::Encode; 3] = [&module_id(nth), &format!("M{nth}"), &"1.0"];
            call::<Option<ObjectRef>>(&container, "create_module", &arguments).map(drop)
        }
    }
}

/// Whether a change failed because of the disk, and its completion status.
fn disk_failure(outcome: Result<(), SystemException>) -> Option<CompletionStatus> {
    outcome.err().filter(|error| error.kind() == SystemExceptionKind::PersistStore).map(|error| error.completed())
}

fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().expect("a number"))
}

/// The states before the first change and after each, and the writes of the disk before the first and after the last.
fn expected_states(orb: &Orb, seed: u64) -> (Vec<State>, usize, usize) {
    let disk = Disk::default();
    let repository = start(orb, &disk);
    let first = disk.changes();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut states = vec![state(&repository)];
    for _ in 0..CHANGES {
        assert!(disk_failure(change(repository.reference(), &mut random)).is_none());
        states.push(state(&repository));
    }
    repository.stop().expect("the service ends");
    (states, first, disk.changes())
}

#[test]
fn acknowledged_definitions_survive_a_loss_of_power_at_every_write() {
    let (orb, seed) = (orb(), seed());
    let (states, first, last) = expected_states(&orb, seed);
    assert!(last - first > 50, "{first} {last}");
    let mut losses = fastrand::Rng::with_seed(seed);
    let mut uncertain = 0;
    for cut in first..=last {
        let disk = Disk::default();
        let repository = start(&orb, &disk);
        disk.cut_power_after(cut);
        let mut random = fastrand::Rng::with_seed(seed);
        let root = repository.reference();
        let failure = (0..CHANGES).find_map(|nth| Some((nth, disk_failure(change(root, &mut random))?)));
        let (acknowledged, completed) = failure.unwrap_or((CHANGES, CompletionStatus::Yes));
        assert_eq!(state(&repository), states[acknowledged], "seed {seed}: reading goes on");
        repository.stop().expect("the service ends");
        let is_uncertain = completed == CompletionStatus::Maybe;
        uncertain += usize::from(is_uncertain);
        let possible = &states[acknowledged..=acknowledged + usize::from(is_uncertain)];
        for _ in 0..2 {
            let repository = start(&orb, &disk.after_power_loss(&mut losses));
            let found = state(&repository);
            assert!(
                possible.contains(&found),
                "seed {seed}, power lost after {cut} writes: {found:?}\nexpected one of {possible:?}"
            );
            repository.stop().expect("the service ends");
        }
    }
    assert!(uncertain > 5, "{uncertain}");
    orb.shutdown().expect("the end");
}

#[test]
fn after_an_error_of_the_disk_the_file_follows_the_definitions_in_memory() {
    let (orb, seed) = (orb(), seed());
    let (_, first, last) = expected_states(&orb, seed);
    let mut uncertain = 0;
    for cut in first..last {
        let disk = Disk::default();
        let repository = start(&orb, &disk);
        disk.cut_power_after(cut);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..CHANGES {
            if let Some(completed) = disk_failure(change(repository.reference(), &mut random)) {
                uncertain += usize::from(completed == CompletionStatus::Maybe);
                disk.restore_power();
            }
        }
        disk.restore_power();
        // A change that is not in the former one's place.
        call::<Option<ObjectRef>>(repository.reference(), "create_module", &[&"IDL:Last:1.0", &"Last", &"1.0"])
            .expect("a module");
        let in_memory = state(&repository);
        repository.stop().expect("the service ends");
        let repository = start(&orb, &disk);
        assert_eq!(state(&repository), in_memory, "seed {seed}, error at write {cut}");
        repository.stop().expect("the service ends");
    }
    assert!(uncertain > 5, "{uncertain}");
    orb.shutdown().expect("the end");
}

#[test]
fn a_full_disk_ends_no_service() {
    let (orb, disk) = (orb(), Disk::default());
    let repository = start(&orb, &disk);
    let create = |name: &str| {
        let arguments: [&dyn spandrel::generated::Encode; 3] = [&format!("IDL:{name}:1.0"), &name, &"1.0"];
        let module = call::<Option<ObjectRef>>(repository.reference(), "create_module", &arguments)?.expect("a module");
        send(&module, "_set_documentation", &[&"x".repeat(50_000)])
    };
    create("Before").expect("space");
    disk.set_space(Some(disk.used()));
    let (mut created, mut failure) = (1, None);
    while failure.is_none() {
        failure = create(&format!("M{created}")).err();
        created += usize::from(failure.is_none());
        assert!(created < 10_000);
    }
    let failure = failure.expect("an exception");
    assert_eq!((failure.kind(), failure.completed()), (SystemExceptionKind::PersistStore, CompletionStatus::No));
    // Reading goes on, and nothing that was acknowledged is lost.
    let before = state(&repository);
    for _ in 0..3 {
        let module = lookup_id(repository.reference(), "IDL:Before:1.0").expect("a module");
        assert!(disk_failure(send(&module, "_set_documentation", &[&"y".repeat(500_000)])).is_some());
        assert_eq!(state(&repository), before);
    }
    disk.set_space(None);
    create("After").expect("space again");
    let in_memory = state(&repository);
    repository.stop().expect("the service ends");
    let repository = start(&orb, &disk);
    assert_eq!(state(&repository), in_memory);
    repository.stop().expect("the service ends");
    orb.shutdown().expect("the end");
}
