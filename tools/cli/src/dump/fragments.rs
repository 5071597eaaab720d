//! Datagrams of IP that come in fragments (RFC 791, 3.2; RFC 8200, 4.5).

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use super::omitted::{Omission, Omitted};

/// The maximum number of incomplete datagrams; the oldest one makes room.
const MAX_DATAGRAMS: usize = 256;
/// The maximum length of a datagram.
const MAX_OCTETS: usize = u16::MAX as usize;
/// The maximum number of fragments of a datagram.
const MAX_FRAGMENTS: u64 = 1024;

/// The parts of the header that all fragments of a datagram have in common: addresses, protocol and identification.
pub(super) type Key = (IpAddr, IpAddr, u8, u32);

/// A fragment of an IP datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'p> {
    pub(super) key: Key,
    /// The position of its octets in the datagram.
    pub(super) offset: usize,
    pub(super) has_more: bool,
    pub(super) octets: &'p [u8],
}

/// The IP datagrams of which fragments are missing.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    datagrams: HashMap<Key, Datagram>,
    /// Counts datagrams, to find the oldest one.
    turn: u64,
}

#[derive(Debug, Default)]
struct Datagram {
    parts: BTreeMap<usize, Vec<u8>>,
    /// The octets of the parts, which may overlap.
    octets: usize,
    /// The fragments that came, also those that came twice.
    count: u64,
    /// The length, once the last fragment has come.
    len: Option<usize>,
    turn: u64,
}

impl Fragments {
    /// Takes a fragment. Returns the datagram that it completes.
    pub(super) fn take(&mut self, fragment: &Fragment<'_>, omitted: &mut Omitted) -> Option<Vec<u8>> {
        if !self.datagrams.contains_key(&fragment.key) && self.datagrams.len() >= MAX_DATAGRAMS {
            let oldest = self.datagrams.iter().min_by_key(|(_, datagram)| datagram.turn).map(|(key, _)| *key);
            let oldest = oldest.and_then(|key| self.datagrams.remove(&key));
            omitted.add(Omission::Fragment, oldest.map_or(0, |datagram| datagram.count));
        }
        self.turn += 1;
        let turn = self.turn;
        let datagram = self.datagrams.entry(fragment.key).or_insert_with(|| Datagram { turn, ..Datagram::default() });
        datagram.count += 1;
        let end = fragment.offset + fragment.octets.len();
        if !datagram.parts.contains_key(&fragment.offset) {
            datagram.octets += fragment.octets.len();
        }
        if end > MAX_OCTETS || datagram.octets > 2 * MAX_OCTETS || datagram.count > MAX_FRAGMENTS {
            let count = datagram.count;
            self.datagrams.remove(&fragment.key);
            omitted.add(Omission::Fragment, count);
            return None;
        }
        datagram.parts.entry(fragment.offset).or_insert_with(|| fragment.octets.to_vec());
        if !fragment.has_more {
            datagram.len = Some(end);
        }
        let whole = datagram.whole()?;
        self.datagrams.remove(&fragment.key);
        Some(whole)
    }

    /// Counts the fragments of incomplete datagrams.
    pub(super) fn end(&mut self, omitted: &mut Omitted) {
        let counts = self.datagrams.drain().map(|(_, datagram)| datagram.count);
        omitted.add(Omission::Fragment, counts.sum());
    }
}

impl Datagram {
    /// Its octets, if none are missing.
    fn whole(&self) -> Option<Vec<u8>> {
        let len = self.len.filter(|len| self.octets >= *len)?;
        let mut whole = Vec::with_capacity(len);
        for (offset, octets) in &self.parts {
            // Of overlapping parts, the first one counts.
            whole.extend_from_slice(octets.get(whole.len().checked_sub(*offset)?..).unwrap_or_default());
        }
        (whole.len() >= len).then(|| {
            whole.truncate(len);
            whole
        })
    }
}
