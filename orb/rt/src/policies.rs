//! The policies of Real-time CORBA as values, with their numbers, rules and octets.
//!
//! The first three are policies of adapters. An ORB may have them for its adapters; threads and references refuse them
//! with NO_PERMISSION. The other three are set for an ORB, a thread or a reference, and [`RtClient`](crate::RtClient)
//! obeys them.
//!
//! References carry the policies that concern clients: the priority model and the priority bands. In a reference
//! (TAG_POLICIES) or request (INVOCATION_POLICIES), the value of such a policy is a CDR encapsulation of its attributes in
//! the order of the IDL; [`contexts`](crate::contexts) has the lists around them.
//!
//! ```
//! use spandrel_orb::Policy;
//! use spandrel_rt::Priority;
//! use spandrel_rt::policies::{PriorityBand, PriorityBandedConnectionPolicy};
//!
//! let bands = [(0, 999), (1_000, 32_767)].map(|(low, high)| PriorityBand::new(low, high));
//! let policy = PriorityBandedConnectionPolicy::new(bands.into_iter().collect::<Result<_, _>>()?)?;
//! assert_eq!(policy.band_of(Priority::new(1_500)?).map(|band| band.low().get()), Some(1_000));
//! assert_eq!(Policy::from(policy).policy_type(), 45);
//! # Ok::<(), spandrel_giop::SystemException>(())
//! ```

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_orb::{PolicyScope, PolicyType, PolicyValue};

use crate::Priority;
use crate::protocols::Protocol;

/// The greatest number of bands of one policy.
pub const MAX_BANDS: usize = 256;
/// The greatest number of protocols of one policy.
pub const MAX_PROTOCOLS: usize = 64;

/// The number of a thread pool (`RTCORBA::ThreadpoolId`).
pub type ThreadpoolId = u32;

/// The origin of the priority at which a servant runs (`RTCORBA::PriorityModel`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u32)]
pub enum PriorityModel {
    /// The client sends it with each request.
    ClientPropagated = 0,
    /// The server assigns it to the object.
    ServerDeclared = 1,
}

/// The priority model of an adapter, in its references (`RTCORBA::PriorityModelPolicy`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PriorityModelPolicy {
    /// Whether the client or the server chooses the priority of a request.
    pub model: PriorityModel,
    /// The priority of the object, or of requests that come without one.
    pub server_priority: Priority,
}

/// The thread pool of an adapter (`RTCORBA::ThreadpoolPolicy`). References do not carry it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ThreadpoolPolicy(pub ThreadpoolId);

/// The protocols of an adapter's references, the preferred one first (`RTCORBA::ServerProtocolPolicy`). Their properties are
/// those of the sockets that the endpoints of its lanes accept. References do not carry it as a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerProtocolPolicy(Vec<Protocol>);

/// The protocols by which a client connects, the preferred one first (`RTCORBA::ClientProtocolPolicy`).
#[derive(Clone, Debug, PartialEq)]
pub struct ClientProtocolPolicy(Vec<Protocol>);

/// A connection for one reference alone (`RTCORBA::PrivateConnectionPolicy`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct PrivateConnectionPolicy;

/// Priorities that share a connection (`RTCORBA::PriorityBand`), both ends included.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PriorityBand {
    low: Priority,
    high: Priority,
}

/// A connection for each band of priorities (`RTCORBA::PriorityBandedConnectionPolicy`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PriorityBandedConnectionPolicy(Vec<PriorityBand>);

fn bad_param(text: impl FnOnce() -> String) -> SystemException {
    SystemException::bad_param(0, CompletionStatus::No).with_detail(text)
}

impl PriorityBand {
    /// The band from `low` to `high`.
    ///
    /// # Errors
    /// BAD_PARAM if one is no priority, or `low` is above `high`.
    pub fn new(low: i16, high: i16) -> Result<Self, SystemException> {
        Self::from_priorities(Priority::new(low)?, Priority::new(high)?)
            .ok_or_else(|| bad_param(|| format!("the priority band from {low} to {high} is empty")))
    }

    pub(crate) fn from_priorities(low: Priority, high: Priority) -> Option<Self> {
        (low <= high).then_some(Self { low, high })
    }

    /// The least urgent priority of the band.
    #[must_use]
    pub fn low(self) -> Priority {
        self.low
    }

