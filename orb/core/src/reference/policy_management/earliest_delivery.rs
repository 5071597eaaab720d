//! Start times of requests and replies (CORBA 3.3 Part 1, 17.2.4.1 and 17.2.4.3).
//!
//! The client's side holds a request until its start time, and a reply that arrives earlier. A synchronous
//! call keeps its thread; an asynchronous call waits without a thread (`asynchronous`).

use std::time::SystemTime;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::time::Instant;
use spandrel_transport::Deadline;

use super::in_force::in_force;
use crate::{
    Orb,
    orb::start_times::StartTimes,
    policy::{Overrides, ReplyStartTimePolicy, RequestStartTimePolicy, time_limits},
};

/// The start times of a call's request and of its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarliestDelivery {
    request: Option<Instant>,
    reply: Option<Instant>,
}

impl EarliestDelivery {
    /// The start times in force for this thread's calls, as far as they are in the future.
    pub(super) fn of(orb: &Orb, overrides: &Overrides) -> Option<Box<dyn StartTimes>> {
        let (clock, now) = (SystemTime::now(), Instant::now());
        let from = |start: SystemTime| now.checked_add(start.duration_since(clock).ok()?);
        let request = in_force(orb, overrides, time_limits::REQUEST_START_TIME)
            .and_then(|RequestStartTimePolicy(start)| from(start));
        let reply =
            in_force(orb, overrides, time_limits::REPLY_START_TIME).and_then(|ReplyStartTimePolicy(start)| from(start));
        if request.is_none() && reply.is_none() {
            return None;
        }
        Some(Box::new(Self { request, reply }))
    }
}

impl StartTimes for EarliestDelivery {
    fn reply(&self) -> Option<Instant> {
        self.reply.filter(|start| *start > Instant::now())
    }

    fn request(&self, deadline: Option<&Deadline>) -> Result<Option<Instant>, SystemException> {
        let is_after =
            |start: Option<Instant>, end: Option<Instant>| start.zip(end).is_some_and(|(start, end)| start > end);
        let (send_end, reply_end) = (deadline.and_then(Deadline::send_end), deadline.and_then(Deadline::end));
        let (message, minor) = if is_after(self.request, send_end) {
            ("request", minor::REQUEST_EXPIRED)
        } else if is_after(self.reply, reply_end) {
            ("reply", minor::ROUND_TRIP_EXPIRED)
        } else {
            return Ok(self.request.filter(|start| *start > Instant::now()));
        };
        Err(SystemException::timeout(minor, CompletionStatus::No).with_detail(|| {
            format!("the time-outs in force end before the start time of the {message} (its start time policy)")
        }))
    }

    #[cold]
    fn hold_request(&self, orb: &Orb, deadline: Option<&Deadline>) -> Result<(), SystemException> {
        match self.request(deadline)? {
            Some(start) => orb.wait_until(start),
            None => Ok(()),
        }
    }

    #[cold]
    fn hold_reply(&self, orb: &Orb) -> Result<(), SystemException> {
        match self.reply() {
            Some(start) => orb.wait_until(start).map_err(|error| error.with_completed(CompletionStatus::Yes)),
            None => Ok(()),
        }
    }
}
