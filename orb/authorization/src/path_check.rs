//! The check of paths that a service is given in its options.

use std::fmt;
use std::sync::Arc;

use spandrel_orb::SystemException;

/// A check of each operation of a service on a path, such as a name of the naming service, besides the checks of the
/// ORB.
///
/// ```
/// use spandrel_authorization::{Authorizer, PathCheck};
/// use spandrel_orb::{CompletionStatus, SystemException};
///
/// // By a policy, for the objects of an adapter:
/// let by_policy = Authorizer::new("".parse()?).path_check("NamingContexts");
/// assert!(by_policy.check("bind", Some("bank/vault")).is_ok()); // this thread runs no request of a peer
///
/// // By code:
/// let by_code = PathCheck::new(|_operation, path| match path {
///     Some("bank/vault") => Err(SystemException::no_permission(0, CompletionStatus::No)),
///     _ => Ok(()),
/// });
/// assert!(by_code.check("resolve", Some("bank/vault")).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PathCheck(Arc<Check>);

type Check = dyn Fn(&str, Option<&str>) -> Result<(), SystemException> + Send + Sync;

impl PathCheck {
    /// `check` is called in the request's thread with the operation and the path; there is no path for objects without
    /// one, and for operations on all paths.
    #[must_use]
    pub fn new(check: impl Fn(&str, Option<&str>) -> Result<(), SystemException> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Decides whether the caller of the present request may call an operation on a path.
    ///
    /// # Errors
    /// The system exception that ends the request: NO_PERMISSION by a policy.
    pub fn check(&self, operation: &str, path: Option<&str>) -> Result<(), SystemException> {
        (self.0)(operation, path)
    }
}

impl fmt::Debug for PathCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathCheck")
    }
}

#[cfg(test)]
mod tests {
    use spandrel_orb::CompletionStatus;

    use super::*;

    #[test]
    fn the_outcome_is_that_of_the_function() {
        let check = PathCheck::new(|operation, path| match (operation, path) {
            ("bind", Some("bank/vault")) => Err(SystemException::no_permission(3, CompletionStatus::No)),
            _ => Ok(()),
        });
        assert_eq!(check.check("bind", Some("bank/vault")).unwrap_err().minor(), 3);
        check.check("bind", None).unwrap();
        check.clone().check("resolve", Some("bank/vault")).unwrap();
        assert_eq!(format!("{check:?}"), "PathCheck");
    }
}
