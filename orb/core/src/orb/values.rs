//! Value types: the interface for programs, and the factories of received values (CORBA 3.3 Part 1, 9.4.3 and
//! 8.2.5.1).
//!
//! `configuration::orb_operations` has the methods by which programs register factories.

use std::collections::HashMap;

pub use spandrel_cdr::{
    AbstractRef, CdrError, ConcreteValue, Decode, Decoder, Encode, Encoder, Entry, GraphBuilder, GraphError,
    ImplementedBy, IsA, Linked, PlainFactory, ValueBase, ValueFactory, ValueRef, ValueType, custom_factory,
    value_factory,
};
use spandrel_sync::{Arc, RwLock};

/// The value factories of an ORB. A program that registers none does not contain the registry.
pub(crate) trait ValueFactories: Send + Sync {
    fn get(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>>;

    fn insert(&self, repository_id: &str, factory: Arc<dyn ValueFactory>) -> Option<Arc<dyn ValueFactory>>;

    fn remove(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>>;
}

/// Value factories by repository id.
#[derive(Default)]
struct Registry(RwLock<HashMap<String, Arc<dyn ValueFactory>>>);

impl ValueFactories for Registry {
    fn get(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.0.read().get(repository_id).cloned()
    }

    fn insert(&self, repository_id: &str, factory: Arc<dyn ValueFactory>) -> Option<Arc<dyn ValueFactory>> {
        self.0.write().insert(repository_id.to_owned(), factory)
    }

    fn remove(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.0.write().remove(repository_id)
    }
}

/// The value factories of an ORB before the first one is registered.
pub(crate) fn no_factories() -> Box<dyn ValueFactories> {
    Box::<Registry>::default()
}
