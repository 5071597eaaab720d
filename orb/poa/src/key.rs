//! Object keys (design decision 11), and system-assigned object ids.
//!
//! ```text
//! octet version | octet flags | octets[6] incarnation | adapter | octets object id
//! adapter, transient:  ulong slot | ulong generation
//! adapter, persistent: ushort count | { ushort length | octets name }, from the root adapter's child on; the incarnation is zero
//! object id, system-assigned: { octets[6] incarnation, persistent adapters only } | ulong slot | ulong
//! generation
//! ```
//!
//! Numbers are big-endian. Each server process draws a new incarnation, so that a transient reference from an
//! earlier process is rejected instead of reaching another object. Generations do the same for reused slots.
//! Neither is a secret. No adapter's key prefix is the prefix of another's, so a comparison of prefixes
//! identifies an adapter.

use std::fmt;

/// Octets before the adapter.
const HEADER_LEN: usize = 8;
const VERSION: u8 = 1;
const TRANSIENT: u8 = 0;
const PERSISTENT: u8 = 1;
/// Maximum number of names in the path of an adapter.
pub(crate) const MAX_DEPTH: usize = 64;

/// The process of the server that created a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Incarnation([u8; 6]);

impl Incarnation {
    pub(crate) fn random() -> Self {
        let mut octets = [0; 6];
        fastrand::fill(&mut octets);
        Self(octets)
    }
}

/// A slot of a table and its generation, which changes with each reuse.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct SlotId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl SlotId {
    /// Numbers with this bit are in no table: they only count ids.
    const NUMBERED: u32 = 1 << 31;

    fn octets(self) -> [u8; 8] {
        ((u64::from(self.slot) << 32) | u64::from(self.generation)).to_be_bytes()
    }

    #[inline]
    fn of(octets: [u8; 8]) -> Self {
        let both = u64::from_be_bytes(octets);
        let [slot, generation] = [both >> 32, both & u64::from(u32::MAX)].map(|half| half as u32);
        Self { slot, generation }
    }

    /// The id with this number, in no table.
    pub(crate) fn from_number(number: u64) -> Self {
        let slot_id = Self::of(number.to_be_bytes());
        Self { slot: slot_id.slot | Self::NUMBERED, ..slot_id }
    }

    /// Its number, if it is in no table.
    pub(crate) fn number(self) -> Option<u64> {
        let slot_id = Self { slot: self.slot & !Self::NUMBERED, ..self };
        (slot_id != self).then(|| u64::from_be_bytes(slot_id.octets()))
    }
}

/// The format of the ids that an adapter assigns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemIdFormat {
    /// For ids that outlive the process.
    pub(crate) incarnation: Option<Incarnation>,
}

/// The origin of an id, for an adapter with this format of ids.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IdOrigin {
    /// Assigned by this process, for this slot.
    ThisRun(SlotId),
    /// Assigned by an earlier process.
    EarlierRun,
    /// Not assigned by the system.
    NotAssigned,
}

impl SystemIdFormat {
    pub(crate) fn encode(self, slot_id: SlotId) -> Vec<u8> {
        let mut id = Vec::with_capacity(14);
        id.extend(self.incarnation.iter().flat_map(|incarnation| incarnation.0));
        id.extend(slot_id.octets());
        id
    }

    #[inline]
    pub(crate) fn decode(self, id: &[u8]) -> IdOrigin {
        let slot_id = match self.incarnation {
            None => id,
            Some(incarnation) => match id.split_at_checked(6) {
                Some((run, slot_id)) if run == incarnation.0 => slot_id,
                Some((_, slot_id)) if slot_id.len() == 8 => return IdOrigin::EarlierRun,
                _ => return IdOrigin::NotAssigned,
            },
        };
        slot_id.try_into().map_or(IdOrigin::NotAssigned, |slot_id| IdOrigin::ThisRun(SlotId::of(slot_id)))
    }
}

/// The key prefix of a transient adapter.
pub(crate) fn transient(incarnation: Incarnation, adapter: SlotId) -> Vec<u8> {
    let mut key = Vec::with_capacity(HEADER_LEN + 8);
    key.extend([VERSION, TRANSIENT]);
    key.extend(incarnation.0);
    key.extend(adapter.octets());
    key
}

/// The key prefix of a persistent adapter; `None` if it is too deep or a name is too long.
pub(crate) fn persistent(path: &[&str]) -> Option<Vec<u8>> {
    let mut key = vec![VERSION, PERSISTENT, 0, 0, 0, 0, 0, 0];
    let count = u16::try_from(path.len()).ok().filter(|_| path.len() <= MAX_DEPTH)?;
    key.extend(count.to_be_bytes());
    for name in path {
        key.extend(u16::try_from(name.len()).ok()?.to_be_bytes());
        key.extend(name.as_bytes());
    }
    Some(key)
}

/// The adapter of a key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum KeyTarget<'k> {
    /// A transient adapter, in this slot.
    Transient(SlotId),
    /// A persistent adapter: its key prefix, and its path from the root adapter's child on.
    Persistent { prefix: &'k [u8], path: Vec<&'k str> },
}

