//! Tables that map object ids to objects: the demultiplexing strategies of an adapter.
//!
//! System-assigned ids contain the slot of their object and need no table (active demultiplexing, in
//! [`objects`](crate::objects)). Ids
//! assigned by the application, and all ids of an adapter with another policy, are looked up in one of these
//! tables. The adapter chooses the table once, at its creation. Content, locking and the choice between a slot
//! and a table belong to the active object map ([`objects`](crate::objects)).

mod dynamic;
mod linear;
mod object_table;
mod perfect;

pub(crate) use self::object_table::ObjectTable;
use self::{dynamic::DynamicHash, linear::Linear, perfect::PerfectHash};
use crate::ObjectDemux;

/// An empty table of this strategy.
#[must_use]
pub(crate) fn table<V: Send + Sync + 'static>(strategy: ObjectDemux) -> Box<dyn ObjectTable<V>> {
    match strategy {
        ObjectDemux::Linear => Box::new(Linear::default()),
        ObjectDemux::PerfectHash => Box::new(PerfectHash::default()),
        // Ids with a slot need no table.
        ObjectDemux::DynamicHash | ObjectDemux::Active => Box::new(DynamicHash::default()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_strategy_finds_exactly_the_inserted_ids() {
        for strategy in [ObjectDemux::Active, ObjectDemux::DynamicHash, ObjectDemux::PerfectHash, ObjectDemux::Linear] {
            let mut table = table::<u32>(strategy);
            assert!(table.is_empty());
            for number in 0..300_u32 {
                assert_eq!(table.insert(&number.to_be_bytes()[3 - number as usize % 3..], number), None, "{number}");
            }
            table.settle();
            let len = table.len();
            assert_eq!(table.insert(&[0, 0, 0, 0][..1], 7), Some(0), "{strategy:?}");
            assert_eq!(table.len(), len);
            *table.find_mut(&[0]).unwrap() += 1;
            assert_eq!(table.find(&[0]), Some(&8));
            assert_eq!(table.remove(&[0]), Some(8));
            assert_eq!((table.remove(&[0]), table.find(&[0]), table.find(&[])), (None, None, None));
            let mut count = 0;
            table.for_each(&mut |id, value| {
                count += 1;
                assert_eq!(id.last(), Some(&(value.to_be_bytes()[3])));
            });
            assert_eq!(count, len - 1);
        }
    }

    /// The map that each table must agree with.
    type Expected = std::collections::BTreeMap<Vec<u8>, u32>;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(Vec<u8>),
        Remove(Vec<u8>),
        Settle,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let id = || proptest::collection::vec(0u8..3, 0..5);
        let step = prop_oneof![
            4 => id().prop_map(Step::Insert),
            2 => id().prop_map(Step::Remove),
            1 => Just(Step::Settle),
        ];
        proptest::collection::vec(step, 0..100)
    }

    fn check(table: &dyn ObjectTable<u32>, expected: &Expected, id: &[u8]) {
        assert_eq!(table.find(id), expected.get(id), "{id:?} in {table:?}");
        for predicted in [0, 1, 2, 7, usize::MAX] {
            let neighbour = table.find_near(id, predicted);
            assert_eq!(neighbour.map(|(_, value)| value), expected.get(id), "{id:?} near {predicted} in {table:?}");
            let again = neighbour.and_then(|(index, _)| table.find_near(id, index));
            assert_eq!(again, neighbour, "{id:?} in {table:?} keeps its position");
        }
        assert_eq!(table.len(), expected.len());
        let mut values = Expected::new();
        table.for_each(&mut |id, value| assert_eq!(values.insert(id.to_vec(), *value), None, "{id:?} comes once"));
        assert_eq!(&values, expected);
    }

    proptest! {
        /// Insertions and removals before and after the table is settled, some of them repeated.
        #[test]
        fn every_strategy_is_a_map(steps in steps()) {
            for strategy in [ObjectDemux::DynamicHash, ObjectDemux::PerfectHash, ObjectDemux::Linear] {
                let (mut table, mut expected) = (table::<u32>(strategy), Expected::new());
                for (number, step) in (0..).zip(&steps) {
                    match step {
                        Step::Insert(id) => assert_eq!(table.insert(id, number), expected.insert(id.clone(), number)),
                        Step::Remove(id) => assert_eq!(table.remove(id), expected.remove(id)),
                        Step::Settle => table.settle(),
                    }
                    let (Step::Insert(id) | Step::Remove(id)) = step else { continue };
                    check(&*table, &expected, id);
                    check(&*table, &expected, &[&id[..], &[0]].concat());
                }
            }
        }
    }

    #[test]
    fn settled_ids_are_found_without_the_dynamic_table() {
        let mut table = PerfectHash::default();
        for number in 0..1000_u32 {
            table.insert(format!("object {number}").as_bytes(), number);
        }
        table.settle();
        assert_eq!((table.others.len(), table.len()), (0, 1000));
        table.insert(b"late", 1);
        table.settle();
        assert_eq!((table.others.len(), table.len()), (0, 1001));
        assert_eq!(
            (table.find(b"object 999"), table.find(b"late"), table.find(b"object 1000")),
            (Some(&999), Some(&1), None)
        );
    }
}
