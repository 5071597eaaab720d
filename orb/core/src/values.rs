//! Value types: the interface for programs, and the factories of received values (CORBA 3.3 Part 1, 9.4.3 and
//! 8.2.5.1).

use std::any::Any;
use std::collections::HashMap;

pub use spandrel_cdr::{
    AbstractRef, CdrError, ConcreteValue, Decode, Decoder, Encode, Encoder, Entry, GraphBuilder, GraphError,
    ImplementedBy, IsA, Linked, PlainFactory, ValueBase, ValueFactory, ValueRef, ValueType, custom_factory,
    value_factory,
};
use spandrel_sync::{Arc, RwLock};

use crate::Orb;

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

impl Orb {
    /// Registers the factory of received values of the type with this repository id, and returns the previous
    /// one.
    ///
    /// Values without operations need no factory if their own type or a base is expected: generated code
    /// creates them.
    pub fn register_value_factory(
        &self,
        repository_id: &str,
        factory: Arc<dyn ValueFactory>,
    ) -> Option<Arc<dyn ValueFactory>> {
        self.value_factories().get_or_init(|| Box::<Registry>::default()).insert(repository_id, factory)
    }

    /// Registers a function that creates values of type `T`, such as `dyn Account`, from the received state.
    pub fn register_value<T, I>(&self, make: impl Fn(T::State) -> I + Send + Sync + 'static)
    where
        T: ImplementedBy<I> + ?Sized,
        I: Any + Send + Sync,
    {
        self.register_value_factory(T::REPOSITORY_ID, value_factory::<T, I>(make));
    }

    /// Registers a value type without operations, so that its values are received where any value is allowed
    /// (`ValueBase`, abstract interfaces and value types).
    pub fn register_plain_value<T>(&self)
    where
        T: ConcreteValue + ImplementedBy<<T as ConcreteValue>::State> + ?Sized,
        T::State: Any + Send + Sync,
    {
        self.register_value_factory(T::REPOSITORY_ID, Arc::new(PlainFactory::<T>::NEW));
    }

    /// Removes a registered factory, and returns it.
    pub fn unregister_value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.value_factories().get()?.remove(repository_id)
    }

    /// The registered factory for this repository id.
    #[must_use]
    pub fn lookup_value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.value_factories().get()?.get(repository_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Unusable;

    impl ValueFactory for Unusable {
        fn read(&self, _: &mut Decoder<'_>) -> Result<Entry, CdrError> {
            Err(CdrError::Unbound)
        }
    }

    #[test]
    fn a_factory_is_found_until_it_is_unregistered() {
        let orb = Orb::builder().build().unwrap();
        assert!(orb.register_value_factory("IDL:V:1.0", Arc::new(Unusable)).is_none());
        assert!(orb.lookup_value_factory("IDL:V:1.0").is_some());
        assert!(orb.register_value_factory("IDL:V:1.0", Arc::new(Unusable)).is_some());
        assert!(orb.unregister_value_factory("IDL:V:1.0").is_some());
        assert!(orb.lookup_value_factory("IDL:V:1.0").is_none());
    }
}
