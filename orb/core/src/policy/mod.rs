//! The client's policies, at the levels of the ORB, the thread and the reference (CORBA 3.3 Part 1, 8.9, and
//! the qualities of service of 17.2).
//!
//! A policy of a reference takes precedence over one of the calling thread, and that over one of the ORB.
//! `invocation` and `asynchronous` obey them; `policy_values` is the compact form that they read. The
//! policies of adapters belong to the adapters.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use spandrel_orb::Orb;
//! use spandrel_orb::policy::{RelativeRoundtripTimeoutPolicy, SetOverrideType, SyncScopePolicy};
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
//! ```

pub(crate) mod bidirectional;
pub(crate) mod deadline_contexts;
mod exposed_policies;
mod orb_policies;
mod overrides;
pub(crate) mod policy_value;
mod policy_values;
pub(crate) mod quality_of_service;
pub(crate) mod request_deadlines;
pub(crate) mod thread_flags;
pub(crate) mod time_limits;

pub use deadline_contexts::DeadlineContext;
pub(crate) use deadline_contexts::{cached_context, remaining_tail, with_deadline_contexts};
pub use exposed_policies::ExposedPolicies;
pub(crate) use exposed_policies::ReadPolicies;
pub(crate) use orb_policies::{OrbPolicies, is_own_policy};
pub use orb_policies::{PolicyError, PolicyErrorCode, PolicyFactory};
pub(crate) use overrides::Overrides;
pub use overrides::{OverrideError, SetOverrideType};
pub(crate) use policy_values::{OrbPolicyValues, PolicyValues};
pub use quality_of_service::{BufferingConstraintPolicy, RebindPolicy, SyncScopePolicy};
pub use time_limits::{
    ConnectionTimeoutPolicy, RelativeRequestTimeoutPolicy, RelativeRoundtripTimeoutPolicy, ReplyEndTimePolicy,
    ReplyStartTimePolicy, RequestEndTimePolicy, RequestStartTimePolicy, UtcT,
};
