//! Servants whose interface is known only at run time.

use spandrel_giop::SystemException;
use spandrel_orb::{ObjectRef, Replied, Servant, ServerCall, Target};

use super::ServerRequest;

/// What runs requests of any interface: IDL `PortableServer::DynamicImplementation`.
///
/// One of them may be the servant of many objects, of different interfaces even, and tells them apart by their ids.
pub trait DynamicImplementation: Send + Sync {
    /// Runs a request (`invoke`). The operations that every object has, as `_is_a`, are answered by the ORB.
    ///
    /// # Errors
    /// The system exception to answer with instead of what was set.
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException>;

    /// The repository id of the most derived interface of the object with this id (`primary_interface`). Asked with an empty id, it
    /// is that of references that are made before there is an object.
    fn primary_interface(&self, object_id: &[u8]) -> String;

    /// True if the object supports the interface.
    fn is_a(&self, object_id: &[u8], repository_id: &str) -> bool {
        self.primary_interface(object_id) == repository_id
    }

    /// True if there is no such object although there is a servant for it.
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
    /// The servant.
    pub fn new(implementation: D) -> Self {
        let repository_id = implementation.primary_interface(&[]);
        Self { implementation, repository_id }
    }

    /// What it runs requests by.
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

/// The operations that every object has (CORBA 3.3 Part 2, 9.4.2.1), but for those that no request carries.
fn is_implicit(operation: &str) -> bool {
    matches!(operation, "_is_a" | "_non_existent" | "_not_existent" | "_repository_id" | "_interface" | "_component")
}

/// The servant as one of its objects.
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
