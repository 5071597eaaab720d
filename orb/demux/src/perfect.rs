//! Perfect hashing: a function from keys to places under which no two keys of a known set share a place.
//!
//! Two levels (hash and displace): a key's hash chooses a bucket, and each bucket has a displacement, chosen
//! so that its keys fall on free places. A lookup costs one hash, one displacement and one place for any set.
//! Whether a key belongs to the set is decided by the caller, by a comparison with the key of that place.

/// The odd part of the golden ratio: multiplication by it spreads octets over all bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Number of seeds tried before places are added.
const SEEDS: u32 = 8;
/// Number of enlargements, by a quarter each. More means invalid keys.
const ENLARGEMENTS: usize = 8;
/// Mean number of keys per bucket. More make the table of displacements smaller, and the search longer.
pub(crate) const KEYS_PER_BUCKET: usize = 3;

/// A hash of octets, the same on all machines: a compiler's tables are used on others.
///
/// Eight octets at a time; each step is a multiplication whose upper half is folded back.
#[inline]
#[must_use]
pub const fn hash(seed: u32, key: &[u8]) -> u64 {
    // Folded before anything else: otherwise keys of different lengths could be equal under every seed.
    let mut hash = fold((seed as u64 + 1).wrapping_mul(SPREAD) ^ key.len() as u64);
    let mut rest = key;
    while let Some((word, others)) = rest.split_first_chunk() {
        hash = fold(hash ^ u64::from_le_bytes(*word));
        rest = others;
    }
    fold(hash ^ last_word(rest))
}

#[inline]
const fn fold(word: u64) -> u64 {
    let wide = word as u128 * SPREAD as u128;
    wide as u64 ^ (wide >> 64) as u64
}

/// Less than eight octets as one number; the length is hashed too, so tails of different lengths differ.
#[inline]
const fn last_word(tail: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (tail.first_chunk(), tail.last_chunk()) {
        return (u32::from_le_bytes(*first) as u64) << 32 | u32::from_le_bytes(*last) as u64;
    }
    match *tail {
        [] => 0,
        [a] => a as u64,
        [a, b] => (a as u64) << 8 | b as u64,
        [a, b, c, ..] => (a as u64) << 16 | (b as u64) << 8 | c as u64,
    }
}

/// The place of a key in a table of `places` places; any of them for keys outside its set.
///
/// # Panics
/// If there are no displacements.
#[inline]
#[must_use]
pub const fn place(seed: u32, displacements: &[u16], places: usize, key: &[u8]) -> usize {
    let hash = hash(seed, key);
    displaced(hash, displacements[bucket(hash, displacements.len())], places)
}

/// As [`place`], with displacements in little-endian order.
#[inline]
pub(crate) const fn place_by_octets(seed: u32, displacements: &[[u8; 2]], places: usize, key: &[u8]) -> usize {
    let hash = hash(seed, key);
    let displacement = u16::from_le_bytes(displacements[bucket(hash, displacements.len())]);
    displaced(hash, displacement, places)
}

#[inline]
const fn bucket(hash: u64, buckets: usize) -> usize {
    share(hash >> 32, buckets)
}

/// The place of a key after the displacement of its bucket. Displacements are factors: summands would keep
/// equal distances between keys.
#[inline]
const fn displaced(hash: u64, displacement: u16, places: usize) -> usize {
    let factor = 2 * displacement as u32 + 1;
    share((hash as u32).wrapping_mul(factor) as u64, places)
}

/// A number of 32 bits, scaled down to less than `all`.
#[inline]
const fn share(number: u64, all: usize) -> usize {
    ((number * all as u64) >> 32) as usize
}

/// The parameters of a perfect hash function over a set of names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tables {
    /// The number that selects the hash function from its family.
    pub seed: u32,
    /// The displacement of each bucket, at least one.
    pub displacements: Vec<u16>,
    /// The index of the key of each place; the number of keys for free places.
    pub places: Vec<u32>,
}

impl Tables {
    /// Finds tables for these keys, in linear time with a large constant.
    ///
    /// `None` if a key occurs twice, or if there are 2³² keys. It may also be `None` for a maliciously chosen
    /// set, although no method to choose one is known; callers have another way of looking up.
    #[must_use]
    pub fn of<K: AsRef<[u8]>>(keys: &[K]) -> Option<Self> {
        u32::try_from(keys.len()).ok()?;
        let buckets = keys.len().div_ceil(KEYS_PER_BUCKET).max(1);
        let mut places = keys.len() + keys.len() / 4;
        for _ in 0..ENLARGEMENTS {
            for seed in 0..SEEDS {
                match attempt(keys, seed, buckets, places) {
                    Attempt::Found(tables) => return Some(tables),
                    Attempt::Crowded => {}
                    Attempt::Twice => return None,
                }
            }
            places += places / 4 + 1;
        }
        None
    }

    /// The displacements, then the places, each of them two octets in little-endian order, as generated code has them.
    /// `None` if there are more keys than such numbers.
    #[must_use]
    pub fn to_octets(&self) -> Option<Vec<u8>> {
        let places = self.places.iter().map(|index| u16::try_from(*index).ok());
        let numbers: Vec<u16> = self.displacements.iter().copied().map(Some).chain(places).collect::<Option<_>>()?;
        Some(numbers.into_iter().flat_map(u16::to_le_bytes).collect())
    }

