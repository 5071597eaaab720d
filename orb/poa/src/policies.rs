//! The adapter policies (CORBA 3.3 Part 1, 15.3.8), their consistency, and Spandrel's own policies.

use spandrel_giop::ids;
use spandrel_orb::{BidirectionalPolicy, ObjectDemux, Policy, PolicyType, PolicyValue, internal::DemuxDefaults};
use spandrel_server::RequestExecutor;
use spandrel_sync::Arc;

use crate::PoaError;

macro_rules! policies {
    ($($(#[$doc:meta])* $name:ident = $number:expr => { $($(#[$value_doc:meta])* $value:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        pub enum $name {
            $($(#[$value_doc])* $value,)*
        }

        impl PolicyValue for $name {
            fn policy_type(&self) -> PolicyType {
                Self::POLICY_TYPE
            }
        }

        impl $name {
            /// The number of this policy in lists and IORs, as the standard assigns it.
            pub const POLICY_TYPE: PolicyType = $number;
        }
    )*};
}

policies! {
    /// The threads that run the upcalls of an adapter (15.3.8.1).
    ///
    /// ```
    /// # use spandrel_orb::Orb;
    /// # use spandrel_poa::{self as poa, Poa};
    /// use poa::ThreadPolicy; // of spandrel
    /// # let orb = Orb::builder().build()?;
    /// # let root = Poa::root(&orb)?;
    /// // The servants use a library that is not thread-safe.
    /// let library = root.create_poa("library", None, [ThreadPolicy::SingleThreadModel.into()])?;
    /// # orb.shutdown()?;
    /// # Ok::<(), poa::PoaError>(())
    /// ```
    ThreadPolicy = 16 => {
        /// Many threads at once.
        #[default]
        OrbCtrlModel,
        /// One thread at a time, servant managers included; it may re-enter the adapter from inside an
        /// upcall.
        SingleThreadModel,
        /// The ORB's main thread, one upcall at a time for all adapters with this policy.
        MainThreadModel,
    }

    /// The lifetime of references (15.3.8.2).
    ///
    /// ```
    /// # use spandrel_orb::Orb;
    /// # use spandrel_poa::{self as poa, Poa};
    /// use poa::{IdAssignmentPolicy, LifespanPolicy}; // of spandrel
    /// # let orb = Orb::builder().build()?;
    /// # let root = Poa::root(&orb)?;
    /// // References to the accounts remain valid when the server is started again at the same address.
    /// let policies = [LifespanPolicy::Persistent.into(), IdAssignmentPolicy::UserId.into()];
    /// let accounts = root.create_poa("accounts", None, policies)?;
    /// # orb.shutdown()?;
    /// # Ok::<(), poa::PoaError>(())
    /// ```
    LifespanPolicy = 17 => {
        /// As long as the adapter that created them.
        #[default]
        Transient,
        /// As long as an adapter with that name and parent exists, in this process or a later one.
        Persistent,
    }

    /// Whether a servant may serve several objects (15.3.8.3).
    ///
    /// ```
    /// # use spandrel_orb::Orb;
    /// # use spandrel_poa::{self as poa, Poa};
    /// use poa::{IdAssignmentPolicy, IdUniquenessPolicy}; // of spandrel
    /// # let orb = Orb::builder().build()?;
    /// # let root = Poa::root(&orb)?;
    /// // One servant serves the accounts of all customers: `Current::object_id` is the customer.
    /// let policies = [IdUniquenessPolicy::MultipleId.into(), IdAssignmentPolicy::UserId.into()];
    /// let accounts = root.create_poa("accounts", None, policies)?;
    /// # orb.shutdown()?;
    /// # Ok::<(), poa::PoaError>(())
    /// ```
    IdUniquenessPolicy = 18 => {
        /// A servant serves one object at a time.
        #[default]
        UniqueId,
        /// Any number of objects.
        MultipleId,
    }

    /// The assignment of object ids (15.3.8.4).
    ///
    /// ```
    /// # use spandrel_orb::Orb;
    /// # use spandrel_poa::{self as poa, Poa};
    /// use poa::IdAssignmentPolicy; // of spandrel
    /// # let orb = Orb::builder().build()?;
    /// # let root = Poa::root(&orb)?;
    /// let accounts = root.create_poa("accounts", None, [IdAssignmentPolicy::UserId.into()])?;
    /// let ada = accounts.create_reference_with_id(&"ada".into(), "IDL:Bank/Account:1.0")?;
    /// assert_eq!(accounts.reference_to_id(&ada)?.as_bytes(), b"ada");
    /// # orb.shutdown()?;
    /// # Ok::<(), poa::PoaError>(())
    /// ```
    IdAssignmentPolicy = 19 => {
        /// The application chooses the ids (`USER_ID`).
        UserId,
        /// The adapter chooses the ids (`SYSTEM_ID`).
        #[default]
        SystemId,
    }

    /// Whether a request for the id or the reference of a servant activates it (15.3.8.7).
    ///
    /// ```
    /// # use spandrel_orb::Orb;
    /// # use spandrel_poa::{self as poa, Poa};
    /// use poa::ImplicitActivationPolicy; // of spandrel
    /// # let orb = Orb::builder().build()?;
    /// # let root = Poa::root(&orb)?;
    /// // `servant_to_reference` activates servants, as in the root adapter.
    /// let sessions = root.create_poa("sessions", None, [ImplicitActivationPolicy::ImplicitActivation.into()])?;
    /// # orb.shutdown()?;
    /// # Ok::<(), poa::PoaError>(())
    /// ```
    ImplicitActivationPolicy = 20 => {
        /// The servant is activated.
        ImplicitActivation,
        /// The servant is not activated.
        #[default]
        NoImplicitActivation,
    }

    /// Whether the adapter retains the servants of objects (15.3.8.5).
    ///
    /// ```
    /// # use spandrel_orb::Orb;
    /// # use spandrel_poa::{self as poa, Poa};
    /// use poa::{RequestProcessingPolicy, ServantRetentionPolicy}; // of spandrel
    /// # let orb = Orb::builder().build()?;
    /// # let root = Poa::root(&orb)?;
    /// // A servant locator supplies a servant for each request.
    /// let policies = [ServantRetentionPolicy::NonRetain.into(), RequestProcessingPolicy::UseServantManager.into()];
    /// let rows = root.create_poa("rows", None, policies)?;
    /// # orb.shutdown()?;
    /// # Ok::<(), poa::PoaError>(())
    /// ```
    ServantRetentionPolicy = 21 => {
        /// Servants are in the active object map.
        #[default]
        Retain,
        /// Each request obtains a servant.
        NonRetain,
    }

    /// The servant for objects that are not in the active object map (15.3.8.6).
    ///
    /// ```
    /// # use spandrel_orb::Orb;
    /// # use spandrel_poa::{self as poa, Poa};
    /// use poa::{IdAssignmentPolicy, IdUniquenessPolicy, RequestProcessingPolicy}; // of spandrel
    /// # let orb = Orb::builder().build()?;
    /// # let root = Poa::root(&orb)?;
    /// // One servant serves all objects without a servant of their own.
    /// let policies = [
    ///     RequestProcessingPolicy::UseDefaultServant.into(),
    ///     IdUniquenessPolicy::MultipleId.into(),
    ///     IdAssignmentPolicy::UserId.into(),
    /// ];
    /// let files = root.create_poa("files", None, policies)?;
    /// // Then `set_servant`, and `activate` of its manager.
    /// # orb.shutdown()?;
    /// # Ok::<(), poa::PoaError>(())
    /// ```
    RequestProcessingPolicy = 22 => {
        /// None: the objects do not exist.
        #[default]
        UseActiveObjectMapOnly,
        /// One servant for all of them.
        UseDefaultServant,
        /// A servant manager supplies a servant.
        UseServantManager,
    }
}

/// The executor that runs the requests of an adapter in its own threads; Spandrel's own policy. Crates above, such as
/// `spandrel-rt`, put it into the list of an adapter's policies. It requires ORB_CTRL_MODEL.
#[derive(Clone, Debug)]
pub struct ExecutorPolicy(pub Arc<dyn RequestExecutor>);

impl ExecutorPolicy {
    /// The number of this policy in lists.
    pub const POLICY_TYPE: PolicyType = ids::POLICY_REQUEST_EXECUTOR;
}

impl PolicyValue for ExecutorPolicy {
    fn policy_type(&self) -> PolicyType {
        Self::POLICY_TYPE
    }
}

/// The threads that run the servants of an adapter, from all policies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum ServantThreads {
    #[default]
    Any,
    OneAtATime,
    Main,
    Executor,
}

/// The policy of a list that is not valid, or contradicts others.
#[derive(Clone, Debug)]
pub(crate) struct InvalidPolicy {
    index: usize,
    clash: Clash,
    /// The rule that it violates.
    reason: &'static str,
}

/// The policy that another one contradicts.
#[derive(Clone, Debug)]
enum Clash {
    /// None: the policy itself is not valid.
    Itself,
    /// The one with this index in the list.
    Given(usize),
    /// The default of a type that the list does not have.
    Default(Policy),
}

impl InvalidPolicy {
    /// The error of the creation of this adapter with these policies.
    pub(crate) fn error(self, adapter: String, explicit_policies: &[Policy]) -> PoaError {
        PoaError::InvalidPolicy {
            adapter,
            index: u16::try_from(self.index).unwrap_or(u16::MAX),
            policy: format!("{:?}", explicit_policies[self.index]),
            clash: match self.clash {
                Clash::Itself => None,
                Clash::Given(index) => Some(format!("{:?}", explicit_policies[index])),
                Clash::Default(policy) => Some(format!("{policy:?}")),
            },
            reason: self.reason,
        }
    }
}

/// The policies of one adapter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policies {
    pub(crate) thread: ThreadPolicy,
    /// Follows from `thread` and the executor.
    pub(crate) servant_threads: ServantThreads,
    pub(crate) lifespan: LifespanPolicy,
    pub(crate) uniqueness: IdUniquenessPolicy,
    pub(crate) assignment: IdAssignmentPolicy,
    pub(crate) activation: ImplicitActivationPolicy,
    pub(crate) retention: ServantRetentionPolicy,
    pub(crate) processing: RequestProcessingPolicy,
    pub(crate) demux: ObjectDemux,
}

