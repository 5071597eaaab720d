//! A certificate authority, and two certificates issued by it, in the formats of the ORBs. They are made anew
//! for each run and are not secret.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::peer::Peer;
use crate::{packages, workspace};

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
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let authority =
        ["-keyout", "authority.key", "-out", "authority.pem", "-days", "2", "-subj", "/CN=interop authority"];
    let is_one = ["-addext", "basicConstraints=critical,CA:TRUE"];
    openssl(&[&["req", "-x509"], &key[..], &authority, &is_one].concat())?;
    let about =
        "subjectAltName=IP:127.0.0.1,IP:::1\nextendedKeyUsage=serverAuth,clientAuth\nbasicConstraints=CA:FALSE\n";
    fs::write(folder.join("about"), about)?;
    for owner in [CertificateOwner::Server, CertificateOwner::Client] {
        let (pem, key_file, request) = (owner.file("pem"), owner.file("key"), owner.file("csr"));
        let subject = format!("/CN=interop {}", owner.name());
        openssl(&[&["req"], &key[..], &["-keyout", &key_file, "-out", &request, "-subj", &subject]].concat())?;
        let signed = ["-req", "-in", &request, "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"];
        openssl(&[&["x509"], &signed[..], &["-days", "2", "-extfile", "about", "-out", &pem]].concat())?;
        fs::write(owner.file("both"), [fs::read(&pem)?, fs::read(&key_file)?].concat())?;
        if peers.contains(&Peer::JacOrb) {
            let (store, pass) = (owner.file("store"), format!("pass:{PASSWORD}"));
            let own = ["-export", "-in", &pem, "-inkey", &key_file, "-name", "own", "-passout", &pass, "-out", &store];
            openssl(&[&["pkcs12"], &own[..]].concat())?;
            let trusted = ["-importcert", "-noprompt", "-alias", "authority", "-file", "authority.pem"];
            run(Command::new("keytool").args(trusted).args(["-keystore", &store, "-storepass", PASSWORD]))?;
        }
    }
    Ok(())
}

fn openssl(words: &[&str]) -> Result<()> {
    run(Command::new("openssl").args(words))
}

/// Runs a command and shows its output only if it fails.
fn run(command: &mut Command) -> Result<()> {
    let output = command.current_dir(folder()).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {command:?}"))?;
    anyhow::ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
