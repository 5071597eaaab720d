//! One misfortune: a call, and what happens at which of its steps.

use std::fmt;

use fastrand::Rng;

use crate::call::{WAYS, Way};
use crate::relay::Deed;
use crate::servants::WAITS;

/// When it happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// When so many octets of the request have passed; none: before any of it is read.
    Request(usize),
    /// While the servant runs.
    Upcall,
    /// When so many octets of the reply have passed.
    Reply(usize),
}

/// What is played.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Script {
    pub way: Way,
    pub step: Step,
    pub deed: Deed,
    /// Octets that the request carries.
    pub size: usize,
    /// The connection has been used before.
    pub warm: bool,
    /// So many threads make such a call at once, over one connection.
    pub callers: usize,
    pub kind: Kind,
}

/// What the server is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Kind {
    /// Servants answer from other threads.
    pub asynchronous: bool,
    /// It listens for nothing but TLS.
    pub secure: bool,
}

const DEEDS: [Deed; 5] = [Deed::Reset, Deed::End, Deed::Half, Deed::Delay, Deed::Kill];
/// Longer than the header of any request or reply here.
const HEADERS: usize = 160;
const LARGE: usize = 100_000;

impl Script {
    /// One by chance.
    pub fn draw(rng: &mut Rng) -> Self {
        let size = match rng.u8(..10) {
            0 => rng.usize(1..LARGE),
            1..4 => rng.usize(1..2000),
            _ => rng.usize(1..20),
        };
        let step = match rng.u8(..10) {
            0 => Step::Request(0),
            1..5 => Step::Request(rng.usize(1..size + HEADERS)),
            5..7 => Step::Upcall,
            _ => Step::Reply(rng.usize(..size + HEADERS)),
        };
        // Waiting for the end of a silence takes time, and a new server does.
        let deed = match rng.u8(..40) {
            0 => Deed::Silence,
            _ => DEEDS[rng.usize(..DEEDS.len())],
        };
        Self {
            way: WAYS[rng.usize(..WAYS.len())],
            step,
            deed,
            size,
            warm: rng.bool(),
            callers: if rng.u8(..8) == 0 { rng.usize(2..6) } else { 1 },
            kind: Kind::default(),
        }
    }

    /// What the request carries.
    pub fn data(&self, number: u64) -> Vec<u8> {
        let mut data = vec![number as u8 | 2; self.size];
        data[0] = if self.step == Step::Upcall { WAITS } else { 0 };
        data
    }

    /// Scripts that are the same but for one thing that is simpler.
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
        if self.way != Way::Synchronous {
            all.push(Self { way: Way::Synchronous, ..*self });
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

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} octets, {:?} at {:?}", self.way, self.size, self.deed, self.step)?;
        write!(f, ", {} connection", if self.warm { "an idle" } else { "a new" })?;
        if self.callers > 1 {
            write!(f, " of {} callers", self.callers)?;
        }
        f.write_str(if self.kind.asynchronous { ", asynchronous servants" } else { "" })?;
        f.write_str(if self.kind.secure { ", over TLS" } else { "" })
    }
}
