//! A certificate authority, and two certificates issued by it, in the formats of the ORBs. They are made anew
//! for each run and are not secret.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use xtask::workspace;

use crate::authority::Authority;
use crate::packages;
use crate::peer::Peer;

/// The password of the files that must have one.
pub(super) const PASSWORD: &str = "interop";

/// The owner of a certificate.
#[derive(Clone, Copy, Debug)]
pub(super) enum CertificateOwner {
    Server,
    Client,
}

impl CertificateOwner {
    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }

    /// A file of this owner: `pem` has the certificate, `key` its key, `both` has both, `store` is a Java
    /// keystore.
    pub(super) fn file(self, kind: &str) -> String {
        folder().join(format!("{}.{kind}", self.name())).display().to_string()
    }
}

/// The authority's certificate.
pub(super) fn authority() -> String {
    folder().join("authority.pem").display().to_string()
}

fn folder() -> PathBuf {
    workspace::target().join("interop/certificates")
}

/// Makes all of them; the keystore for Java only where Java is available.
pub(super) fn make(peers: &[Peer]) -> Result<()> {
    packages::require(packages::CERTIFICATES)?;
    let authority = Authority::create(&folder(), "interop authority")?;
    for owner in [CertificateOwner::Server, CertificateOwner::Client] {
        authority.issue(owner.name(), &format!("interop {}", owner.name()), &["127.0.0.1", "::1"])?;
        let (pem, key_file) = (owner.file("pem"), owner.file("key"));
        fs::write(owner.file("both"), [fs::read(&pem)?, fs::read(&key_file)?].concat())?;
        if peers.contains(&Peer::JacOrb) {
            let (store, pass) = (owner.file("store"), format!("pass:{PASSWORD}"));
            let own = ["-export", "-in", &pem, "-inkey", &key_file, "-name", "own", "-passout", &pass, "-out", &store];
            authority.openssl(&[&["pkcs12"], &own[..]].concat())?;
            let trusted = ["-importcert", "-noprompt", "-alias", "authority", "-file", "authority.pem"];
            let store = ["-keystore", &store, "-storepass", PASSWORD];
            authority.run(Command::new("keytool").args(trusted).args(store))?;
        }
    }
    Ok(())
}
