//! From priorities of CORBA to native ones and back; and priorities that an adapter changes.

use std::fmt;
use std::ops::RangeInclusive;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::transport::PacketPriority;

use crate::{NativePriority, Priority};

/// Maps priorities of CORBA to those of the operating system (`RTCORBA::PriorityMapping`).
///
/// An ORB that gets `None` raises DATA_CONVERSION. `native` is the range of the [scheduling class](crate::Scheduling) in
/// force, from the least urgent to the most urgent.
///
/// ```
/// use std::ops::RangeInclusive;
/// use spandrel_rt::{NativePriority, Priority, PriorityMapping};
///
/// /// Two native priorities: one for alarms, one for all else.
/// #[derive(Debug)]
/// struct Alarms;
///
/// impl PriorityMapping for Alarms {
///     fn to_native(&self, priority: Priority, native: &RangeInclusive<NativePriority>) -> Option<NativePriority> {
///         Some(if priority.get() >= 30_000 { *native.end() } else { *native.start() })
///     }
///     fn to_corba(&self, priority: NativePriority, native: &RangeInclusive<NativePriority>) -> Option<Priority> {
///         Some(if priority == *native.end() { Priority::MAX } else { Priority::MIN })
///     }
/// }
/// assert_eq!(Alarms.to_native(Priority::MAX, &(1..=99)), Some(99));
/// ```
pub trait PriorityMapping: fmt::Debug + Send + Sync {
    /// The native priority of a thread that works at `priority`; `None` if there is none.
    fn to_native(&self, priority: Priority, native: &RangeInclusive<NativePriority>) -> Option<NativePriority>;

    /// The priority of CORBA that a native one stands for; `None` if there is none.
    fn to_corba(&self, priority: NativePriority, native: &RangeInclusive<NativePriority>) -> Option<Priority>;
}

/// The whole range of CORBA on the whole native range, each native priority for an equal share (TAO's `linear`).
/// Mapping a native priority to CORBA and back gives the same one.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinearMapping;

/// Priority 0 is the least urgent native one, and each further one the next; TAO's `continuous`. Priorities of CORBA
/// beyond the native ones have no mapping.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContinuousMapping;

/// The numbers are equal; TAO's `direct`. Numbers outside the native range have no mapping.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectMapping;

/// The number of native priorities after the first one; `None` for an empty range.
fn span(native: &RangeInclusive<NativePriority>) -> Option<i64> {
    (!native.is_empty()).then(|| i64::from(*native.end()) - i64::from(*native.start()))
}

/// The greatest priority of CORBA.
const MAX: i64 = Priority::MAX.get() as i64;

impl PriorityMapping for LinearMapping {
    fn to_native(&self, priority: Priority, native: &RangeInclusive<NativePriority>) -> Option<NativePriority> {
        let steps = span(native)? * i64::from(priority.get()) / MAX;
        NativePriority::try_from(i64::from(*native.start()) + steps).ok()
    }

    fn to_corba(&self, priority: NativePriority, native: &RangeInclusive<NativePriority>) -> Option<Priority> {
        let span = span(native)?;
        if !native.contains(&priority) {
            return None;
        }
        let steps = i64::from(priority) - i64::from(*native.start());
        // Rounded up: the first one that maps to this native priority.
        let number = if span == 0 { 0 } else { (steps * MAX + span - 1) / span };
        Priority::from_number(i16::try_from(number).ok()?)
    }
}

impl PriorityMapping for ContinuousMapping {
    fn to_native(&self, priority: Priority, native: &RangeInclusive<NativePriority>) -> Option<NativePriority> {
        let number = native.start().checked_add(priority.get())?;
        native.contains(&number).then_some(number)
    }

    fn to_corba(&self, priority: NativePriority, native: &RangeInclusive<NativePriority>) -> Option<Priority> {
        native.contains(&priority).then(|| priority.checked_sub(*native.start()))?.and_then(Priority::from_number)
    }
}

