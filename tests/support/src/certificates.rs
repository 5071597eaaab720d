//! Certificate authorities and the certificates that they issue, created for each run.

use std::fmt;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateRevocationListParams, CertifiedIssuer, DistinguishedName, ExtendedKeyUsagePurpose,
    IsCa, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber,
};
pub use rcgen::{CertificateParams, DnType, date_time_ymd};

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificates in PEM, that of the identity first.
    pub chain: String,
    /// The private key in PEM.
    pub key: String,
}

impl Authority {
    /// Returns a new authority, trusted by no peer yet.
    ///
    /// # Panics
    /// If the system has no source of randomness.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("there is randomness");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority can sign"))
    }

    /// The authority's own certificate, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for this host, for use both as a server and as a client.
    #[must_use]
    pub fn issue(&self, host: &str) -> Identity {
        self.issue_with(&[host], |_| {})
    }

    /// Writes a certificate for this host, its key and that of the authority into a folder. Returns the options of a program
    /// with this identity: `--cert`, `--key` and `--ca`.
    ///
    /// # Panics
    /// If a file cannot be written.
    #[must_use]
    pub fn write_options(&self, folder: &Path, host: &str) -> Vec<String> {
        let Identity { chain, key } = self.issue(host);
        let files = [
            ("--cert", format!("{host}.pem"), chain),
            ("--key", format!("{host}.key"), key),
            ("--ca", "ca.pem".to_owned(), self.pem()),
        ];
        let written = |(option, name, text): (&str, String, String)| {
            let file = folder.join(name);
            std::fs::write(&file, text).expect("the folder can be written");
            [option.to_owned(), file.display().to_string()]
        };
        files.into_iter().flat_map(written).collect()
    }

    /// Issues a certificate for these hosts; the first is the common name. `change` adjusts the parameters.
    ///
    /// # Panics
    /// If a host is neither a name nor an address.
    pub fn issue_with(&self, hosts: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().expect("there is randomness");
        let names: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("hosts have names or addresses");
        params.distinguished_name = DistinguishedName::new();
        if let Some(&name) = hosts.first() {
            params.distinguished_name.push(DnType::CommonName, name);
            params.serial_number = Some(serial_number_of(name));
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let certificate = params.signed_by(&key, &self.0).expect("an authority can sign");
        Identity { chain: certificate.pem(), key: key.serialize_pem() }
    }

    /// Revokes the certificates issued for this host; returns the revocation list as PEM.
    ///
    /// # Panics
    /// If the list cannot be encoded.
    #[must_use]
    pub fn revoke(&self, host: &str) -> String {
        let revoked = RevokedCertParams {
            serial_number: serial_number_of(host),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.0).and_then(|list| list.pem()).expect("an authority can sign")
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// The serial number of a host's certificate: a function of the host, so that revocation needs no records.
fn serial_number_of(host: &str) -> SerialNumber {
    SerialNumber::from_slice(host.as_bytes())
}
