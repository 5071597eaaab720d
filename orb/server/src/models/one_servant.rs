//! An adapter with one servant for all objects.

use std::{
    any::Any,
    cell::{Ref, RefCell},
    fmt,
    rc::Rc,
};

use spandrel_giop::SystemException;
use spandrel_orb::{KeptUse, Located, Policy, PolicyType, Target};
use spandrel_sync::Arc;

use crate::{Entry, ObjectAdapter, Resolution, Servant, ServantUse, Upcall};

/// The adapter of this servant, which also decides whether an object exists.
#[derive(Debug)]
pub(crate) struct OneServant<S>(pub(crate) Arc<S>);

impl<S: Servant + fmt::Debug + 'static> ObjectAdapter for OneServant<S> {
    fn resolve(&self, _: &[u8], _: &str, _: Entry<'_>) -> Result<Resolution, SystemException> {
        let servant: Arc<dyn Servant> = Arc::clone(&self.0) as _;
        Ok(Resolution::Serve(Upcall::new(Rc::new(PlainUse(RefCell::new(servant))))))
    }

    fn locate(&self, _: &[u8]) -> Result<Located, SystemException> {
        Ok(if self.0.non_existent() { Located::Unknown } else { Located::Here })
    }

    fn close(&self) {}

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The use of a servant by a call, whose end has no effect.
struct PlainUse(RefCell<Arc<dyn Servant>>);

impl ServantUse for PlainUse {
    fn servant(&self) -> Ref<'_, Arc<dyn Servant>> {
        self.0.borrow()
    }

    fn target(&self) -> Ref<'_, dyn Target> {
        Ref::map(self.0.borrow(), |_| &PlainTarget as &dyn Target)
    }

    fn end(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn release(&self) {}
}

struct PlainTarget;

impl Target for PlainTarget {
    fn object_id(&self) -> &[u8] {
        &[]
    }

    fn adapter_id(&self) -> &[u8] {
        &[]
    }

    fn adapter_name(&self) -> Vec<String> {
        Vec::new()
    }

    fn policy(&self, _: PolicyType) -> Option<Policy> {
        None
    }

    fn keep_in_use(&self) -> Arc<dyn KeptUse> {
        Arc::new(PlainTarget)
    }
}

impl KeptUse for PlainTarget {
    fn end(&self, then: Box<dyn FnOnce(Result<(), SystemException>) + Send>) {
        then(Ok(()));
    }
}
