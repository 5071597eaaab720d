//! Value types: what programs need of them, and who makes the values that an ORB receives (CORBA 3.3 Part 1, 9.4.3 and
//! 8.2.5.1).

use std::any::Any;
use std::collections::HashMap;
use std::fmt;

pub use spandrel_cdr::{
    AbstractRef, CdrError, ConcreteValue, Decode, Decoder, Encode, Encoder, Entry, GraphBuilder, GraphError,
    ImplementedBy, IsA, Linked, PlainFactory, ValueBase, ValueFactory, ValueRef, ValueType, custom_factory,
    value_factory,
};
use spandrel_sync::{Arc, RwLock};

use crate::Orb;

/// The factories of one ORB, by repository id.
#[derive(Default)]
pub(crate) struct ValueFactories(RwLock<HashMap<String, Arc<dyn ValueFactory>>>);

impl fmt::Debug for ValueFactories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}

impl ValueFactories {
    pub(crate) fn get(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.0.read().get(repository_id).cloned()
    }
}

impl Orb {
    /// Registers what makes received values of the type with this repository id, and returns what was registered before.
    ///
    /// Values without operations need none where their own type or a base is expected: generated code makes them.
    pub fn register_value_factory(
        &self,
        repository_id: &str,
        factory: Arc<dyn ValueFactory>,
    ) -> Option<Arc<dyn ValueFactory>> {
        self.value_factories().0.write().insert(repository_id.to_owned(), factory)
    }

    /// Registers a function that makes values of type `T`, such as `dyn Account`, from the state that is received.
    pub fn register_value<T, I>(&self, make: impl Fn(T::State) -> I + Send + Sync + 'static)
    where
        T: ImplementedBy<I> + ?Sized,
        I: Any + Send + Sync,
    {
        self.register_value_factory(T::REPOSITORY_ID, value_factory::<T, I>(make));
    }

    /// Registers a type without operations, so that its values are received where any value may come (`ValueBase`, abstract
    /// interfaces and value types).
    pub fn register_plain_value<T>(&self)
    where
        T: ConcreteValue + ImplementedBy<<T as ConcreteValue>::State> + ?Sized,
        T::State: Any + Send + Sync,
    {
        self.register_value_factory(T::REPOSITORY_ID, Arc::new(PlainFactory::<T>::NEW));
    }

    /// Forgets a registered factory, and returns it.
    pub fn unregister_value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.value_factories().0.write().remove(repository_id)
    }

    /// The registered factory.
    #[must_use]
    pub fn lookup_value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.value_factories().get(repository_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl ValueFactory for Nobody {
        fn read(&self, _: &mut Decoder<'_>) -> Result<Entry, CdrError> {
            Err(CdrError::Unbound)
        }
    }

    #[test]
    fn a_factory_is_found_until_it_is_unregistered() {
        let orb = Orb::builder().build().unwrap();
        assert!(orb.register_value_factory("IDL:V:1.0", Arc::new(Nobody)).is_none());
        assert!(orb.lookup_value_factory("IDL:V:1.0").is_some());
        assert!(orb.register_value_factory("IDL:V:1.0", Arc::new(Nobody)).is_some());
        assert!(orb.unregister_value_factory("IDL:V:1.0").is_some());
        assert!(orb.lookup_value_factory("IDL:V:1.0").is_none());
    }
}
