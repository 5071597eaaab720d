//! Policies over a trader: they name identities, operations, keys and adapters, and no types or offers.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use spandrel::Orb;
use spandrel::options::OrbArgs;
use spandrel::services::cos_trading::{Admin, Lookup, Register};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel_test_support::certificates::Authority;

use crate::executable::Process;
use crate::support::{all, long, property};

/// The first rule denies nothing, and the last one permits nothing: offers and their types have no paths.
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
fn a_policy_denies_by_identity_operation_and_key_and_paths_name_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("Office CA");
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, POLICY).unwrap();
    let server = authority.write_options(folder.path(), "127.0.0.1");
    let mut words = vec!["--listen", "ssliop://127.0.0.1:0", "--policy", policy.to_str().unwrap()];
    words.extend(server.iter().map(String::as_str));
    let process = Process::with(&folder.path().join("data"), &words);
    assert!(process.url.starts_with("IOR:"), "{}", process.url);
    let clients =
        ["operator", "importer", "administrator", "stranger"].map(|name| client(&authority, folder.path(), name));
    let lookups = clients
        .each_ref()
        .map(|client| -> Lookup { client.string_to_object(&process.url).unwrap().unchecked_narrow() });
    let [operator, importer, administrator, stranger] = &lookups;

    let types: ServiceTypeRepository = operator.type_repos().unwrap().unwrap().unchecked_narrow();
    types.add_type("T", "", &[], &[]).unwrap();
    let register: Register = operator.register_if().unwrap().unwrap();
    let id = register.export(Some(operator), "T", &[property("n", long(1))]).unwrap();
    register.export(Some(operator), "T", &[property("n", long(2))]).unwrap();

    let (first, rest, _) = importer.query("T", "", "min n", &[], &all(), 1).unwrap();
    let rest = rest.unwrap();
    assert_eq!((first.len(), rest.max_left().unwrap(), rest.next_n(5).unwrap().1.len()), (1, 1, 1));
    rest.destroy().unwrap();
    let register = importer.register_if().unwrap().unwrap();
    require_denied(register.export(Some(importer), "T", &[]));
    require_denied(register.withdraw(&id));
    require_denied(register.withdraw_using_constraint("T", ""));
    let admin: Admin = importer.admin_if().unwrap().unwrap();
    require_denied(admin.set_max_list(1));
    require_denied(importer.link_if().unwrap().unwrap().list_links());
    let types: ServiceTypeRepository = importer.type_repos().unwrap().unwrap().unchecked_narrow();
    require_denied(types.remove_type("T"));

    // The administrator has no reference from `Lookup`, which it may not call.
    require_denied(administrator.admin_if());
    let text = spandrel::ObjectRef::from(admin).to_string();
    let admin: Admin = clients[2].string_to_object(&text).unwrap().unchecked_narrow();
    assert_eq!(admin.list_offers(10).unwrap().0.len(), 2);
    admin.set_max_list(7).unwrap();
    require_denied(stranger.query("T", "", "", &[], &all(), 1));
    assert_eq!(importer.query("T", "", "", &[], &all(), 10).unwrap().0.len(), 2);
    for client in clients {
        client.shutdown().unwrap();
    }
}
