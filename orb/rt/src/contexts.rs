//! Priorities and policies in service contexts and references.
//!
//! | place | content, inside a CDR encapsulation |
//! | --- | --- |
//! | service context 10, RTCorbaPriority | `short priority` of the client (CLIENT_PROPAGATED) |
//! | service context 11, RTCorbaPriorityRange | `short low, high` of the band that `_bind_priority_band` binds |
//! | service context 7, INVOCATION_POLICIES | `sequence<PolicyValue>` of the client (CORBA 3.3 Part 1, 17.3.1) |
//! | component 2, TAG_POLICIES | `sequence<PolicyValue>` of the object |
//!
//! A `PolicyValue` is `unsigned long ptype | sequence<octet> pvalue`.
//!
//! ```
//! use spandrel_giop::ServiceContexts;
//! use spandrel_rt::{Priority, contexts};
//!
//! let sent = [contexts::encode_priority(Priority::new(300)?)];
//! let received = ServiceContexts::from(&sent[..]);
//! assert_eq!(contexts::find_priority(&received)?, Some(Priority::new(300)?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use spandrel_cdr::{ByteOrder, CdrError, TaggedComponent};
use spandrel_giop::component::{Component, PolicyValue as EncodedPolicy, TAG_POLICIES};
use spandrel_giop::{ServiceContext, ServiceContexts};

use crate::Priority;
pub use crate::octets::DecodeError;
use crate::octets::{decode, encapsulation, priority};
use crate::policies::PriorityBand;
pub use crate::propagated::PropagatedPolicy;
use crate::propagated::band;

/// Service context with the priority of a request (`IOP::RTCorbaPriority`).
pub const RT_CORBA_PRIORITY: u32 = 10;
/// Service context with a band of priorities (`IOP::RTCorbaPriorityRange`).
pub const RT_CORBA_PRIORITY_RANGE: u32 = 11;
/// Service context with the client's policies (`IOP::INVOCATION_POLICIES`).
pub const INVOCATION_POLICIES: u32 = 7;

/// The greatest number of policies in one reference or request.
pub const MAX_POLICIES: usize = 256;

/// The context with the client's priority.
#[must_use]
pub fn encode_priority(priority: Priority) -> ServiceContext {
    let mut data = Vec::new();
    write_priority(priority, &mut data);
    ServiceContext { id: RT_CORBA_PRIORITY, data }
}

/// Replaces the data of a context by that of a priority: the byte order, padding, and the number.
pub(crate) fn write_priority(priority: Priority, data: &mut Vec<u8>) {
    data.clear();
    data.extend_from_slice(&[ByteOrder::NATIVE.flag(), 0]);
    data.extend_from_slice(&priority.get().to_ne_bytes());
}

/// The client's priority in a request; `None` without the context.
///
/// # Errors
/// [`DecodeError`] for a context that is malformed, or a negative priority.
pub fn find_priority(contexts: &ServiceContexts<'_>) -> Result<Option<Priority>, DecodeError> {
    const NAME: &str = "RTCorbaPriority context";
    let Some(data) = contexts.find(RT_CORBA_PRIORITY) else {
        return Ok(None);
    };
    decode(NAME, data, |input| input.i16()).and_then(|number| priority(NAME, number)).map(Some)
}

/// The context of a request that binds a connection to a band of priorities.
#[must_use]
pub fn encode_priority_range(band: PriorityBand) -> ServiceContext {
    let mut out = encapsulation();
    out.i16(band.low().get());
    out.i16(band.high().get());
    ServiceContext { id: RT_CORBA_PRIORITY_RANGE, data: out.to_vec() }
}

/// The band of priorities to which a request binds its connection; `None` without the context.
///
/// # Errors
/// [`DecodeError`] for a context that is malformed, a negative priority, or an empty band.
pub fn find_priority_range(contexts: &ServiceContexts<'_>) -> Result<Option<PriorityBand>, DecodeError> {
    const NAME: &str = "RTCorbaPriorityRange context";
    let Some(data) = contexts.find(RT_CORBA_PRIORITY_RANGE) else {
        return Ok(None);
    };
    decode(NAME, data, |input| Ok((input.i16()?, input.i16()?))).and_then(|(low, high)| band(NAME, low, high)).map(Some)
}

/// The component of a reference with the policies of its object.
///
/// # Errors
/// More policies or octets than CDR can count.
pub fn encode_policies(policies: &[PropagatedPolicy]) -> Result<TaggedComponent, CdrError> {
    Component::Policies(policies.iter().map(PropagatedPolicy::encode).collect::<Result<_, _>>()?).encode()
}

/// The policies in a component of a reference; `None` if it has another tag.
///
/// # Errors
/// [`DecodeError`] for a malformed list or policy, and a list of more than [`MAX_POLICIES`].
pub fn decode_policies(component: &TaggedComponent) -> Result<Option<Vec<PropagatedPolicy>>, DecodeError> {
    if component.tag != TAG_POLICIES {
        return Ok(None);
    }
    decode_list("TAG_POLICIES component", &component.data).map(Some)
}

/// The context of a request with the client's policies.
///
/// # Errors
/// As [`encode_policies`].
pub fn encode_invocation_policies(policies: &[PropagatedPolicy]) -> Result<ServiceContext, CdrError> {
    encode_policies(policies).map(|component| ServiceContext { id: INVOCATION_POLICIES, data: component.data })
}

/// The client's policies in a request; `None` without the context.
///
/// # Errors
/// As [`decode_policies`].
pub fn find_invocation_policies(contexts: &ServiceContexts<'_>) -> Result<Option<Vec<PropagatedPolicy>>, DecodeError> {
    contexts.find(INVOCATION_POLICIES).map(|data| decode_list("INVOCATION_POLICIES context", data)).transpose()
}

fn decode_list(name: &'static str, data: &[u8]) -> Result<Vec<PropagatedPolicy>, DecodeError> {
    let policies = decode(name, data, |input| {
        let count = input.sequence_len(8)?;
        if count > MAX_POLICIES {
            return Err(CdrError::OverBound { len: count, bound: MAX_POLICIES });
        }
        let one = |_| Ok(EncodedPolicy { policy_type: input.u32()?, data: input.octet_sequence()?.to_vec() });
        (0..count).map(one).collect::<Result<Vec<_>, _>>()
    })?;
    policies.into_iter().map(PropagatedPolicy::decode).collect()
}
