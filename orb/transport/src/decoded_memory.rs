//! The memory that the decoded values of a request take, charged to its connection.

use std::{fmt, ops::Deref, sync::OnceLock};

use spandrel_cdr::{CdrError, Decoder, MemoryGrant};
use spandrel_sync::atomic::{AtomicUsize, Ordering};

use crate::budget::{LimitException, MemoryLimitExceeded, ReceiveBudget};

/// The octets beyond those of a message that its decoded values may take without a charge.
const FREE: usize = 64 << 10;

/// The octets that are charged at once.
const STEP: usize = 64 << 10;

/// The memory of one request's decoded values beyond the octets of its message. It is charged while this exists.
#[derive(Debug)]
pub struct DecodedMemory<B: Deref<Target = ReceiveBudget>> {
    budget: B,
    limit: usize,
    charged: AtomicUsize,
    /// The right to exceed the limit of all connections, once it was needed.
    exception: OnceLock<LimitException>,
}

impl<B: Deref<Target = ReceiveBudget> + fmt::Debug + Send + Sync> DecodedMemory<B> {
    /// The memory of a request whose decoded values may take `limit` octets beyond those of its message.
    #[inline]
    #[must_use]
    pub fn new(budget: B, limit: usize) -> Self {
        Self { budget, limit, charged: AtomicUsize::new(0), exception: OnceLock::new() }
    }

    /// The decoder, with the memory of its values charged to this account.
    #[inline]
    #[must_use]
    pub fn of<'m>(&'m self, decoder: Decoder<'m>) -> Decoder<'m> {
        decoder.with_memory_limit(FREE, Some(self))
    }

    fn charge(&self, octets: usize) -> Result<(), MemoryLimitExceeded> {
        let Err(exceeded) = self.budget.charge(octets) else { return Ok(()) };
        if self.exception.get().is_none()
            && let Some(exception) = self.budget.try_exception()
        {
            // One thread decodes.
            let _ = self.exception.set(exception);
        }
        self.exception.get().ok_or(exceeded).and_then(|exception| self.budget.charge_with(exception, octets))
    }
}

impl<B: Deref<Target = ReceiveBudget> + fmt::Debug + Send + Sync> MemoryGrant for DecodedMemory<B> {
    fn grant(&self, octets: usize) -> Result<usize, CdrError> {
        let granted = self.charged.load(Ordering::Relaxed) + FREE;
        if octets > self.limit.saturating_sub(granted) {
            return Err(CdrError::TooMuchMemory { limit: self.limit });
        }
        let octets = octets.checked_next_multiple_of(STEP).unwrap_or(octets);
        self.charge(octets).map_err(|exceeded| CdrError::NoMemory(exceeded.to_string().into()))?;
        self.charged.fetch_add(octets, Ordering::Relaxed);
        Ok(octets)
    }
}

impl<B: Deref<Target = ReceiveBudget>> Drop for DecodedMemory<B> {
    #[inline]
    fn drop(&mut self) {
        let charged = *self.charged.get_mut();
        if charged != 0 {
            self.budget.release(charged);
        }
    }
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::{ByteOrder, Encode, Encoder, GiopVersion, Wire};
    use spandrel_sync::Arc;

    use super::*;
    use crate::MemoryBudget;

    /// Decodes `count` empty texts, which have 8 octets on the wire and 24 in memory. Returns the charge.
    fn decode(count: usize, limit: usize, of_connection: usize) -> Result<usize, CdrError> {
        let wire = Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2);
        let texts = vec![String::new(); count];
        let mut out = Encoder::new(wire);
        texts.encode(&mut out)?;
        let octets = out.to_vec();
        let all = Arc::new(MemoryBudget::new(usize::MAX));
        let budget = ReceiveBudget::new(of_connection, Arc::clone(&all));
        let memory = DecodedMemory::new(&*budget, limit);
        let mut input = memory.of(Decoder::new(&octets, wire));
        let decoded = <Vec<String> as spandrel_cdr::Decode>::decode(&mut input);
        let charged = all.used();
        drop(memory);
        assert_eq!(all.used(), 0);
        decoded.map(|texts| {
            assert_eq!(texts.len(), count);
            charged
        })
    }

    #[test]
    fn what_is_decoded_is_charged_within_both_limits() {
        assert_eq!(decode(1_000, 1 << 20, 1 << 20), Ok(0), "a little is free");
        let charged = decode(50_000, 1 << 20, 1 << 20).expect("it is below the limits");
        assert!((50_000 * 16 - FREE..1 << 20).contains(&charged), "{charged} octets are charged");
        assert_eq!(decode(50_000, 1 << 19, 1 << 20), Err(CdrError::TooMuchMemory { limit: 1 << 19 }));
        let Err(CdrError::NoMemory(cause)) = decode(50_000, 1 << 20, 1 << 18) else { panic!("the budget has less") };
        assert!(cause.contains("-ORBMaxConnectionMemory"), "{cause}");
    }

    #[test]
    fn one_request_may_exceed_the_limit_of_all() {
        let all = Arc::new(MemoryBudget::new(3 * STEP));
        let of_connection = || ReceiveBudget::new(4 * STEP, Arc::clone(&all));
        let memories: Vec<_> = (0..3).map(|_| DecodedMemory::new(of_connection(), usize::MAX)).collect();
        for memory in &memories {
            assert_eq!(memory.grant(1), Ok(STEP));
        }
        assert_eq!(memories[0].grant(1), Ok(STEP), "beyond the limit");
        assert!(matches!(memories[1].grant(1), Err(CdrError::NoMemory(_))));
        assert_eq!(memories[0].grant(2 * STEP), Ok(2 * STEP));
        assert!(matches!(memories[0].grant(1), Err(CdrError::NoMemory(_))), "its connection has a limit, too");
        drop(memories);
        assert_eq!(all.used(), 0);
        assert!(of_connection().try_exception().is_some(), "the right is free again");
    }
}
