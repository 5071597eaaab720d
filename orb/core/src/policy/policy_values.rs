//! The policies in force as a few numbers, which a call reads at almost no cost.

use std::time::Duration;

use spandrel_sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::policy::thread_flags;

use super::{RebindPolicy, SyncScopePolicy};

/// No policy of that type: the next level decides.
const UNSET: u64 = u64::MAX;
/// A policy without a limit.
const NO_LIMIT: u64 = u64::MAX - 1;

/// The values of the policies of one level, or of several combined.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PolicyValues {
    /// The relative round-trip time-out in nanoseconds.
    round_trip: u64,
    modes: Modes,
}

/// The sync scope in the lowest octet and the rebind policy in the next, each as its number plus one, so that
/// zero is unset. Above them are [`Modes::LIMITED`], [`Modes::SET`], [`Modes::BUFFERING`] and
/// [`Modes::BINDING`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Modes(u32);

impl Modes {
    const SYNC_SCOPE: u32 = 0xff;
    const REBIND: u32 = 0xff00;
    /// A policy limits the call's time otherwise than by the round trip. It is rare, and looked up only then.
    const LIMITED: u32 = 0x1_0000;
    /// A policy is set: one comparison with zero finds a level without policies.
    const SET: u32 = 0x2_0000;
    /// A policy limits the buffering of one-ways, which look it up.
    const BUFFERING: u32 = 0x4_0000;
    /// A policy decides on the connections of calls.
    const BINDING: u32 = 0x8_0000;

    /// The modes set here, and those of `other` for the rest.
    fn or(self, other: Self) -> Self {
        let field = |mask| if self.0 & mask == 0 { other.0 & mask } else { self.0 & mask };
        Self(
            field(Self::SYNC_SCOPE)
                | field(Self::REBIND)
                | (self.0 | other.0) & (Self::LIMITED | Self::SET | Self::BUFFERING | Self::BINDING),
        )
    }
}

impl PolicyValues {
    /// No policy is set.
    pub(crate) const NONE: Self = Self { round_trip: UNSET, modes: Modes(0) };

    pub(crate) fn set_round_trip(&mut self, limit: Option<Duration>) {
        let nanos = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(NO_LIMIT).min(NO_LIMIT);
        self.round_trip = limit.map_or(NO_LIMIT, nanos);
        self.modes.0 |= Modes::SET;
    }

    pub(crate) fn set_sync_scope(&mut self, scope: SyncScopePolicy) {
        self.modes.0 = self.modes.0 & !Modes::SYNC_SCOPE | (scope as u32 + 1) | Modes::SET;
    }

    pub(crate) fn set_rebind(&mut self, rebind: RebindPolicy) {
        self.modes.0 = self.modes.0 & !Modes::REBIND | (rebind as u32 + 1) << 8 | Modes::SET;
    }

    pub(crate) fn set_limited(&mut self) {
        self.modes.0 |= Modes::LIMITED | Modes::SET;
    }

    pub(crate) fn set_buffering(&mut self) {
        self.modes.0 |= Modes::BUFFERING | Modes::SET;
    }

    pub(crate) fn set_binding(&mut self) {
        self.modes.0 |= Modes::BINDING | Modes::SET;
    }

    /// Whether a policy decides on the connections of calls.
    pub(crate) fn has_binding(self) -> bool {
        self.modes.0 & Modes::BINDING != 0
    }

    /// Whether a policy is set.
    #[inline]
    pub(crate) fn is_set(self) -> bool {
        self.modes.0 != 0
    }

    /// Whether the call's time is limited otherwise than by the round trip.
    pub(crate) fn is_limited(self) -> bool {
        self.modes.0 & Modes::LIMITED != 0
    }

    /// Whether a policy limits the buffering of one-ways.
    pub(crate) fn has_buffering(self) -> bool {
        self.modes.0 & Modes::BUFFERING != 0
    }

    /// The policies set here, and those of `other` for the rest.
    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        let round_trip = if self.round_trip == UNSET { other.round_trip } else { self.round_trip };
        Self { round_trip, modes: self.modes.or(other.modes) }
    }

    #[inline]
    pub(crate) fn round_trip(self) -> Option<Duration> {
        (self.round_trip < NO_LIMIT).then(|| Duration::from_nanos(self.round_trip))
    }

    /// The sync scope in force.
    pub(crate) fn sync_scope(self) -> SyncScopePolicy {
        let set = (self.modes.0 & Modes::SYNC_SCOPE).checked_sub(1);
        set.and_then(|at| SyncScopePolicy::ALL.get(at as usize).copied()).unwrap_or_default()
    }

    pub(crate) fn rebind(self) -> RebindPolicy {
        if self.modes.0 & Modes::REBIND == 0 {
            return RebindPolicy::default();
        }
        let set = (self.modes.0 & Modes::REBIND) >> 8;
        RebindPolicy::ALL.get(set as usize - 1).copied().unwrap_or_default()
    }
}

/// The values of the ORB's policies. Two values that are changed together may become visible one after the
/// other.
#[derive(Debug)]
pub(crate) struct OrbPolicyValues {
    round_trip: AtomicU64,
    modes: AtomicU32,
}

impl OrbPolicyValues {
    /// The values of an ORB whose only policy is a time-out.
    pub(crate) fn limited_to(timeout: Option<Duration>) -> Self {
        let mut policy_values = PolicyValues::NONE;
        if timeout.is_some() {
            policy_values.set_round_trip(timeout);
        }
        Self::new(policy_values)
    }

    fn new(policy_values: PolicyValues) -> Self {
        Self { round_trip: AtomicU64::new(policy_values.round_trip), modes: AtomicU32::new(policy_values.modes.0) }
    }

    /// Whether a policy is set.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.modes.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub(crate) fn get(&self) -> PolicyValues {
        let modes = Modes(self.modes.load(Ordering::Relaxed));
        PolicyValues { round_trip: self.round_trip.load(Ordering::Relaxed), modes }
    }

    pub(crate) fn set(&self, policy_values: PolicyValues) {
        thread_flags::record_use();
        self.round_trip.store(policy_values.round_trip, Ordering::Relaxed);
        self.modes.store(policy_values.modes.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unset_policy_is_taken_from_the_next_level() {
        let (mut object, mut orb) = (PolicyValues::NONE, PolicyValues::NONE);
        assert_eq!((object.or(orb).round_trip(), object.or(orb).sync_scope()), (None, SyncScopePolicy::WithTransport));
        orb.set_round_trip(Some(Duration::from_millis(5)));
        orb.set_sync_scope(SyncScopePolicy::WithTarget);
        orb.set_rebind(RebindPolicy::NoRebind);
        object.set_rebind(RebindPolicy::NoReconnect);
        let both = object.or(orb);
        assert_eq!(both.round_trip(), Some(Duration::from_millis(5)));
        assert_eq!((both.sync_scope(), both.rebind()), (SyncScopePolicy::WithTarget, RebindPolicy::NoReconnect));
        object.set_rebind(RebindPolicy::Transparent);
        object.set_sync_scope(SyncScopePolicy::None);
        object.set_round_trip(None);
        let both = object.or(orb);
        assert_eq!(both.round_trip(), None, "for ever is a policy, too");
        assert_eq!((both.sync_scope(), both.rebind()), (SyncScopePolicy::None, RebindPolicy::Transparent));
    }

    #[test]
    fn the_longest_limits_are_none() {
        let mut policy_values = PolicyValues::NONE;
        policy_values.set_round_trip(Some(Duration::MAX));
        assert_eq!(policy_values.round_trip(), None);
        assert_ne!(policy_values, PolicyValues::NONE);
    }
}
