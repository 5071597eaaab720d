//! A scenario: a call, and a fault at one of its steps.

use std::fmt;

use fastrand::Rng;

use crate::call::{CALL_KINDS, CallKind};
use crate::proxy::Fault;
use crate::servants::WAIT_AT_GATE;

/// The moment of the fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// After this number of octets of the request; 0: before the proxy forwards any.
    Request(usize),
    /// While the servant runs.
    Upcall,
    /// After this number of octets of the reply.
    Reply(usize),
}

/// A call with a fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Scenario {
    pub call_kind: CallKind,
    pub step: Step,
    pub fault: Fault,
    /// The size of the request's data, in octets.
    pub size: usize,
    /// Whether the connection has been used before.
    pub warm: bool,
    /// The number of threads that call concurrently over one connection.
    pub callers: usize,
    pub server: ServerKind,
}

/// The kind of server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServerKind {
    /// Whether servants reply from other threads.
    pub asynchronous: bool,
    /// Whether the server listens for TLS only.
    pub secure: bool,
}

const FAULTS: [Fault; 5] = [Fault::Reset, Fault::EndOfStream, Fault::HalfClose, Fault::Delay, Fault::Kill];
/// An upper bound of the header size of requests and replies.
const MAX_HEADER: usize = 160;
const LARGE: usize = 100_000;

impl Scenario {
    /// A random scenario.
    pub fn random(rng: &mut Rng) -> Self {
        let size = match rng.u8(..10) {
            0 => rng.usize(1..LARGE),
            1..4 => rng.usize(1..2000),
            _ => rng.usize(1..20),
        };
        let step = match rng.u8(..10) {
            0 => Step::Request(0),
            1..5 => Step::Request(rng.usize(1..size + MAX_HEADER)),
            5..7 => Step::Upcall,
            _ => Step::Reply(rng.usize(..size + MAX_HEADER)),
        };
        // Rare: a silence lasts until the timeout.
        let fault = match rng.u8(..40) {
            0 => Fault::Silence,
            _ => FAULTS[rng.usize(..FAULTS.len())],
        };
        Self {
            call_kind: CALL_KINDS[rng.usize(..CALL_KINDS.len())],
            step,
            fault,
            size,
            warm: rng.bool(),
            callers: if rng.u8(..8) == 0 { rng.usize(2..6) } else { 1 },
            server: ServerKind::default(),
        }
    }

    /// The request's data.
    pub fn data(&self, number: u64) -> Vec<u8> {
        let mut data = vec![number as u8 | 2; self.size];
        data[0] = if self.step == Step::Upcall { WAIT_AT_GATE } else { 0 };
        data
    }

    /// The scenarios that differ in one simpler property.
    pub fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        if self.callers > 1 {
            all.push(Self { callers: 1, ..*self });
        }
        if self.warm {
            all.push(Self { warm: false, ..*self });
        }
        if self.size > 1 {
            all.extend([1, self.size / 2].map(|size| Self { size, ..*self }));
        }
        if self.call_kind != CallKind::Synchronous {
            all.push(Self { call_kind: CallKind::Synchronous, ..*self });
        }
        if let Step::Request(after @ 1..) = self.step {
            all.extend([0, after / 2, after - 1].map(|after| Self { step: Step::Request(after), ..*self }));
        }
        if let Step::Reply(after @ 1..) = self.step {
            all.extend([0, after / 2, after - 1].map(|after| Self { step: Step::Reply(after), ..*self }));
        }
        all
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} octets, {:?} at {:?}", self.call_kind, self.size, self.fault, self.step)?;
        write!(f, ", {} connection", if self.warm { "an idle" } else { "a new" })?;
        if self.callers > 1 {
            write!(f, " of {} callers", self.callers)?;
        }
        f.write_str(if self.server.asynchronous { ", asynchronous servants" } else { "" })?;
        f.write_str(if self.server.secure { ", over TLS" } else { "" })
    }
}
