//! The congestion window: slow start, congestion avoidance, fast retransmission and fast recovery (RFC 5681, RFC 6582).

/// The number of duplicate acknowledgements that stand for a loss (RFC 5681, 3.2).
const DUPLICATES: u32 = 3;

/// The congestion control of one direction of a connection. Positions are octets from the start of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    window: usize,
    threshold: usize,
    max_segment: usize,
    duplicates: u32,
    /// The end of the octets that were sent when the last loss was found.
    recover: u64,
    is_recovering: bool,
}

impl Congestion {
    /// An initial window of two to four segments (RFC 5681, equation 1).
    #[must_use]
    pub fn new(max_segment: usize) -> Self {
        let segments = if max_segment > 2190 {
            2
        } else if max_segment > 1095 {
            3
        } else {
            4
        };
        Self {
            window: segments * max_segment,
            threshold: usize::MAX / 2,
            max_segment,
            duplicates: 0,
            recover: 0,
            is_recovering: false,
        }
    }

    /// The octets that may be on their way at once, as far as congestion is concerned.
    #[must_use]
    pub fn window(&self) -> usize {
        self.window
    }

    /// The window from which it grows by one segment a round trip (*ssthresh*).
    #[must_use]
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// Whether lost segments are being sent again.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.is_recovering
    }

    /// An acknowledgement of new octets up to `position`. Returns whether the octets from there on are lost as well and
    /// have to be sent again: a partial acknowledgement.
    #[inline]
    pub fn acknowledged(&mut self, octets: usize, position: u64) -> bool {
        self.duplicates = 0;
        if self.is_recovering {
            if position >= self.recover {
                self.is_recovering = false;
                self.window = self.threshold;
                return false;
            }
            // The window shrinks by what has left the network, and grows by one segment (RFC 6582, 3.2 (3)).
            self.window = self.window.saturating_sub(octets).max(self.max_segment) + self.max_segment;
            return true;
        }
        let growth = if self.window < self.threshold {
            octets.min(self.max_segment)
        } else {
            (self.max_segment * self.max_segment / self.window).max(1)
        };
        self.window = (self.window + growth).min(1 << 30);
        false
    }

    /// A duplicate acknowledgement of `position`, while the octets from there to `sent` are outstanding. Returns whether the
    /// first of them has to be sent again.
    pub fn duplicate(&mut self, position: u64, sent: u64) -> bool {
        if self.is_recovering {
            self.window = (self.window + self.max_segment).min(1 << 30); // a segment has left the network
            return false;
        }
        self.duplicates += 1;
        // Duplicates of octets that were sent again do not show another loss (RFC 6582, 3.2 (1)).
        if self.duplicates != DUPLICATES || position < self.recover {
            return false;
        }
        self.halve_threshold((sent - position) as usize);
        self.window = self.threshold + DUPLICATES as usize * self.max_segment;
        self.recover = sent;
        self.is_recovering = true;
        true
    }

    /// The time-out for a retransmission of the octets from `position` to `sent`.
    pub fn timed_out(&mut self, position: u64, sent: u64) {
        self.halve_threshold((sent - position) as usize);
        self.window = self.max_segment;
        self.recover = sent;
        self.is_recovering = false;
        self.duplicates = 0;
    }

    fn halve_threshold(&mut self, flight: usize) {
        self.threshold = (flight / 2).max(2 * self.max_segment);
    }
}
