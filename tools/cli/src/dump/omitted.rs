//! Counts of what is not decoded, so that nothing is left out in silence.

use std::collections::BTreeMap;
use std::fmt;

/// A kind of packets, or octets, that are left out.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Omission {
    /// Packets of which the capture has the beginning.
    Cut,
    Fragment,
    LinkType(u32),
    EtherType(u16),
    /// Packets of another protocol above IP.
    Protocol(u8),
    /// The content of a tunnel or of a link that is not looked into.
    Tunnel(&'static str),
    /// Datagrams of the Unreliable Multicast Inter-ORB Protocol.
    Miop,
    /// Datagrams that have a GIOP message each.
    Datagram,
    /// Octets that were buffered for messages, beyond the limits of memory.
    Discarded,
}

/// The counts by kind of omission.
#[derive(Debug, Default)]
pub(super) struct Omitted(BTreeMap<Omission, u64>);

/// The maximum number of kinds that are told apart: a capture of noise has any.
const MAX_KINDS: usize = 32;

impl Omitted {
    pub(super) fn add(&mut self, omission: Omission, count: u64) {
        if count > 0 && (self.0.len() < MAX_KINDS || self.0.contains_key(&omission)) {
            *self.0.entry(omission).or_default() += count;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Prints the counts with commas between them.
impl fmt::Display for Omitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (omission, count)) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let s = if *count == 1 { "" } else { "s" };
            write!(f, "{comma}{count} ")?;
            match omission {
                Omission::Cut => write!(f, "packet{s} cut by the snapshot length"),
                Omission::Fragment => write!(f, "IP fragment{s} of incomplete datagrams"),
                Omission::LinkType(number) => write!(f, "packet{s} of link type {number}"),
                Omission::EtherType(number) => write!(f, "packet{s} of EtherType {number:#06x}"),
                Omission::Protocol(50) => write!(f, "packet{s} of IP protocol 50 (IPsec)"),
                Omission::Protocol(132) => write!(f, "packet{s} of IP protocol 132 (SCTP)"),
                Omission::Protocol(number) => write!(f, "packet{s} of IP protocol {number}"),
                Omission::Tunnel(name) => write!(f, "packet{s} of {name}"),
                Omission::Miop => write!(f, "datagram{s} of MIOP"),
                Omission::Datagram => write!(f, "datagram{s} of GIOP over UDP"),
                Omission::Discarded => write!(f, "buffered octet{s} beyond the limits of memory"),
            }?;
        }
        Ok(())
    }
}