/// The adapter of a key; `None` for a malformed key, or one from another ORB or process.
pub(crate) fn parse(incarnation: Incarnation, key: &[u8]) -> Option<KeyTarget<'_>> {
    let (head, rest) = key.split_at_checked(HEADER_LEN)?;
    match head.split_at(2) {
        ([VERSION, TRANSIENT], run) if run == incarnation.0 => {
            let slot_id = rest.first_chunk()?;
            Some(KeyTarget::Transient(SlotId::of(*slot_id)))
        }
        ([VERSION, PERSISTENT], [0, 0, 0, 0, 0, 0]) => {
            let (count, mut rest) = ushort(rest)?;
            if count > MAX_DEPTH {
                return None;
            }
            let mut path = Vec::with_capacity(count);
            for _ in 0..count {
                let (len, after) = ushort(rest)?;
                let (name, after) = after.split_at_checked(len)?;
                path.push(std::str::from_utf8(name).ok()?);
                rest = after;
            }
            Some(KeyTarget::Persistent { prefix: &key[..key.len() - rest.len()], path })
        }
        _ => None,
    }
}

/// Describes a key of Spandrel for people: the adapter, and the object's id. `None` for keys of other ORBs.
#[must_use]
pub fn describe_key(key: &[u8]) -> Option<String> {
    let run = Incarnation(key.get(2..HEADER_LEN)?.try_into().ok()?);
    let (adapter, id) = match parse(run, key)? {
        KeyTarget::Transient(slot_id) => (format!("{slot_id}"), key.get(HEADER_LEN + 8..)?),
        KeyTarget::Persistent { prefix, path } => {
            (format!("\"{}\"", spandrel_error::escape(&path.join("/"))), &key[prefix.len()..])
        }
    };
    let slot = id.first_chunk::<8>().filter(|_| id.len() == 8).map(|octets| SlotId::of(*octets));
    let id = slot.map_or_else(|| format!("\"{}\"", id.escape_ascii()), |slot_id| slot_id.to_string());
    Some(format!("adapter {adapter}, object {id}"))
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => write!(f, "#{number}"),
            None => write!(f, "{}v{}", self.slot, self.generation),
        }
    }
}

fn ushort(octets: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = octets.split_first_chunk()?;
    Some((u16::from_be_bytes(*number).into(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: SlotId = SlotId { slot: 7, generation: 9 };
    const RUN: Incarnation = Incarnation([1, 2, 3, 4, 5, 6]);

    #[test]
    fn a_key_identifies_its_adapter() {
        let mut key = transient(RUN, SLOT);
        key.extend(b"some id");
        assert_eq!(parse(RUN, &key), Some(KeyTarget::Transient(SLOT)));
        let prefix = persistent(&["bank", "", "konto\u{e4}"]).unwrap();
        let key = [&prefix[..], b"id"].concat();
        let path = vec!["bank", "", "konto\u{e4}"];
        assert_eq!(parse(RUN, &key), Some(KeyTarget::Persistent { prefix: &prefix, path }));
        assert_eq!(persistent(&[&"x".repeat(70_000)]), None);
        assert_eq!(persistent(&["x"; MAX_DEPTH + 1]), None);
    }

    #[test]
    fn a_key_is_described_in_words() {
        let described = |parts: &[&[u8]]| describe_key(&parts.concat());
        let transient = transient(RUN, SLOT);
        assert_eq!(described(&[&transient, &SLOT.octets()]).unwrap(), "adapter 7v9, object 7v9");
        assert_eq!(
            described(&[&persistent(&["bank", "a"]).unwrap(), b"x\0"]).unwrap(),
            r#"adapter "bank/a", object "x\x00""#
        );
        assert_eq!(describe_key(b"NameService"), None);
        assert_eq!(describe_key(&[]), None);
    }

    #[test]
    fn a_key_with_a_damaged_or_truncated_header_is_rejected() {
        for key in [transient(RUN, SLOT), persistent(&["a", "b"]).unwrap()] {
            for at in 0..HEADER_LEN {
                let mut changed = key.clone();
                changed[at] ^= 0x40;
                assert_eq!(parse(RUN, &changed), None, "octet {at}");
            }
            for len in 0..key.len() {
                assert_eq!(parse(RUN, &key[..len]), None, "length {len}");
            }
        }
        assert_eq!(parse(RUN, &[VERSION, PERSISTENT, 0, 0, 0, 0, 0, 0, 0xff, 0xff]), None);
        assert_eq!(parse(RUN, &[VERSION, PERSISTENT, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0xff]), None);
    }

    #[test]
    fn arbitrary_octets_are_a_key_or_rejected() {
        let mut random = fastrand::Rng::with_seed(7);
        let keys = [transient(RUN, SLOT), persistent(&["alpha", "beta"]).unwrap()];
        for _ in 0..20_000 {
            let mut key = keys[random.usize(..2)].clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..key.len());
                key[at] = random.u8(..);
            }
            key.truncate(random.usize(..=key.len()));
            if let Some(KeyTarget::Persistent { prefix, path }) = parse(RUN, &key) {
                assert_eq!(persistent(&path).as_deref(), Some(prefix));
            }
            let _ = SystemIdFormat { incarnation: Some(RUN) }.decode(&key);
        }
    }

    #[test]
    fn an_id_contains_its_slot_and_incarnation() {
        let [short, long] = [None, Some(RUN)].map(|incarnation| SystemIdFormat { incarnation });
        for form in [short, long] {
            assert_eq!(form.decode(&form.encode(SLOT)), IdOrigin::ThisRun(SLOT));
            assert_eq!(form.decode(b"seven"), IdOrigin::NotAssigned);
        }
        let mut earlier = long.encode(SLOT);
        earlier[0] ^= 1;
        assert_eq!(long.decode(&earlier), IdOrigin::EarlierRun);
        let numbered = SlotId::from_number(u64::from(u32::MAX) + 5);
        assert_eq!(numbered.number(), Some(u64::from(u32::MAX) + 5));
        assert_eq!(SLOT.number(), None);
    }
}
