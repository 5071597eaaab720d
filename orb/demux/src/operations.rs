//! The table of an interface's operations in a skeleton.

use std::fmt;
use std::sync::OnceLock;

use crate::perfect;

/// The strategy of operation lookup: a policy of object adapters.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum OperationDemux {
    /// By the perfect hash function that the IDL compiler found: one hash and one comparison.
    #[default]
    PerfectHash,
    /// By a hash table that is filled on first use, with twice as many places as names and linear probing.
    DynamicHash,
    /// By binary search of the sorted names.
    BinarySearch,
    /// By a linear search.
    Linear,
    /// As [`PerfectHash`](Self::PerfectHash). References also invite Spandrel clients to send the operation's
    /// index, so that the lookup is a single comparison.
    Active,
}

impl OperationDemux {
    /// All strategies, for tests and tables.
    pub const ALL: [Self; 5] = [Self::PerfectHash, Self::DynamicHash, Self::BinarySearch, Self::Linear, Self::Active];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PerfectHash => "perfect-hash",
            Self::DynamicHash => "dynamic-hash",
            Self::BinarySearch => "binary-search",
            Self::Linear => "linear",
            Self::Active => "active",
        }
    }
}

/// The names of an interface's operations, and their lookup tables. Generated code creates it; an operation
/// is its index.
pub struct Operations {
    names: &'static [&'static str],
    seed: u32,
    /// Numbers in little-endian order, as the places: generated code has both in one literal.
    displacements: &'static [[u8; 2]],
    places: &'static [[u8; 2]],
    hashed: OnceLock<Box<[u16]>>,
}

impl Operations {
    /// The table of an interface without operations.
    pub const NONE: &'static Self = {
        static NONE: Operations = Operations::new(&[], 0, &[]);
        &NONE
    };

    /// A table of names in octet order, with their perfect hash function: its seed, and the other tables in the form of
    /// [`perfect::Tables::to_octets`]. Without octets there is none, and the names are searched.
    ///
    /// # Panics
    /// If the names are not in order, or the function does not find them. In a static that is a compile-time
    /// error.
    #[must_use]
    pub const fn new(names: &'static [&'static str], seed: u32, tables: &'static [u8]) -> Self {
        let (numbers, rest) = tables.as_chunks();
        assert!(rest.is_empty(), "a number has two octets");
        let buckets = match (numbers.is_empty(), names.len().div_ceil(perfect::KEYS_PER_BUCKET)) {
            (true, _) => 0,
            (false, 0) => 1,
            (false, buckets) => buckets,
        };
        let (displacements, places) = numbers.split_at(buckets);
        let operations = Self { names, seed, displacements, places, hashed: OnceLock::new() };
        let mut index = 0;
        while index < names.len() {
            assert!(index == 0 || is_less(names[index - 1].as_bytes(), names[index].as_bytes()), "names are in order");
            let is_found = places.is_empty() || operations.candidate(names[index]) == index;
            assert!(is_found, "the hash function finds each name");
            index += 1;
        }
        operations
    }

    /// The names in ascending order. An operation's index is the position of its name.
    #[must_use]
    pub fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// The perfect hash function: its seed, its displacements, and the number of places of its table.
    #[must_use]
    pub fn hash_function(&self) -> (u32, impl ExactSizeIterator<Item = u16> + use<>, usize) {
        (self.seed, self.displacements.iter().map(|number| u16::from_le_bytes(*number)), self.places.len())
    }

    /// Whether there are no names.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether the operation with this index has this name. The index comes from a peer and may be any
    /// number.
    #[inline]
    #[must_use]
    pub fn is_named(&self, index: usize, name: &str) -> bool {
        self.names.get(index).is_some_and(|own| *own == name)
    }

    /// The index of the operation at this place of the hash function's table, if it has this name.
    #[inline]
    #[must_use]
    pub fn at_place(&self, place: usize, name: &str) -> Option<usize> {
        let index = usize::from(u16::from_le_bytes(*self.places.get(place)?));
        self.is_named(index, name).then_some(index)
    }

    /// The index of the operation with this name, found by the given strategy.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &str, how: OperationDemux) -> Option<usize> {
        match how {
            OperationDemux::PerfectHash | OperationDemux::Active => self.find_perfect(name),
            other => self.find_otherwise(name, other),
        }
    }

    #[inline]
    fn find_perfect(&self, name: &str) -> Option<usize> {
        if self.places.is_empty() {
            return self.find_otherwise(name, OperationDemux::BinarySearch);
        }
        let index = self.candidate(name);
        self.is_named(index, name).then_some(index)
    }

    /// Out of line, off the usual path.
    #[inline(never)]
    fn find_otherwise(&self, name: &str, how: OperationDemux) -> Option<usize> {
        match how {
            OperationDemux::Linear => self.names.iter().position(|own| *own == name),
            OperationDemux::BinarySearch => self.names.binary_search(&name).ok(),
            _ => self.find_hashed(name),
        }
    }

    /// The only possible index of an operation with this name.
    #[inline]
    const fn candidate(&self, name: &str) -> usize {
        let place = perfect::place_by_octets(self.seed, self.displacements, self.places.len(), name.as_bytes());
        u16::from_le_bytes(self.places[place]) as usize
    }

    fn find_hashed(&self, name: &str) -> Option<usize> {
        let table = self.hashed.get_or_init(|| self.hashed());
        let start = start(name, table.len())?;
        let from_start = table[start..].iter().chain(&table[..start]);
        from_start
            .map_while(|index| self.names.get(usize::from(*index)).map(|own| (*index, *own)))
            .find(|(_, own)| *own == name)
            .map(|(index, _)| usize::from(index))
    }

    /// A place for each name: its hash, or the next free one. Free places hold the number of names.
    fn hashed(&self) -> Box<[u16]> {
        let free = self.names.len() as u16;
        let mut table = vec![free; 2 * self.names.len()];
        for (index, name) in (0u16..).zip(self.names) {
            let Some(mut at) = start(name, table.len()) else { break };
            while table[at] != free {
                at = (at + 1) % table.len();
            }
            table[at] = index;
        }
        table.into()
    }
}

