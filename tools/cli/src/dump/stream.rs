//! One direction of a TCP connection: segments in, octets in their order out. What was sent twice is told of once, what was
//! not seen as a gap, as soon as it is certain that it will not come.

use std::collections::BTreeMap;

use super::packet::Segment;

/// Octets that wait for others before them, at most.
const MAX_HELD: usize = 1 << 20;
/// Segments, likewise.
const MAX_SEGMENTS: usize = 4096;

/// What comes out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Piece<'p> {
    Octets(&'p [u8]),
    /// So many were not seen.
    Gap(usize),
}

/// What is known of one direction.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Where the next octet belongs; nothing before the first segment.
    next: Option<u32>,
    /// What came too early, by its distance from where the direction began.
    early: BTreeMap<u64, Vec<u8>>,
    held: usize,
    /// How many octets have come out, gaps included.
    position: u64,
    /// Up to where the other side has received.
    received: Option<u64>,
}

impl Stream {
    /// Octets that wait.
    pub(super) fn held(&self) -> usize {
        self.held
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
        let seen = usize::try_from(-ahead).unwrap_or(0);
        match u64::try_from(ahead) {
            // Sent once more, as a whole or with more behind it.
            Err(_) => self.give(segment.octets.get(seen..).unwrap_or_default(), out),
            Ok(0) => self.give(segment.octets, out),
            Ok(ahead) => self.keep(ahead, segment.octets),
        }
        self.release(out);
    }

    /// The other side says up to where it has received: what is missing before that will not come any more.
    pub(super) fn acknowledged(&mut self, sequence: u32, out: &mut dyn FnMut(Piece<'_>)) {
        let Some(next) = self.next else { return };
        let ahead = i64::from(sequence.wrapping_sub(next).cast_signed());
        if let Ok(ahead) = u64::try_from(ahead) {
            self.received = Some(self.position + ahead);
            self.release(out);
        }
    }

    /// Nothing more will come.
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
        if self.early.get(&at).is_some_and(|known| known.len() >= octets.len()) {
            return;
        }
        self.held += octets.len();
        if let Some(shorter) = self.early.insert(at, octets.to_vec()) {
            self.held -= shorter.len();
        }
    }

    /// Lets go what waits no longer: its turn has come, or what is before it never will.
    fn release(&mut self, out: &mut dyn FnMut(Piece<'_>)) {
        while let Some(entry) = self.early.first_entry() {
            let at = *entry.key();
            let is_lost = self.received.is_some_and(|received| at <= received);
            let is_too_much = self.held > MAX_HELD || self.early.len() > MAX_SEGMENTS;
            if at > self.position && !is_lost && !is_too_much {
                return;
            }
            let Some((at, octets)) = self.early.pop_first() else { return };
            self.held -= octets.len();
            if at > self.position {
                let missing = usize::try_from(at - self.position).unwrap_or(usize::MAX);
                self.advance(missing);
                out(Piece::Gap(missing));
            }
            let seen = usize::try_from(self.position - at).unwrap_or(usize::MAX);
            self.give(octets.get(seen..).unwrap_or_default(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    /// Octets that come out, a gap as so many dots.
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
    fn order_is_restored_and_repetitions_are_dropped() {
        // Across the end of the sequence numbers.
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
        assert_eq!(fed.0.held(), 0);
    }

    #[test]
    fn what_was_received_and_not_seen_is_a_gap() {
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
    fn what_waits_is_bounded() {
        let mut fed = Fed::new(0);
        let part = vec![b'x'; 1000];
        for number in 0..2000_u32 {
            fed.data(2 + number * 1000, &part);
            assert!(fed.0.held() <= MAX_HELD + part.len());
        }
        assert_eq!(fed.1.len(), 2_000_001);
        assert_eq!(fed.1[0], b'.');
    }

    #[test]
    fn a_direction_is_joined_where_it_is_seen_first() {
        let mut fed = Fed(Stream::default(), Vec::new());
        fed.data(77, b"mid");
        fed.data(80, b"dle");
        assert_eq!(fed.text(), "middle");
        fed.segment(1, true, b"");
        fed.data(2, b"new");
        assert_eq!(fed.text(), "middlenew");
    }
}
