//! Bidirectional GIOP: requests of both sides over one connection, for clients behind firewalls (CORBA 3.3
//! Part 2, 9.8 and 9.9).
//!
//! A bidirectional ORB announces the addresses in its references with the first request on each connection
//! that it opens, and accepts requests over it (`connection_contexts`). As a server it records announced
//! addresses that it trusts, and sends requests for such an address over the
//! connection that announced it. One setting serves both sides:
//! [`OrbBuilder::bidirectional`](crate::OrbBuilder::bidirectional).
//!
//! The exchange of both sides' requests on a connection belongs to `client` and to the crate of the server side.

use spandrel_sync::atomic::{AtomicBool, Ordering};

use crate::{PolicyType, PolicyValue};

/// Whether connections of one ORB carry requests in both directions.
#[derive(Debug)]
pub struct Bidirectional {
    /// Whether connections are used by both sides.
    is_on: AtomicBool,
    /// Whether adapters without a policy use it.
    is_default: AtomicBool,
}

impl Bidirectional {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on: AtomicBool::new(is_on), is_default: AtomicBool::new(is_on) }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Whether adapters without a policy use it.
    pub fn is_default(&self) -> bool {
        self.is_default.load(Ordering::Relaxed)
    }

    /// Switches bidirectional use on: for an adapter, or `for_all`. Returns true if it was off.
    pub(crate) fn enable(&self, for_all: bool) -> bool {
        self.is_default.fetch_or(for_all, Ordering::Relaxed);
        !self.is_on.swap(true, Ordering::SeqCst)
    }
}

/// Whether an adapter's objects are called over connections that their own ORB has opened
/// (`BiDirPolicy::BidirectionalPolicy`).
///
/// Adapters without the policy use their ORB's [setting](crate::OrbBuilder::bidirectional), or this policy
/// among the ORB's.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::{BidirectionalPolicy, policy::*}; } pub mod cdr { pub use spandrel_cdr::GiopVersion; } pub mod types { pub use spandrel_cdr::Any; } }
/// use spandrel::Orb;
/// use spandrel::policy::{BidirectionalPolicy, SetOverrideType};
///
/// // A client behind a firewall: the server calls its callback objects over the client's own connection.
/// let orb = Orb::builder().build()?;
/// orb.policy_manager().set_policy_overrides(&[BidirectionalPolicy::Both.into()], SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum BidirectionalPolicy {
    /// Objects are called over connections that the caller has opened.
    #[default]
    Normal,
    /// Objects are also called over connections that their own ORB has opened to the caller.
    Both,
}

impl BidirectionalPolicy {
    /// The type of this policy (`BIDIRECTIONAL_POLICY_TYPE`).
    pub const POLICY_TYPE: PolicyType = 37;
}

impl PolicyValue for BidirectionalPolicy {
    fn policy_type(&self) -> PolicyType {
        Self::POLICY_TYPE
    }
}