/// The first place to search in a hash table; `None` if the table is empty.
fn start(name: &str, places: usize) -> Option<usize> {
    (perfect::hash(0, name.as_bytes()) as usize).checked_rem(places)
}

/// Constant functions cannot compare slices yet.
const fn is_less(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return one[at] < other[at];
        }
        at += 1;
    }
    one.len() < other.len()
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Operations").field(&self.names).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::perfect::Tables;

    /// As the IDL compiler creates them.
    fn operations(names: impl IntoIterator<Item = String>) -> Operations {
        let mut names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
        names.sort_unstable();
        names.dedup();
        let tables = Tables::of(&names).expect("different names have a perfect hash");
        Operations::new(names.leak(), tables.seed, octets(&tables))
    }

    fn octets(tables: &Tables) -> &'static [u8] {
        tables.to_octets().expect("fewer names than 65,536").leak()
    }

    fn check(operations: &Operations, strangers: &[String]) {
        for how in OperationDemux::ALL {
            for (index, name) in operations.names().iter().enumerate() {
                assert_eq!(operations.find(name, how), Some(index), "{name} by {how:?}");
            }
            for stranger in strangers.iter().filter(|name| !operations.names().contains(&name.as_str())) {
                assert_eq!(operations.find(stranger, how), None, "{stranger} by {how:?}");
            }
        }
    }

    #[test]
    fn every_strategy_finds_every_name_and_no_other() {
        let strangers = ["", "a", "operation", "operation_", "operation_10000", "Operation_1", "_is_a", "\u{0}"];
        for count in [1, 2, 5, 10, 20, 100, 500] {
            let names = (0..count).map(|nth| format!("operation_{nth}"));
            check(&operations(names), &strangers.map(str::to_owned));
        }
        check(Operations::NONE, &strangers.map(str::to_owned));
    }

    #[test]
    fn names_without_a_hash_function_are_found_by_search() {
        check(&Operations::new(&["deposit", "withdraw"], 0, &[]), &["balance".to_owned(), String::new()]);
    }

    #[test]
    fn an_index_from_a_peer_is_valid_only_with_its_name() {
        let operations = operations(["deposit".to_owned(), "withdraw".to_owned()]);
        assert!(operations.is_named(0, "deposit"));
        assert!(!operations.is_named(1, "deposit"));
        assert!(!operations.is_named(2, "deposit"));
        assert!(!operations.is_named(usize::MAX, "deposit"));
    }

    #[test]
    #[should_panic(expected = "names are in order")]
    fn names_out_of_order_are_rejected() {
        let names = &["b", "a"];
        let tables = Tables::of(names).expect("distinct names have a perfect hash");
        _ = Operations::new(names, tables.seed, octets(&tables));
    }

    #[test]
    #[should_panic(expected = "the hash function finds each name")]
    fn tables_of_other_names_are_rejected() {
        let names = &["a", "b", "c"];
        let mut tables = Tables::of(names).expect("distinct names have a perfect hash");
        tables.places.reverse();
        _ = Operations::new(names, tables.seed, octets(&tables));
    }

    proptest! {
        #[test]
        fn random_interfaces_find_their_own_names_only(
            names in proptest::collection::btree_set("(_get_|_set_|)[a-c]{1,10}[0-9]?", 1..40),
            strangers in proptest::collection::vec(".{0,20}", 0..10),
            near in proptest::collection::vec("(_get_|_set_|)[a-c]{0,10}[0-9]?", 0..40),
        ) {
            check(&operations(names), &strangers.into_iter().chain(near).collect::<Vec<_>>());
        }
    }
}
