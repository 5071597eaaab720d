//! Object keys (design decision 11), and the object ids that adapters make.
//!
//! ```text
//! octet version | octet flags | octets[6] incarnation | adapter | octets object id
//! adapter, transient:  ulong slot | ulong generation
//! adapter, persistent: ushort count | { ushort length | octets name }, from the root adapter's child on; the incarnation is zero
//! object id that an adapter made: { octets[6] incarnation, persistent adapters only } | ulong slot | ulong generation
//! ```
//!
//! Numbers are big-endian. The incarnation is drawn anew by every server process, so that a transient reference from an earlier one is
//! refused instead of reaching a stranger; the generations do the same for slots that are used again. Neither is a secret.
//! No adapter's beginning of a key is the beginning of another's, so that an adapter is known by comparing that.

use std::fmt;

/// Octets before the adapter.
const HEAD: usize = 8;
const VERSION: u8 = 1;
const TRANSIENT: u8 = 0;
const PERSISTENT: u8 = 1;
/// Names in the path of an adapter, at most.
pub(crate) const MAX_DEPTH: usize = 64;

/// Which run of the server a key is from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Incarnation([u8; 6]);

impl Incarnation {
    pub(crate) fn random() -> Self {
        let mut octets = [0; 6];
        fastrand::fill(&mut octets);
        Self(octets)
    }
}

/// A place in a table whose places are used again: then with another generation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Place {
    /// Places with this bit are in no table: they only number ids.
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

    /// The id with this number, that of no table.
    pub(crate) fn numbered(number: u64) -> Self {
        let place = Self::of(number.to_be_bytes());
        Self { slot: place.slot | Self::NUMBERED, ..place }
    }

    /// Its number, if it is in no table.
    pub(crate) fn number(self) -> Option<u64> {
        let place = Self { slot: self.slot & !Self::NUMBERED, ..self };
        (place != self).then(|| u64::from_be_bytes(place.octets()))
    }
}

/// How the ids look that an adapter makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdForm {
    /// For those that outlive the process.
    pub(crate) incarnation: Option<Incarnation>,
}

/// What an id says of itself that an adapter with this form of ids may have made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Made {
    /// In this run of the server, for this place.
    Here(Place),
    /// In an earlier one.
    Earlier,
    /// Never.
    No,
}

impl IdForm {
    pub(crate) fn encode(self, place: Place) -> Vec<u8> {
        let mut id = Vec::with_capacity(14);
        id.extend(self.incarnation.iter().flat_map(|incarnation| incarnation.0));
        id.extend(place.octets());
        id
    }

    #[inline]
    pub(crate) fn decode(self, id: &[u8]) -> Made {
        let place = match self.incarnation {
            None => id,
            Some(incarnation) => match id.split_at_checked(6) {
                Some((run, place)) if run == incarnation.0 => place,
                Some((_, place)) if place.len() == 8 => return Made::Earlier,
                _ => return Made::No,
            },
        };
        place.try_into().map_or(Made::No, |place| Made::Here(Place::of(place)))
    }
}

/// How the keys of a transient adapter begin.
pub(crate) fn transient(incarnation: Incarnation, adapter: Place) -> Vec<u8> {
    let mut key = Vec::with_capacity(HEAD + 8);
    key.extend([VERSION, TRANSIENT]);
    key.extend(incarnation.0);
    key.extend(adapter.octets());
    key
}

/// How the keys of a persistent adapter begin; `None` if it is too deep or a name too long.
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

/// The adapter that a key means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Home<'k> {
    /// One that lives as long as the process, at this place.
    Transient(Place),
    /// One that may be made anew; how its keys begin, and its path from the root adapter's child on.
    Persistent { prefix: &'k [u8], path: Vec<&'k str> },
}

/// The adapter that a key means; `None` for a key that is malformed, or from elsewhere, or from another time.
pub(crate) fn home(incarnation: Incarnation, key: &[u8]) -> Option<Home<'_>> {
    let (head, rest) = key.split_at_checked(HEAD)?;
    match head.split_at(2) {
        ([VERSION, TRANSIENT], run) if run == incarnation.0 => {
            let place = rest.first_chunk()?;
            Some(Home::Transient(Place::of(*place)))
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
            Some(Home::Persistent { prefix: &key[..key.len() - rest.len()], path })
        }
        _ => None,
    }
}

