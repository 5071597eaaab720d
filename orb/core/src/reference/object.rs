//! Object references, which applications hold and generated stubs wrap.

use std::{any::Any, fmt, sync::OnceLock, time::Duration};

use spandrel_cdr::{CdrError, FromBound, Ior, Reference, TypeCode, Typed, TypedReference, Wire};
use spandrel_giop::{AddressingDisposition, CompletionStatus, SystemException, ids};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::policy::{Overrides, RelativeRoundtripTimeoutPolicy, SetOverrideType};
use crate::{
    Orb,
    client::{Reply, call_kind::CallKind, destination::Destination},
    policy::{PolicyValues, thread_flags},
    reference::own_connections::{BindingState, ReferenceBinding},
};

/// Makes a call; an optional part of the ORB can replace [`ObjectRef`]'s own implementation.
pub(crate) type InvokeFn =
    for<'o, 'q, 'f, 'a> fn(&'o ObjectRef, &'q CallKind<'f, 'a>) -> Result<Option<Reply>, SystemException>;

/// The repository id of the root of all interfaces.
pub const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

/// A reference to a local or remote object. Cheap to clone; may be used from many threads at once.
///
/// `Option::None` stands for nil. Two references are equal if their IORs are equal. Two unequal references
/// may denote the same object.
///
/// ```
/// # use spandrel_orb as spandrel;
/// use std::time::Duration;
///
/// use spandrel::Orb;
///
/// let orb = Orb::builder().build()?;
/// let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
/// let quick = account.with_timeout(Some(Duration::from_millis(100))); // the same object with another time-out
/// assert!(quick.is_equivalent(&account));
/// let text = account.to_string(); // IOR:…, for another process
/// assert_eq!(orb.string_to_object(&text)?, account);
/// # Ok::<(), spandrel::SystemException>(())
/// ```
#[derive(Clone)]
pub struct ObjectRef(Arc<BoundReference>, InterfaceLabel);

/// The interface of the stub that holds a reference, for calls by a reference that does not name its interface.
#[derive(Clone, Copy, Debug, Default)]
struct InterfaceLabel(&'static str);

impl InterfaceLabel {
    /// The label of the reference in a stub of the interface `I`.
    fn narrowed<I: Interface>(self) -> Self {
        // All objects have the type CORBA::Object, which is not a useful label.
        if I::REPOSITORY_ID == OBJECT_ID { self } else { Self(I::REPOSITORY_ID) }
    }

    /// The repository id of the interface; empty if the reference was never narrowed.
    fn name(self) -> &'static str {
        self.0
    }
}

/// A reference, and the ORB that invokes it.
struct BoundReference {
    orb: Orb,
    ior: Ior,
    /// The values of its own policies.
    policy_values: PolicyValues,
    overrides: Option<Arc<Overrides>>,
    /// Whether calls to endpoints of this ORB itself fail.
    excludes_own: bool,
    /// The connections of its calls, if it does not share those of the ORB; otherwise the state of binding policies,
    /// created by their first call.
    binding: OnceLock<Box<dyn ReferenceBinding>>,
    /// The destinations of the reference's profiles. The first call creates them: many references are never
    /// called.
    profile_destinations: OnceLock<Arc<[Destination]>>,
    route: ResolvedTarget,
}

/// The current location of the object.
#[derive(Debug, Default)]
struct ResolvedTarget {
    /// The index of the destination that answered last.
    preferred: AtomicUsize,
    /// Whether `forwards` has a value; saves a lock in the common case.
    is_forwarded: AtomicBool,
    forwards: Mutex<Forwards>,
    /// Whether the object has answered.
    is_bound: AtomicBool,
}

/// The reference in use, if the object was forwarded.
pub(crate) type EffectiveReference = Option<Arc<Ior>>;

/// The time for which a forwarding applies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ForwardKind {
    /// LOCATION_FORWARD: valid until the object is not found there any more.
    Temporary,
    /// LOCATION_FORWARD_PERM: replaces the original reference.
    Permanent,
}