impl Policies {
    /// The policies of the root adapter (15.3.9.1, the defaults except for implicit activation).
    pub(crate) fn of_root(tables: DemuxDefaults) -> Self {
        let activation = ImplicitActivationPolicy::ImplicitActivation;
        Self { activation, demux: tables.system_ids, ..Self::default() }
    }

    /// Combines the given policies with the defaults, of which an ORB's options choose those of tables. Policies of other
    /// types are ignored.
    pub(crate) fn resolve(explicit_policies: &[Policy], tables: DemuxDefaults) -> Result<Self, InvalidPolicy> {
        let [mut thread, mut lifespan, mut uniqueness, mut assignment] = [None; 4];
        let [mut activation, mut retention, mut processing, mut demux] = [None; 4];
        let mut executor = None;
        let mut policies = Self::default();
        for (index, policy) in explicit_policies.iter().enumerate() {
            match policy.policy_type() {
                ThreadPolicy::POLICY_TYPE => set(&mut policies.thread, &mut thread, index, policy)?,
                LifespanPolicy::POLICY_TYPE => set(&mut policies.lifespan, &mut lifespan, index, policy)?,
                IdUniquenessPolicy::POLICY_TYPE => set(&mut policies.uniqueness, &mut uniqueness, index, policy)?,
                IdAssignmentPolicy::POLICY_TYPE => set(&mut policies.assignment, &mut assignment, index, policy)?,
                ImplicitActivationPolicy::POLICY_TYPE => {
                    set(&mut policies.activation, &mut activation, index, policy)?;
                }
                ServantRetentionPolicy::POLICY_TYPE => set(&mut policies.retention, &mut retention, index, policy)?,
                RequestProcessingPolicy::POLICY_TYPE => set(&mut policies.processing, &mut processing, index, policy)?,
                ids::POLICY_OBJECT_DEMUX => set(&mut policies.demux, &mut demux, index, policy)?,
                ExecutorPolicy::POLICY_TYPE => drop(checked::<ExecutorPolicy>(&mut executor, index, policy)?),
                _ => {}
            }
        }
        let conflicts = [
            (
                policies.has_no_servant_source(),
                [(retention, ServantRetentionPolicy::POLICY_TYPE), (processing, RequestProcessingPolicy::POLICY_TYPE)],
                "NON_RETAIN requires USE_DEFAULT_SERVANT or USE_SERVANT_MANAGER",
            ),
            (
                policies.default_servant_lacks_multiple_id(),
                [(uniqueness, IdUniquenessPolicy::POLICY_TYPE), (processing, RequestProcessingPolicy::POLICY_TYPE)],
                "USE_DEFAULT_SERVANT requires MULTIPLE_ID",
            ),
            (
                policies.is_implicit() && !policies.assigns_ids(),
                [(assignment, IdAssignmentPolicy::POLICY_TYPE), (activation, ImplicitActivationPolicy::POLICY_TYPE)],
                "IMPLICIT_ACTIVATION requires SYSTEM_ID",
            ),
            (
                policies.is_implicit() && !policies.retains(),
                [(retention, ServantRetentionPolicy::POLICY_TYPE), (activation, ImplicitActivationPolicy::POLICY_TYPE)],
                "IMPLICIT_ACTIVATION requires RETAIN",
            ),
            (
                demux.is_some() && policies.demux == ObjectDemux::Active && !policies.assigns_ids(),
                [(assignment, IdAssignmentPolicy::POLICY_TYPE), (demux, ids::POLICY_OBJECT_DEMUX)],
                "active demultiplexing requires SYSTEM_ID",
            ),
            (
                executor.is_some() && policies.thread != ThreadPolicy::OrbCtrlModel,
                [(thread, ThreadPolicy::POLICY_TYPE), (executor, ExecutorPolicy::POLICY_TYPE)],
                "the threads of an executor require ORB_CTRL_MODEL",
            ),
        ];
        // Of two contradictory policies, the later one is reported, and clashes with the other.
        let offending = conflicts.into_iter().filter(|(condition, ..)| *condition).filter_map(|(_, pair, reason)| {
            let [earlier, later] = if pair[0].0 > pair[1].0 { [pair[1], pair[0]] } else { pair };
            let clash = match earlier.0 {
                Some(index) => Clash::Given(index),
                None => Clash::Default(policies.policy(earlier.1)?),
            };
            Some(InvalidPolicy { index: later.0?, clash, reason })
        });
        if let Some(invalid) = offending.min_by_key(|invalid| invalid.index) {
            return Err(invalid);
        }
        if demux.is_none() {
            policies.demux = if policies.assigns_ids() { tables.system_ids } else { tables.user_ids };
        }
        policies.servant_threads = match policies.thread {
            ThreadPolicy::OrbCtrlModel if executor.is_some() => ServantThreads::Executor,
            ThreadPolicy::OrbCtrlModel => ServantThreads::Any,
            ThreadPolicy::SingleThreadModel => ServantThreads::OneAtATime,
            ThreadPolicy::MainThreadModel => ServantThreads::Main,
        };
        Ok(policies)
    }

