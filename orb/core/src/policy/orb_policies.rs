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

/// The error of the creation of a policy from its value (`CORBA::PolicyError`; CORBA 3.3 Part 1, 8.8.2).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } pub mod types { pub use spandrel_cdr::Any; } }
/// use spandrel::Orb;
/// use spandrel::policy::PolicyErrorCode;
/// use spandrel::types::Any;
///
/// let orb = Orb::builder().build()?;
/// let error = orb.create_policy(23, &Any::new(7_i16)?).unwrap_err(); // Messaging::REBIND_POLICY_TYPE
/// assert_eq!(error.reason, PolicyErrorCode::BadPolicyValue);
/// assert_eq!(
///     error.to_string(),
///     "cannot create a policy of type 23 (REBIND_POLICY_TYPE) from the short 7: the value is invalid for this policy type"
/// );
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error("cannot create a policy of type {policy_type}{} from {value}: {reason}", type_name(*policy_type))]
#[non_exhaustive]
pub struct PolicyError {
    /// The number of the policy that was refused, such as 31 for RELATIVE_REQ_TIMEOUT_POLICY_TYPE.
    pub policy_type: PolicyType,
    /// A description of the value: its type, and the number if it is a `short` or `unsigned short`.
    pub value: String,
    /// The code that `CORBA::PolicyError` carries.
    pub reason: PolicyErrorCode,
}
spandrel_error::debug_as_report!(PolicyError);

/// The reason why a policy could not be created (`CORBA::PolicyErrorCode`, with its numbers).
#[derive(Clone, Copy, Eq, Hash, PartialEq, thiserror::Error)]
#[repr(i16)]
pub enum PolicyErrorCode {
    /// The policy could not be created.
    #[error("the policy factory failed")]
    BadPolicy = 0,
    /// The policy type is the standard's, and this ORB does not support it.
    #[error("the ORB does not support policies of this type")]
    UnsupportedPolicy = 1,
    /// The value has a wrong type for this policy type, or the policy type is unknown.
    #[error("values of this policy type have another IDL type, or no policy factory is registered for it")]
    BadPolicyType = 2,
    /// The value has the right type and is invalid.
    #[error("the value is invalid for this policy type")]
    BadPolicyValue = 3,
    /// The value is valid, and this ORB does not support it.
    #[error("the ORB does not support this value")]
    UnsupportedPolicyValue = 4,
}
spandrel_error::debug_as_report!(PolicyErrorCode);

/// The name of a policy type that the ORB knows, in parentheses.
fn type_name(policy_type: PolicyType) -> &'static str {
    match policy_type {
        quality_of_service::REBIND => " (REBIND_POLICY_TYPE)",
        quality_of_service::SYNC_SCOPE => " (SYNC_SCOPE_POLICY_TYPE)",
        quality_of_service::BUFFERING_CONSTRAINT => " (TAO's BUFFERING_CONSTRAINT_POLICY_TYPE)",
        time_limits::REQUEST_START_TIME => " (REQUEST_START_TIME_POLICY_TYPE)",
        time_limits::REQUEST_END_TIME => " (REQUEST_END_TIME_POLICY_TYPE)",
        time_limits::REPLY_START_TIME => " (REPLY_START_TIME_POLICY_TYPE)",
        time_limits::REPLY_END_TIME => " (REPLY_END_TIME_POLICY_TYPE)",
        time_limits::RELATIVE_REQUEST_TIMEOUT => " (RELATIVE_REQ_TIMEOUT_POLICY_TYPE)",
        time_limits::RELATIVE_ROUNDTRIP_TIMEOUT => " (RELATIVE_RT_TIMEOUT_POLICY_TYPE)",
        time_limits::CONNECTION_TIMEOUT => " (TAO's CONNECTION_TIMEOUT_POLICY_TYPE)",
        BidirectionalPolicy::POLICY_TYPE => " (BIDIRECTIONAL_POLICY_TYPE)",
        _ => "",
    }
}

