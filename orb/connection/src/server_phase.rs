//! The end of an accepted connection: its read side and its write side.

/// The read side of an accepted connection.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ReadSide {
    /// Requests are read.
    Open,
    /// The end of the peer's messages was read, or the peer sent a message that cannot be read. Requests that
    /// run are still answered.
    Ended,
    /// Not even late octets are read and dropped.
    Closed,
}

/// The write side of an accepted connection.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WriteSide {
    /// Replies are written.
    Open,
    /// CloseConnection is or was sent, after the last reply.
    CloseSent,
    /// No reply is due any more, and the stream is closed in this direction.
    Shut,
}

/// The phase of an accepted connection: a read side and a write side. Pairs that cannot occur have no value.
///
/// | read \ write | open | close sent | shut |
/// | --- | --- | --- | --- |
/// | open | [`Open`](Self::Open) | [`CloseSent`](Self::CloseSent) | never: reading ends before |
/// | ended | [`Draining`](Self::Draining) | [`DrainingCloseSent`](Self::DrainingCloseSent) | [`Lingering`](Self::Lingering) |
/// | closed | never | never | [`Closed`](Self::Closed) |
///
/// Transitions; an empty cell changes nothing and returns `None`:
///
/// | from | [`send_close`](Self::send_close) | [`end_reading`](Self::end_reading) | [`shut`](Self::shut) | [`close`](Self::close) |
/// | --- | --- | --- | --- | --- |
/// | `Open` | `CloseSent` | `Draining` | | |
/// | `CloseSent` | | `DrainingCloseSent` | | |
/// | `Draining` | `DrainingCloseSent` | | `Lingering` | |
/// | `DrainingCloseSent` | | | `Lingering` | |
/// | `Lingering` | | | | `Closed` |
/// | `Closed` | | | | |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum ServerPhase {
    /// Requests are read and answered.
    Open = 0,
    /// CloseConnection was sent; the peer is to close its side.
    CloseSent = 1,
    /// Nothing is read any more; requests that run are answered.
    Draining = 2,
    /// The same, after CloseConnection.
    DrainingCloseSent = 3,
    /// All is answered; the last octets are given time to arrive, and late octets are dropped.
    Lingering = 4,
    /// Nothing happens any more.
    Closed = 5,
}

impl ServerPhase {
    const ALL: [Self; 6] =
        [Self::Open, Self::CloseSent, Self::Draining, Self::DrainingCloseSent, Self::Lingering, Self::Closed];

    /// Takes the phase from the value of an atomic.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self::ALL[if bits < 6 { bits as usize } else { 5 }]
    }

    /// The value that an atomic holds for the phase.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Whether requests or late octets are still read.
    #[inline]
    #[must_use]
    pub const fn read_side(self) -> ReadSide {
        match self {
            Self::Open | Self::CloseSent => ReadSide::Open,
            Self::Draining | Self::DrainingCloseSent | Self::Lingering => ReadSide::Ended,
            Self::Closed => ReadSide::Closed,
        }
    }

    /// Whether replies may still be written.
    #[inline]
    #[must_use]
    pub const fn write_side(self) -> WriteSide {
        match self {
            Self::Open | Self::Draining => WriteSide::Open,
            Self::CloseSent | Self::DrainingCloseSent => WriteSide::CloseSent,
            Self::Lingering | Self::Closed => WriteSide::Shut,
        }
    }

    /// CloseConnection is sent now, unless it was or the stream is closed.
    #[must_use]
    pub const fn send_close(self) -> Option<Self> {
        match self {
            Self::Open => Some(Self::CloseSent),
            Self::Draining => Some(Self::DrainingCloseSent),
            Self::CloseSent | Self::DrainingCloseSent | Self::Lingering | Self::Closed => None,
        }
    }

    /// Ends reading, unless that was done. Replies may still be written.
    #[must_use]
    pub const fn end_reading(self) -> Option<Self> {
        match self {
            Self::Open => Some(Self::Draining),
            Self::CloseSent => Some(Self::DrainingCloseSent),
            Self::Draining | Self::DrainingCloseSent | Self::Lingering | Self::Closed => None,
        }
    }

    /// The stream is closed in the direction to the peer, because reading has ended and no reply is due.
    #[must_use]
    pub const fn shut(self) -> Option<Self> {
        match self {
            Self::Draining | Self::DrainingCloseSent => Some(Self::Lingering),
            Self::Open | Self::CloseSent | Self::Lingering | Self::Closed => None,
        }
    }

    /// Ends the time for the last octets.
    #[must_use]
    pub const fn close(self) -> Option<Self> {
        match self {
            Self::Lingering => Some(Self::Closed),
            Self::Open | Self::CloseSent | Self::Draining | Self::DrainingCloseSent | Self::Closed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ServerPhase::{CloseSent, Closed, Draining, DrainingCloseSent, Lingering, Open};

    use super::*;

    #[test]
    fn each_transition_is_that_of_the_table() {
        let table = [
            (Open, [Some(CloseSent), Some(Draining), None, None]),
            (CloseSent, [None, Some(DrainingCloseSent), None, None]),
            (Draining, [Some(DrainingCloseSent), None, Some(Lingering), None]),
            (DrainingCloseSent, [None, None, Some(Lingering), None]),
            (Lingering, [None, None, None, Some(Closed)]),
            (Closed, [None, None, None, None]),
        ];
        assert_eq!(table.map(|(from, _)| from), ServerPhase::ALL);
        for (from, to) in table {
            assert_eq!([from.send_close(), from.end_reading(), from.shut(), from.close()], to, "{from:?}");
        }
    }

    #[test]
    fn neither_side_goes_back() {
        for from in ServerPhase::ALL {
            for to in [from.send_close(), from.end_reading(), from.shut(), from.close()].into_iter().flatten() {
                assert!(to.read_side() >= from.read_side() && to.write_side() >= from.write_side(), "{from:?} {to:?}");
                assert_ne!((to.read_side(), to.write_side()), (from.read_side(), from.write_side()));
            }
        }
    }

    #[test]
    fn each_phase_is_its_own_pair_of_sides() {
        for (at, phase) in ServerPhase::ALL.into_iter().enumerate() {
            assert_eq!(ServerPhase::from_bits(phase.bits()), phase);
            let same = |other: &&ServerPhase| {
                (other.read_side(), other.write_side()) == (phase.read_side(), phase.write_side())
            };
            assert_eq!(ServerPhase::ALL.iter().position(|other| same(&other)), Some(at));
        }
    }

    #[test]
    fn unknown_bits_are_a_closed_connection() {
        assert_eq!([6, 7, u8::MAX].map(ServerPhase::from_bits), [Closed; 3]);
    }
}
