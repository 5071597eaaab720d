//! Deadlines in service contexts: ours, as the time that is left, and the standard's, as points in time.
//!
//! Ours is `octet order | unsigned long long answer | unsigned long long delivery`, an encapsulation, each number a span of so many times 100 ns and the greatest
//! one no limit. It stands last among the contexts, so that in a header that is kept only its last octets have to be written anew. The standard's
//! is a `Messaging::PolicyValueSeq` (CORBA 3.3 Part 1, 17.3.1; Part 2, 9.7.1).

use std::time::Duration;
use std::time::SystemTime;

#[cfg(feature = "server")]
use spandrel_cdr::Decode;
use spandrel_cdr::{ByteOrder, GiopVersion, Wire};
#[cfg(feature = "server")]
use spandrel_cdr::{CdrError, Decoder};
use spandrel_cdr::{Encode, Encoder};
use spandrel_giop::ServiceContext;
#[cfg(feature = "server")]
use spandrel_giop::ServiceContexts;
use spandrel_giop::ids;
#[cfg(feature = "server")]
use spandrel_sync::time::Instant;
use spandrel_transport::Deadline;

use super::{UtcT, values};
#[cfg(feature = "server")]
use crate::deadlines::RequestDeadline;

/// Whether requests with a deadline say so, and how (`-ORBDeadlineContext`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DeadlineContext {
    /// To servers of our kind, as the time that is left: no clock has to agree with another.
    #[default]
    Remaining,
    /// To all servers, in the standard's form: as points in time (INVOCATION_POLICIES, CORBA 3.3 Part 1, 17.3.1). Clocks have to agree.
    Absolute,
    /// In both ways.
    Both,
    /// Not at all.
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

/// `IOP::INVOCATION_POLICIES`.
const INVOCATION_POLICIES: u32 = 7;
/// No limit.
const FOR_EVER: u64 = u64::MAX;
/// How many octets of our context are written anew for each request: its last ones.
const TAIL_OCTETS: usize = 16;
/// What comes before them: the order, and padding.
const PREFIX: [u8; 8] = [0; 8];

fn wire() -> Wire {
    Wire::new(ByteOrder::Big, GiopVersion::V1_2)
}

/// Our context for a header that is kept.
pub(crate) fn cached_context() -> ServiceContext {
    ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data: [&PREFIX[..], &[0xff; TAIL_OCTETS]].concat() }
}

/// What our context ends in now. `expects_reply`: somebody waits for the answer.
pub(crate) fn remaining_tail(deadline: &Deadline, expects_reply: bool) -> [u8; TAIL_OCTETS] {
    let span = |left: Duration| u64::try_from(left.as_nanos() / 100).unwrap_or(FOR_EVER);
    let answer = if expects_reply { deadline.left_for_reply().map_or(FOR_EVER, span) } else { FOR_EVER };
    let delivery = deadline.left_for_delivery().map_or(FOR_EVER, span);
    let mut end = [0; TAIL_OCTETS];
    end[..8].copy_from_slice(&answer.to_be_bytes());
    end[8..].copy_from_slice(&delivery.to_be_bytes());
    end
}

/// The contexts of a request with this deadline, in the forms that are wanted.
pub(crate) fn deadline_contexts(
    deadline: &Deadline,
    expects_reply: bool,
    sends_remaining: bool,
    sends_absolute: bool,
) -> Vec<ServiceContext> {
    let mut contexts = Vec::new();
    if sends_absolute {
        contexts.extend(absolute(deadline, expects_reply));
    }
    if sends_remaining {
        let data = [&PREFIX[..], &remaining_tail(deadline, expects_reply)].concat();
        contexts.push(ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data });
    }
    contexts
}

fn absolute(deadline: &Deadline, expects_reply: bool) -> Option<ServiceContext> {
    let now = SystemTime::now();
    let limits = [
        (values::REQUEST_END_TIME, deadline.left_for_delivery()),
        (values::REPLY_END_TIME, deadline.left_for_reply().filter(|_| expects_reply)),
    ];
    let end = |left| UtcT::from_system_time(now.checked_add(left)?);
    let ends: Vec<(u32, UtcT)> = limits.into_iter().filter_map(|(of, left)| Some((of, end(left?)?))).collect();
    if ends.is_empty() {
        return None;
    }
    let mut out = Encoder::new(wire());
    out.u8(0);
    out.u32(u32::try_from(ends.len()).ok()?);
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

/// Until when a request with these contexts is worth anything.
#[cfg(feature = "server")]
#[inline]
pub(crate) fn request_deadline(contexts: &ServiceContexts<'_>) -> Option<RequestDeadline> {
    RequestDeadline::of(contexts)
}

#[cfg(feature = "server")]
impl RequestDeadline {
    /// What these contexts say; what cannot be read says nothing. The time that is left goes before points in time, for which clocks must agree.
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
        let limit = |span| if span == FOR_EVER { None } else { limit(span) };
        Ok(Self { answer: limit(answer), delivery: limit(delivery), ..Self::default() })
    }

    fn absolute(data: &[u8]) -> Result<Self, CdrError> {
        let mut input = Decoder::of_encapsulation(data, wire())?;
        let mut deadline = Self::default();
        let (now, clock) = (Instant::now(), SystemTime::now());
        for _ in 0..input.sequence_len(8)? {
            let (policy_type, value) = (input.u32()?, input.octet_sequence()?);
            let limit = match policy_type {
                values::REQUEST_START_TIME => {
                    let start = UtcT::decode(&mut Decoder::of_encapsulation(value, wire())?)?.to_system_time();
                    // One that has passed, or never comes, holds nothing.
                    deadline.start = start.and_then(|start| now.checked_add(start.duration_since(clock).ok()?));
                    continue;
                }
                values::REQUEST_END_TIME => &mut deadline.delivery,
                values::REPLY_END_TIME => &mut deadline.answer,
                _ => continue,
            };
            let end = UtcT::decode(&mut Decoder::of_encapsulation(value, wire())?)?;
            // At the latest, as far as the client's clock may be off.
            let left = end.latest().and_then(UtcT::to_system_time).map(|end| end.duration_since(clock));
            *limit = left.and_then(|left| now.checked_add(left.unwrap_or(Duration::ZERO)));
        }
        Ok(deadline)
    }
}
