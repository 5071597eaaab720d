//! Callbacks of adapters that are shared with the program: an `Arc` of a servant manager or adapter activator is one, too.

use spandrel_giop::SystemException;
use spandrel_server::Servant;
use spandrel_sync::Arc;

use crate::{AdapterActivator, Cookie, Incarnation, ObjectId, Poa, ServantActivator, ServantLocator};

impl<T: AdapterActivator + ?Sized> AdapterActivator for Arc<T> {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool {
        T::unknown_adapter(self, parent, name)
    }
}

impl<T: ServantActivator + ?Sized> ServantActivator for Arc<T> {
    fn incarnate(&self, oid: &ObjectId, adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        T::incarnate(self, oid, adapter)
    }

    fn etherealize(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        servant: Arc<dyn Servant>,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) {
        T::etherealize(self, oid, adapter, servant, cleanup_in_progress, remaining_activations);
    }
}

impl<T: ServantLocator + ?Sized> ServantLocator for Arc<T> {
    fn preinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
    ) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        T::preinvoke(self, oid, adapter, operation)
    }

    fn postinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
        cookie: Cookie,
        servant: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        T::postinvoke(self, oid, adapter, operation, cookie, servant)
    }
}
