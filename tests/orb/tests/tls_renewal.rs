//! Certificates that are renewed or revoked while ORBs run.

use crate::certificates;

use std::path::PathBuf;

use certificates::{Authority, Identity, WithIdentity, authority, chain, client, plain, serving, trusting};
use spandrel::{
    Orb, SystemExceptionKind,
    ssliop::{ClientVerification, SetupError, Ssliop, pem},
};
use spandrel_orb_tests::{Server, probe::Target};
use tempfile::TempDir;

/// The certificate files of a server.
struct CertificateFiles(TempDir);

impl CertificateFiles {
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

    /// Replaces a file atomically.
    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.file("new"), text).unwrap();
        std::fs::rename(self.file("new"), self.file(name)).unwrap();
    }

    /// A server with these files and this value of `-ORBSSLReload`, and its TLS configuration.
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
    // Without narrowing, which would make a call.
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
fn a_server_presents_the_renewed_certificate_of_its_files() {
    let newer = Authority::new("a newer authority");
    let folder = CertificateFiles::with(&authority().issue("127.0.0.1"));
    let (server, _) = folder.serve("0");
    let target = server.client_with(client());
    target.ping().unwrap();
    assert!(!trusts(&server, &newer));
    folder.write(&newer.issue("127.0.0.1"));
    assert!(trusts(&server, &newer));
    assert!(!trusts(&server, authority()));
    target.ping().expect("open connections are not affected");
}

#[test]
fn unusable_files_leave_the_certificate_unchanged() {
    let folder = CertificateFiles::with(&authority().issue("127.0.0.1"));
    let (server, ssliop) = folder.serve("0");
    let newer = Authority::new("a newer authority");
    let renewed = newer.issue("127.0.0.1");
    folder.put("chain.pem", &renewed.chain);
    assert!(trusts(&server, authority()), "the key of the new certificate is missing");
    assert!(matches!(ssliop.reload(), Err(SetupError::Config(_))));
    folder.put("key.pem", "no key");
    assert!(trusts(&server, authority()));
    std::fs::remove_file(folder.file("key.pem")).unwrap();
    assert!(trusts(&server, authority()));
    let missing_key = ssliop.reload().unwrap_err();
    assert!(missing_key.to_string().contains("key.pem"), "{missing_key}");
    folder.put("key.pem", &renewed.key);
    assert!(trusts(&server, &newer));
    ssliop.reload().unwrap();
    assert!(trusts(&server, &newer));
}

#[test]
fn reload_reads_the_files_when_automatic_reloading_is_off() {
    let folder = CertificateFiles::with(&authority().issue("127.0.0.1"));
    let (server, ssliop) = folder.serve("never");
    let newer = Authority::new("a newer authority");
    folder.write(&newer.issue("127.0.0.1"));
    assert!(trusts(&server, authority()));
    ssliop.reload().unwrap();
    assert!(trusts(&server, &newer));
}

#[test]
fn a_program_can_replace_certificates_and_authorities_without_files() {
    let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
    let server = Server::with(serving(ssliop.clone()));
    let newer = Authority::new("a newer authority");
    let _ = ssliop.clone().identity_of(&newer.issue("127.0.0.1"));
    assert!(trusts(&server, &newer));

    // The trusted authorities of a client can be replaced, too.
    let trusted = trusting(authority());
    let orb = Orb::builder().protocol(trusted.clone()).build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap());
    assert!(chain(&target.ping().unwrap_err()).contains("UnknownIssuer"));
    let _ = trusted.trust(pem::authorities(newer.pem().as_bytes()).unwrap());
    target.ping().unwrap();

    // A key that does not match its certificate is refused.
    let (one, other) = (authority().issue("127.0.0.1"), authority().issue("127.0.0.1"));
    let _ = ssliop.identity_of(&Identity { chain: one.chain, key: other.key });
    assert!(trusts(&server, &newer));
}

#[test]
fn a_revoked_certificate_is_refused() {
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

    // A client refuses a revoked server certificate, too.
    let lists = pem::revocation_lists(authority().revoke("127.0.0.1").as_bytes()).unwrap();
    let wary = trusting(authority()).identity_of(&authority().issue("other.example")).revoked(lists);
    let orb = Orb::builder().protocol(wary).build().unwrap();
    let refused = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap()).ping().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Transient);
    assert!(chain(&refused).contains("Revoked"), "{}", chain(&refused));
}
