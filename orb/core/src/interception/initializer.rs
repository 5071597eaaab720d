//! Initialisers, by which services register their interceptors with ORBs that programs make (16.7).

use std::fmt;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::Arc;

use super::{ClientRequestInterceptor, CodecFactory, DuplicateName, RegisteredInterceptors, SlotId, registry};
use super::{IorInterceptor, ServerRequestInterceptor};
use crate::{BindingPolicies, Orb};
use crate::{InvalidName, ObjectRef};
use crate::{PolicyType, policy::PolicyFactory};

/// A service's part in the creation of an ORB (`ORBInitializer`, 16.7.1).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; }
/// use spandrel::interception::{
///     ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, OrbInitInfo, OrbInitializer, SlotId,
/// };
/// use spandrel::{CompletionStatus, Orb, SystemException};
///
/// /// A service that stops calls of threads without a user. The user is in a slot of the thread.
/// struct Users;
///
/// struct UserCheck(SlotId);
///
/// impl Interceptor for UserCheck {}
///
/// impl ClientRequestInterceptor for UserCheck {
///     fn send_request(&self, request: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
///         match request.slot(self.0).map(|user| user.extract::<String>()) {
///             Ok(Ok(_)) => Ok(()),
///             _ => Err(SystemException::no_permission(0, CompletionStatus::No).into()),
///         }
///     }
/// }
///
/// impl OrbInitializer for Users {
///     fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
///         let user = info.allocate_slot_id();
///         let added = info.add_client_request_interceptor(UserCheck(user));
///         added.map_err(|error| SystemException::initialize(0, CompletionStatus::No).with_source(error))
///     }
/// }
///
/// let orb = Orb::builder().initializer(Users).build()?;
/// // `PiCurrent::set_slot` of `orb.pi_current()` sets the user of a thread.
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait OrbInitializer: Send + Sync {
    /// Called before the ORB is made: registers what other services need of this one.
    ///
    /// # Errors
    /// An exception that prevents the creation of the ORB.
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }

    /// Called after `pre_init` of all services.
    ///
    /// # Errors
    /// An exception that prevents the creation of the ORB.
    fn post_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }
}

/// The operations of an initialiser (`ORBInitInfo`, 16.7.2). It exists only during the creation of the ORB.
#[derive(Debug)]
pub struct OrbInitInfo<'i> {
    registered: &'i mut RegisteredInterceptors,
    pub(crate) orb: &'i Orb,
    /// Whether `post_init` is being called.
    is_post: bool,
}

impl OrbInitInfo<'_> {
    /// The ORB's name (`-ORBId`).
    #[must_use]
    pub fn orb_id(&self) -> &str {
        self.orb.id()
    }

    /// The factory of codecs, for service contexts and components.
    #[must_use]
    pub fn codec_factory(&self) -> CodecFactory {
        self.orb.codec_factory()
    }

    /// Makes an object known to `resolve_initial_references` under this name (16.7.2.6).
    ///
    /// # Errors
    /// [`InvalidName`] for an empty name, or one that is registered already.
    pub fn register_initial_reference(&mut self, name: &str, object: &ObjectRef) -> Result<(), InvalidName> {
        self.orb.register_initial_reference(name, object)
    }

    /// The initial reference of this name (16.7.2.7): in `post_init` only. Calls on it pass no interceptors
    /// yet.
    ///
    /// # Errors
    /// BAD_INV_ORDER in `pre_init`; as `Orb::resolve_initial_references`.
    pub fn resolve_initial_references(&self, name: &str) -> Result<ObjectRef, SystemException> {
        if !self.is_post {
            return Err(SystemException::bad_inv_order(minor::INVALID_PI_CALL, CompletionStatus::No)
                .with_detail("initial references are resolved in `post_init`"));
        }
        self.orb.resolve_initial_references(name)
    }

    /// The same as [`OrbBuilder::client_request_interceptor`](crate::OrbBuilder::client_request_interceptor).
    ///
    /// # Errors
    /// If another interceptor of the kind has its name.
    pub fn add_client_request_interceptor(
        &mut self,
        interceptor: impl ClientRequestInterceptor + 'static,
    ) -> Result<(), DuplicateName> {
        self.registered.add_client(Arc::new(interceptor))
    }

    /// The same as [`OrbBuilder::server_request_interceptor`](crate::OrbBuilder::server_request_interceptor).
    ///
    /// # Errors
    /// If another interceptor of the kind has its name.
    pub fn add_server_request_interceptor(
        &mut self,
        interceptor: impl ServerRequestInterceptor + 'static,
    ) -> Result<(), DuplicateName> {
        self.registered.add_server(Arc::new(interceptor))
    }

    /// The same as [`OrbBuilder::ior_interceptor`](crate::OrbBuilder::ior_interceptor).
    ///
    /// # Errors
    /// If another interceptor of the kind has its name.
    pub fn add_ior_interceptor(&mut self, interceptor: impl IorInterceptor + 'static) -> Result<(), DuplicateName> {
        self.registered.add_ior(Arc::new(interceptor))
    }

    /// Allocates a slot of [`Orb::pi_current`] (16.7.2.11).
    pub fn allocate_slot_id(&mut self) -> SlotId {
        self.registered.allocate_slot()
    }

    /// Registers the factory of policies of a type (16.7.2.12).
    ///
    /// # Errors
    /// BAD_INV_ORDER if the type has a factory.
    pub fn register_policy_factory(
        &mut self,
        policy_type: PolicyType,
        factory: Arc<dyn PolicyFactory>,
    ) -> Result<(), SystemException> {
        self.orb.register_policy_factory(policy_type, factory)
    }
}

