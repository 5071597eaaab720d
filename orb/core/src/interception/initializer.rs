//! Initialisers: how services register their interceptors with an ORB that they do not make themselves (16.7).

use spandrel_giop::SystemException;
use spandrel_giop::{CompletionStatus, minor};
use spandrel_sync::Arc;

use super::{ClientRequestInterceptor, CodecFactory, DuplicateName, RegisteredInterceptors, SlotId};
#[cfg(feature = "server")]
use super::{IorInterceptor, ServerRequestInterceptor};
use crate::Orb;
use crate::{InvalidName, ObjectRef};
use crate::{PolicyType, policies::PolicyFactory};

/// A service's part in the making of an ORB (`ORBInitializer`, 16.7.1).
pub trait OrbInitializer: Send + Sync {
    /// The ORB is about to be made: what others need of this service is registered here.
    ///
    /// # Errors
    /// Whatever keeps the ORB from being made.
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }

    /// All services have registered what others need.
    ///
    /// # Errors
    /// Whatever keeps the ORB from being made.
    fn post_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }
}

/// What an initialiser may do (`ORBInitInfo`, 16.7.2). It exists no longer than the ORB's making.
#[derive(Debug)]
pub struct OrbInitInfo<'i> {
    registered: &'i mut RegisteredInterceptors,
    orb: &'i Orb,
    /// What others need is registered.
    is_post: bool,
}

impl OrbInitInfo<'_> {
    /// The ORB's name (`-ORBId`).
    #[must_use]
    pub fn orb_id(&self) -> &str {
        self.orb.id()
    }

    /// Makes coders of values, for service contexts and components.
    #[must_use]
    pub fn codec_factory(&self) -> CodecFactory {
        self.orb.codec_factory()
    }

    /// Makes an object known by a name (16.7.2.6).
    ///
    /// # Errors
    /// [`InvalidName`] for a name that is empty or taken.
    pub fn register_initial_reference(&mut self, name: &str, object: &ObjectRef) -> Result<(), InvalidName> {
        self.orb.register_initial_reference(name, object)
    }

    /// The object that is known by a name (16.7.2.7): in `post_init` only. Calls on it pass no interceptors yet.
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

    /// As [`OrbBuilder::client_request_interceptor`](crate::OrbBuilder::client_request_interceptor).
    ///
    /// # Errors
    /// Another interceptor of the kind has its name.
    pub fn add_client_request_interceptor(
        &mut self,
        interceptor: impl ClientRequestInterceptor + 'static,
    ) -> Result<(), DuplicateName> {
        self.registered.add_client(Arc::new(interceptor))
    }

    /// As [`OrbBuilder::server_request_interceptor`](crate::OrbBuilder::server_request_interceptor).
    ///
    /// # Errors
    /// Another interceptor of the kind has its name.
    #[cfg(feature = "server")]
    pub fn add_server_request_interceptor(
        &mut self,
        interceptor: impl ServerRequestInterceptor + 'static,
    ) -> Result<(), DuplicateName> {
        self.registered.add_server(Arc::new(interceptor))
    }

    /// As [`OrbBuilder::ior_interceptor`](crate::OrbBuilder::ior_interceptor).
    ///
    /// # Errors
    /// Another interceptor of the kind has its name.
    #[cfg(feature = "server")]
    pub fn add_ior_interceptor(&mut self, interceptor: impl IorInterceptor + 'static) -> Result<(), DuplicateName> {
        self.registered.add_ior(Arc::new(interceptor))
    }

    /// Allocates a slot of [`Orb::pi_current`] (16.7.2.11).
    pub fn allocate_slot_id(&mut self) -> SlotId {
        self.registered.allocate_slot()
    }

    /// Registers who makes policies of a type (16.7.2.12).
    ///
    /// # Errors
    /// BAD_INV_ORDER if somebody is registered for the type.
    pub fn register_policy_factory(
        &mut self,
        policy_type: PolicyType,
        factory: Arc<dyn PolicyFactory>,
    ) -> Result<(), SystemException> {
        self.orb.register_policy_factory(policy_type, factory)
    }
}

/// What initialisers need to make of an ORB before it is anybody's.
///
/// # Errors
/// The first exception that one of them raises; the others are not asked then (16.7.1).
pub(crate) fn initialize(orb: &Orb, mut registered: RegisteredInterceptors) -> Result<(), SystemException> {
    let initializers = std::mem::take(&mut registered.initializers);
    for is_post in [false, true] {
        for initializer in &initializers {
            let info = &mut OrbInitInfo { registered: &mut registered, orb, is_post };
            if is_post { initializer.post_init(info) } else { initializer.pre_init(info) }?;
        }
    }
    orb.interception().begin(registered);
    Ok(())
}

impl From<DuplicateName> for SystemException {
    /// INITIALIZE, for initialisers that let it pass.
    fn from(duplicate: DuplicateName) -> Self {
        Self::initialize(0, spandrel_giop::CompletionStatus::No).with_detail(|| duplicate.to_string())
    }
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::GiopVersion;

    use super::*;
    use crate::interception::{Codec, Encoding, Interceptor};

    /// Has what interceptors usually have.
    struct Equipped {
        _witness: Arc<()>,
        _codec: Codec,
    }

    impl Interceptor for Equipped {}

    impl ClientRequestInterceptor for Equipped {}

    struct Equips(Arc<()>);

    impl OrbInitializer for Equips {
        fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
            let codec = info.codec_factory().create_codec(Encoding::cdr_encaps(GiopVersion::V1_2));
            let codec = codec.expect("a known encoding");
            Ok(info.add_client_request_interceptor(Equipped { _witness: Arc::clone(&self.0), _codec: codec })?)
        }
    }

    #[test]
    fn interceptors_do_not_keep_the_orb_alive() {
        let witness = Arc::new(());
        let orb = Orb::builder().initializer(Equips(Arc::clone(&witness))).build().unwrap();
        assert_eq!(Arc::strong_count(&witness), 2, "the initialiser is gone, the interceptor is there");
        drop(orb);
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}
