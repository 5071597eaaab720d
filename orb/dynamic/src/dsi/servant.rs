//! Servants whose interface is known only at run time.

use spandrel_giop::SystemException;
use spandrel_orb::{ObjectRef, Target};
use spandrel_server::{Replied, Servant, ServerCall};

use super::ServerRequest;

/// An implementation of any interface: IDL `PortableServer::DynamicImplementation`.
///
/// It may be the servant of many objects, even of different interfaces, and distinguishes them by their ids.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod dynamic { pub use spandrel_dynamic::*; } pub mod types { pub use spandrel_cdr::{Any, TypeCode}; } }
/// use spandrel::dynamic::{ArgMode, DynamicImplementation, DynamicServant, NamedValue, NvList, ServerRequest};
/// use spandrel::types::TypeCode;
/// use spandrel::{CompletionStatus, SystemException};
///
/// /// Accounts without generated code.
/// struct Account;
///
/// impl DynamicImplementation for Account {
///     fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
///         if request.operation() != "deposit" {
///             return Err(SystemException::bad_operation(0, CompletionStatus::No));
///         }
///         let mut declared = NvList::new();
///         declared.add(NamedValue::of_type("cents", ArgMode::In, TypeCode::LONGLONG));
///         let cents: i64 = request.arguments(declared)?.extract(0)?;
///         request.set_result(&(cents + 100))
///     }
///
///     fn primary_interface(&self, _: &[u8]) -> String {
///         "IDL:Bank/Account:1.0".to_owned()
///     }
/// }
///
/// let servant = DynamicServant::new(Account);
/// // Poa::root(&orb)?.activate(servant)? returns a reference.
/// # _ = servant;
/// ```
pub trait DynamicImplementation: Send + Sync {
    /// Runs a request (`invoke`). The ORB answers the operations that every object has, such as `_is_a`.
    ///
    /// # Errors
    /// The system exception to answer with in place of the outcome.
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException>;

    /// The repository id of the most derived interface of the object with this id (`primary_interface`). With
    /// an empty id, it is that of references created without an object.
    fn primary_interface(&self, object_id: &[u8]) -> String;

    /// Whether the object supports the interface.
    fn is_a(&self, object_id: &[u8], repository_id: &str) -> bool {
        self.primary_interface(object_id) == repository_id
    }

    /// Whether the object does not exist although it has a servant.
    fn non_existent(&self, object_id: &[u8]) -> bool {
        let _ = object_id;
        false
    }

    /// The description of the object's interface in an interface repository, if there is one.
    fn interface(&self, object_id: &[u8]) -> Option<ObjectRef> {
        let _ = object_id;
        None
    }
}

impl<D: DynamicImplementation + ?Sized> DynamicImplementation for spandrel_sync::Arc<D> {
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        (**self).invoke(request)
    }

    fn primary_interface(&self, object_id: &[u8]) -> String {
        (**self).primary_interface(object_id)
    }

    fn is_a(&self, object_id: &[u8], repository_id: &str) -> bool {
        (**self).is_a(object_id, repository_id)
    }

    fn non_existent(&self, object_id: &[u8]) -> bool {
        (**self).non_existent(object_id)
    }

    fn interface(&self, object_id: &[u8]) -> Option<ObjectRef> {
        (**self).interface(object_id)
    }
}

/// A dynamic implementation as a servant, for adapters.
#[derive(Debug)]
pub struct DynamicServant<D> {
    implementation: D,
    repository_id: String,
}

impl<D: DynamicImplementation> DynamicServant<D> {
    /// Asks the implementation for its primary interface once, and keeps the id.
    pub fn new(implementation: D) -> Self {
        let repository_id = implementation.primary_interface(&[]);
        Self { implementation, repository_id }
    }

    /// The application's code, which all requests share.
    pub fn implementation(&self) -> &D {
        &self.implementation
    }
}

impl<D: DynamicImplementation> Servant for DynamicServant<D> {
    fn repository_id(&self) -> &str {
        &self.repository_id
    }

    fn is_a(&self, repository_id: &str) -> bool {
        self.implementation.is_a(&[], repository_id)
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        if is_implicit(operation) {
            let object_id = call.target().map_or(&[][..], Target::object_id);
            let repository_id = self.implementation.primary_interface(object_id);
            return call.implicit(&Incarnated { servant: self, object_id, repository_id });
        }
        let mut request = ServerRequest::new(call);
        self.implementation.invoke(&mut request)?;
        request.finish()
    }
}

/// Whether it is an operation of every object (CORBA 3.3 Part 2, 9.4.2.1) that requests carry.
fn is_implicit(operation: &str) -> bool {
    matches!(operation, "_is_a" | "_non_existent" | "_not_existent" | "_repository_id" | "_interface" | "_component")
}

/// The servant in the role of one of its objects.
struct Incarnated<'s, D> {
    servant: &'s DynamicServant<D>,
    object_id: &'s [u8],
    repository_id: String,
}

impl<D: DynamicImplementation> Servant for Incarnated<'_, D> {
    fn repository_id(&self) -> &str {
        &self.repository_id
    }

    fn is_a(&self, repository_id: &str) -> bool {
        self.servant.implementation.is_a(self.object_id, repository_id)
    }

    fn non_existent(&self) -> bool {
        self.servant.implementation.non_existent(self.object_id)
    }

    fn interface(&self) -> Option<ObjectRef> {
        self.servant.implementation.interface(self.object_id)
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        self.servant.dispatch(operation, call)
    }
}
