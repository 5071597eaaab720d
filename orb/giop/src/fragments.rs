//! Cutting a message into fragments (CORBA 3.3 Part 2, 9.4.9): the opposite of what [`Assembler`](crate::Assembler) does.
//!
//! Nothing is copied: what was lent is cut where it lies, and the headers of fragments are put between. When to cut, and for whom,
//! belongs to `spandrel-orb`.
//!
//! *GIOP 1.2*: alignment goes on from fragment to fragment, and all but the last are a multiple of 8 octets long. So a message is
//! cut at multiples of 8, which no primitive crosses.
//!
//! *GIOP 1.1*: alignment counts anew, from the twelfth octet on, and no primitive may be broken. What follows a cut keeps its
//! alignment if the cut is 4 octets behind a multiple of 8, and only where nothing there is longer than 4 octets does it surely break
//! nothing. So a message is cut inside of long runs of octets, text, and numbers of at most 4 octets; where it has none it stays
//! whole, which the standard leaves to the sender.

use std::{io::IoSlice, ops::Range};

use spandrel_cdr::{Encoder, GiopVersion};

use crate::{HEADER_LEN, MessageHeader, MessageType};

/// The shortest limit for fragments that is followed, in octets.
pub const MIN_FRAGMENT: usize = 64;

/// Octets of a request id, the whole of a fragment header since GIOP 1.2.
const ID_LEN: usize = 4;

/// Where a message is cut, and the headers of its fragments.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fragments {
    /// One for each fragment; the first is in place of the message's own.
    heads: Vec<Head>,
    /// Where each fragment ends, counted in octets of the message.
    ends: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Head {
    octets: [u8; HEADER_LEN + ID_LEN],
    len: usize,
}

impl Fragments {
    /// Cuts a whole message into fragments of at most `limit` octets each, headers included ([`MIN_FRAGMENT`] at least; in GIOP 1.1
    /// as near to it as can be).
    ///
    /// `None` if the message is not longer, or stays whole: its version or its type has no fragments, or there is no place.
    ///
    /// # Panics
    /// If the message is not ended.
    #[must_use]
    pub fn of(message: &Encoder<'_>, limit: usize) -> Option<Self> {
        let (len, limit) = (message.position(), limit.max(MIN_FRAGMENT));
        if len <= limit {
            return None;
        }
        let begin: &[u8; HEADER_LEN + ID_LEN] = message.slices().next()?.first_chunk()?;
        let header = MessageHeader::parse(begin.first_chunk()?).ok()?;
        assert_eq!(header.total_len(), len, "a message is cut once it has been ended");
        if header.more_fragments || !header.message_type.is_fragmentable(header.version) {
            return None;
        }
        let ends = match header.version {
            GiopVersion::V1_1 => ends_1_1(message, limit),
            _ => ends_1_2(len, limit),
        };
        (ends.len() > 1).then(|| Self { heads: heads(header, begin, &ends), ends })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Octets of all of them together.
    #[must_use]
    pub fn total_len(&self) -> usize {
        // The message's own header is replaced by the first.
        let heads: usize = self.heads.iter().map(|head| head.len).sum();
        self.ends.last().map_or(0, |end| end - HEADER_LEN + heads)
    }

    /// Where each fragment ends, counted in octets of all of them together.
    pub fn boundaries(&self) -> impl Iterator<Item = usize> {
        let mut heads = 0;
        self.heads.iter().zip(&self.ends).map(move |(head, end)| {
            heads += head.len;
            end - HEADER_LEN + heads
        })
    }

    /// The octets of all fragments, in order, for a gathering write. `message` is the one that they were made of.
    ///
    /// # Panics
    /// If it is another, and shorter.
    #[must_use]
    pub fn slices<'s>(&'s self, message: &'s Encoder<'_>) -> Vec<IoSlice<'s>> {
        let mut slices = Vec::with_capacity(3 * self.ends.len());
        let (mut parts, mut at) = (message.slices(), HEADER_LEN);
        // The message's own header, which is replaced by the first, is within one slice: there it was read from.
        let mut rest = parts.next().map_or(&[][..], |first| &first[HEADER_LEN..]);
        for (head, end) in self.heads.iter().zip(&self.ends) {
            slices.push(IoSlice::new(&head.octets[..head.len]));
            while at < *end {
                if rest.is_empty() {
                    rest = parts.next().expect("the message that these are fragments of");
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

/// Multiples of 8, and the end.
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

/// Places 4 octets behind a multiple of 8 inside of what may be divided there, and the end.
fn ends_1_1(message: &Encoder<'_>, limit: usize) -> Vec<usize> {
    let (len, runs) = (message.position(), message.fine_runs().collect::<Vec<_>>());
    let (mut runs, mut ends) = (&runs[..], Vec::new());
    let (mut from, mut to) = (0, limit);
    while len > to {
        let passed = runs.iter().take_while(|run| run.end <= from).count();
        runs = &runs[passed..];
        let Some(end) = place(runs, from, to) else { break };
        ends.push(end);
        (from, to) = (end, end + limit - HEADER_LEN);
    }
    ends.push(len);
    ends
}

/// The last place between these, or the first one behind them.
fn place(runs: &[Range<usize>], from: usize, to: usize) -> Option<usize> {
    let mut last = None;
    for run in runs {
        let first = behind(run.start.max(from));
        if first >= run.end {
            continue;
        }
        if first > to {
            return last.or(Some(first));
        }
        last = Some(behind_at_most(to.min(run.end - 1)));
    }
    last
}

/// The first such place behind `position`.
fn behind(position: usize) -> usize {
    (position + 4) / 8 * 8 + 4
}

/// The last such place that is not behind `position`, which is 4 at least.
fn behind_at_most(position: usize) -> usize {
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
