//! The write side of a connection: the messages that may still be written, and the contexts that were sent.

use spandrel_giop::MessageType;

/// The most octets of requests that are appended, so that they leave in one write. The next request is written with
/// them at once.
pub const MOST_APPENDED: usize = 16 << 10;

/// With so many other calls in flight, a request is appended.
const APPENDS_FROM: usize = 2;

/// How far the write side has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WritePhase {
    /// At the boundary of two messages: any message may be written.
    Open,
    /// A message was written in part, or messages wait to be written. These go before all others.
    Partial,
    /// A message was written in part, and its rest is lost: the peer would take any octet for that rest.
    Cut,
    /// CloseConnection was the last message.
    CloseSent,
    /// The stream is closed in this direction.
    Shut,
}

/// The write side of one transport, for the requests of one side and the replies to the other. It lies in the
/// lock of the writer.
///
/// The messages that wait are kept by the owner of the half. The half has to know only whether there are any
/// (`waits`).
///
/// | event | Open | Partial | Cut | CloseSent | Shut |
/// | --- | --- | --- | --- | --- | --- |
/// | [`may_write`](Self::may_write) | yes | yes, after the rest | no | no | no |
/// | [`appends`](Self::appends) | with other calls in flight | so | no | no | no |
/// | [`close`](Self::close) | CloseSent | refused | refused | refused | refused |
/// | [`report_error`](Self::report_error) | Cut | refused | refused | refused | refused |
/// | [`cut`](Self::cut) | Cut | Cut | Cut | Cut | Shut |
/// | [`shut`](Self::shut) | Shut | Shut | Shut | Shut | Shut |
#[derive(Clone, Copy, Debug, Default)]
pub struct SendHalf {
    end: WriteEnd,
}

/// The reason why nothing further is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum WriteEnd {
    #[default]
    None,
    Cut,
    CloseSent,
    Shut,
}

impl SendHalf {
    /// The present phase. `waits`: whether octets wait to be written.
    #[must_use]
    pub fn phase(self, waits: bool) -> WritePhase {
        match self.end {
            WriteEnd::None if waits => WritePhase::Partial,
            WriteEnd::None => WritePhase::Open,
            WriteEnd::Cut => WritePhase::Cut,
            WriteEnd::CloseSent => WritePhase::CloseSent,
            WriteEnd::Shut => WritePhase::Shut,
        }
    }

    /// Whether a message may be written, after those that wait.
    #[inline]
    #[must_use]
    pub fn may_write(self) -> bool {
        matches!(self.end, WriteEnd::None)
    }

    /// Whether a request is appended to those that the reactor writes together after it has delivered replies.
    /// Otherwise it is written at once: with few calls in flight there is nothing to share a write with.
    ///
    /// `others`: the other calls in flight. `appended`: the octets that wait already. `len`: those of the request.
    #[must_use]
    pub fn appends(self, others: usize, appended: usize, len: usize) -> bool {
        self.may_write() && Self::may_append(others) && appended.saturating_add(len) <= MOST_APPENDED
    }

    /// Whether so many other calls are in flight that a request [may be appended](Self::appends).
    #[inline]
    #[must_use]
    pub fn may_append(others: usize) -> bool {
        others >= APPENDS_FROM
    }

    /// Ends writing in an orderly way. Returns the message to be written, unless others wait or nothing may
    /// be written any more. No request of either side may be without a reply, except those that were not
    /// acted on.
    pub fn close(&mut self, waits: bool) -> Option<MessageType> {
        let is_open = self.phase(waits) == WritePhase::Open;
        is_open.then(|| {
            self.end = WriteEnd::CloseSent;
            MessageType::CloseConnection
        })
    }

    /// Ends writing because a message of the peer cannot be understood. Returns the message to be written, on
    /// the same conditions as [`close`](Self::close).
    pub fn report_error(&mut self, waits: bool) -> Option<MessageType> {
        let is_open = self.phase(waits) == WritePhase::Open;
        is_open.then(|| {
            self.end = WriteEnd::Cut;
            MessageType::MessageError
        })
    }

    /// A message was written in part and will not be finished, or the transport has failed.
    #[inline]
    pub fn cut(&mut self) {
        if self.end != WriteEnd::Shut {
            self.end = WriteEnd::Cut;
        }
    }

    /// Records that no more octets can be written to the peer.
    pub fn shut(&mut self) {
        self.end = WriteEnd::Shut;
    }
}

/// The service contexts that were sent on a connection, of those that are sent once.
///
/// A value, because requests are marshaled without a lock: the owner keeps the [bits](Self::bits) in an
/// atomic.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SentContexts(u8);

