//! Division of a message into fragments (CORBA 3.3 Part 2, 9.4.9). The opposite is
//! [`Assembler`](crate::Assembler) in `assembler`.
//!
//! Nothing is copied: lent slices are divided in place, and the headers of fragments go between them. The
//! decision to fragment belongs to `spandrel-orb`.
//!
//! *GIOP 1.2*: alignment continues from fragment to fragment, and all but the last fragment are a multiple of
//! 8 octets long. So a message is divided at multiples of 8, which no primitive crosses.
//!
//! *GIOP 1.1*: alignment restarts at the twelfth octet of each fragment, and no primitive may be divided.
//! Octets after a cut keep their alignment if the cut is 4 octets after a multiple of 8. Such a cut is safe
//! only between primitives of at most 4 octets. So a message is cut inside long runs of octets, text, and
//! numbers of at most 4 octets. Without such a run the message stays whole, as the standard permits.

use std::{io::IoSlice, ops::Range};

use spandrel_cdr::{Encoder, GiopVersion};

use crate::{HEADER_LEN, MessageHeader, MessageType};

/// The smallest effective limit for fragments, in octets.
pub const MIN_FRAGMENT: usize = 64;

/// Octets of a request id, the whole fragment header since GIOP 1.2.
const ID_LEN: usize = 4;

/// The cuts of a message, and the headers of its fragments.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fragments {
    /// The headers, one per fragment; the first replaces the message's own.
    heads: Vec<Head>,
    /// The end of each fragment, counted in octets of the message.
    ends: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Head {
    octets: [u8; HEADER_LEN + ID_LEN],
    len: usize,
}

impl Fragments {
    /// Divides a whole message into fragments of at most `limit` octets each, headers included. The limit is
    /// [`MIN_FRAGMENT`] at least; in GIOP 1.1 a fragment may exceed it.
    ///
    /// `None` if the message fits into the limit or cannot be divided: its version or type has no fragments,
    /// or it has no place for a cut.
    ///
    /// # Panics
    /// If the message has not been ended.
    #[must_use]
    pub fn of(message: &Encoder<'_>, limit: usize) -> Option<Self> {
        let (len, limit) = (message.position(), limit.max(MIN_FRAGMENT));
        if len <= limit {
            return None;
        }
        let begin: &[u8; HEADER_LEN + ID_LEN] = message.slices().next()?.first_chunk()?;
        let header = MessageHeader::parse(begin.first_chunk()?).ok()?;
        assert_eq!(header.total_len(), len, "only an ended message can be fragmented");
        if header.more_fragments || !header.message_type.is_fragmentable(header.version) {
            return None;
        }
        let ends = match header.version {
            GiopVersion::V1_1 => ends_1_1(message, limit),
            _ => ends_1_2(len, limit),
        };
        (ends.len() > 1).then(|| Self { heads: heads(header, begin, &ends), ends })
    }

    /// The number of fragments received so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Octets of all fragments together.
    #[must_use]
    pub fn total_len(&self) -> usize {
        // The first fragment header replaces the message's own.
        let heads: usize = self.heads.iter().map(|head| head.len).sum();
        self.ends.last().map_or(0, |end| end - HEADER_LEN + heads)
    }

    /// The end of each fragment, counted in octets of all fragments together.
    pub fn boundaries(&self) -> impl Iterator<Item = usize> {
        let mut heads = 0;
        self.heads.iter().zip(&self.ends).map(move |(head, end)| {
            heads += head.len;
            end - HEADER_LEN + heads
        })
    }

    /// The octets of all fragments, in order, for a gathering write. `message` must be the message that was
    /// divided.
    ///
    /// # Panics
    /// If `message` is another, shorter message.
    #[must_use]
    pub fn slices<'s>(&'s self, message: &'s Encoder<'_>) -> Vec<IoSlice<'s>> {
        let mut slices = Vec::with_capacity(3 * self.ends.len());
        let (mut parts, mut at) = (message.slices(), HEADER_LEN);
        // The first slice holds the whole message header, which the first fragment header replaces.
        let mut rest = parts.next().map_or(&[][..], |first| &first[HEADER_LEN..]);
        for (head, end) in self.heads.iter().zip(&self.ends) {
            slices.push(IoSlice::new(&head.octets[..head.len]));
            while at < *end {
                if rest.is_empty() {
                    rest = parts.next().expect("the message has the length that was divided");
                }
                let (here, later) = rest.split_at(rest.len().min(end - at));
                (at, rest) = (at + here.len(), later);
                slices.push(IoSlice::new(here));
            }
        }
        slices
    }

    /// A copy of all octets of all fragments.
    #[must_use]
    pub fn to_vec(&self, message: &Encoder<'_>) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.total_len());
        self.slices(message).iter().for_each(|slice| octets.extend_from_slice(slice));
        octets
    }
}

/// Cuts at multiples of 8, and the end.
fn ends_1_2(len: usize, limit: usize) -> Vec<usize> {
    let whole = |octets: usize| octets & !7;
    let mut ends = vec![whole(limit)];
    let room = limit - HEADER_LEN - ID_LEN;
    loop {
        let from = ends[ends.len() - 1];
        if len - from <= room {
            ends.push(len);
            return ends;
        }
        ends.push(from + whole(room));
    }
}

/// Cuts 4 octets after a multiple of 8 inside the runs that may be divided there, and the end.
fn ends_1_1(message: &Encoder<'_>, limit: usize) -> Vec<usize> {
    let (len, runs) = (message.position(), message.divisible_runs().collect::<Vec<_>>());
    let (mut runs, mut ends) = (&runs[..], Vec::new());
    let (mut from, mut to) = (0, limit);
    while len > to {
        let passed = runs.iter().take_while(|run| run.end <= from).count();
        runs = &runs[passed..];
        let Some(end) = choose_cut(runs, from, to) else { break };
        ends.push(end);
        (from, to) = (end, end + limit - HEADER_LEN);
    }
    ends.push(len);
    ends
}

/// The last cut between `from` and `to`, or the first cut after them.
fn choose_cut(runs: &[Range<usize>], from: usize, to: usize) -> Option<usize> {
    let mut last = None;
    for run in runs {
        let first = next_cut(run.start.max(from));
        if first >= run.end {
            continue;
        }
        if first > to {
            return last.or(Some(first));
        }
        last = Some(previous_cut(to.min(run.end - 1)));
    }
    last
}

/// The first such cut after `position`.
fn next_cut(position: usize) -> usize {
    (position + 4) / 8 * 8 + 4
}

/// The last such cut at or before `position`, which is at least 4.
fn previous_cut(position: usize) -> usize {
    (position - 4) / 8 * 8 + 4
}

fn heads(header: MessageHeader, begin: &[u8; HEADER_LEN + ID_LEN], ends: &[usize]) -> Vec<Head> {
    let id_len = if header.version >= GiopVersion::V1_2 { ID_LEN } else { 0 };
    let mut from = HEADER_LEN;
    let head = |(nth, end): (usize, &usize)| {
        let (message_type, id_len) = if nth == 0 { (header.message_type, 0) } else { (MessageType::Fragment, id_len) };
        let size = end - std::mem::replace(&mut from, *end) + id_len;
        let size = u32::try_from(size).expect("no longer than the message, whose length was written");
        let own = MessageHeader { message_type, more_fragments: nth + 1 < ends.len(), size, ..header };
        let mut octets = *begin;
        octets[..HEADER_LEN].copy_from_slice(&own.to_octets());
        Head { octets, len: HEADER_LEN + id_len }
    };
    ends.iter().enumerate().map(head).collect()
}
