//! Object keys of transient objects (design decision 11).
//!
//! `octet version | octet flags | octets[6] incarnation | ulong slot | ulong generation`, numbers big-endian. The incarnation is
//! drawn anew by every server process, so that a reference from an earlier one is refused instead of reaching a stranger;
//! the generation does the same for slots that are used again. Neither is a secret.

use crate::active_map::ObjectId;

/// Octets of a key.
const LEN: usize = 16;
const VERSION: u8 = 1;
const TRANSIENT: u8 = 0;

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

/// The key of an object of this incarnation.
pub(crate) fn encode(incarnation: Incarnation, id: ObjectId) -> Vec<u8> {
    let mut key = Vec::with_capacity(LEN);
    key.extend([VERSION, TRANSIENT]);
    key.extend(incarnation.0);
    key.extend(id.slot.to_be_bytes());
    key.extend(id.generation.to_be_bytes());
    key
}

/// The object that a key means; `None` for a key that is malformed, or from elsewhere, or from another time.
#[inline]
pub(crate) fn decode(incarnation: Incarnation, key: &[u8]) -> Option<ObjectId> {
    let key: &[u8; LEN] = key.try_into().ok()?;
    let (head, id) = key.split_at(8);
    if head[..2] != [VERSION, TRANSIENT] || head[2..] != incarnation.0 {
        return None;
    }
    let (slot, generation) = id.split_at(4);
    Some(ObjectId {
        slot: u32::from_be_bytes(slot.try_into().ok()?),
        generation: u32::from_be_bytes(generation.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ObjectId = ObjectId { slot: 7, generation: 9 };

    #[test]
    fn a_key_leads_back_to_its_object() {
        let incarnation = Incarnation::random();
        assert_eq!(decode(incarnation, &encode(incarnation, ID)), Some(ID));
    }

    #[test]
    fn a_key_that_was_changed_anywhere_in_its_head_is_refused() {
        let incarnation = Incarnation([1, 2, 3, 4, 5, 6]);
        let key = encode(incarnation, ID);
        for at in 0..8 {
            let mut changed = key.clone();
            changed[at] ^= 1;
            assert_eq!(decode(incarnation, &changed), None, "octet {at}");
        }
        for len in 0..key.len() {
            assert_eq!(decode(incarnation, &key[..len]), None, "length {len}");
        }
        assert_eq!(decode(incarnation, &[&key[..], &[0]].concat()), None);
    }
}
