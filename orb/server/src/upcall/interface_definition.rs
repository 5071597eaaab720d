//! The definition of a servant's interface in the ORB's interface repository (`get_interface`, CORBA 3.3 Part 1, 8.3.1).

use std::time::Duration;

use spandrel_cdr::Decode;
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{ObjectRef, Orb};

/// The time limit of the call of the repository. The client waits meanwhile, and a thread of the server.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Looks up the interface in the initial reference `InterfaceRepository`.
///
/// # Errors
/// INTF_REPOS without a repository (minor code 1), also one that does not answer, or without the interface (2).
#[cold]
pub(super) fn interface_definition(orb: &Orb, repository_id: &str) -> Result<ObjectRef, SystemException> {
    let failed = |minor, detail: String| SystemException::intf_repos(minor, CompletionStatus::No).with_detail(detail);
    let repository = orb.resolve_initial_references("InterfaceRepository").map_err(|_| {
        let detail = "no interface repository is configured (-ORBInitRef InterfaceRepository=URL)";
        failed(minor::NO_INTERFACE_REPOSITORY, detail.to_owned())
    })?;
    let repository = repository.with_timeout(Some(TIMEOUT));
    let found: Result<Option<ObjectRef>, SystemException> =
        repository.invoke("lookup_id", |out| out.short_str(repository_id), Option::decode);
    let found = found.map_err(|error| {
        failed(minor::NO_INTERFACE_REPOSITORY, "the interface repository does not answer".to_owned()).with_source(error)
    })?;
    found.ok_or_else(|| {
        failed(minor::NO_SUCH_INTERFACE, format!("the interface repository has no definition `{repository_id}`"))
    })
}