/// What a key of ours says, for people: the adapter, and the object's id. Nothing for keys that others made.
#[must_use]
pub fn describe_key(key: &[u8]) -> Option<String> {
    let run = Incarnation(key.get(2..HEAD)?.try_into().ok()?);
    let (adapter, id) = match home(run, key)? {
        Home::Transient(place) => (format!("{place}"), key.get(HEAD + 8..)?),
        Home::Persistent { prefix, path } => (format!("\"{}\"", path.join("/").escape_debug()), &key[prefix.len()..]),
    };
    let made = id.first_chunk::<8>().filter(|_| id.len() == 8).map(|octets| Place::of(*octets));
    let id = made.map_or_else(|| format!("\"{}\"", id.escape_ascii()), |place| place.to_string());
    Some(format!("adapter {adapter}, object {id}"))
}

impl fmt::Display for Place {
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

    const PLACE: Place = Place { slot: 7, generation: 9 };
    const RUN: Incarnation = Incarnation([1, 2, 3, 4, 5, 6]);

    #[test]
    fn a_key_leads_back_to_its_adapter() {
        let mut key = transient(RUN, PLACE);
        key.extend(b"some id");
        assert_eq!(home(RUN, &key), Some(Home::Transient(PLACE)));
        let prefix = persistent(&["bank", "", "konto\u{e4}"]).unwrap();
        let key = [&prefix[..], b"id"].concat();
        let path = vec!["bank", "", "konto\u{e4}"];
        assert_eq!(home(RUN, &key), Some(Home::Persistent { prefix: &prefix, path }));
        assert_eq!(persistent(&[&"x".repeat(70_000)]), None);
        assert_eq!(persistent(&["x"; MAX_DEPTH + 1]), None);
    }

    #[test]
    fn people_are_told_what_a_key_says() {
        let said = |parts: &[&[u8]]| describe_key(&parts.concat());
        let transient = transient(RUN, PLACE);
        assert_eq!(said(&[&transient, &PLACE.octets()]).unwrap(), "adapter 7v9, object 7v9");
        assert_eq!(
            said(&[&persistent(&["bank", "a"]).unwrap(), b"x\0"]).unwrap(),
            r#"adapter "bank/a", object "x\x00""#
        );
        assert_eq!(describe_key(b"NameService"), None);
        assert_eq!(describe_key(&[]), None);
    }

    #[test]
    fn a_key_that_was_changed_anywhere_in_its_head_or_is_cut_short_is_refused() {
        for key in [transient(RUN, PLACE), persistent(&["a", "b"]).unwrap()] {
            for at in 0..HEAD {
                let mut changed = key.clone();
                changed[at] ^= 0x40;
                assert_eq!(home(RUN, &changed), None, "octet {at}");
            }
            for len in 0..key.len() {
                assert_eq!(home(RUN, &key[..len]), None, "length {len}");
            }
        }
        assert_eq!(home(RUN, &[VERSION, PERSISTENT, 0, 0, 0, 0, 0, 0, 0xff, 0xff]), None);
        assert_eq!(home(RUN, &[VERSION, PERSISTENT, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0xff]), None);
    }

    #[test]
    fn no_octets_whatever_make_reading_a_key_fail_otherwise() {
        let mut random = fastrand::Rng::with_seed(7);
        let keys = [transient(RUN, PLACE), persistent(&["alpha", "beta"]).unwrap()];
        for _ in 0..20_000 {
            let mut key = keys[random.usize(..2)].clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..key.len());
                key[at] = random.u8(..);
            }
            key.truncate(random.usize(..=key.len()));
            if let Some(Home::Persistent { prefix, path }) = home(RUN, &key) {
                assert_eq!(persistent(&path).as_deref(), Some(prefix));
            }
            let _ = IdForm { incarnation: Some(RUN) }.decode(&key);
        }
    }

    #[test]
    fn an_id_says_where_its_object_is_and_which_run_made_it() {
        let [short, long] = [None, Some(RUN)].map(|incarnation| IdForm { incarnation });
        for form in [short, long] {
            assert_eq!(form.decode(&form.encode(PLACE)), Made::Here(PLACE));
            assert_eq!(form.decode(b"seven"), Made::No);
        }
        let mut earlier = long.encode(PLACE);
        earlier[0] ^= 1;
        assert_eq!(long.decode(&earlier), Made::Earlier);
        let numbered = Place::numbered(u64::from(u32::MAX) + 5);
        assert_eq!(numbered.number(), Some(u64::from(u32::MAX) + 5));
        assert_eq!(PLACE.number(), None);
    }
}
