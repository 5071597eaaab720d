//! A certificate authority made by `openssl`. Its certificates are made anew for each run and are not secret.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The options of a new key.
const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/// An authority, with `authority.pem` and `authority.key` in its folder.
#[derive(Debug)]
pub(crate) struct Authority {
    folder: PathBuf,
}

impl Authority {
    /// Makes an authority with this common name, and its folder.
    pub(crate) fn create(folder: &Path, name: &str) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let authority = Self { folder: folder.to_owned() };
        let subject = format!("/CN={name}");
        let output = ["-keyout", "authority.key", "-out", "authority.pem", "-days", "2", "-subj", &subject];
        let is_authority = ["-addext", "basicConstraints=critical,CA:TRUE"];
        authority.openssl(&[&["req", "-x509"], &KEY[..], &output, &is_authority].concat())?;
        Ok(authority)
    }

    /// The authority's certificate.
    pub(crate) fn certificate(&self) -> String {
        self.file("authority.pem")
    }

    /// Issues a certificate for this common name and these addresses: `FILE.pem`, and its key `FILE.key`.
    pub(crate) fn issue(&self, file: &str, name: &str, addresses: &[&str]) -> Result<()> {
        let addresses: Vec<String> = addresses.iter().map(|address| format!("IP:{address}")).collect();
        let names = match addresses.is_empty() {
            true => String::new(),
            false => format!("subjectAltName={}\n", addresses.join(",")),
        };
        let about = format!("{names}extendedKeyUsage=serverAuth,clientAuth\nbasicConstraints=CA:FALSE\n");
        fs::write(self.folder.join("about"), about)?;
        let [certificate, key, request] = ["pem", "key", "csr"].map(|kind| format!("{file}.{kind}"));
        let subject = format!("/CN={name}");
        self.openssl(&[&["req"], &KEY[..], &["-keyout", &key, "-out", &request, "-subj", &subject]].concat())?;
        let signed = ["-req", "-in", &request, "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"];
        self.openssl(&[&["x509"], &signed[..], &["-days", "2", "-extfile", "about", "-out", &certificate]].concat())
    }

    /// The path of a file of the authority's folder.
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Runs `openssl` in the folder, and shows its output only if it fails.
    pub(crate) fn openssl(&self, words: &[&str]) -> Result<()> {
        self.run(Command::new("openssl").args(words))
    }

    /// Runs a command in the folder, and shows its output only if it fails.
    pub(crate) fn run(&self, command: &mut Command) -> Result<()> {
        let output = command.current_dir(&self.folder).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot start {command:?}"))?;
        ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_issued_for_names_and_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::create(&folder.path().join("certificates"), "authority").unwrap();
        authority.issue("machine", "a machine", &["10.0.0.1", "::1"]).unwrap();
        authority.issue("supervisor", "supervisor", &[]).unwrap();
        let verify = |words: &[&str]| authority.openssl(&[&["verify", "-CAfile", "authority.pem"], words].concat());
        verify(&["-verify_ip", "10.0.0.1", "-purpose", "sslserver", "machine.pem"]).unwrap();
        verify(&["-purpose", "sslclient", "supervisor.pem"]).unwrap();
        assert!(verify(&["-verify_ip", "10.0.0.2", "machine.pem"]).is_err());
        assert!(verify(&["-verify_ip", "10.0.0.1", "supervisor.pem"]).is_err());
        assert!(Path::new(&authority.file("machine.key")).exists() && Path::new(&authority.certificate()).exists());
    }
}
