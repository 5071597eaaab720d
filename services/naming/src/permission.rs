//! The place of authorization: a check of each operation on a name.

use std::fmt;

use spandrel::SystemException;
use spandrel::net::sync::Arc;

/// A check of each operation on a name, besides those of the ORB.
#[derive(Clone)]
pub struct Permission(Arc<Check>);

type Check = dyn Fn(&str, Option<&str>) -> Result<(), SystemException> + Send + Sync;

impl Permission {
    /// `check` is called in the request's thread with the operation, and the path of the name from the root context:
    /// that by which its context was made, in string form. It is `None` for contexts that were made without a name.
    #[must_use]
    pub fn new(check: impl Fn(&str, Option<&str>) -> Result<(), SystemException> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(crate) fn check(&self, operation: &str, path: Option<&str>) -> Result<(), SystemException> {
        (self.0)(operation, path)
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permission")
    }
}
