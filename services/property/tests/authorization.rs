//! Policies over property sets: they name identities, operations and adapters, and no sets or properties.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use spandrel::options::OrbArgs;
use spandrel::services::cos_property_service::{PropertySet, PropertySetFactory};
use spandrel::{ObjectRef, Orb};
use spandrel_test_support::certificates::Authority;

use crate::executable::Process;
use crate::support::long;

/// The first rule denies nothing, and the last one permits nothing: sets and properties have no paths.
const POLICY: &str = include_str!("policy.toml");

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    orb: OrbArgs,
}

/// A client with this name in its certificate.
fn client(authority: &Authority, folder: &Path, name: &str) -> Orb {
    let words = [vec!["client".to_owned()], authority.write_options(folder, name)].concat();
    spandrel_daemon::client_orb(&Options::parse_from(words).orb, Duration::from_secs(60)).unwrap()
}

/// Requires that a call has raised NO_PERMISSION.
fn require_denied<T: Debug, E: Debug>(outcome: Result<T, E>) {
    let text = format!("{:?}", outcome.unwrap_err());
    assert!(text.contains("NO_PERMISSION"), "{text}");
}

#[test]
fn a_policy_denies_by_identity_and_operation_and_paths_name_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("Office CA");
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, POLICY).unwrap();
    let server = authority.write_options(folder.path(), "127.0.0.1");
    let mut words = vec!["--listen", "ssliop://127.0.0.1:0", "--policy", policy.to_str().unwrap()];
    words.extend(server.iter().map(String::as_str));
    let process = Process::with(&folder.path().join("data"), &words);
    assert!(process.url.starts_with("IOR:"), "{}", process.url);
    let clients = ["operator", "reader", "stranger"].map(|name| client(&authority, folder.path(), name));
    let factories = clients
        .each_ref()
        .map(|client| -> PropertySetFactory { client.string_to_object(&process.url).unwrap().unchecked_narrow() });
    let created: PropertySet = factories[0].create_propertyset().unwrap().unwrap();
    created.define_property("ppm", &long(35)).unwrap();
    created.define_property("queue", &long(1)).unwrap();
    for factory in &factories[1..] {
        require_denied(factory.create_propertyset());
    }

    let text = ObjectRef::from(created.clone()).to_string();
    let sets =
        clients.each_ref().map(|client| -> PropertySet { client.string_to_object(&text).unwrap().unchecked_narrow() });
    let [_, reader, stranger] = &sets;
    assert_eq!(reader.get_property_value("ppm").unwrap(), long(35));
    // The adapter of iterators is below that of sets.
    let rest = reader.get_all_property_names(0).unwrap().1.unwrap();
    assert_eq!(rest.next_n(10).unwrap().1, ["ppm", "queue"]);
    require_denied(rest.reset());
    rest.destroy().unwrap();
    require_denied(reader.define_property("ppm", &long(1)));
    require_denied(reader.delete_all_properties());
    require_denied(stranger.get_property_value("ppm"));
    assert_eq!(created.get_property_value("ppm").unwrap(), long(35));
    assert_eq!(created.get_number_of_properties().unwrap(), 2);
    for client in clients {
        client.shutdown().unwrap();
    }
}