    /// The bidirectional policy, if given.
    pub(crate) fn bidirectional(explicit_policies: &[Policy]) -> Result<Option<BidirectionalPolicy>, InvalidPolicy> {
        let (mut value, mut set_by) = (BidirectionalPolicy::default(), None);
        for (index, policy) in explicit_policies.iter().enumerate() {
            if policy.policy_type() == BidirectionalPolicy::POLICY_TYPE {
                set(&mut value, &mut set_by, index, policy)?;
            }
        }
        Ok(set_by.map(|_| value))
    }

    /// The executor that runs the requests, if the list has one.
    pub(crate) fn executor(policies: &[Policy]) -> Option<&Arc<dyn RequestExecutor>> {
        policies.iter().find_map(Policy::value::<ExecutorPolicy>).map(|policy| &policy.0)
    }

    /// NON_RETAIN requires a default servant or a servant manager, USE_ACTIVE_OBJECT_MAP_ONLY requires RETAIN
    /// (15.3.8.5, 15.3.8.6).
    fn has_no_servant_source(&self) -> bool {
        !self.retains() && self.processing == RequestProcessingPolicy::UseActiveObjectMapOnly
    }

    /// USE_DEFAULT_SERVANT requires MULTIPLE_ID (15.3.8.6).
    fn default_servant_lacks_multiple_id(&self) -> bool {
        self.has_default_servant() && self.is_unique()
    }

