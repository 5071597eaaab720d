//! Deadlines in service contexts: this ORB's form has the remaining time, the standard's has points in time.
//!
//! This ORB's form is an encapsulation, `octet order | unsigned long long answer | unsigned long long
//! delivery`. Each number is a time in units of 100 ns; the greatest number is no limit. It is the last of
//! the contexts, so that a cached header needs new values only in its last octets.
//!
//! The standard's form is a `Messaging::PolicyValueSeq` (CORBA 3.3 Part 1, 17.3.1; Part 2, 9.7.1).

use std::time::Duration;
use std::time::SystemTime;

use spandrel_cdr::Decode;
use spandrel_cdr::{ByteOrder, GiopVersion, Wire};
use spandrel_cdr::{CdrError, Decoder};
use spandrel_cdr::{Encode, Encoder};
use spandrel_giop::ServiceContext;
use spandrel_giop::ServiceContexts;
use spandrel_giop::ids;
use spandrel_sync::time::Instant;
use spandrel_transport::Deadline;

use super::{UtcT, time_limits};
use crate::policy::request_deadlines::RequestDeadline;

/// The service contexts that carry a request's deadline (`-ORBDeadlineContext`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DeadlineContext {
    /// The remaining time, sent to servers of this ORB's kind. Clocks need not agree.
    #[default]
    Remaining,
    /// Points in time in the standard's form, sent to all servers (INVOCATION_POLICIES, CORBA 3.3 Part 1,
    /// 17.3.1). Clocks have to agree.
    Absolute,
    /// The remaining time and points in time, for networks with servers of both kinds.
    Both,
    /// No context: servers do not learn the deadline.
    None,
}

impl DeadlineContext {
    pub(crate) fn sends_remaining(self) -> bool {
        matches!(self, Self::Remaining | Self::Both)
    }

    pub(crate) fn sends_absolute(self) -> bool {
        matches!(self, Self::Absolute | Self::Both)
    }
}

/// The service context id `IOP::INVOCATION_POLICIES`.
const INVOCATION_POLICIES: u32 = 7;
/// The remaining time of a request without a limit.
const NO_LIMIT: u64 = u64::MAX;
/// The octets at the end of this ORB's context that change with each request.
const TAIL_OCTETS: usize = 16;
/// The octets before them: the byte order, and padding.
const PREFIX: [u8; 8] = [0; 8];

fn wire() -> Wire {
    Wire::new(ByteOrder::Big, GiopVersion::V1_2)
}

/// This ORB's context for a cached header.
pub(crate) fn cached_context() -> ServiceContext {
    ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data: [&PREFIX[..], &[0xff; TAIL_OCTETS]].concat() }
}

/// The last octets of this ORB's context at this moment. `expects_reply`: the call waits for the reply.
pub(crate) fn remaining_tail(deadline: &Deadline, expects_reply: bool) -> [u8; TAIL_OCTETS] {
    let span = |left: Duration| u64::try_from(left.as_nanos() / 100).unwrap_or(NO_LIMIT);
    let answer = if expects_reply { deadline.left_for_reply().map_or(NO_LIMIT, span) } else { NO_LIMIT };
    let delivery = deadline.left_for_delivery().map_or(NO_LIMIT, span);
    let mut end = [0; TAIL_OCTETS];
    end[..8].copy_from_slice(&answer.to_be_bytes());
    end[8..].copy_from_slice(&delivery.to_be_bytes());
    end
}

/// Adds the contexts of a request with this deadline, in the enabled forms, to its other `contexts`. A request has one
/// context with policies: the deadline joins those that are there.
pub(crate) fn with_deadline_contexts(
    contexts: &[ServiceContext],
    deadline: &Deadline,
    expects_reply: bool,
    sends_remaining: bool,
    sends_absolute: bool,
) -> Vec<ServiceContext> {
    let mut contexts = contexts.to_vec();
    if sends_absolute {
        let policies = contexts.iter().position(|context| context.id == INVOCATION_POLICIES);
        let policies = policies.map(|index| contexts.remove(index));
        contexts.extend(absolute(deadline, expects_reply, policies.as_ref()).or(policies));
    }
    if sends_remaining {
        let data = [&PREFIX[..], &remaining_tail(deadline, expects_reply)].concat();
        contexts.push(ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data });
    }
    contexts
}

