//! The stores of the services: those of another service, damage, and files that cannot be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use spandrel::dynamic::describe;
use spandrel::services::implementation_repository::{ActivationMode, Administration, StartupOptions};
use spandrel::{ObjectRef, Orb};
use spandrel_store::{Service, StoreAdministration};

use crate::executable::{ANY_PORT, name, root};
use crate::running::{Running, command};

const STORES: [&str; 3] = ["naming", "repository", "activator"];

/// How a process ended.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Orderly,
    Killed,
}

fn store(folder: &Path, service: &str) -> PathBuf {
    folder.join(format!("{service}.redb"))
}

/// Stores with eight bindings, four definitions and three servers.
fn filled_stores(data: &Path, ending: Ending) {
    let orb = Orb::builder().build().unwrap();
    let mut running = Running::start(data, &ANY_PORT);
    fill(&running, &orb);
    if matches!(ending, Ending::Orderly) {
        running.signal("-TERM");
        assert_eq!(running.process.wait().unwrap().code(), Some(0), "{}", running.errors());
    }
}

/// Makes eight bindings, four definitions and three servers.
fn fill(running: &Running, orb: &Orb) {
    let names = root(orb, &running.url);
    (0..8).for_each(|nth| drop(names.bind_new_context(&name(&format!("name{nth}"))).unwrap()));
    let repository = served(running, orb, "InterfaceRepository");
    let definitions = describe("module M { struct S { long x; }; exception E {}; typedef long T; };").unwrap();
    spandrel::services::repository::fill(&repository, &definitions).unwrap();
    let activator = served(running, orb, "ImplRepoService");
    let options = StartupOptions { activation: ActivationMode::Manual, ..StartupOptions::default() };
    for nth in 0..3 {
        Administration::unchecked_narrow(&activator).register_server(&format!("server{nth}"), &options).unwrap();
    }
}

pub(crate) fn served(running: &Running, orb: &Orb, key: &str) -> ObjectRef {
    let address = running.url.trim_end_matches("NameService");
    orb.string_to_object(&format!("{address}{key}")).unwrap()
}

/// The number of entries of a store.
fn entries(folder: &Path, service: &str) -> Result<u64, String> {
    let file = store(folder, service);
    match service {
        "naming" => {
            let store = spandrel_naming::RedbStore::open_read_only(&file).map_err(|error| error.to_string());
            store.and_then(|mut store| store.check().map_err(|error| error.to_string()))
        }
        "repository" => {
            spandrel_repository::check_store(&file).map(|count| count as u64).map_err(|error| error.to_string())
        }
        _ => spandrel_activator::check_store(&file).map(|count| count as u64).map_err(|error| error.to_string()),
    }
}

#[test]
fn the_store_of_another_service_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for ending in [Ending::Orderly, Ending::Killed] {
        let data = folder.path().join(format!("{ending:?}"));
        filled_stores(&data, ending);
        for (from, to) in STORES.iter().flat_map(|from| STORES.map(|to| (*from, to))).filter(|(from, to)| from != to) {
            let other = folder.path().join(format!("{from}-{to}-{ending:?}"));
            fs::create_dir(&other).unwrap();
            fs::copy(store(&data, from), store(&other, to)).unwrap();
            let output = command(&other).args(ANY_PORT).env("SPANDREL_LOG", "error").stdout(Stdio::null()).output();
            let output = output.unwrap();
            let errors = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(4), "{from} as {to}: {errors}");
            let expected = match from {
                "naming" => "it is the store of the naming service",
                "repository" => "it is the store of the interface repository",
                _ => "it is the store of the activator",
            };
            assert!(errors.contains(expected) && errors.contains(&format!("{to}.redb")), "{from} as {to}: {errors}");
            assert_eq!(errors.lines().count(), 1, "{from} as {to}: {errors}");
        }
    }
}

#[test]
fn damage_after_any_end_is_refused_or_concerns_nothing_in_use() {
    let folder = tempfile::tempdir().unwrap();
    for ending in [Ending::Orderly, Ending::Killed] {
        let data = folder.path().join(format!("{ending:?}"));
        filled_stores(&data, ending);
        for (service, least) in STORES.into_iter().zip([8, 4, 3]) {
            let count = entries(&data, service).unwrap();
            assert!(count >= least, "{service}: {count}");
            let file = store(&data, service);
            let sound = fs::read(&file).unwrap();
            let mut refused = 0;
            // Octets of the header of the database, those of pages, and whole parts of the file.
            let stride = (sound.len() / 200).max(1_021) | 1;
            let octets = (0..320).step_by(7).chain((320..sound.len()).step_by(stride)).map(|place| (place, 1));
            let pages = (0..sound.len() / 4_096).step_by(sound.len() / (4_096 * 50) + 1);
            for (place, length) in octets.chain(pages.map(|page| (page * 4_096, 4_096))) {
                let mut damaged = sound.clone();
                damaged[place..place + length].iter_mut().for_each(|octet| *octet ^= 0xff);
                fs::write(&file, damaged).unwrap();
                match entries(&data, service) {
                    Ok(found) => assert_eq!(found, count, "{service}, {length} octets at {place}, {ending:?}"),
                    Err(_) => refused += 1,
                }
            }
            assert!(refused > 10, "{service}: {refused}");
            fs::write(&file, sound).unwrap();
            assert_eq!(entries(&data, service), Ok(count));
        }
    }
}

