//! The files that certificates come from, and whether they have changed.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use spandrel_tls::pem;

/// A file cannot be read, or does not hold what it should.
#[derive(Debug, thiserror::Error)]
#[error("{}", .path.display())]
pub struct FileError {
    path: PathBuf,
    #[source]
    cause: pem::PemError,
}

/// As whom an ORB appears, and whom it trusts.
#[derive(Debug)]
pub(crate) struct Papers {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: Option<PrivateKeyDer<'static>>,
    pub(crate) authorities: RootCertStore,
    pub(crate) revoked: Vec<CertificateRevocationListDer<'static>>,
}

impl Papers {
    pub(crate) fn none() -> Self {
        Self { chain: Vec::new(), key: None, authorities: RootCertStore::empty(), revoked: Vec::new() }
    }
}

impl Clone for Papers {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.as_ref().map(PrivateKeyDer::clone_key),
            authorities: self.authorities.clone(),
            revoked: self.revoked.clone(),
        }
    }
}

/// Which of the [`Papers`] a file holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Paper {
    Chain,
    Key,
    Authorities,
    Revoked,
}

#[derive(Clone, Debug)]
struct File {
    paper: Paper,
    path: PathBuf,
    /// Of what it held when it was looked at; nothing if that could not be had. Times would not tell two changes of one moment apart.
    hash: Option<u64>,
}

/// The files that papers were read from, one of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(Vec<File>);

impl Files {
    /// Reads a file, and remembers it if that can be done again: what comes through a pipe cannot.
    pub(crate) fn read(&mut self, paper: Paper, path: &Path, papers: &mut Papers) -> Result<(), FileError> {
        // Looked at before it is read: what is written meanwhile is a change.
        let is_file = path.metadata().is_ok_and(|data| data.is_file());
        let file = File { paper, path: path.to_owned(), hash: if is_file { hash(path) } else { None } };
        file.read(papers)?;
        self.forget(paper);
        if is_file {
            self.0.push(file);
        }
        Ok(())
    }

    /// This paper comes from elsewhere now.
    pub(crate) fn forget(&mut self, paper: Paper) {
        self.0.retain(|file| file.paper != paper);
    }

    /// Reads all of them once more.
    pub(crate) fn read_again(&mut self, papers: &mut Papers) -> Result<(), FileError> {
        self.have_changed();
        self.0.iter().try_for_each(|file| file.read(papers))
    }

    /// Whether one has changed since this was asked last, or they were read.
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
    fn read(&self, papers: &mut Papers) -> Result<(), FileError> {
        let path = self.path.as_path();
        let read = match self.paper {
            Paper::Chain => pem::certificates(path).map(|chain| papers.chain = chain),
            Paper::Key => pem::private_key(path).map(|key| papers.key = Some(key)),
            Paper::Authorities => pem::authorities(path).map(|authorities| papers.authorities = authorities),
            Paper::Revoked => pem::revocation_lists(path).map(|lists| papers.revoked = lists),
        };
        read.map_err(|cause| FileError { path: self.path.clone(), cause })
    }
}

fn hash(path: &Path) -> Option<u64> {
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(pem::MAX_OCTETS as u64 + 1).read_to_end(&mut text).ok()?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&text);
    Some(hasher.finish())
}
