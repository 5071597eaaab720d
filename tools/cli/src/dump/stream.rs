//! One direction of a TCP connection: takes segments, and returns octets in order. Repeated octets are
//! returned once, missing ones as a gap, once it is certain that they will not arrive.

use std::collections::BTreeMap;

use super::packet::Segment;

/// The maximum number of octets buffered out of order.
const MAX_BUFFERED: usize = 1 << 20;
/// The maximum number of segments buffered out of order.
const MAX_SEGMENTS: usize = 4096;

/// The output of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Piece<'p> {
    Octets(&'p [u8]),
    /// Octets are missing: their number.
    Gap(usize),
}

/// The state of one direction.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The next sequence number; none before the first segment.
    next: Option<u32>,
    /// Segments out of order, by their distance from the beginning of the direction.
    out_of_order: BTreeMap<u64, Vec<u8>>,
    buffered: usize,
    /// The number of octets returned, including gaps.
    position: u64,
    /// The position up to which the other side has received.
    received: Option<u64>,
}

impl Stream {
    /// The number of buffered octets.
    pub(super) fn buffered(&self) -> usize {
        self.buffered
    }

    /// Takes a segment of this direction.
    pub(super) fn take(&mut self, segment: &Segment<'_>, out: &mut dyn FnMut(Piece<'_>)) {
        if segment.opens {
            // Another connection between the same ports, or its first.
            *self = Self { next: Some(segment.sequence.wrapping_add(1)), ..Self::default() };
        }
        let sequence = segment.sequence.wrapping_add(u32::from(segment.opens));
        let next = *self.next.get_or_insert(sequence);
        if segment.octets.is_empty() {
            return;
        }
        let ahead = i64::from(sequence.wrapping_sub(next).cast_signed());
        let repeated = usize::try_from(-ahead).unwrap_or(0);
        match u64::try_from(ahead) {
            // A retransmission, perhaps with further octets.
            Err(_) => self.give(segment.octets.get(repeated..).unwrap_or_default(), out),
            Ok(0) => self.give(segment.octets, out),
            Ok(ahead) => self.keep(ahead, segment.octets),
        }
        self.release(out);
    }

    /// Records an acknowledgement: octets missing before it will not arrive any more.
    pub(super) fn acknowledged(&mut self, sequence: u32, out: &mut dyn FnMut(Piece<'_>)) {
        let Some(next) = self.next else { return };
        let ahead = i64::from(sequence.wrapping_sub(next).cast_signed());
        if let Ok(ahead) = u64::try_from(ahead) {
            self.received = Some(self.position + ahead);
            self.release(out);
        }
    }

    /// Records the end of the direction.
    pub(super) fn end(&mut self, out: &mut dyn FnMut(Piece<'_>)) {
        self.received = Some(u64::MAX);
        self.release(out);
    }

    fn give(&mut self, octets: &[u8], out: &mut dyn FnMut(Piece<'_>)) {
        if !octets.is_empty() {
            self.advance(octets.len());
            out(Piece::Octets(octets));
        }
    }

    fn advance(&mut self, octets: usize) {
        self.position += octets as u64;
        // Modulo 2³², as sequence numbers are.
        self.next = self.next.map(|next| next.wrapping_add(octets as u32));
    }

    fn keep(&mut self, ahead: u64, octets: &[u8]) {
        let at = self.position + ahead;
        if self.out_of_order.get(&at).is_some_and(|known| known.len() >= octets.len()) {
            return;
        }
        self.buffered += octets.len();
        if let Some(shorter) = self.out_of_order.insert(at, octets.to_vec()) {
            self.buffered -= shorter.len();
        }
    }

    /// Releases buffered octets whose predecessors have been returned, or will never arrive.
    fn release(&mut self, out: &mut dyn FnMut(Piece<'_>)) {
        while let Some(entry) = self.out_of_order.first_entry() {
            let at = *entry.key();
            let is_missing = self.received.is_some_and(|received| at <= received);
            let is_too_much = self.buffered > MAX_BUFFERED || self.out_of_order.len() > MAX_SEGMENTS;
            if at > self.position && !is_missing && !is_too_much {
                return;
            }
            let Some((at, octets)) = self.out_of_order.pop_first() else { return };
            self.buffered -= octets.len();
            if at > self.position {
                let missing = usize::try_from(at - self.position).unwrap_or(usize::MAX);
                self.advance(missing);
                out(Piece::Gap(missing));
            }
            let repeated = usize::try_from(self.position - at).unwrap_or(usize::MAX);
            self.give(octets.get(repeated..).unwrap_or_default(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    /// The returned octets, with a gap as that many dots.
    struct Fed(Stream, Vec<u8>);

    impl Fed {
        fn new(first: u32) -> Self {
            let mut fed = Self(Stream::default(), Vec::new());
            fed.segment(first, true, b"");
            fed
        }

        fn segment(&mut self, sequence: u32, opens: bool, octets: &[u8]) {
            let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
            let segment = Segment { from: addr, to: addr, sequence, acknowledged: None, opens, closes: false, octets };
            let Self(stream, out) = self;
            stream.take(&segment, &mut |piece| note(out, piece));
        }

        fn data(&mut self, sequence: u32, octets: &[u8]) {
            self.segment(sequence, false, octets);
        }

        fn acknowledged(&mut self, sequence: u32) {
            let Self(stream, out) = self;
            stream.acknowledged(sequence, &mut |piece| note(out, piece));
        }

        fn text(&self) -> String {
            String::from_utf8(self.1.clone()).unwrap()
        }
    }

    fn note(out: &mut Vec<u8>, piece: Piece<'_>) {
        match piece {
            Piece::Octets(octets) => out.extend_from_slice(octets),
            Piece::Gap(len) => out.extend(std::iter::repeat_n(b'.', len)),
        }
    }

    #[test]
    fn reordered_segments_are_sorted_and_repetitions_dropped() {
        // Across the wrap-around of the sequence numbers.
        let first = u32::MAX - 4;
        let at = |offset: u32| first.wrapping_add(1).wrapping_add(offset);
        let mut fed = Fed::new(first);
        fed.data(at(0), b"ab");
        fed.data(at(6), b"ghi");
        fed.data(at(4), b"ef");
        fed.data(at(0), b"ab");
        assert_eq!(fed.text(), "ab");
        fed.data(at(1), b"bcd");
        fed.data(at(8), b"ijk");
        assert_eq!(fed.text(), "abcdefghijk");
        assert_eq!(fed.0.buffered(), 0);
    }

    #[test]
    fn acknowledged_octets_that_were_not_captured_are_a_gap() {
        let mut fed = Fed::new(99);
        fed.data(100, b"ab");
        fed.data(105, b"fg");
        fed.acknowledged(104);
        assert_eq!(fed.text(), "ab");
        fed.acknowledged(107);
        assert_eq!(fed.text(), "ab...fg");
        fed.acknowledged(110);
        fed.data(110, b"kl");
        assert_eq!(fed.text(), "ab...fg...kl");
    }

    #[test]
    fn buffered_segments_are_bounded() {
        let mut fed = Fed::new(0);
        let part = vec![b'x'; 1000];
        for number in 0..2000_u32 {
            fed.data(2 + number * 1000, &part);
            assert!(fed.0.buffered() <= MAX_BUFFERED + part.len());
        }
        assert_eq!(fed.1.len(), 2_000_001);
        assert_eq!(fed.1[0], b'.');
    }

    #[test]
    fn a_direction_starts_at_its_first_captured_segment() {
        let mut fed = Fed(Stream::default(), Vec::new());
        fed.data(77, b"mid");
        fed.data(80, b"dle");
        assert_eq!(fed.text(), "middle");
        fed.segment(1, true, b"");
        fed.data(2, b"new");
        assert_eq!(fed.text(), "middlenew");
    }
}
