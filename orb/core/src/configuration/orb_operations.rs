//! Operations of an ORB that its parts above provide: its creation, its policies, services for interceptors, and
//! the factories of values.

use std::any::Any;

use spandrel_giop::SystemException;
use spandrel_sync::Arc;

use crate::{
    InitError, Orb, OrbBuilder, Policy, PolicyType,
    interception::{self, CodecFactory, DynamicRequest, PiCurrent},
    orb::values::{ConcreteValue, ImplementedBy, PlainFactory, ValueFactory, no_factories, value_factory},
    policy::{DeadlineContext, PolicyError, PolicyFactory},
    reference::policy_management::{PolicyCurrent, PolicyManager, look_policies_up},
};

impl Orb {
    /// A builder with all optional parts. [`OrbBuilder::bare`] has only those that the program adds.
    #[must_use]
    pub fn builder() -> OrbBuilder {
        OrbBuilder::bare()
            .code_sets()
            .urls()
            .local_transports()
            .connection_limits()
            .diagnostics()
            .deadline_context(DeadlineContext::default())
    }

    /// Creates an ORB configured by the `-ORB…` options of a command line. Other arguments are ignored. With the feature
    /// `site`, `-ORBSite NAME` reads the options of a [site](crate::OrbOption); without that option no file is read.
    ///
    /// # Errors
    /// [`InitError`] for an unknown option or an invalid value.
    pub fn init(args: impl IntoIterator<Item = String>) -> Result<Self, InitError> {
        let mut args: Vec<String> = args.into_iter().collect();
        Self::builder().take_args(&mut args)?.build().map_err(InitError::Refused)
    }

    /// The manager of the policies that hold for all references of this ORB.
    #[must_use]
    pub fn policy_manager(&self) -> PolicyManager {
        look_policies_up(self);
        PolicyManager::of(self)
    }

    /// The policies of the calling thread.
    #[must_use]
    pub fn policy_current(&self) -> PolicyCurrent {
        look_policies_up(self);
        PolicyCurrent::of(self)
    }

    /// Creates a policy from its standard value: `Messaging::RebindMode` and `SyncScope` (`short`),
    /// `TimeBase::TimeT` and `UtcT`, `BiDirPolicy::BidirectionalPolicyValue` (`unsigned short`). Policies of
    /// other types are created by the factory that is registered for them.
    ///
    /// In Rust each policy is a type of its own, and `Policy::from` converts it.
    ///
    /// # Errors
    /// [`PolicyError`] has the reason. [`PolicyErrorCode::BadPolicyType`](crate::policy::PolicyErrorCode) also stands for an unknown
    /// policy type.
    pub fn create_policy(&self, policy_type: PolicyType, value: &spandrel_cdr::Any) -> Result<Policy, PolicyError> {
        self.policies().create(policy_type, value)
    }

    /// Registers a factory for policies of a type.
    ///
    /// # Errors
    /// BAD_INV_ORDER if a factory is registered for the type, or the ORB itself creates its policies
    /// (16.7.2.12).
    pub fn register_policy_factory(
        &self,
        policy_type: PolicyType,
        factory: Arc<dyn PolicyFactory>,
    ) -> Result<(), SystemException> {
        self.policies().register_factory(policy_type, factory)
    }

    /// The factory of codecs (`resolve_initial_references("CodecFactory")`).
    #[must_use]
    pub fn codec_factory(&self) -> CodecFactory {
        CodecFactory::of(self)
    }

    /// The calling thread's slots for interceptors (16.4.2, `resolve_initial_references("PICurrent")`).
    #[must_use]
    pub fn pi_current(&self) -> PiCurrent {
        PiCurrent::of(self)
    }

    /// Makes a request with the description `description` for interceptors. Without interceptors, `description`
    /// is not called.
    pub fn describing<R>(&self, description: impl FnOnce() -> DynamicRequest, request: impl FnOnce() -> R) -> R {
        if self.has_client_interceptors() { interception::describing(description(), request) } else { request() }
    }

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
        self.value_factories().get_or_init(no_factories).insert(repository_id, factory)
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
    use crate::orb::values::{CdrError, Decoder, Entry};

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