#[test]
fn a_check_needs_no_write_access_and_writes_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    for ending in [Ending::Orderly, Ending::Killed] {
        let data = folder.path().join(format!("{ending:?}"));
        filled_stores(&data, ending);
        fs::set_permissions(&data, fs::Permissions::from_mode(0o500)).unwrap();
        let files = || -> Vec<(PathBuf, Vec<u8>)> {
            let paths = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
            files.sort_unstable();
            files
        };
        files().iter().for_each(|(path, _)| fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap());
        let before = files();
        assert_eq!(entries(&data, "naming"), Ok(8));
        assert!(entries(&data, "repository").is_ok() && entries(&data, "activator") == Ok(3));
        assert!(files() == before, "{ending:?}");
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

/// Runs the services to their end with a store in the place of theirs; returns their errors, in one line.
fn refused(data: &Path, service: &str, contents: &[u8]) -> String {
    fs::create_dir_all(data).unwrap();
    fs::write(store(data, service), contents).unwrap();
    let output = command(data).args(ANY_PORT).env("SPANDREL_LOG", "error").stdout(Stdio::null()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{service}: {errors}");
    assert!(errors.contains(&format!("{service}.redb: ")) && errors.lines().count() == 1, "{service}: {errors}");
    errors
}

#[test]
fn backups_of_the_running_services_take_the_places_of_their_stores() {
    let folder = tempfile::tempdir().unwrap();
    let [data, restored] = ["data", "restored"].map(|name| folder.path().join(name));
    let orb = Orb::builder().build().unwrap();
    let running = Running::start(&data, &ANY_PORT);
    fill(&running, &orb);
    let services = [Service::Naming, Service::Repository, Service::Activator];
    fs::create_dir(&restored).unwrap();
    for service in services {
        let object = served(&running, &orb, service.administration_key());
        let administration = StoreAdministration::unchecked_narrow(&object);
        let file = data.join("backups").join(service.name()).join("monday");
        assert_eq!(administration.back_up("monday").unwrap(), file.display().to_string());
        let error = administration.back_up("monday").unwrap_err();
        assert!(format!("{error:?}").contains("exists"), "{error:?}");
        for name in ["", ".", "../naming", "a/b", "a\\b", "a\u{1b}", &"a".repeat(129)] {
            let error = administration.back_up(name).unwrap_err();
            assert!(format!("{error:?}").contains("invalid name"), "{error:?}");
        }
        let copies = fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(copies, 1);
        fs::copy(&file, store(&restored, service.name())).unwrap();
    }
    root(&orb, &running.url).bind_new_context(&name("later")).unwrap();
    drop(running); // killed

    let counts = services.map(|service| entries(&data, service.name()).unwrap());
    let copied = services.map(|service| entries(&restored, service.name()).unwrap());
    assert_eq!(copied, [counts[0] - 1, counts[1], counts[2]]);
    // In the former place, beside the redo log of the former store, and in another one.
    for service in services {
        fs::copy(store(&restored, service.name()), store(&data, service.name())).unwrap();
    }
    for data in [data, restored] {
        let running = Running::start(&data, &ANY_PORT);
        let names = root(&orb, &running.url);
        assert!(names.resolve_str("name7").is_ok() && names.resolve_str("later").is_err());
        let repository = served(&running, &orb, "InterfaceRepository");
        assert!(spandrel::services::repository::print(&repository, None).unwrap().contains("struct S"));
        let activator = served(&running, &orb, "ImplRepoService");
        assert!(Administration::unchecked_narrow(&activator).find("server2").is_ok());
    }
}

#[test]
fn the_interfaces_of_the_services_are_in_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let orb = Orb::builder().build().unwrap();
    for _ in 0..2 {
        let running = Running::start(&data, &ANY_PORT);
        let repository = served(&running, &orb, "InterfaceRepository");
        for id in ["CosNaming/NamingContextExt", "Spandrel/StoreAdministration"] {
            let prefix = if id.starts_with("Cos") { "omg.org/" } else { "" };
            let id = format!("IDL:{prefix}{id}:1.0");
            let described = spandrel::services::repository::interface_by_id(&repository, &id).unwrap();
            assert_eq!(described.id(), id);
        }
        // The object itself leads to its definition.
        let names = orb.string_to_object(&running.url).unwrap();
        let described = spandrel::services::repository::interface_of(&orb, &names).unwrap();
        assert!(described.operations().iter().any(|operation| operation.name == "resolve_str"));
        assert!(!running.errors().contains("cannot be entered"), "{}", running.errors());
    }
}

#[test]
fn backups_that_were_cut_or_changed_or_are_of_another_service_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let orb = Orb::builder().build().unwrap();
    let running = Running::start(&data, &ANY_PORT);
    fill(&running, &orb);
    let backups = [Service::Naming, Service::Repository, Service::Activator].map(|service| {
        let object = served(&running, &orb, service.administration_key());
        let file = StoreAdministration::unchecked_narrow(&object).back_up("monday").unwrap();
        (service, fs::read(file).unwrap())
    });
    drop(running);
    for (service, sound) in &backups {
        let data = |case: &str| folder.path().join(format!("{}-{case}", service.name()));
        refused(&data("cut"), service.name(), &sound[..sound.len() / 2]);
        // All octets but those of the database's own header.
        let changed: Vec<u8> = sound.iter().map(|octet| octet ^ 0x40).collect();
        refused(&data("changed"), service.name(), &[&sound[..512], &changed[512..]].concat());
        for (other, contents) in &backups {
            if other != service {
                let errors = refused(&data(other.name()), service.name(), contents);
                assert!(errors.contains(&format!("it is the store of {other}")), "{errors}");
            }
        }
    }
}
