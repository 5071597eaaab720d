//! The creation of an adapter with its policies as methods.

use spandrel_orb::{Orb, Policy};
use spandrel_server::Servant;
use spandrel_sync::Arc;

use crate::{
    AdapterActivator, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, LifespanPolicy, Poa, PoaError,
    PoaManager, RequestProcessingPolicy, ServantActivator, ServantLocator, ServantManager, ServantRetentionPolicy,
    ThreadPolicy, adapter_name::full_name_text, hierarchy::AdapterCallbacks,
};

/// An adapter that is to be created: its policies (CORBA 3.3 Part 1, 15.3.8), its manager and its servants.
///
/// [`Poa::child`] begins one. Policies without a method have their defaults. The adapter shares the manager of its
/// parent, so that its requests run at once if those of the parent do; [`holding`](Self::holding) gives it a manager of
/// its own, with which requests wait until the program has activated its objects.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } }
/// use spandrel::poa::PoaError;
/// use spandrel::{Orb, Poa};
///
/// let orb = Orb::builder().build()?;
/// let root = Poa::root(&orb)?;
/// let accounts = root.child("accounts").persistent().user_ids().holding().create()?;
/// // The program activates its accounts here; then their requests run:
/// accounts.the_poa_manager().activate()?;
///
/// let refused = root.child("refused").user_ids().implicit_activation().create();
/// assert_eq!(
///     refused.unwrap_err().to_string(),
///     "cannot create the adapter `RootPOA/refused`: the policy `ImplicitActivation` contradicts `UserId`: \
///      IMPLICIT_ACTIVATION requires SYSTEM_ID"
/// );
/// # orb.shutdown()?;
/// # Ok::<(), PoaError>(())
/// ```
#[must_use = "`create` creates the adapter"]
pub struct PoaBuilder {
    parent: Poa,
    name: String,
    manager: ManagerChoice,
    policies: Vec<Policy>,
    callbacks: AdapterCallbacks,
}

/// The manager of an adapter.
enum ManagerChoice {
    Parents,
    /// A new one, in the holding state.
    Own,
    Given(PoaManager),
}

impl Poa {
    /// Begins the creation of a child with this name. [`create_poa`](Self::create_poa) does the same with a list of
    /// policies.
    pub fn child(&self, name: impl Into<String>) -> PoaBuilder {
        PoaBuilder {
            parent: self.clone(),
            name: name.into(),
            manager: ManagerChoice::Parents,
            policies: Vec::new(),
            callbacks: AdapterCallbacks::default(),
        }
    }
}

impl PoaBuilder {
    /// References outlive the process ([`LifespanPolicy::Persistent`]).
    pub fn persistent(self) -> Self {
        self.policy(LifespanPolicy::Persistent)
    }

    /// The program chooses the object ids ([`IdAssignmentPolicy::UserId`]).
    pub fn user_ids(self) -> Self {
        self.policy(IdAssignmentPolicy::UserId)
    }

    /// A servant may serve several objects ([`IdUniquenessPolicy::MultipleId`]).
    pub fn multiple_ids(self) -> Self {
        self.policy(IdUniquenessPolicy::MultipleId)
    }

    /// A request for the id or the reference of a servant activates it
    /// ([`ImplicitActivationPolicy::ImplicitActivation`]).
    pub fn implicit_activation(self) -> Self {
        self.policy(ImplicitActivationPolicy::ImplicitActivation)
    }

    /// One thread at a time runs the servants ([`ThreadPolicy::SingleThreadModel`]).
    pub fn single_thread(self) -> Self {
        self.policy(ThreadPolicy::SingleThreadModel)
    }

    /// The ORB's main thread runs the servants ([`ThreadPolicy::MainThreadModel`]).
    pub fn main_thread(self) -> Self {
        self.policy(ThreadPolicy::MainThreadModel)
    }

    /// A servant activator, which supplies the servants of inactive objects: USE_SERVANT_MANAGER and RETAIN. An `Arc`
    /// of one is shared with the program.
    pub fn activator(self, activator: impl ServantActivator + 'static) -> Self {
        self.servant_manager(ServantManager::Activator(Arc::new(activator)), ServantRetentionPolicy::Retain)
    }

    /// A servant locator, which supplies a servant for each request: USE_SERVANT_MANAGER and NON_RETAIN. An `Arc` of
    /// one is shared with the program.
    pub fn locator(self, locator: impl ServantLocator + 'static) -> Self {
        self.servant_manager(ServantManager::Locator(Arc::new(locator)), ServantRetentionPolicy::NonRetain)
    }

    fn servant_manager(mut self, manager: ServantManager, retention: ServantRetentionPolicy) -> Self {
        self.callbacks.servant_manager = Some(manager);
        self.policy(RequestProcessingPolicy::UseServantManager).policy(retention)
    }

    /// The servant of all objects without one of their own: USE_DEFAULT_SERVANT and MULTIPLE_ID.
    pub fn default_servant(self, servant: impl Servant + 'static) -> Self {
        self.shared_default_servant(Arc::new(servant))
    }

    /// As [`default_servant`](Self::default_servant), with a servant that is shared with its owner.
    pub fn shared_default_servant(mut self, servant: Arc<dyn Servant>) -> Self {
        self.callbacks.default_servant = Some(servant);
        self.policy(RequestProcessingPolicy::UseDefaultServant).multiple_ids()
    }

    /// The adapter activator, which creates the children of the adapter on demand.
    pub fn adapter_activator(mut self, activator: impl AdapterActivator + 'static) -> Self {
        self.callbacks.activator = Some(Arc::new(activator));
        self
    }