impl SentContexts {
    /// The set of a new connection: each context goes with the first request that needs it.
    pub const NONE: Self = Self(0);
    /// The context with the negotiated code sets (`CodeSets`).
    pub const CODE_SETS: Self = Self(1);
    /// The context with the listen points of a bidirectional client (`BI_DIR_IIOP`).
    pub const LISTEN_POINTS: Self = Self(2);
    /// Every context that is sent once per connection.
    pub const ALL: Self = Self::CODE_SETS.with(Self::LISTEN_POINTS);

    /// Restores a value from its bits.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// A number of eight bits for an atomic; [`from_bits`](Self::from_bits) restores the value.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The union of both sets of contexts.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The contexts of this set that `other` does not have: those of `other` are to be sent again.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether this set has all contexts of `other`.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One half in each phase, and whether messages wait in it.
    fn halves() -> [(WritePhase, SendHalf, bool); 6] {
        let half = |end| SendHalf { end };
        [
            (WritePhase::Open, half(WriteEnd::None), false),
            (WritePhase::Partial, half(WriteEnd::None), true),
            (WritePhase::Cut, half(WriteEnd::Cut), false),
            (WritePhase::Cut, half(WriteEnd::Cut), true),
            (WritePhase::CloseSent, half(WriteEnd::CloseSent), false),
            (WritePhase::Shut, half(WriteEnd::Shut), false),
        ]
    }

    #[test]
    fn messages_are_written_until_the_first_end() {
        for (phase, half, waits) in halves() {
            assert_eq!(half.phase(waits), phase);
            assert_eq!(half.may_write(), matches!(phase, WritePhase::Open | WritePhase::Partial), "{phase:?}");
        }
    }

    #[test]
    fn a_request_is_appended_while_two_others_are_in_flight_up_to_the_bound() {
        for (phase, half, _) in halves() {
            let may_write = half.may_write();
            for others in 0..4 {
                assert_eq!(half.appends(others, 0, 100), may_write && others >= 2, "{phase:?}, {others}");
            }
            assert_eq!(half.appends(2, MOST_APPENDED - 100, 100), may_write, "{phase:?}");
            assert!(!half.appends(2, MOST_APPENDED - 100, 101) && !half.appends(2, usize::MAX, usize::MAX));
        }
    }

    #[test]
    fn close_connection_comes_after_all_messages_and_once() {
        for (phase, mut half, waits) in halves() {
            let expected = (phase == WritePhase::Open).then_some(MessageType::CloseConnection);
            assert_eq!(half.close(waits), expected, "{phase:?}");
            let after = if phase == WritePhase::Open { WritePhase::CloseSent } else { phase };
            assert_eq!(half.phase(waits), after);
            assert_eq!(half.close(waits), None, "{phase:?}");
        }
    }

    #[test]
    fn message_error_comes_at_the_boundary_of_messages_and_ends_writing() {
        for (phase, mut half, waits) in halves() {
            let expected = (phase == WritePhase::Open).then_some(MessageType::MessageError);
            assert_eq!(half.report_error(waits), expected, "{phase:?}");
            let after = if phase == WritePhase::Open { WritePhase::Cut } else { phase };
            assert_eq!(half.phase(waits), after);
        }
    }

    #[test]
    fn a_cut_write_side_stays_cut_until_it_is_shut() {
        for (phase, mut half, waits) in halves() {
            half.cut();
            let cut = if phase == WritePhase::Shut { WritePhase::Shut } else { WritePhase::Cut };
            assert_eq!(half.phase(waits), cut, "{phase:?}");
            half.shut();
            assert_eq!(half.phase(waits), WritePhase::Shut, "{phase:?}");
        }
    }

    #[test]
    fn contexts_are_sent_once_unless_there_are_new_ones() {
        let sent = SentContexts::NONE.with(SentContexts::CODE_SETS);
        assert!(sent.contains(SentContexts::CODE_SETS) && !sent.contains(SentContexts::ALL));
        let sent = sent.with(SentContexts::LISTEN_POINTS);
        assert_eq!(sent, SentContexts::ALL);
        assert_eq!(sent.without(SentContexts::LISTEN_POINTS), SentContexts::CODE_SETS);
        assert_eq!(SentContexts::from_bits(sent.bits()), sent);
        for (contexts, bits) in
            [(SentContexts::NONE, 0), (SentContexts::CODE_SETS, 1), (SentContexts::LISTEN_POINTS, 2), (sent, 3)]
        {
            assert_eq!((contexts.bits(), SentContexts::from_bits(bits | 4)), (bits, contexts), "4 is no context");
            assert!(contexts.contains(contexts) && contexts.contains(SentContexts::NONE));
            assert_eq!(contexts.with(contexts), contexts);
            assert_eq!(contexts.without(contexts), SentContexts::NONE);
        }
    }
}