    pub(crate) fn is_unique(&self) -> bool {
        self.uniqueness == IdUniquenessPolicy::UniqueId
    }

    pub(crate) fn assigns_ids(&self) -> bool {
        self.assignment == IdAssignmentPolicy::SystemId
    }

    pub(crate) fn is_implicit(&self) -> bool {
        self.activation == ImplicitActivationPolicy::ImplicitActivation
    }

    pub(crate) fn retains(&self) -> bool {
        self.retention == ServantRetentionPolicy::Retain
    }

    pub(crate) fn is_persistent(&self) -> bool {
        self.lifespan == LifespanPolicy::Persistent
    }

    pub(crate) fn has_default_servant(&self) -> bool {
        self.processing == RequestProcessingPolicy::UseDefaultServant
    }

    pub(crate) fn has_servant_manager(&self) -> bool {
        self.processing == RequestProcessingPolicy::UseServantManager
    }

    /// The standard policy of this type, as a value.
    pub(crate) fn policy(&self, policy_type: PolicyType) -> Option<Policy> {
        Some(match policy_type {
            ThreadPolicy::POLICY_TYPE => self.thread.into(),
            LifespanPolicy::POLICY_TYPE => self.lifespan.into(),
            IdUniquenessPolicy::POLICY_TYPE => self.uniqueness.into(),
            IdAssignmentPolicy::POLICY_TYPE => self.assignment.into(),
            ImplicitActivationPolicy::POLICY_TYPE => self.activation.into(),
            ServantRetentionPolicy::POLICY_TYPE => self.retention.into(),
            RequestProcessingPolicy::POLICY_TYPE => self.processing.into(),
            ids::POLICY_OBJECT_DEMUX => self.demux.into(),
            _ => return None,
        })
    }
}

