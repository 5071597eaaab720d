//! Replies to requests over a connection that this ORB has opened, held until they leave in one write.
//!
//! A thread that runs requests of quick operations one after the other holds their replies while further requests wait, or
//! while the reading thread adds those that one read has brought. They leave together
//!
//! - with the reply after which no request waits or is being added, or 500 µs after the first of them, or beyond 16 KiB;
//! - before an upcall of an operation that is not known to be [quick](crate::quick_operations), and before a one-way;
//! - before a call that the servant makes (`held_replies` of `spandrel-orb`). The thread then also gives up the privilege
//!   to take requests: the one that the call waits for may be behind;
//! - when the thread takes no further request;
//! - at the next look of the [monitor](crate::monitor). If the upcall lasts since the one before, another thread takes the
//!   requests behind it.
//!
//! CloseConnection is not sent while replies are held, and the shutdown of the ORB waits for them.

use std::time::Duration;

use spandrel_cdr::Encoder;
use spandrel_sync::{Arc, time::Instant};
use spandrel_transport::{Charge, ReceiveBudget};

/// The most octets that are held.
const MAX_HELD: usize = 16 << 10;
/// The time after which the replies leave with the next one.
const HOLD_TIME: Duration = Duration::from_micros(500);

/// The held replies of one connection.
#[derive(Debug, Default)]
pub(super) struct HeldAnswers(Option<Held>);

#[derive(Debug)]
struct Held {
    octets: Vec<u8>,
    since: Instant,
    charge: Charge,
}

impl HeldAnswers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Holds a reply behind the others. False if it has to be sent by itself: beyond the limits, or without memory for it.
    /// `fragment_size`: longer messages are sent in fragments.
    pub(super) fn add(&mut self, answer: &Encoder<'_>, fragment_size: usize, account: &Arc<ReceiveBudget>) -> bool {
        let before = self.0.as_ref().map_or(0, |held| held.octets.len());
        if before + answer.position() > MAX_HELD.min(fragment_size) {
            return false;
        }
        let held = match &mut self.0 {
            Some(held) => held,
            none => {
                let Ok(charge) = Charge::new(account, MAX_HELD) else { return false };
                none.insert(Held { octets: Vec::new(), since: Instant::now(), charge })
            }
        };
        answer.slices().for_each(|slice| held.octets.extend_from_slice(slice));
        true
    }

    /// Whether the first of them has waited long enough.
    pub(super) fn is_due(&self) -> bool {
        self.0.as_ref().is_some_and(|held| held.since.elapsed() >= HOLD_TIME)
    }

    /// Removes their octets, and the memory that they are charged to.
    pub(super) fn take(&mut self) -> Option<(Vec<u8>, Charge)> {
        let Held { octets, mut charge, .. } = self.0.take()?;
        charge.reduce_to(octets.len());
        Some((octets, charge))
    }
}
