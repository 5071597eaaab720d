//! A loss of power at every write of the state, and a full disk.

use std::sync::Arc;

use spandrel::services::implementation_repository::administration::RegisterServerError;
use spandrel::services::implementation_repository::{ActivationMode, Administration, StartupOptions};
use spandrel::{Endpoint, Orb};
use spandrel_activator::{Activator, ActivatorOptions, Commands};
use spandrel_store::Storage;
use spandrel_test_support::disk::Disk;
use tempfile::TempDir;

/// An activator whose state is on a disk that fails, with the manual servers of a test.
struct Served {
    activator: Activator,
    repository: Administration,
    orb: Orb,
    _folder: Arc<TempDir>,
}

impl Served {
    fn start(disk: &Disk, folder: &Arc<TempDir>) -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let disk = disk.clone();
        let storage = Some(Storage::backend(move || disk.clone()));
        let options = ActivatorOptions { storage, ..ActivatorOptions::new(folder.path(), Commands::default()) };
        let activator = Activator::start(&orb, options).unwrap();
        let repository = Administration::unchecked_narrow(activator.reference());
        Self { activator, repository, orb, _folder: Arc::clone(folder) }
    }

    fn stop(self) {
        self.activator.stop().unwrap();
        self.orb.shutdown().unwrap();
    }

    /// The registered servers: name, description, whether it may be started, state.
    fn state(&self) -> State {
        let mut servers = self.repository.list().unwrap();
        servers.sort_by(|a, b| a.server.cmp(&b.server));
        servers
            .into_iter()
            .map(|it| format!("{} {} {:?} {:?}", it.server, it.startup.description, it.enabled, it.state))
            .collect()
    }
}

type State = Vec<String>;

fn options(description: &str) -> StartupOptions {
    StartupOptions {
        activation: ActivationMode::Manual,
        description: description.to_owned(),
        ..StartupOptions::default()
    }
}

const CHANGES: usize = 20;

/// Makes a random change. Returns the reason if the store refused it.
fn change(repository: &Administration, random: &mut fastrand::Rng) -> Option<String> {
    let server = format!("server{}", random.usize(..4));
    let description = random.u32(..).to_string();
    let outcome = match random.usize(..6) {
        0 => repository.remove_server(&server).map_err(|error| format!("{error:?}")),
        1 => repository.enable_server(&server, random.bool()).map_err(|error| format!("{error:?}")),
        2 => repository.update_server(&server, &options(&description)).map_err(|error| format!("{error:?}")),
        _ => repository.register_server(&server, &options(&description)).map_err(|error| format!("{error:?}")),
    };
    outcome.err().filter(|reason| reason.contains("the store"))
}

fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap())
}

#[test]
fn acknowledged_registrations_survive_a_loss_of_power_at_every_write() {
    let (folder, seed) = (Arc::new(tempfile::tempdir().unwrap()), seed());
    let (whole, mut random) = (Disk::default(), fastrand::Rng::with_seed(seed));
    let served = Served::start(&whole, &folder);
    let first = whole.changes();
    let mut states = vec![served.state()];
    for _ in 0..CHANGES {
        assert_eq!(change(&served.repository, &mut random), None);
        states.push(served.state());
    }
    served.stop();
    let last = whole.changes();
    assert!(last - first > 30, "{first} {last}");
    let mut losses = fastrand::Rng::with_seed(seed);
    for cut in first..=last {
        let disk = Disk::default();
        let served = Served::start(&disk, &folder);
        disk.cut_power_after(cut);
        let mut random = fastrand::Rng::with_seed(seed);
        let acknowledged = (0..CHANGES).take_while(|_| change(&served.repository, &mut random).is_none()).count();
        assert_eq!(served.state(), states[acknowledged], "seed {seed}: listing goes on");
        served.stop();
        let possible = &states[acknowledged..states.len().min(acknowledged + 2)];
        let served = Served::start(&disk.after_power_loss(&mut losses), &folder);
        let found = served.state();
        assert!(
            possible.contains(&found),
            "seed {seed}, power lost after {cut} writes: {found:?}\nexpected one of {possible:?}"
        );
        served.stop();
    }
}

#[test]
fn a_full_disk_ends_no_service() {
    let (folder, disk) = (Arc::new(tempfile::tempdir().unwrap()), Disk::default());
    let served = Served::start(&disk, &folder);
    served.repository.register_server("before", &options("")).unwrap();
    disk.set_space(Some(disk.used()));
    let large = options(&"x".repeat(4_000));
    let mut registered = 0;
    let failure = loop {
        match served.repository.register_server(&format!("large{registered}"), &large) {
            Ok(()) => registered += 1,
            Err(failure) => break failure,
        }
        assert!(registered < 5_000);
    };
    assert!(matches!(&failure, RegisterServerError::CannotComplete(it) if it.reason.contains("store")), "{failure:?}");
    // Nothing that was acknowledged is lost, and queries go on.
    let mut acknowledged = registered + 1;
    assert_eq!(served.state().len(), acknowledged);
    for attempt in 0..3 {
        // The store that was opened again may have free pages for some more.
        let is_registered = served.repository.register_server(&format!("late{attempt}"), &large).is_ok();
        acknowledged += usize::from(is_registered);
        assert_eq!(served.state().len(), acknowledged);
    }
    disk.set_space(None);
    served.repository.register_server(&format!("large{registered}"), &large).unwrap();
    let state = served.state();
    served.stop();
    let served = Served::start(&disk, &folder);
    assert_eq!(served.state(), state);
    served.stop();
}
