//! The policies of an ORB, and the creation of policies from values whose types are known only at run time
//! (CORBA 3.3 Part 1, 8.8.2 and 16.7.3).

use std::{fmt, time::Duration};

use spandrel_cdr::{Any, Decode, Typed};
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::{Arc, RwLock};

use super::{
    ConnectionTimeoutPolicy, Overrides, RebindPolicy, RelativeRequestTimeoutPolicy, RelativeRoundtripTimeoutPolicy,
    ReplyEndTimePolicy, ReplyStartTimePolicy, RequestEndTimePolicy, RequestStartTimePolicy, SyncScopePolicy, UtcT,
    quality_of_service, time_limits,
};
use crate::BidirectionalPolicy;
use crate::{Policy, PolicyType};

/// The reason why a policy could not be created (`CORBA::PolicyError`; the numbers are those of
/// `CORBA::PolicyErrorCode`).
#[derive(Clone, Copy, Eq, Hash, PartialEq, thiserror::Error)]
#[repr(i16)]
pub enum PolicyError {
    /// The policy could not be created.
    #[error("the policy could not be created")]
    BadPolicy = 0,
    /// The policy type is the standard's, and this ORB does not support it.
    #[error("policies of this type are not supported")]
    UnsupportedPolicy = 1,
    /// The value has a wrong type for this policy type.
    #[error("the value has a wrong type for this policy type")]
    BadPolicyType = 2,
    /// The value has the right type and is invalid.
    #[error("the value is invalid for this policy type")]
    BadPolicyValue = 3,
    /// The value is valid, and this ORB does not support it.
    #[error("the value is valid, and not supported")]
    UnsupportedPolicyValue = 4,
}
spandrel_error::debug_as_report!(PolicyError);

/// A factory of policies for the types that it is registered for (`PortableInterceptor::PolicyFactory`).
pub trait PolicyFactory: Send + Sync {
    /// Creates a policy. Called with no lock held.
    ///
    /// # Errors
    /// [`PolicyError`] for a value that it rejects.
    fn create_policy(&self, policy_type: PolicyType, value: &Any) -> Result<Policy, PolicyError>;
}

impl fmt::Debug for dyn PolicyFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PolicyFactory")
    }
}

/// Policy types of the standard's Messaging that are not supported: priorities, routing, hops and queues.
const UNSUPPORTED: [PolicyType; 5] = [25, 26, 33, 34, 35];

/// The policies of an ORB, and its policy factories.
#[derive(Debug, Default)]
pub(crate) struct OrbPolicies {
    pub(crate) overrides: RwLock<Overrides>,
    pub(crate) factories: RwLock<Vec<(PolicyType, Arc<dyn PolicyFactory>)>>,
}

impl OrbPolicies {
    /// The policies that the ORB's settings define.
    pub(crate) fn new(request_timeout: Option<Duration>) -> Self {
        let timeout = request_timeout.map(|limit| RelativeRoundtripTimeoutPolicy(limit).into());
        let overrides = Overrides::of(timeout.as_slice()).expect("one policy that clients may have");
        Self { overrides: RwLock::new(overrides), factories: RwLock::default() }
    }

    /// The factory that is registered for policies of a type.
    pub(crate) fn factory(&self, policy_type: PolicyType) -> Option<Arc<dyn PolicyFactory>> {
        let factories = self.factories.read();
        factories
            .iter()
            .find(|(registered_type, _)| *registered_type == policy_type)
            .map(|(_, factory)| Arc::clone(factory))
    }

    /// Creates a policy from its standard value ([`Orb::create_policy`](crate::Orb::create_policy)).
    pub(crate) fn create(&self, policy_type: PolicyType, value: &Any) -> Result<Policy, PolicyError> {
        let time = || extract::<UtcT>(value)?.to_system_time().ok_or(PolicyError::BadPolicyValue);
        Ok(match policy_type {
            quality_of_service::REBIND => mode(value, &RebindPolicy::ALL)?.into(),
            quality_of_service::SYNC_SCOPE => mode(value, &SyncScopePolicy::ALL)?.into(),
            time_limits::REQUEST_START_TIME => RequestStartTimePolicy(time()?).into(),
            time_limits::REPLY_START_TIME => ReplyStartTimePolicy(time()?).into(),
            time_limits::REQUEST_END_TIME => RequestEndTimePolicy(time()?).into(),
            time_limits::REPLY_END_TIME => ReplyEndTimePolicy(time()?).into(),
            time_limits::RELATIVE_REQUEST_TIMEOUT => {
                RelativeRequestTimeoutPolicy(time_limits::span(extract(value)?)).into()
            }
            time_limits::CONNECTION_TIMEOUT => ConnectionTimeoutPolicy(time_limits::span(extract(value)?)).into(),
            time_limits::RELATIVE_ROUNDTRIP_TIMEOUT => {
                RelativeRoundtripTimeoutPolicy(time_limits::span(extract(value)?)).into()
            }
            BidirectionalPolicy::POLICY_TYPE => match extract::<u16>(value)? {
                0 => BidirectionalPolicy::Normal.into(),
                1 => BidirectionalPolicy::Both.into(),
                _ => return Err(PolicyError::BadPolicyValue),
            },
            // The value is a structure of TAO.
            quality_of_service::BUFFERING_CONSTRAINT => return Err(PolicyError::UnsupportedPolicy),
            other => {
                let factory = self.factory(other);
                return match factory {
                    Some(factory) => factory.create_policy(other, value),
                    None if UNSUPPORTED.contains(&other) => Err(PolicyError::UnsupportedPolicy),
                    None => Err(PolicyError::BadPolicyType),
                };
            }
        })
    }

    /// Registers a factory ([`Orb::register_policy_factory`](crate::Orb::register_policy_factory)).
    pub(crate) fn register_factory(
        &self,
        policy_type: PolicyType,
        factory: Arc<dyn PolicyFactory>,
    ) -> Result<(), SystemException> {
        let already_registered = || {
            SystemException::bad_inv_order(minor::POLICY_FACTORY_REGISTERED, CompletionStatus::No)
                .with_detail(|| format!("policies of type {policy_type} have a factory already"))
        };
        if is_own_policy(policy_type) {
            return Err(already_registered());
        }
        let mut factories = self.factories.write();
        if factories.iter().any(|(registered_type, _)| *registered_type == policy_type) {
            return Err(already_registered());
        }
        factories.push((policy_type, factory));
        Ok(())
    }
}

/// Whether the ORB itself obeys policies of this type.
pub(crate) fn is_own_policy(policy_type: PolicyType) -> bool {
    let own = [
        quality_of_service::REBIND,
        quality_of_service::SYNC_SCOPE,
        time_limits::RELATIVE_ROUNDTRIP_TIMEOUT,
        quality_of_service::BUFFERING_CONSTRAINT,
        BidirectionalPolicy::POLICY_TYPE,
    ];
    own.contains(&policy_type) || time_limits::LIMITS.contains(&policy_type)
}

fn extract<T: Decode + Typed>(value: &Any) -> Result<T, PolicyError> {
    value.extract().map_err(|_| PolicyError::BadPolicyType)
}

/// Converts a mode. Negative modes are reserved for vendors, others for the standard (17.2.1.1, 17.2.2.1).
fn mode<T: Copy>(value: &Any, all: &[T]) -> Result<T, PolicyError> {
    let mode: i16 = extract(value)?;
    let value = usize::try_from(mode).ok().and_then(|mode| all.get(mode).copied());
    value.ok_or(if mode < 0 { PolicyError::UnsupportedPolicyValue } else { PolicyError::BadPolicyValue })
}