/// The forwardings in force.
#[derive(Clone, Debug, Default)]
struct Forwards {
    temporary: Option<Arc<Forward>>,
    permanent: Option<Arc<Forward>>,
}

/// A forwarding: the reference in use, and its destinations.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) destinations: Box<[Destination]>,
    pub(crate) ior: Arc<Ior>,
    addressing: AddressingDisposition,
}

impl Forwards {
    fn current(&self) -> Option<&Arc<Forward>> {
        self.temporary.as_ref().or(self.permanent.as_ref())
    }
}

impl ResolvedTarget {
    /// The state for another reference to the same object: the permanent forwarding.
    fn inherited(&self) -> Self {
        let permanent = self.forwards.lock().permanent.clone();
        let is_forwarded = AtomicBool::new(permanent.is_some());
        Self { is_forwarded, forwards: Mutex::new(Forwards { temporary: None, permanent }), ..Self::default() }
    }
}

/// An object reference, typed or not.
///
/// ```
/// # use spandrel_orb as spandrel;
/// # mod types { pub use spandrel_orb::Interface; }
/// use spandrel::{ObjectRef, SystemException};
/// use types::Interface; // of spandrel
///
/// /// Finds an object of any interface.
/// fn find<I: Interface>(object: &ObjectRef) -> Result<I, SystemException> {
///     object.narrow()
/// }
/// ```
pub trait Interface: FromBound {
    /// The repository id of the interface.
    const REPOSITORY_ID: &'static str;

    /// Wraps a reference without a check of its interface.
    fn from_object(object: ObjectRef) -> Self;

    /// The same reference without its interface's operations.
    fn as_object(&self) -> &ObjectRef;
}

impl ObjectRef {
    pub(crate) fn new(orb: Orb, ior: Ior) -> Self {
        let bound = Arc::new(BoundReference {
            orb,
            ior,
            policy_values: PolicyValues::NONE,
            overrides: None,
            excludes_own: false,
            binding: OnceLock::new(),
            profile_destinations: OnceLock::new(),
            route: ResolvedTarget::default(),
        });
        Self(bound, InterfaceLabel::default())
    }

    /// The untyped reference. Typed references have the methods of untyped ones, this one included.
    #[inline]
    #[must_use]
    pub fn as_object(&self) -> &Self {
        self
    }

    /// The type id and profiles, as the reference was received or made. Forwardings do not change it.
    #[must_use]
    pub fn ior(&self) -> &Ior {
        &self.0.ior
    }

