//! Certificate files, and the detection of changes.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use spandrel_tls::pem;

use crate::validity::warn_of_expiry;

/// The error of a file that cannot be read, or has unexpected content.
#[derive(thiserror::Error)]
#[error("cannot read {}", .path.display())]
pub struct FileError {
    path: PathBuf,
    #[source]
    cause: pem::PemError,
}
spandrel_error::debug_as_report!(FileError);

/// The credentials of an ORB, and its trusted authorities.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: Option<PrivateKeyDer<'static>>,
    pub(crate) authorities: RootCertStore,
    pub(crate) revoked: Vec<CertificateRevocationListDer<'static>>,
}

impl Credentials {
    pub(crate) fn none() -> Self {
        Self { chain: Vec::new(), key: None, authorities: RootCertStore::empty(), revoked: Vec::new() }
    }
}

impl Clone for Credentials {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.as_ref().map(PrivateKeyDer::clone_key),
            authorities: self.authorities.clone(),
            revoked: self.revoked.clone(),
        }
    }
}

/// The kind of credentials in a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CredentialKind {
    Chain,
    Key,
    Authorities,
    Revoked,
}

#[derive(Clone, Debug)]
struct File {
    kind: CredentialKind,
    path: PathBuf,
    /// Hash of the content when it was last checked; `None` if that failed. Modification times would not
    /// distinguish two changes at the same moment.
    hash: Option<u64>,
}

/// The files of the credentials, one of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(Vec<File>);

impl Files {
    /// Reads a file, and remembers it if it can be read again, unlike a pipe.
    pub(crate) fn read(
        &mut self,
        kind: CredentialKind,
        path: &Path,
        credentials: &mut Credentials,
    ) -> Result<(), FileError> {
        // Hashed before it is read, so that a concurrent write counts as a change.
        let is_file = path.metadata().is_ok_and(|data| data.is_file());
        let file = File { kind, path: path.to_owned(), hash: if is_file { hash(path) } else { None } };
        file.read(credentials)?;
        self.forget(kind);
        if is_file {
            self.0.push(file);
        }
        Ok(())
    }

    /// Forgets the file of credentials that now have another source.
    pub(crate) fn forget(&mut self, kind: CredentialKind) {
        self.0.retain(|file| file.kind != kind);
    }

    /// Reads all files again.
    pub(crate) fn read_again(&mut self, credentials: &mut Credentials) -> Result<(), FileError> {
        self.have_changed();
        self.0.iter().try_for_each(|file| file.read(credentials))
    }

    /// Whether a file has changed since the last check or read.
    pub(crate) fn have_changed(&mut self) -> bool {
        let mut changed = false;
        for file in &mut self.0 {
            let hash = hash(&file.path);
            changed |= hash != file.hash;
            file.hash = hash;
        }
        changed
    }
}

impl File {
    fn read(&self, credentials: &mut Credentials) -> Result<(), FileError> {
        let path = self.path.as_path();
        let read = match self.kind {
            CredentialKind::Chain => pem::certificates(path).map(|chain| {
                warn_of_expiry(&chain, &path.display().to_string());
                credentials.chain = chain;
            }),
            CredentialKind::Key => pem::private_key(path).map(|key| {
                warn_if_readable(path);
                credentials.key = Some(key);
            }),
            CredentialKind::Authorities => {
                pem::authorities(path).map(|authorities| credentials.authorities = authorities)
            }
            CredentialKind::Revoked => pem::revocation_lists(path).map(|lists| credentials.revoked = lists),
        };
        read.map_err(|cause| FileError { path: self.path.clone(), cause })
    }
}

/// Warns of a private key that every user of the machine can read.
#[cfg(unix)]
fn warn_if_readable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    const OTHERS_READ: u32 = 0o004;
    let mode = fs::metadata(path).map_or(0, |file| file.permissions().mode());
    if mode & OTHERS_READ != 0 {
        tracing::warn!(
            file = %path.display(), mode = %format_args!("{:o}", mode & 0o777),
            "every user of this machine can read the private key: `chmod 600` lets its owner alone read it"
        );
    }
}

/// Elsewhere, permissions are lists of the system.
#[cfg(not(unix))]
fn warn_if_readable(_: &Path) {}

fn hash(path: &Path) -> Option<u64> {
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(pem::MAX_OCTETS as u64 + 1).read_to_end(&mut text).ok()?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&text);
    Some(hasher.finish())
}
