//! What calls go by: the client's policies, at the levels of the ORB, the thread and the reference (CORBA 3.3 Part 1, 8.9, and the
//! qualities of service of 17.2).
//!
//! A policy that is set on a reference goes before one that the calling thread has, and that before the ORB's. What they say
//! is obeyed by `invocation` and its asynchronous sibling; `policy_values` is the form in which they ask.
//! Policies of adapters belong to those.
//!
//! ```
//! # #[cfg(feature = "policies")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use spandrel_orb::Orb;
//! use spandrel_orb::policies::{RelativeRoundtripTimeoutPolicy, SetOverrideType, SyncScopePolicy};
//!
//! let orb = Orb::builder().build()?;
//! let limit = RelativeRoundtripTimeoutPolicy(Duration::from_secs(2));
//! orb.policy_manager().set_policy_overrides(&[limit.into()], SetOverrideType::AddOverride)?;
//!
//! let object = orb.string_to_object("corbaloc::localhost/Printer")?;
//! let certain = object.set_policy_overrides(&[SyncScopePolicy::WithTarget.into()], SetOverrideType::AddOverride)?;
//! assert_eq!(certain.timeout(), Some(Duration::from_secs(2)), "of the ORB, since the reference has none");
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "policies"))]
//! # fn main() {}
//! ```

#[cfg(feature = "policies")]
mod buffering;
mod call_policies;
#[cfg(any(feature = "policies", feature = "server"))]
mod context;
#[cfg(feature = "policies")]
mod current;
#[cfg(feature = "policies")]
mod earliest_delivery;
#[cfg(feature = "policies")]
mod factory;
#[cfg(feature = "policies")]
mod manager;
mod messaging;
#[cfg(feature = "policies")]
mod object;
#[cfg(feature = "policies")]
mod overrides;
mod policy_values;
#[cfg(feature = "policies")]
mod values;

#[cfg(feature = "policies")]
pub use buffering::BufferingConstraintPolicy;
#[cfg(any(feature = "asynchronous", feature = "interceptors"))]
pub(crate) use call_policies::CallPolicies;
#[cfg(feature = "policies")]
pub use context::DeadlineContext;
#[cfg(feature = "server")]
pub(crate) use context::due;
#[cfg(feature = "policies")]
pub(crate) use context::{kept_context, remaining_end, written_contexts};
#[cfg(feature = "policies")]
pub use current::PolicyCurrent;
#[cfg(feature = "policies")]
pub(crate) use earliest_delivery::EarliestDelivery;
#[cfg(feature = "policies")]
pub use factory::{PolicyError, PolicyFactory};
#[cfg(feature = "policies")]
pub(crate) use manager::OrbPolicies;
#[cfg(feature = "policies")]
pub use manager::PolicyManager;
pub use messaging::{RebindPolicy, SyncScopePolicy};
#[cfg(feature = "policies")]
pub(crate) use overrides::Overrides;
#[cfg(feature = "policies")]
pub use overrides::{OverrideError, SetOverrideType};
pub(crate) use policy_values::{OrbPolicyValues, PolicyValues};
#[cfg(feature = "policies")]
pub use values::{
    ConnectionTimeoutPolicy, RelativeRequestTimeoutPolicy, RelativeRoundtripTimeoutPolicy, ReplyEndTimePolicy,
    ReplyStartTimePolicy, RequestEndTimePolicy, RequestStartTimePolicy, UtcT,
};
