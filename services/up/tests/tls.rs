//! A site with TLS alone: naming service, repository, activator, policy and console in one process.

use std::fs;
use std::sync::Arc;

use spandrel::Orb;
use spandrel::services::cos_naming::NamingContextExt;
use spandrel::services::implementation_repository::Administration;
use spandrel::ssliop::{Plain, Ssliop, pem};
use spandrel::types::IiopProfile;
use spandrel_test_support::{
    certificates::{Authority, Identity},
    wait_until,
};

use crate::executable::name;
use crate::running::{Running, command};

/// A client with this certificate that calls nothing without TLS.
fn client(authority: &Authority, identity: &Identity, references: &[(&str, &str)]) -> Orb {
    let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
        .trust(pem::authorities(authority.pem().as_bytes()).unwrap())
        .identity(
            pem::certificates(identity.chain.as_bytes()).unwrap(),
            pem::private_key(identity.key.as_bytes()).unwrap(),
        )
        .plain(Plain::Never);
    let builder = references.iter().fold(Orb::builder(), |builder, (name, url)| builder.init_ref(*name, *url));
    builder.protocol(ssliop).build().unwrap()
}

#[test]
fn a_site_has_the_files_of_tls_and_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let authority = Authority::new("Site CA");
    let server = authority.issue("127.0.0.1");
    [("cert.pem", &server.chain), ("key.pem", &server.key), ("ca.pem", &authority.pem())]
        .into_iter()
        .for_each(|(name, text)| write(name, text));
    write("policy.toml", "[[rule]]\naction = \"allow\"\nidentity = \"cn:operator\"\n");
    // It does not say that clients need certificates: `ca` does.
    write(
        "spandrel.toml",
        "[sites.plant]\nca = 'ca.pem'\ncert = 'cert.pem'\nkey = 'key.pem'\npolicy = 'policy.toml'\naudit = 'audit.jsonl'\n",
    );
    let (data, config) = (folder.path().join("data"), folder.path().join("spandrel.toml"));
    let words = ["--listen", "ssliop://127.0.0.1:0", "--site", "plant", "--config", config.to_str().unwrap()];
    let running = Running::with(command(&data).args(words), &data);

    let bind = |client: Orb, id: &str| {
        let names = NamingContextExt::unchecked_narrow(&client.string_to_object(&running.url).unwrap());
        names.bind_new_context(&name(id)).map(drop)
    };
    bind(client(&authority, &authority.issue("operator"), &[]), "bank").unwrap();
    bind(client(&authority, &authority.issue("stranger"), &[]), "other").unwrap_err();
    wait_until("the record of the denial", || {
        let audit = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
        audit.lines().any(|line| line.contains("stranger") && line.contains("bind_new_context"))
    });
    assert!(!running.errors().contains("has no policy"), "{}", running.errors());
    // A client without a certificate is not served.
    let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
        .trust(pem::authorities(authority.pem().as_bytes()).unwrap());
    bind(Orb::builder().protocol(ssliop).build().unwrap(), "third").unwrap_err();
}

#[test]
fn all_services_are_reached_by_tls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let authority = Authority::new("Site CA");
    let server = authority.issue("127.0.0.1");
    let (cert, key) = (file("cert.pem", &server.chain), file("key.pem", &server.key));
    let ca = file("ca.pem", &authority.pem());
    let policy =
        file("policy.toml", "[[rule]]\naction = \"allow\"\nidentity = \"cn:operator\"\nissuer = \"Site CA\"\n");
    let data = folder.path().join("data");
    let words = ["--listen", "ssliop://127.0.0.1:0", "--cert", &cert, "--key", &key, "--ca", &ca, "--policy", &policy];
    #[cfg(feature = "console")]
    let words = [&words[..], &["--console", "127.0.0.1:0"]].concat();
    let running = Running::with(command(&data).args(words), &data);

    let operator = authority.issue("operator");
    let orb = client(&authority, &operator, &[]);
    let names = NamingContextExt::unchecked_narrow(&orb.string_to_object(&running.url).unwrap());
    names.bind_new_context(&name("bank")).unwrap();
    let profile = IiopProfile::decode(&names.as_object().ior().profiles[0]).unwrap().unwrap();
    assert_eq!(profile.port, 0, "there is no plain port");
    let port = {
        use spandrel::net::transport::Protocol as _;
        let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()));
        ssliop.addresses(&profile)[0].host_and_port().unwrap().1
    };

    // Every service has a URL with its plain key.
    let url = |key: &str| format!("corbaloc:ssliop:127.0.0.1:{port}/{key}");
    let urls = ["NameService", "InterfaceRepository", "ImplRepoService"].map(|key| (key, url(key)));
    let references: Vec<(&str, &str)> = urls.iter().map(|(name, url)| (*name, &**url)).collect();
    let orb = client(&authority, &operator, &references);
    let names = orb.resolve_initial_references("NameService").unwrap().narrow::<NamingContextExt>().unwrap();
    assert!(names.resolve_str("bank").is_ok());
    let repository = orb.resolve_initial_references("InterfaceRepository").unwrap();
    assert!(repository.is_a("IDL:omg.org/CORBA/Repository:1.0").unwrap());
    let activator = Administration::narrow(&orb.resolve_initial_references("ImplRepoService").unwrap()).unwrap();
    assert!(activator.list().unwrap().is_empty());
    orb.string_to_object(&format!("corbaname:ssliop:127.0.0.1:{port}#bank")).unwrap();

    // The policy decides about the same objects by the certificate.
    let stranger = client(&authority, &authority.issue("stranger"), &references);
    for (name, _) in &references {
        let denied = stranger.resolve_initial_references(name).unwrap().is_a("IDL:Nothing:1.0").unwrap_err();
        assert_eq!(denied.kind(), spandrel::SystemExceptionKind::NoPermission, "{name}: {denied}");
    }
    assert!(!running.errors().contains("has no TLS"), "{}", running.errors());
}
