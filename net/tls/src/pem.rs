//! Certificates and keys from PEM (RFC 7468), as files or as text. Both are bounded, because a file may be
//! anything.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

/// The maximum size of a file or text in octets: 4 MiB. The authorities of a browser need about a quarter of
/// a megabyte.
pub const MAX_OCTETS: usize = 4 << 20;
/// The maximum number of certificates or revocation lists in one file or text: 4,096.
pub const MAX_ITEMS: usize = 4096;

/// The reason why certificates or keys could not be loaded.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PemError {
    /// The file cannot be read.
    #[error("cannot read {}", .path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        cause: io::Error,
    },
    /// It is larger than [`MAX_OCTETS`], or holds more than [`MAX_ITEMS`].
    #[error("{origin} exceeds {MAX_OCTETS} octets or {MAX_ITEMS} items")]
    TooLarge {
        /// The file or text.
        origin: PemOrigin,
    },
    /// It is not PEM.
    #[error("{origin} is malformed: expected blocks such as `-----BEGIN CERTIFICATE-----`")]
    Malformed {
        /// The file or text.
        origin: PemOrigin,
        /// The reason why it is not PEM.
        #[source]
        cause: pem::Error,
    },
    /// It is PEM, but without the wanted kind of item.
    #[error("{origin} has no {item}")]
    Nothing {
        /// The file or text.
        origin: PemOrigin,
        /// The kind of item.
        item: &'static str,
    },
    /// A certificate cannot be that of an authority.
    #[error("certificate {index} of {origin} is not valid for an authority")]
    Authority {
        /// The file or text.
        origin: PemOrigin,
        /// The index of the certificate, from 0 on.
        index: usize,
        /// The reason why it is not an authority.
        #[source]
        cause: rustls::Error,
    },
}
spandrel_error::debug_as_report!(PemError);

/// The file or the text that is not PEM, for messages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PemOrigin {
    /// The file with this path.
    File(PathBuf),
    /// A text in memory.
    Text,
}

impl fmt::Display for PemOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "the PEM file `{}`", path.display()),
            Self::Text => f.write_str("the PEM text"),
        }
    }
}

/// A file or a text from which certificates and keys are read.
#[derive(Clone, Copy, Debug)]
pub enum Pem<'a> {
    /// The path of a PEM file.
    File(&'a Path),
    /// PEM text in memory.
    Text(&'a [u8]),
}

impl Pem<'_> {
    fn origin(&self) -> PemOrigin {
        match self {
            Self::File(path) => PemOrigin::File(path.to_path_buf()),
            Self::Text(_) => PemOrigin::Text,
        }
    }
}

impl<'a> From<&'a Path> for Pem<'a> {
    fn from(path: &'a Path) -> Self {
        Self::File(path)
    }
}

impl<'a> From<&'a PathBuf> for Pem<'a> {
    fn from(path: &'a PathBuf) -> Self {
        Self::File(path)
    }
}

impl<'a> From<&'a [u8]> for Pem<'a> {
    fn from(text: &'a [u8]) -> Self {
        Self::Text(text)
    }
}

/// The certificates, in order: for an identity its own first, then those of the authorities in between.
///
/// # Errors
/// See [`PemError`].
pub fn certificates<'a>(from: impl Into<Pem<'a>>) -> Result<Vec<CertificateDer<'static>>, PemError> {
    items(from.into(), "certificate")
}

/// The first private key: PKCS #8, PKCS #1 or SEC 1, not encrypted.
///
/// # Errors
/// See [`PemError`].
pub fn private_key<'a>(from: impl Into<Pem<'a>>) -> Result<PrivateKeyDer<'static>, PemError> {
    let from = from.into();
    match PrivateKeyDer::from_pem_slice(&text(from)?) {
        Err(pem::Error::NoItemsFound) => Err(PemError::Nothing { origin: from.origin(), item: "private key" }),
        result => result.map_err(|cause| PemError::Malformed { origin: from.origin(), cause }),
    }
}

/// Reads certificates as the authorities that are trusted.
///
/// # Errors
/// See [`PemError`].
pub fn authorities<'a>(from: impl Into<Pem<'a>>) -> Result<RootCertStore, PemError> {
    let (from, mut store) = (from.into(), RootCertStore::empty());
    for (index, certificate) in certificates(from)?.into_iter().enumerate() {
        store.add(certificate).map_err(|cause| PemError::Authority { origin: from.origin(), index, cause })?;
    }
    Ok(store)
}

/// Reads lists of revoked certificates (CRLs).
///
/// # Errors
/// See [`PemError`].
pub fn revocation_lists<'a>(from: impl Into<Pem<'a>>) -> Result<Vec<CertificateRevocationListDer<'static>>, PemError> {
    items(from.into(), "revocation list")
}

fn items<T: PemObject>(from: Pem<'_>, kind: &'static str) -> Result<Vec<T>, PemError> {
    let text = text(from)?;
    let mut items = Vec::new();
    for item in T::pem_slice_iter(&text) {
        if items.len() == MAX_ITEMS {
            return Err(PemError::TooLarge { origin: from.origin() });
        }
        items.push(item.map_err(|cause| PemError::Malformed { origin: from.origin(), cause })?);
    }
    if items.is_empty() { Err(PemError::Nothing { origin: from.origin(), item: kind }) } else { Ok(items) }
}

fn text(from: Pem<'_>) -> Result<std::borrow::Cow<'_, [u8]>, PemError> {
    let text = match from {
        Pem::Text(text) => text.into(),
        Pem::File(path) => {
            let mut text = Vec::new();
            let limit = MAX_OCTETS as u64 + 1;
            File::open(path)
                .and_then(|file| file.take(limit).read_to_end(&mut text))
                .map_err(|cause| PemError::File { path: path.to_owned(), cause })?;
            std::borrow::Cow::Owned(text)
        }
    };
    if text.len() > MAX_OCTETS { Err(PemError::TooLarge { origin: from.origin() }) } else { Ok(text) }
}