    /// The ORB whose connections carry the calls.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        &self.0.orb
    }

    /// The repository id in the reference; empty if the reference has none.
    #[must_use]
    pub fn type_id(&self) -> &str {
        &self.0.ior.type_id
    }

    /// A reference to the same object with another time limit for two-way calls; `None` waits without limit.
    ///
    /// Beyond it a call ends in TIMEOUT: COMPLETED_NO if the request could not be written, COMPLETED_MAYBE
    /// otherwise (the relative round-trip time-out policy, CORBA 3.3 Part 1, 17.2.4.6).
    #[must_use]
    pub fn with_timeout(&self, timeout: Option<Duration>) -> Self {
        let policy = RelativeRoundtripTimeoutPolicy(timeout.unwrap_or(Duration::MAX));
        let policy = Overrides::of(&[policy.into()]).expect("one policy that clients may have");
        self.with_overrides(self.overrides().with(policy, SetOverrideType::AddOverride))
    }

    /// A reference to the same object by which no call reaches an endpoint of this ORB, neither by the reference's
    /// addresses nor by those that a server forwards to: for calls that a server makes on references of its
    /// clients, so that no client lends itself the server's own rights. Such a call ends in INV_OBJREF,
    /// COMPLETED_NO.
    ///
    /// Host names are looked up before a connection is opened, if the port is that of an endpoint; a name server that
    /// answers differently a moment later is not noticed.
    #[must_use]
    pub fn excluding_own_endpoints(&self) -> Self {
        let BoundReference { orb, ior, policy_values, overrides, .. } = &*self.0;
        let bound = Arc::new(BoundReference {
            orb: orb.clone(),
            ior: ior.clone(),
            policy_values: *policy_values,
            overrides: overrides.clone(),
            excludes_own: true,
            binding: OnceLock::new(),
            profile_destinations: OnceLock::new(),
            route: ResolvedTarget::default(),
        });
        Self(bound, self.1)
    }

    /// A reference to the same object with these policies.
    pub(crate) fn with_overrides(&self, overrides: Overrides) -> Self {
        self.with_policy_values(overrides.policy_values(), Some(Arc::new(overrides)))
    }

    fn with_policy_values(&self, policy_values: PolicyValues, overrides: Option<Arc<Overrides>>) -> Self {
        thread_flags::record_use();
        let BoundReference { orb, ior, profile_destinations, route, excludes_own, .. } = &*self.0;
        let shared_destinations =
            if self.has_own_connections() { OnceLock::new() } else { profile_destinations.clone() };
        let bound = Arc::new(BoundReference {
            orb: orb.clone(),
            ior: ior.clone(),
            policy_values,
            overrides,
            excludes_own: *excludes_own,
            binding: OnceLock::new(),
            profile_destinations: shared_destinations,
            route: route.inherited(),
        });
        Self(bound, self.1)
    }

    /// A reference to the same object, with the same policies and connections of its own.
    pub(super) fn with_own_connections(&self, binding: Box<dyn ReferenceBinding>) -> Self {
        let BoundReference { orb, ior, policy_values, overrides, excludes_own, .. } = &*self.0;
        let bound = Arc::new(BoundReference {
            orb: orb.clone(),
            ior: ior.clone(),
            policy_values: *policy_values,
            overrides: overrides.clone(),
            excludes_own: *excludes_own,
            binding: OnceLock::from(binding),
            profile_destinations: OnceLock::new(),
            route: ResolvedTarget::default(),
        });
        Self(bound, self.1)
    }

    /// Whether its calls use connections of their own ([`with_connections`](Self::with_connections)).
    #[must_use]
    pub fn has_own_connections(&self) -> bool {
        self.0.binding.get().is_some_and(|binding| binding.has_connections())
    }

    /// The state that binding policies keep for this reference, which is created if needed. `None` for a reference with
    /// [connections of its own](Self::has_own_connections), and for a state of another type.
    pub fn binding_state<T: Any + Send + Sync>(&self, create: impl FnOnce() -> T) -> Option<&T> {
        let binding: &dyn Any = &**self.0.binding.get_or_init(|| Box::new(BindingState(create())));
        binding.downcast_ref().map(|BindingState(state)| state)
    }

    /// The reference's own policies.
    pub(crate) fn overrides(&self) -> &Overrides {
        static NONE: Overrides = Overrides::NONE;
        self.0.overrides.as_deref().unwrap_or(&NONE)
    }

    #[inline]
    pub(crate) fn own_policy_values(&self) -> PolicyValues {
        self.0.policy_values
    }

    /// The time limit of a two-way call by this thread.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.policy_values().round_trip()
    }

    /// A typed reference, if the object supports the interface. Calls `_is_a` unless the type id in the
    /// reference is equal.
    ///
    /// # Errors
    /// BAD_PARAM if the object does not support the interface; any system exception of `_is_a`.
    pub fn narrow<I: Interface>(&self) -> Result<I, SystemException> {
        self.check_is_a(I::REPOSITORY_ID)?;
        Ok(self.unchecked_narrow())
    }

    fn check_is_a(&self, repository_id: &str) -> Result<(), SystemException> {
        if self.is_a(repository_id)? { Ok(()) } else { Err(self.narrow_failure(repository_id)) }
    }

    pub(crate) fn narrow_failure(&self, repository_id: &str) -> SystemException {
        let detail = || format!("the object of type `{}` does not support `{repository_id}`", self.type_id());
        SystemException::bad_param(ids::BAD_PARAM_NARROW, CompletionStatus::No).with_detail(detail)
    }

    /// A typed reference without a check. A call that the object does not support ends in BAD_OPERATION.
    #[must_use]
    pub fn unchecked_narrow<I: Interface>(&self) -> I {
        I::from_object(Self(Arc::clone(&self.0), self.1.narrowed::<I>()))
    }

    /// The interface name in metrics: that of the reference, or of the stub if the reference has none.
    pub(crate) fn interface_label(&self) -> &str {
        if self.type_id().is_empty() { self.1.name() } else { self.type_id() }
    }

    /// The forwarding in force, if the object was forwarded.
    #[inline]
    pub(crate) fn forwarded(&self) -> Option<Arc<Forward>> {
        let route = &self.0.route;
        if !route.is_forwarded.load(Ordering::Acquire) {
            return None;
        }
        route.forwards.lock().current().map(Arc::clone)
    }

    /// Whether calls go to another reference that the server has replied with.
    #[inline]
    pub fn is_forwarded(&self) -> bool {
        self.0.route.is_forwarded.load(Ordering::Relaxed)
    }

    /// The destinations of the reference's own profiles.
    #[inline]
    pub fn profile_destinations(&self) -> Result<&[Destination], SystemException> {
        if let Some(profile_destinations) = self.0.profile_destinations.get() {
            return Ok(profile_destinations);
        }
        let profile_destinations = self.permitted(self.0.orb.destinations(&self.0.ior)?)?;
        Ok(self.0.profile_destinations.get_or_init(|| profile_destinations.into()))
    }

    /// The destinations in use: those of the forwarding, or of the reference's own profiles.
    #[inline]
    pub(crate) fn destinations<'o>(
        &'o self,
        forward: Option<&'o Forward>,
    ) -> Result<&'o [Destination], SystemException> {
        match forward {
            Some(forward) => Ok(&forward.destinations),
            None => self.profile_destinations(),
        }
    }

    /// The encoding of requests to this object (GIOP version, byte order, code sets); `None` without a usable
    /// profile.
    #[must_use]
    pub fn wire(&self) -> Option<Wire> {
        let preferred = self.preferred().load(Ordering::Relaxed);
        let wire =
            |destinations: &[Destination]| destinations.get(preferred % destinations.len().max(1)).map(|it| it.wire());
        self.destinations(self.forwarded().as_deref()).ok().and_then(wire)
    }

    /// Stores the target of a LOCATION_FORWARD.
    pub(crate) fn forward(&self, ior: &Ior, kind: ForwardKind) -> Result<(), SystemException> {
        let addressing = self.orb().settings().wire.addressing;
        let forward = self.route_to(Arc::new(ior.clone()), addressing)?;
        let mut forwards = self.0.route.forwards.lock();
        *forwards = match kind {
            ForwardKind::Temporary => {
                Forwards { temporary: Some(forward), permanent: std::mem::take(&mut forwards.permanent) }
            }
            ForwardKind::Permanent => Forwards { temporary: None, permanent: Some(forward) },
        };
        self.update_is_forwarded(&forwards);
        Ok(())
    }

    /// Sets the addressing disposition of further requests; false if it is in use already.
    pub(crate) fn readdress(&self, addressing: AddressingDisposition) -> Result<bool, SystemException> {
        let current = self.0.route.forwards.lock().current().cloned();
        let usual = self.orb().settings().wire.addressing;
        let (ior, before) =
            current.map_or_else(|| (Arc::new(self.0.ior.clone()), usual), |it| (Arc::clone(&it.ior), it.addressing));
        if before == addressing {
            return Ok(false);
        }
        let forward = self.route_to(ior, addressing)?;
        let mut forwards = self.0.route.forwards.lock();
        // Without a forwarding, the new disposition replaces the reference's own destinations for good.
        let Forwards { temporary, permanent } = &mut *forwards;
        *if temporary.is_some() { temporary } else { permanent } = Some(forward);
        self.update_is_forwarded(&forwards);
        Ok(true)
    }

    fn route_to(&self, ior: Arc<Ior>, addressing: AddressingDisposition) -> Result<Arc<Forward>, SystemException> {
        let destinations = self.permitted(self.orb().destinations_by(&ior, addressing)?)?.into();
        Ok(Arc::new(Forward { destinations, ior, addressing }))
    }

    /// The destinations of a reference, if this one may use them.
    fn permitted(&self, destinations: Vec<Destination>) -> Result<Vec<Destination>, SystemException> {
        let mut addresses = destinations.iter().map(|destination| destination.peer.address());
        if self.0.excludes_own
            && let Some(own) = addresses.find(|address| self.orb().is_own_endpoint(address)).cloned()
        {
            return Err(SystemException::inv_objref(0, CompletionStatus::No)
                .with_detail(move || format!("{own} is an endpoint of the server that makes the call")));
        }
        match self.0.binding.get() {
            None => Ok(destinations),
            Some(binding) => binding.adopt(self.orb(), destinations),
        }
    }

    fn update_is_forwarded(&self, forwards: &Forwards) {
        let route = &self.0.route;
        route.preferred.store(0, Ordering::Relaxed);
        route.is_forwarded.store(forwards.current().is_some(), Ordering::Release);
    }

    /// Drops a temporary forwarding; false if there was none.
    pub(crate) fn drop_forward(&self) -> bool {
        let mut forwards = self.0.route.forwards.lock();
        let dropped = forwards.temporary.take();
        self.update_is_forwarded(&forwards);
        drop(forwards);
        dropped.is_some()
    }

    /// Whether the object has answered at its current location.
    pub(crate) fn is_bound(&self) -> bool {
        self.0.route.is_bound.load(Ordering::Relaxed)
    }

    /// Records whether the object has answered at its current location.
    #[doc(hidden)]
    #[inline]
    pub fn set_bound(&self, is_bound: bool) {
        let bound = &self.0.route.is_bound;
        if bound.load(Ordering::Relaxed) != is_bound {
            bound.store(is_bound, Ordering::Relaxed);
        }
    }

    /// The index of the destination to which the next call goes first.
    #[doc(hidden)]
    pub fn preferred(&self) -> &AtomicUsize {
        &self.0.route.preferred
    }
}