impl PriorityMapping for DirectMapping {
    fn to_native(&self, priority: Priority, native: &RangeInclusive<NativePriority>) -> Option<NativePriority> {
        native.contains(&priority.get()).then_some(priority.get())
    }

    fn to_corba(&self, priority: NativePriority, native: &RangeInclusive<NativePriority>) -> Option<Priority> {
        native.contains(&priority).then_some(priority).and_then(Priority::from_number)
    }
}

/// Maps priorities of CORBA to those of the network (`RTCORBA::NetworkPriorityMapping`, TAO's extension), for the packets
/// of a connection.
///
/// ```
/// use spandrel_rt::{NetworkPriorityMapping, Priority};
///
/// /// Expedited forwarding (RFC 3246) for alarms.
/// #[derive(Debug)]
/// struct Alarms;
///
/// impl NetworkPriorityMapping for Alarms {
///     fn to_network(&self, priority: Priority) -> Option<u8> {
///         (priority.get() >= 30_000).then_some(46)
///     }
/// }
/// assert_eq!(Alarms.to_network(Priority::MAX), Some(46));
/// ```
pub trait NetworkPriorityMapping: fmt::Debug + Send + Sync {
    /// The DiffServ code point of a priority, from 0 to 63 (RFC 2474); `None` leaves the system's.
    fn to_network(&self, priority: Priority) -> Option<u8>;

    /// The priority in this host's queues for packets (Linux: `SO_PRIORITY`); `None` leaves the one that the system
    /// derives from the code point. Above 6 it needs the capability `CAP_NET_ADMIN`.
    fn to_socket(&self, priority: Priority) -> Option<u32> {
        let _ = priority;
        None
    }
}

/// The greatest DiffServ code point (RFC 2474).
const MAX_CODE_POINT: u8 = 63;

/// The priority of a connection's packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct NetworkPriority {
    /// The octet in the header of packets, whose upper six bits are the code point; `None` for the system's.
    pub(crate) traffic_class: Option<u8>,
    /// The priority in the queues of this host (`SO_PRIORITY`); `None` for the system's.
    pub(crate) socket: Option<u32>,
}

impl NetworkPriority {
    /// The network priority to which a mapping takes a priority.
    ///
    /// # Errors
    /// DATA_CONVERSION if the mapping returns no DiffServ code point.
    pub(crate) fn new(mapping: &dyn NetworkPriorityMapping, priority: Priority) -> Result<Self, SystemException> {
        let code_point = mapping.to_network(priority);
        if let Some(code_point) = code_point.filter(|code_point| *code_point > MAX_CODE_POINT) {
            return Err(SystemException::data_conversion(minor::PRIORITY_MAPPING, CompletionStatus::No).with_detail(
                || format!("{mapping:?} maps the priority {priority} to {code_point}, which is no DiffServ code point"),
            ));
        }
        let traffic_class = code_point.map(|code_point| code_point << 2);
        Ok(Self { traffic_class, socket: mapping.to_socket(priority) })
    }

    /// The priority of a reply's packets. Replies before may have had another one on the connection, so that the system's
    /// has to be set as well: the class 0.
    pub(crate) fn of_reply(self) -> PacketPriority {
        PacketPriority::new(self.traffic_class.unwrap_or(0), self.socket)
    }
}

/// Changes the priority of requests on a server (`RTCORBA::PriorityTransform`): of those that arrive
/// ([`RtOrb::set_priority_transform`](crate::RtOrb::set_priority_transform)), and of those that its servants make
/// ([`RtClient::priority_transform`](crate::RtClient::priority_transform)).
///
/// An ORB that gets `None` raises UNKNOWN.
pub trait PriorityTransform: Send + Sync {
    /// The priority at which the servant of the object `id` runs a request that came with `priority`.
    fn inbound(&self, priority: Priority, id: &[u8]) -> Option<Priority>;

    /// The priority of a request that the servant of the object `id` makes while it runs at `priority`.
    fn outbound(&self, priority: Priority, id: &[u8]) -> Option<Priority>;
}
