//! Certificates that are renewed or revoked while ORBs run.

use crate::certificates;

use std::path::PathBuf;

use certificates::{As, Authority, Identity, authority, chain, client, plain, serving, trusting};
use spandrel::{
    Orb, SystemExceptionKind,
    ssliop::{ClientVerification, SetupError, Ssliop, pem},
};
use spandrel_orb_tests::{Server, probe::Target};
use tempfile::TempDir;

/// The files of a server, as options name them.
struct Folder(TempDir);

impl Folder {
    fn with(identity: &Identity) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write(identity);
        folder
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, Identity { chain, key }: &Identity) {
        self.put("chain.pem", chain);
        self.put("key.pem", key);
    }

    /// As it should be done: nobody sees half of it.
    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.file("new"), text).unwrap();
        std::fs::rename(self.file("new"), self.file(name)).unwrap();
    }

    /// A server that looks at its files `reload` says how often, and what it goes by.
    fn serve(&self, reload: &str) -> (Server, Ssliop) {
        let ssliop = plain();
        let mut builder = Orb::builder().protocol(ssliop.clone()).listen("ssliop://127.0.0.1:0".parse().unwrap());
        for (option, file) in [("-ORBSSLCertificate", "chain.pem"), ("-ORBSSLKey", "key.pem")] {
            builder = builder.option(option, self.file(file).to_str().unwrap()).unwrap();
        }
        (Server::with(builder.option("-ORBSSLReload", reload).unwrap()), ssliop)
    }
}

fn trusts(server: &Server, authority: &Authority) -> bool {
    // Without narrowing, which would call.
    let orb = Orb::builder().protocol(trusting(authority)).build().unwrap();
    match Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap()).ping() {
        Ok(()) => true,
        Err(refused) => {
            assert_eq!(refused.kind(), SystemExceptionKind::Transient);
            assert!(chain(&refused).contains("UnknownIssuer"), "{}", chain(&refused));
            false
        }
    }
}

#[test]
fn a_server_shows_what_is_in_its_files_now() {
    let newer = Authority::new("a newer authority");
    let folder = Folder::with(&authority().issue("127.0.0.1"));
    let (server, _) = folder.serve("0");
    let target = server.client_with(client());
    target.ping().unwrap();
    assert!(!trusts(&server, &newer));
    folder.write(&newer.issue("127.0.0.1"));
    assert!(trusts(&server, &newer));
    assert!(!trusts(&server, authority()));
    target.ping().expect("connections that are open stay");
}

#[test]
fn what_cannot_be_used_leaves_everything_as_it_was() {
    let folder = Folder::with(&authority().issue("127.0.0.1"));
    let (server, ssliop) = folder.serve("0");
    let newer = Authority::new("a newer authority");
    let renewed = newer.issue("127.0.0.1");
    folder.put("chain.pem", &renewed.chain);
    assert!(trusts(&server, authority()), "the key of the new certificate is not there yet");
    assert!(matches!(ssliop.reload(), Err(SetupError::Config(_))));
    folder.put("key.pem", "no key");
    assert!(trusts(&server, authority()));
    std::fs::remove_file(folder.file("key.pem")).unwrap();
    assert!(trusts(&server, authority()));
    let gone = ssliop.reload().unwrap_err();
    assert!(gone.to_string().contains("key.pem"), "{gone}");
    folder.put("key.pem", &renewed.key);
    assert!(trusts(&server, &newer));
    ssliop.reload().unwrap();
    assert!(trusts(&server, &newer));
}

#[test]
fn files_are_read_when_that_is_asked_for() {
    let folder = Folder::with(&authority().issue("127.0.0.1"));
    let (server, ssliop) = folder.serve("never");
    let newer = Authority::new("a newer authority");
    folder.write(&newer.issue("127.0.0.1"));
    assert!(trusts(&server, authority()));
    ssliop.reload().unwrap();
    assert!(trusts(&server, &newer));
}

#[test]
fn a_program_renews_what_has_no_files() {
    let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
    let server = Server::with(serving(ssliop.clone()));
    let newer = Authority::new("a newer authority");
    let _ = ssliop.clone().identity_of(&newer.issue("127.0.0.1"));
    assert!(trusts(&server, &newer));

    // Whom a client trusts, too.
    let trusted = trusting(authority());
    let orb = Orb::builder().protocol(trusted.clone()).build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap());
    assert!(chain(&target.ping().unwrap_err()).contains("UnknownIssuer"));
    let _ = trusted.trust(pem::authorities(newer.pem().as_bytes()).unwrap());
    target.ping().unwrap();

    // A key that does not belong to its certificate is not used.
    let (one, other) = (authority().issue("127.0.0.1"), authority().issue("127.0.0.1"));
    let _ = ssliop.identity_of(&Identity { chain: one.chain, key: other.key });
    assert!(trusts(&server, &newer));
}

#[test]
fn who_is_revoked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("revoked.pem");
    std::fs::write(&list, authority().revoke("somebody.example")).unwrap();
    let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
    let builder = serving(ssliop.verify_clients(ClientVerification::Required));
    let options = [("-ORBSSLRevoked", list.to_str().unwrap()), ("-ORBSSLReload", "0")];
    let builder = options.iter().fold(builder, |builder, (option, value)| builder.option(option, value).unwrap());
    let server = Server::with(builder);
    let teller = || {
        let known = trusting(authority()).identity_of(&authority().issue("teller.example"));
        let orb = Orb::builder().protocol(known).build().unwrap();
        Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap()).ping()
    };
    teller().unwrap();
    std::fs::write(&list, authority().revoke("teller.example")).unwrap();
    let refused = teller().unwrap_err();
    assert!(chain(&refused).contains("CertificateRevoked"), "{}", chain(&refused));

    // A server that is revoked is not trusted either.
    let lists = pem::revocation_lists(authority().revoke("127.0.0.1").as_bytes()).unwrap();
    let wary = trusting(authority()).identity_of(&authority().issue("other.example")).revoked(lists);
    let orb = Orb::builder().protocol(wary).build().unwrap();
    let refused = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap()).ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient);
    assert!(chain(&refused).contains("Revoked"), "{}", chain(&refused));
}