    /// The most urgent priority of the band.
    #[must_use]
    pub fn high(self) -> Priority {
        self.high
    }

    /// Whether the band has this priority.
    #[must_use]
    pub fn contains(self, priority: Priority) -> bool {
        (self.low..=self.high).contains(&priority)
    }
}

impl PriorityBandedConnectionPolicy {
    /// The policy with these bands, in any order.
    ///
    /// # Errors
    /// BAD_PARAM if there are none, more than [`MAX_BANDS`], or two that overlap.
    pub fn new(bands: Vec<PriorityBand>) -> Result<Self, SystemException> {
        Self::from_bands(bands).ok_or_else(|| {
            bad_param(|| format!("priority bands are from 1 to {MAX_BANDS} ranges of priorities that do not overlap"))
        })
    }

    pub(crate) fn from_bands(bands: Vec<PriorityBand>) -> Option<Self> {
        let mut sorted = bands.clone();
        sorted.sort_by_key(|band| band.low);
        let overlap = sorted.windows(2).any(|pair| pair[1].low <= pair[0].high);
        ((1..=MAX_BANDS).contains(&bands.len()) && !overlap).then_some(Self(bands))
    }

    /// The bands as they were given to [`new`](Self::new).
    #[must_use]
    pub fn bands(&self) -> &[PriorityBand] {
        &self.0
    }

    /// The band for calls at this priority; `None` if there is none, and such calls cannot be made.
    #[must_use]
    pub fn band_of(&self, priority: Priority) -> Option<PriorityBand> {
        self.0.iter().copied().find(|band| band.contains(priority))
    }
}

/// Rejects a list without protocols, with too many, or with one twice.
fn check_protocols(protocols: Vec<Protocol>) -> Result<Vec<Protocol>, SystemException> {
    if !(1..=MAX_PROTOCOLS).contains(&protocols.len()) {
        return Err(bad_param(|| format!("a protocol policy has from 1 to {MAX_PROTOCOLS} protocols")));
    }
    for (at, protocol) in protocols.iter().enumerate() {
        let number = protocol.protocol_type;
        if protocols[..at].iter().any(|other| other.protocol_type == number) {
            return Err(bad_param(|| format!("the protocol {number} is listed twice")));
        }
    }
    Ok(protocols)
}

macro_rules! protocol_policy {
    ($policy:ident) => {
        impl $policy {
            /// The policy with these protocols, the preferred one first.
            ///
            /// # Errors
            /// BAD_PARAM if there are none, more than [`MAX_PROTOCOLS`], or one twice.
            pub fn new(protocols: Vec<Protocol>) -> Result<Self, SystemException> {
                check_protocols(protocols).map(Self)
            }

            /// The protocols as they were given to [`new`](Self::new), the preferred one first.
            #[must_use]
            pub fn protocols(&self) -> &[Protocol] {
                &self.0
            }
        }
    };
}

protocol_policy!(ServerProtocolPolicy);
protocol_policy!(ClientProtocolPolicy);

macro_rules! policy_types {
    ($($policy:ident = $number:literal, $name:literal, $scope:ident;)*) => {$(
        impl $policy {
            #[doc = concat!("The type of this policy (`RTCORBA::", $name, "`).")]
            pub const POLICY_TYPE: PolicyType = $number;
        }

        impl PolicyValue for $policy {
            fn policy_type(&self) -> PolicyType {
                Self::POLICY_TYPE
            }

            fn scope(&self) -> PolicyScope {
                PolicyScope::$scope
            }
        }
    )*};
}

policy_types! {
    PriorityModelPolicy = 40, "PRIORITY_MODEL_POLICY_TYPE", Adapter;
    ThreadpoolPolicy = 41, "THREADPOOL_POLICY_TYPE", Adapter;
    ServerProtocolPolicy = 42, "SERVER_PROTOCOL_POLICY_TYPE", Adapter;
    ClientProtocolPolicy = 43, "CLIENT_PROTOCOL_POLICY_TYPE", Binding;
    PrivateConnectionPolicy = 44, "PRIVATE_CONNECTION_POLICY_TYPE", Binding;
    PriorityBandedConnectionPolicy = 45, "PRIORITY_BANDED_CONNECTION_POLICY_TYPE", Binding;
}
