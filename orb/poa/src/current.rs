//! `PortableServer::Current`: the target object of a servant's current request (CORBA 3.3 Part 1, 15.3.10).

use std::{error::Error, fmt};

use spandrel_orb::{CompletionStatus, ObjectRef, SystemException};
use spandrel_server::Servant;
use spandrel_sync::Arc;

use crate::{ObjectId, Poa, frames::innermost};

/// Access to the adapter, object and servant of the upcall in this thread (15.3.10).
///
/// In an asynchronous servant it refers to the request whose future the thread polls, at any time in the future.
/// Tasks that the future spawns are outside of the request.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } pub mod server { pub use spandrel_server::*; } }
/// use spandrel::SystemException;
/// use spandrel::poa::Current;
/// use spandrel::server::{Replied, ServerCall};
///
/// /// Answers each request with the id of its object, as a default servant does.
/// fn dispatch(call: ServerCall<'_>) -> Result<Replied, SystemException> {
///     let id = Current::new().object_id().expect("the thread is inside an upcall");
///     let id = String::from_utf8_lossy(&id).into_owned();
///     call.reply(|out| out.str(&id))
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Current;

/// The error of [`Current`] in a thread that runs no upcall (15.3.10.1).
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct NoContext;
spandrel_error::debug_as_report!(NoContext);

impl Current {
    /// Creates a `Current`; it refers to the thread that uses it, not to the one that created it.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// The adapter that found the servant of the present upcall.
    ///
    /// # Errors
    /// `NoContext` outside an upcall.
    pub fn poa(self) -> Result<Poa, NoContext> {
        innermost(|adapter, _, _| Poa::of(adapter)).ok_or(NoContext)?.map_err(|_| NoContext)
    }

    /// The id of the object that the present upcall is for.
    ///
    /// # Errors
    /// `NoContext` outside an upcall.
    pub fn object_id(self) -> Result<ObjectId, NoContext> {
        innermost(|_, id, _| id.into()).ok_or(NoContext)
    }

    /// A reference to the object that the present upcall is for.
    ///
    /// # Errors
    /// `NoContext` outside an upcall.
    pub fn reference(self) -> Result<ObjectRef, NoContext> {
        innermost(|adapter, id, servant| {
            let poa = Poa::of(adapter).map_err(|_| NoContext)?;
            poa.reference_of(id, servant.repository_id()).map_err(|_| NoContext)
        })
        .ok_or(NoContext)?
    }

    /// The servant that the present upcall runs.
    ///
    /// # Errors
    /// `NoContext` outside an upcall.
    pub fn servant(self) -> Result<Arc<dyn Servant>, NoContext> {
        innermost(|_, _, servant| Arc::clone(servant)).ok_or(NoContext)
    }
}

impl fmt::Display for NoContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread is not inside an upcall")
    }
}

impl Error for NoContext {}

impl From<NoContext> for SystemException {
    /// BAD_INV_ORDER, for operations that raise system exceptions only.
    fn from(error: NoContext) -> Self {
        Self::bad_inv_order(0, CompletionStatus::No).with_detail(error.to_string())
    }
}