    /// A policy that has no method here, such as [`ObjectDemux`](crate::ObjectDemux), or one of the program's own. One
    /// that is equal to an earlier one has no effect.
    pub fn policy(mut self, policy: impl Into<Policy>) -> Self {
        let policy = policy.into();
        let is_equal = |other: &Policy| {
            other.policy_type() == policy.policy_type() && format!("{other:?}") == format!("{policy:?}")
        };
        if !self.policies.iter().any(is_equal) {
            self.policies.push(policy);
        }
        self
    }

    /// The ORB that will serve the new adapter's objects.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        self.parent.orb()
    }

    /// The names from the root adapter to the new one, as errors have them: `RootPOA/accounts`.
    #[must_use]
    pub fn full_name(&self) -> String {
        full_name_text(&self.parent.adapter.child_path(&self.name))
    }

    /// A manager of its own, in the holding state: requests wait until
    /// [`PoaManager::activate`](crate::PoaManager::activate).
    pub fn holding(mut self) -> Self {
        self.manager = ManagerChoice::Own;
        self
    }

    /// The manager that admits the requests of the adapter.
    pub fn manager(mut self, manager: &PoaManager) -> Self {
        self.manager = ManagerChoice::Given(manager.clone());
        self
    }

    /// Creates the adapter (15.3.9.2). Its servant manager, its default servant and its adapter activator are set
    /// before its first request.
    ///
    /// # Errors
    /// `InvalidPolicy`, with the two policies that contradict each other; otherwise as
    /// [`create_poa`](Poa::create_poa).
    pub fn create(self) -> Result<Poa, PoaError> {
        let Self { parent, name, manager, policies, callbacks } = self;
        let manager = match manager {
            ManagerChoice::Parents => Some(parent.the_poa_manager()),
            ManagerChoice::Own => None,
            ManagerChoice::Given(manager) => Some(manager),
        };
        let manager = manager.as_ref().map(|manager| &manager.0);
        let adapter = parent.root.create(&parent.adapter, &name, manager, policies, callbacks)?;
        Ok(Poa { adapter, ..parent })
    }
}

impl std::fmt::Debug for PoaBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = (&self.parent, &self.name, &self.policies);
        f.debug_tuple("PoaBuilder").field(&fields.0).field(&fields.1).field(&fields.2).finish()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_orb::{Orb, SystemException};
    use spandrel_server::{Replied, ServerCall};

    use super::*;
    use crate::{Cookie, Incarnation, ObjectId, State};

    struct Account;

    impl Servant for Account {
        fn repository_id(&self) -> &str {
            "IDL:Bank/Account:1.0"
        }

        fn is_a(&self, _: &str) -> bool {
            false
        }

        fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
            call.implicit(self)
        }
    }

    struct Accounts;

    impl ServantActivator for Accounts {
        fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
            Ok(Arc::new(Account))
        }

        fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {}
    }

    impl ServantLocator for Accounts {
        fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
            Ok((Arc::new(Account), Box::new(())))
        }
    }

    fn text(builder: PoaBuilder) -> String {
        let error = builder.create().expect_err("policies that contradict each other").to_string();
        error.strip_prefix("cannot create the adapter `RootPOA/new`: the policy ").expect("the adapter").to_owned()
    }

    #[test]
    fn the_two_policies_that_clash_are_named() {
        let orb = Orb::builder().build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let new = || root.child("new");
        for (builder, expected) in [
            (
                new().user_ids().implicit_activation(),
                "`ImplicitActivation` contradicts `UserId`: IMPLICIT_ACTIVATION requires SYSTEM_ID",
            ),
            (
                new().implicit_activation().locator(Accounts),
                "`NonRetain` contradicts `ImplicitActivation`: IMPLICIT_ACTIVATION requires RETAIN",
            ),
            (
                new().single_thread().main_thread(),
                "`MainThreadModel` contradicts `SingleThreadModel`: an adapter has one policy of each type",
            ),
            (
                new().activator(Accounts).locator(Accounts),
                "`NonRetain` contradicts `Retain`: an adapter has one policy of each type",
            ),
            (
                new().activator(Accounts).default_servant(Account),
                "`UseDefaultServant` contradicts `UseServantManager`: an adapter has one policy of each type",
            ),
            (
                new().policy(ServantRetentionPolicy::NonRetain),
                "`NonRetain` contradicts `UseActiveObjectMapOnly`: NON_RETAIN requires USE_DEFAULT_SERVANT or \
                 USE_SERVANT_MANAGER",
            ),
        ] {
            assert_eq!(text(builder), expected);
        }
        orb.shutdown().unwrap();
    }

    #[test]
    fn an_adapter_has_its_manager_and_its_servants_from_the_beginning() {
        let orb = Orb::builder().build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let accounts = root.child("accounts").user_ids().user_ids().activator(Arc::new(Accounts)).create().unwrap();
        assert_eq!(accounts.the_poa_manager().id(), root.the_poa_manager().id());
        let ada = accounts.create_reference_with_id(&"ada".into(), "IDL:Bank/Account:1.0").unwrap();
        assert!(!ada.non_existent().unwrap());
        let held = root.child("held").default_servant(Account).holding().create().unwrap();
        assert_eq!(held.the_poa_manager().state(), State::Holding);
        assert!(held.servant().is_ok());
        let beside = held.child("beside").manager(&root.the_poa_manager()).create().unwrap();
        assert_eq!(beside.the_poa_manager().state(), State::Active);
        orb.shutdown().unwrap();
    }
}