/// Sets a policy, after the checks of [`checked`].
fn set<V: PolicyValue + Copy>(
    value: &mut V,
    earlier_index: &mut Option<usize>,
    index: usize,
    policy: &Policy,
) -> Result<(), InvalidPolicy> {
    *value = *checked(earlier_index, index, policy)?;
    Ok(())
}

/// The value of a policy; it may neither be given twice nor have another Rust type than its number demands.
fn checked<'p, V: PolicyValue>(
    earlier_index: &mut Option<usize>,
    index: usize,
    policy: &'p Policy,
) -> Result<&'p V, InvalidPolicy> {
    let invalid = |clash, reason| InvalidPolicy { index, clash, reason };
    let value =
        policy.value().ok_or_else(|| invalid(Clash::Itself, "the number of its type belongs to another policy"))?;
    match earlier_index.replace(index) {
        None => Ok(value),
        Some(earlier) => Err(invalid(Clash::Given(earlier), "an adapter has one policy of each type")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(explicit_policies: &[Policy]) -> usize {
        match Policies::resolve(explicit_policies, DemuxDefaults::default()) {
            Err(InvalidPolicy { index, .. }) => index,
            other => panic!("{explicit_policies:?} gave {other:?}"),
        }
    }

    #[test]
    fn contradictory_policies_are_rejected_with_the_index_of_the_later_one() {
        use IdAssignmentPolicy::UserId;
        use IdUniquenessPolicy::UniqueId;
        use ImplicitActivationPolicy::ImplicitActivation;
        use RequestProcessingPolicy::{UseActiveObjectMapOnly, UseDefaultServant};
        use ServantRetentionPolicy::NonRetain;
        let thread = || Policy::from(ThreadPolicy::OrbCtrlModel);
        assert_eq!(refused(&[NonRetain.into()]), 0);
        assert_eq!(refused(&[UseActiveObjectMapOnly.into(), thread(), NonRetain.into()]), 2);
        assert_eq!(refused(&[thread(), UseDefaultServant.into()]), 1);
        assert_eq!(refused(&[UseDefaultServant.into(), UniqueId.into()]), 1);
        assert_eq!(refused(&[ImplicitActivation.into(), UserId.into()]), 1);
        let unretained =
            [NonRetain.into(), RequestProcessingPolicy::UseServantManager.into(), ImplicitActivation.into()];
        assert_eq!(refused(&unretained), 2);
        assert_eq!(refused(&[ObjectDemux::Active.into(), UserId.into()]), 1);
        assert_eq!(refused(&[thread(), thread()]), 1);
    }

    #[test]
    fn missing_policies_have_their_defaults() {
        let policies = Policies::resolve(&[IdAssignmentPolicy::UserId.into()], DemuxDefaults::default()).unwrap();
        assert_eq!(policies.demux, ObjectDemux::DynamicHash);
        assert!(policies.is_unique() && policies.retains() && !policies.is_implicit() && !policies.is_persistent());
        assert!(Policies::of_root(DemuxDefaults::default()).is_implicit());
        let tables =
            DemuxDefaults { system_ids: ObjectDemux::Linear, user_ids: ObjectDemux::PerfectHash, ..Default::default() };
        let demux = |list: &[Policy]| Policies::resolve(list, tables).unwrap().demux;
        assert_eq!((demux(&[]), Policies::of_root(tables).demux), (ObjectDemux::Linear, ObjectDemux::Linear));
        assert_eq!(demux(&[IdAssignmentPolicy::UserId.into()]), ObjectDemux::PerfectHash);
        assert_eq!(demux(&[ObjectDemux::Active.into()]), ObjectDemux::Active);
        let lifespan = policies.policy(17).unwrap();
        assert_eq!(lifespan.value(), Some(&LifespanPolicy::Transient));
    }

    #[test]
    fn a_policy_of_another_rust_type_is_rejected() {
        #[derive(Debug)]
        struct Stranger;
        impl PolicyValue for Stranger {
            fn policy_type(&self) -> PolicyType {
                16
            }
        }
        assert_eq!(refused(&[LifespanPolicy::Persistent.into(), Stranger.into()]), 1);
    }
}