/// A description of a policy's value for errors.
fn describe(value: &Any) -> String {
    let value_type = value.type_code();
    let number = value.extract::<i16>().map(i32::from).or_else(|_| value.extract::<u16>().map(i32::from));
    number.map_or_else(|_| format!("a value of type `{value_type}`"), |number| format!("the {value_type} {number}"))
}

/// A factory of policies for the types that it is registered for (`PortableInterceptor::PolicyFactory`).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::{Policy, PolicyType, PolicyValue, policy::*}; } pub mod types { pub use spandrel_cdr::Any; } }
/// use std::sync::Arc;
///
/// use spandrel::Orb;
/// use spandrel::policy::{Policy, PolicyErrorCode, PolicyFactory, PolicyType, PolicyValue};
/// use spandrel::types::Any;
///
/// /// The priority of a service's calls; the service reads it in an interceptor.
/// #[derive(Debug, PartialEq)]
/// struct Priority(i16);
///
/// impl PolicyValue for Priority {
///     fn policy_type(&self) -> PolicyType {
///         0x4d59_0001 // of a vendor
///     }
/// }
///
/// struct PriorityFactory;
///
/// impl PolicyFactory for PriorityFactory {
///     fn create_policy(&self, _: PolicyType, value: &Any) -> Result<Policy, PolicyErrorCode> {
///         match value.extract::<i16>().map_err(|_| PolicyErrorCode::BadPolicyType)? {
///             priority @ 0..=9 => Ok(Priority(priority).into()),
///             _ => Err(PolicyErrorCode::BadPolicyValue),
///         }
///     }
/// }
///
/// let orb = Orb::builder().build()?;
/// orb.register_policy_factory(0x4d59_0001, Arc::new(PriorityFactory))?;
/// let policy = orb.create_policy(0x4d59_0001, &Any::new(3_i16)?)?;
/// assert_eq!(policy.value(), Some(&Priority(3)));
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait PolicyFactory: Send + Sync {
    /// Creates a policy. Called with no lock held.
    ///
    /// # Errors
    /// The reason why it rejects the value.
    fn create_policy(&self, policy_type: PolicyType, value: &Any) -> Result<Policy, PolicyErrorCode>;
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
        let created = self.convert(policy_type, value);
        created.map_err(|reason| PolicyError { policy_type, value: describe(value), reason })
    }

    fn convert(&self, policy_type: PolicyType, value: &Any) -> Result<Policy, PolicyErrorCode> {
        let time = || extract::<UtcT>(value)?.to_system_time().ok_or(PolicyErrorCode::BadPolicyValue);
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
                _ => return Err(PolicyErrorCode::BadPolicyValue),
            },
            // The value is a structure of TAO.
            quality_of_service::BUFFERING_CONSTRAINT => return Err(PolicyErrorCode::UnsupportedPolicy),
            other => {
                let factory = self.factory(other);
                return match factory {
                    Some(factory) => factory.create_policy(other, value),
                    None if UNSUPPORTED.contains(&other) => Err(PolicyErrorCode::UnsupportedPolicy),
                    None => Err(PolicyErrorCode::BadPolicyType),
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

fn extract<T: Decode + Typed>(value: &Any) -> Result<T, PolicyErrorCode> {
    value.extract().map_err(|_| PolicyErrorCode::BadPolicyType)
}

/// Converts a mode. Negative modes are reserved for vendors, others for the standard (17.2.1.1, 17.2.2.1).
fn mode<T: Copy>(value: &Any, all: &[T]) -> Result<T, PolicyErrorCode> {
    let mode: i16 = extract(value)?;
    let value = usize::try_from(mode).ok().and_then(|mode| all.get(mode).copied());
    value.ok_or(if mode < 0 { PolicyErrorCode::UnsupportedPolicyValue } else { PolicyErrorCode::BadPolicyValue })
}
