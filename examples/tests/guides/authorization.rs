use std::path::Path;

use spandrel::{CompletionStatus, Orb, Poa, SystemException, SystemExceptionKind};

use super::{Market, MarketSkeleton, Shop};

// ANCHOR: install
use spandrel::authorization::{AuditLog, AuditOptions, Authorizer, WithAuthorizer};

fn create_orb(policy: &Path, audit: &Path) -> Result<Orb, Box<dyn std::error::Error>> {
    let audit = AuditLog::open(audit, AuditOptions::default())?;
    let authorizer = Authorizer::from_file(policy, Some(audit))?;
    authorizer.watch()?; // a changed file takes effect within a second
    Ok(Orb::builder().authorizer(&authorizer)?.build()?)
}
// ANCHOR_END: install

// ANCHOR: credentials
use spandrel::authorization::ReceivedCredentials;

/// The check at the beginning of an operation of a servant.
fn only_for(branch: &str) -> Result<(), SystemException> {
    match ReceivedCredentials::current() {
        None => Ok(()), // a call of this process
        Some(peer) if peer.identity().dns_names.iter().any(|name| name == branch) => Ok(()),
        Some(_) => Err(SystemException::no_permission(0, CompletionStatus::No)),
    }
}
// ANCHOR_END: credentials

#[test]
fn a_policy_file_decides() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("authorization/policy.toml");
    let server = create_orb(&policy, &folder.path().join("audit.log"))?;
    let object = Poa::root(&server)?.activate(MarketSkeleton::new(Shop::default()))?;
    let client = Orb::builder().build()?;
    let market = Market::unchecked_narrow(&client.string_to_object(&object.to_string())?);
    market.buy(1, 26_400).map_err(|error| format!("{error:?}"))?;
    assert_eq!(market.good()?, "");
    let denied = market.as_object().non_existent().unwrap_err();
    assert_eq!(denied.kind(), SystemExceptionKind::NoPermission);
    only_for("north.tellers.bank.example")?;
    client.shutdown()?;
    server.shutdown()?;
    Ok(())
}
