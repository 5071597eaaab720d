//! TLS between the client and its server. The proxy injects the same faults as without TLS, but cannot parse
//! the messages.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use spandrel::ssliop::{Ssliop, pem};
use spandrel::types::IiopProfile;
use spandrel_giop::component::{Component, SslSecTrans};
use spandrel_test_support::certificates::Authority;

const AUTHORITY: &str = "authority.pem";

/// The TLS protocol without trusted authorities.
pub fn protocol() -> Ssliop {
    Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
}

/// Creates an authority and a server certificate in the folder; returns the server's options.
pub fn server_options(folder: &Path) -> Result<Vec<String>> {
    let authority = Authority::new("the authority of the faults");
    let server = authority.issue("127.0.0.1");
    fs::write(folder.join(AUTHORITY), authority.pem())?;
    let mut options = vec!["-ORBListenEndpoints".to_owned(), "ssliop://127.0.0.1:0".to_owned()];
    for (option, name, text) in
        [("-ORBSSLCertificate", "chain.pem", server.chain), ("-ORBSSLKey", "key.pem", server.key)]
    {
        let path = folder.join(name);
        fs::write(&path, text)?;
        options.extend([option.to_owned(), path.to_str().context("the path is not UTF-8")?.to_owned()]);
    }
    Ok(options)
}

/// The protocol of a client that trusts that authority.
pub fn client(folder: &Path) -> Result<Ssliop> {
    Ok(protocol().trust(pem::authorities(&*folder.join(AUTHORITY))?))
}

/// The TLS port in the profile.
pub fn port(profile: &IiopProfile) -> Option<u16> {
    profile.components.iter().find_map(|component| match Component::decode(component) {
        Ok(Some(Component::SslSecTrans(SslSecTrans { port: port @ 1.., .. }))) => Some(port),
        _ => None,
    })
}

/// The profile with this TLS port only.
pub fn with_port(profile: IiopProfile, port: u16) -> Result<IiopProfile> {
    let component = SslSecTrans { supports: SslSecTrans::PROTECTED, requires: SslSecTrans::PROTECTED, port };
    Ok(IiopProfile { port: 0, components: vec![Component::SslSecTrans(component).encode()?], ..profile })
}