    /// The index of a key of the set; any index, or the number of keys, for other keys.
    #[inline]
    #[must_use]
    pub fn index(&self, key: &[u8]) -> usize {
        let place = place(self.seed, &self.displacements, self.places.len(), key);
        self.places.get(place).map_or(0, |index| *index as usize)
    }
}

enum Attempt {
    Found(Tables),
    /// A bucket without a fitting displacement.
    Crowded,
    /// A key that occurs twice.
    Twice,
}

fn attempt<K: AsRef<[u8]>>(keys: &[K], seed: u32, buckets: usize, places: usize) -> Attempt {
    let mut members: Vec<(u32, u64, u32)> = (0u32..)
        .zip(keys)
        .map(|(index, key)| {
            let hash = hash(seed, key.as_ref());
            (bucket(hash, buckets) as u32, hash, index)
        })
        .collect();
    members.sort_unstable();
    let mut by_bucket: Vec<&[(u32, u64, u32)]> = members.chunk_by(|one, other| one.0 == other.0).collect();
    // Large buckets first, while most places are free.
    by_bucket.sort_by_key(|bucket| std::cmp::Reverse(bucket.len()));
    let free = keys.len() as u32;
    let mut tables = Tables { seed, displacements: vec![0; buckets], places: vec![free; places] };
    for bucket in by_bucket {
        let fits = (0..=u16::MAX).find(|displacement| {
            let fitted = fit(bucket, *displacement, &mut tables.places, free);
            if fitted {
                tables.displacements[bucket[0].0 as usize] = *displacement;
            }
            fitted
        });
        if fits.is_none() {
            let twice =
                |pair: &[(u32, u64, u32)]| keys[pair[0].2 as usize].as_ref() == keys[pair[1].2 as usize].as_ref();
            return if bucket.windows(2).any(twice) { Attempt::Twice } else { Attempt::Crowded };
        }
    }
    Attempt::Found(tables)
}

/// Puts the keys of a bucket on their places, all or none.
fn fit(bucket: &[(u32, u64, u32)], displacement: u16, places: &mut [u32], free: u32) -> bool {
    for (done, (_, hash, index)) in bucket.iter().enumerate() {
        let at = displaced(*hash, displacement, places.len());
        if places[at] != free {
            for (_, hash, _) in &bucket[..done] {
                places[displaced(*hash, displacement, places.len())] = free;
            }
            return false;
        }
        places[at] = *index;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn check(keys: &[Vec<u8>]) {
        let tables = Tables::of(keys).expect("different keys have a perfect hash");
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(tables.index(key), index, "{key:?}");
        }
    }

    #[test]
    fn every_key_of_a_set_has_its_own_place() {
        for count in [0, 1, 2, 3, 7, 20, 100, 500, 10_000] {
            check(&(0..count).map(|nth: u32| nth.to_be_bytes().to_vec()).collect::<Vec<_>>());
            check(&(0..count).map(|nth| format!("operation_{nth}").into_bytes()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn keys_that_differ_in_one_octet_are_distinguished() {
        let with = |at: usize, octet: u8| {
            let mut key = vec![b'a'; 40];
            key[at] = octet;
            key
        };
        check(&(0..40).map(|at| with(at, b'b')).collect::<Vec<_>>());
        check(&(0..=255).map(|octet| with(23, octet)).collect::<Vec<_>>());
        // The keys differ in length only.
        check(&(0..200).map(|len| vec![0; len]).collect::<Vec<_>>());
        check(&(0..200).map(|len| vec![b'x'; len]).collect::<Vec<_>>());
    }

    #[test]
    fn a_repeated_key_is_rejected() {
        assert_eq!(Tables::of(&["a", "b", "a"]), None);
        assert_eq!(Tables::of(&["", ""]), None);
    }

    #[test]
    fn tables_are_little_larger_than_their_keys() {
        let keys: Vec<String> = (0..1000).map(|nth| format!("object {nth}")).collect();
        let tables = Tables::of(&keys).expect("there is one");
        assert!(tables.places.len() <= 1250, "{}", tables.places.len());
        assert!(tables.displacements.len() <= 334, "{}", tables.displacements.len());
    }

    #[test]
    fn unknown_keys_get_some_index() {
        let tables = Tables::of(&["one", "two", "three"]).expect("there is one");
        for len in 0..100 {
            assert!(tables.index(&vec![b'?'; len]) <= 3);
        }
        assert_eq!(Tables::of::<&str>(&[]).expect("nothing is easy").index(b"anything"), 0);
    }

    proptest! {
        #[test]
        fn any_set_has_a_perfect_hash(keys in proptest::collection::btree_set(proptest::collection::vec(any::<u8>(), 0..24), 0..60)) {
            check(&keys.into_iter().collect::<Vec<_>>());
        }

        /// Few letters, so that names share prefixes and suffixes.
        #[test]
        fn similar_names_have_a_perfect_hash(keys in proptest::collection::btree_set("(get|set)?_?[ab]{0,12}(_[01])?", 0..60)) {
            let keys: BTreeSet<Vec<u8>> = keys.into_iter().map(String::into_bytes).collect();
            check(&keys.into_iter().collect::<Vec<_>>());
        }
    }
}
