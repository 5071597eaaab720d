//! Policies over images: rules name operations and the collections of images as paths.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use spandrel::Orb;
use spandrel::options::OrbArgs;
use spandrel_imaging::imaging::Store;
use spandrel_test_support::certificates::Authority;

use crate::executable::Process;
use crate::support::{elements, grey, receive, region, upload_to};

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
fn a_policy_decides_by_identity_operation_and_collection() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("Hospital CA");
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, POLICY).unwrap();
    let server = authority.write_options(folder.path(), "127.0.0.1");
    let mut words = vec!["--listen", "ssliop://127.0.0.1:0", "--policy", policy.to_str().unwrap()];
    words.extend(server.iter().map(String::as_str));
    let process = Process::with(&folder.path().join("data"), &words);
    let clients = ["operator", "physician", "stranger"].map(|name| client(&authority, folder.path(), name));
    let [operator, physician, stranger] =
        clients.each_ref().map(|client| -> Store { client.string_to_object(&process.url).unwrap().unchecked_narrow() });
    let (pixels, file) = grey(40, 30);
    let [scan, secret] = ["radiology/ct", "radiology/staff"]
        .map(|collection| upload_to(&operator, collection, &[("Modality", "CT")], &file).unwrap());

    // The octets of a party with TLS never go in clear.
    let offer = physician.download(scan).unwrap();
    assert!(offer.at.is_empty(), "{:?}", offer.at);
    assert!(receive(&offer) == file);
    assert!(receive(&physician.view(scan, 0, &region(0, 0, 40, 30)).unwrap()) == pixels);
    assert_eq!(physician.describe(scan).unwrap().collection, "radiology/ct");
    assert_eq!(physician.find("radiology/ct", &elements(&[]), 0, 10).unwrap().images[..], [scan]);
    require_denied(physician.remove(scan));
    require_denied(physician.upload("radiology/ct", &elements(&[]), 10));
    require_denied(physician.describe(secret));
    require_denied(physician.view(secret, 0, &region(0, 0, 1, 1)));
    require_denied(physician.download(secret));
    require_denied(physician.find("radiology/staff", &elements(&[]), 0, 10));
    require_denied(physician.find("surgery", &elements(&[]), 0, 10));
    // A query over the collections above returns none that is denied.
    assert_eq!(physician.find("radiology", &elements(&[]), 0, 10).unwrap().images[..], [scan]);
    // A number without an image shows no more than one of a denied image.
    require_denied(physician.describe(secret + 100));
    require_denied(stranger.describe(scan));
    assert_eq!(operator.find("radiology", &elements(&[]), 0, 10).unwrap().images[..], [scan, secret]);
    operator.remove(secret).unwrap();
    for client in clients {
        client.shutdown().unwrap();
    }
}