impl Reference for ObjectRef {
    fn ior(&self) -> &Ior {
        &self.0.ior
    }
}

impl Typed for ObjectRef {
    fn type_code() -> TypeCode {
        TypeCode::object()
    }
}

impl FromBound for ObjectRef {
    fn from_bound(bound: Arc<dyn Any + Send + Sync>) -> Result<Self, CdrError> {
        bound.downcast::<Self>().map(|object| (*object).clone()).map_err(|_| CdrError::Unbound)
    }
}

impl<R: TypedReference<Target: Interface>> Interface for R {
    const REPOSITORY_ID: &'static str = R::REPOSITORY_ID;

    #[inline]
    fn from_object(object: ObjectRef) -> Self {
        R::wrap(Interface::from_object(object))
    }

    #[inline]
    fn as_object(&self) -> &ObjectRef {
        (**self).as_object()
    }
}

impl<R: TypedReference<Target: Interface>> From<R> for ObjectRef {
    fn from(reference: R) -> Self {
        reference.as_object().clone()
    }
}

impl Interface for ObjectRef {
    const REPOSITORY_ID: &'static str = OBJECT_ID;

    fn from_object(object: ObjectRef) -> Self {
        object
    }

    fn as_object(&self) -> &ObjectRef {
        self
    }
}

impl PartialEq for ObjectRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.ior == other.0.ior
    }
}

impl Eq for ObjectRef {}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectRef").field("type_id", &self.type_id()).finish_non_exhaustive()
    }
}

impl fmt::Display for ObjectRef {
    /// Writes the stringified reference, which begins with `IOR:`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&spandrel_giop::ior_to_string(&self.0.ior))
    }
}