/// Gives an ORB its binding policies.
pub(crate) struct BindingInitializer(pub(crate) Arc<dyn BindingPolicies>);

impl OrbInitializer for BindingInitializer {
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        info.orb.binding_part().get_or_make(|| Arc::clone(&self.0));
        info.registered.bind_calls();
        Ok(())
    }

    fn post_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        self.0.begin(info.orb)
    }
}

/// The initialisers of an ORB, in the order of their registration.
#[derive(Clone, Default)]
pub(crate) struct Initializers(pub(crate) Vec<Arc<dyn OrbInitializer>>);

impl fmt::Debug for Initializers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Initializers({})", self.0.len())
    }
}

/// Calls the initialisers, and completes the ORB's interceptors.
///
/// # Errors
/// The first exception that one of them raises; the others are not called then (16.7.1).
#[inline(never)]
pub(crate) fn initialize(
    orb: &Orb,
    registered: &RegisteredInterceptors,
    initializers: &[Arc<dyn OrbInitializer>],
) -> Result<(), SystemException> {
    let mut registered = registered.clone();
    for is_post in [false, true] {
        for initializer in initializers {
            let info = &mut OrbInitInfo { registered: &mut registered, orb, is_post };
            if is_post { initializer.post_init(info) } else { initializer.pre_init(info) }?;
        }
    }
    registry::begin(orb, registered);
    Ok(())
}

impl From<DuplicateName> for SystemException {
    /// INITIALIZE, for initialisers that pass it on.
    fn from(duplicate: DuplicateName) -> Self {
        Self::initialize(0, spandrel_giop::CompletionStatus::No).with_detail(|| duplicate.to_string())
    }
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::GiopVersion;

    use super::*;
    use crate::OrbBuilder;
    use crate::interception::{Codec, Encoding, Interceptor};

    /// An interceptor with the usual contents.
    struct TestInterceptor {
        _token: Arc<()>,
        _codec: Codec,
    }

    impl Interceptor for TestInterceptor {}

    impl ClientRequestInterceptor for TestInterceptor {}

    struct TestInitializer(Arc<()>);

    impl OrbInitializer for TestInitializer {
        fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
            let codec = info.codec_factory().create_codec(Encoding::cdr_encaps(GiopVersion::V1_2));
            let codec = codec.expect("a known encoding");
            Ok(info.add_client_request_interceptor(TestInterceptor { _token: Arc::clone(&self.0), _codec: codec })?)
        }
    }

    #[test]
    fn no_part_of_an_orb_changes_a_bare_one_of_the_same_process() {
        let builder = Orb::builder().urls().diagnostics().metrics(true);
        let full = builder.initializer(TestInitializer(Arc::new(()))).build().unwrap();
        let bare = OrbBuilder::bare().build().unwrap();
        assert!(full.has_client_interceptors() && !bare.has_client_interceptors());
        assert!(full.parts().observe_call().is_some() && bare.parts().observe_call().is_none());
        let location = "corbaloc::127.0.0.1:1/key";
        assert!(full.string_to_object(location).is_ok() && bare.string_to_object(location).is_err());
        let _ = full.policy_current();
        assert!(full.parts().policy_lookup().is_some() && bare.parts().policy_lookup().is_none());
    }

    #[test]
    fn interceptors_do_not_keep_the_orb_alive() {
        let token = Arc::new(());
        let orb = Orb::builder().initializer(TestInitializer(Arc::clone(&token))).build().unwrap();
        assert_eq!(Arc::strong_count(&token), 2, "the initialiser was dropped, the interceptor exists");
        drop(orb);
        assert_eq!(Arc::strong_count(&token), 1);
    }
}