fn absolute(deadline: &Deadline, expects_reply: bool, policies: Option<&ServiceContext>) -> Option<ServiceContext> {
    let now = SystemTime::now();
    let limits = [
        (time_limits::REQUEST_END_TIME, deadline.left_for_delivery()),
        (time_limits::REPLY_END_TIME, deadline.left_for_reply().filter(|_| expects_reply)),
    ];
    let end = |left| UtcT::from_system_time(now.checked_add(left)?);
    let ends: Vec<(u32, UtcT)> = limits.into_iter().filter_map(|(of, left)| Some((of, end(left?)?))).collect();
    if ends.is_empty() {
        return None;
    }
    let mut others = Vec::new();
    if let Some(policies) = policies {
        let mut input = Decoder::of_encapsulation(&policies.data, wire()).ok()?;
        for _ in 0..input.sequence_len(8).ok()? {
            others.push((input.u32().ok()?, input.octet_sequence().ok()?));
        }
    }
    let mut out = Encoder::new(wire());
    out.u8(0);
    out.len(others.len() + ends.len()).ok()?;
    for (policy_type, value) in others {
        out.u32(policy_type);
        out.len(value.len()).ok()?;
        out.octets(value);
    }
    for (policy_type, end) in &ends {
        let mut value = Encoder::new(wire());
        value.u8(0);
        end.encode(&mut value).ok()?;
        out.u32(*policy_type);
        let value = value.to_vec();
        out.len(value.len()).ok()?;
        out.octets(&value);
    }
    Some(ServiceContext { id: INVOCATION_POLICIES, data: out.to_vec() })
}

/// The deadline that the contexts of a request state, as a remaining time or by the standard's policies;
/// `None` without one.
#[inline]
pub fn request_deadline(contexts: &ServiceContexts<'_>) -> Option<RequestDeadline> {
    RequestDeadline::of(contexts)
}

impl RequestDeadline {
    /// The deadline in these contexts. Contexts that cannot be decoded are ignored. The remaining time takes
    /// precedence over points in time, which require clocks that agree.
    fn of(contexts: &ServiceContexts<'_>) -> Option<Self> {
        if let Some(data) = contexts.find(ids::CONTEXT_REMAINING_TIME) {
            return Self::remaining(data).ok();
        }
        if let Some(data) = contexts.find(INVOCATION_POLICIES) {
            return Self::absolute(data).ok();
        }
        None
    }

    fn remaining(data: &[u8]) -> Result<Self, CdrError> {
        let mut input = Decoder::of_encapsulation(data, wire())?;
        let now = Instant::now();
        let limit = |span: u64| {
            let span = Duration::from_micros(span / 10) + Duration::from_nanos(span % 10 * 100);
            now.checked_add(span)
        };
        let (answer, delivery) = (input.u64()?, input.u64()?);
        let limit = |span| if span == NO_LIMIT { None } else { limit(span) };
        Ok(Self { answer: limit(answer), delivery: limit(delivery), ..Self::default() })
    }

    fn absolute(data: &[u8]) -> Result<Self, CdrError> {
        let mut input = Decoder::of_encapsulation(data, wire())?;
        let mut deadline = Self::default();
        let (now, clock) = (Instant::now(), SystemTime::now());
        for _ in 0..input.sequence_len(8)? {
            let (policy_type, value) = (input.u32()?, input.octet_sequence()?);
            let limit = match policy_type {
                time_limits::REQUEST_START_TIME => {
                    let start = UtcT::decode(&mut Decoder::of_encapsulation(value, wire())?)?.to_system_time();
                    // A start time that has passed or is out of range delays nothing.
                    deadline.start = start.and_then(|start| now.checked_add(start.duration_since(clock).ok()?));
                    continue;
                }
                time_limits::REQUEST_END_TIME => &mut deadline.delivery,
                time_limits::REPLY_END_TIME => &mut deadline.answer,
                _ => continue,
            };
            let end = UtcT::decode(&mut Decoder::of_encapsulation(value, wire())?)?;
            // The latest time within the inaccuracy of the client's clock.
            let left = end.latest().and_then(UtcT::to_system_time).map(|end| end.duration_since(clock));
            *limit = left.and_then(|left| now.checked_add(left.unwrap_or(Duration::ZERO)));
        }
        Ok(deadline)
    }
}
