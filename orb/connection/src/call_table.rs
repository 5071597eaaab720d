//! The calls that wait for replies on one connection, by their request ids.
//!
//! The ids of a connection ascend, and replies mostly arrive in the order of the requests. So the calls lie in the order in
//! which they began, the place of a call follows from its id, and the first ones are removed first. A call that ends
//! before earlier ones leaves an empty slot.

use std::{collections::VecDeque, mem};

use crate::Written;

/// The difference between two ids that follow each other: those of one side are even, those of the other odd (9.4.2.1).
const STEP: u32 = 2;
/// With more empty slots than calls and this number, the empty ones are removed.
const MOST_EMPTY: usize = 32;

/// A request without a reply.
#[derive(Debug)]
pub(crate) struct PendingCall<W> {
    pub(crate) request_id: u32,
    pub(crate) written: Written,
    pub(crate) waiter: W,
}

#[derive(Debug)]
struct Slot<W> {
    request_id: u32,
    call: Option<PendingCall<W>>,
}

/// The calls in the order of their beginning. The first and the last slot have a call.
#[derive(Debug)]
pub(crate) struct CallTable<W> {
    slots: VecDeque<Slot<W>>,
    calls: usize,
}

impl<W> Default for CallTable<W> {
    fn default() -> Self {
        Self { slots: VecDeque::new(), calls: 0 }
    }
}

impl<W> CallTable<W> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls
    }

    pub(crate) fn push(&mut self, call: PendingCall<W>) {
        self.slots.push_back(Slot { request_id: call.request_id, call: Some(call) });
        self.calls += 1;
    }

    /// The calls in the order of their beginning.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingCall<W>> {
        self.slots.iter().filter_map(|slot| slot.call.as_ref())
    }

    /// The slot of the call with this request id.
    #[inline]
    pub(crate) fn find(&self, request_id: u32) -> Option<usize> {
        let first = self.slots.front()?.request_id;
        let at = (request_id.wrapping_sub(first) / STEP) as usize;
        if self.is_at(at, request_id) { Some(at) } else { self.find_elsewhere(request_id, first) }
    }

    /// As [`find`](Self::find), for a call whose slot does not follow from its id: ids between them belong to calls that were
    /// made without an entry, or are in no order because several threads began calls at the same time.
    fn find_elsewhere(&self, request_id: u32, first: u32) -> Option<usize> {
        let distance = |id: u32| id.wrapping_sub(first);
        let at = self.slots.partition_point(|slot| distance(slot.request_id) < distance(request_id));
        if self.is_at(at, request_id) {
            return Some(at);
        }
        (0..self.slots.len()).find(|at| self.is_at(*at, request_id))
    }

    #[inline]
    fn is_at(&self, at: usize, request_id: u32) -> bool {
        self.slots.get(at).is_some_and(|slot| slot.request_id == request_id && slot.call.is_some())
    }

    /// The call in a slot that was found.
    #[inline]
    pub(crate) fn at(&self, at: usize) -> &PendingCall<W> {
        self.slots[at].call.as_ref().expect("the slot has a call")
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, at: usize) -> &mut PendingCall<W> {
        self.slots[at].call.as_mut().expect("the slot has a call")
    }

    /// Removes the call in a slot that was found.
    #[inline]
    pub(crate) fn remove(&mut self, at: usize) -> PendingCall<W> {
        let call = self.slots[at].call.take().expect("the slot has a call");
        self.calls -= 1;
        self.remove_empty();
        call
    }

    /// Removes the calls that `is_removed` accepts.
    pub(crate) fn extract(&mut self, is_removed: impl Fn(&PendingCall<W>) -> bool) -> Vec<PendingCall<W>> {
        let slots = mem::take(&mut self.slots);
        let (removed, calls): (Vec<_>, Vec<_>) = slots.into_iter().filter_map(|slot| slot.call).partition(is_removed);
        self.calls = 0;
        calls.into_iter().for_each(|call| self.push(call));
        removed
    }

    #[inline]
    fn remove_empty(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.call.is_none()) {
            self.slots.pop_front();
        }
        while self.slots.back().is_some_and(|slot| slot.call.is_none()) {
            self.slots.pop_back();
        }
        if self.slots.len() - self.calls > self.calls + MOST_EMPTY {
            self.slots.retain(|slot| slot.call.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn call(request_id: u32, waiter: u32) -> PendingCall<u32> {
        PendingCall { request_id, written: Written::Whole, waiter }
    }

    fn table_of(ids: impl IntoIterator<Item = u32>) -> CallTable<u32> {
        let mut table = CallTable::default();
        ids.into_iter().for_each(|id| table.push(call(id, id)));
        table
    }

    #[test]
    fn a_call_is_found_after_gaps_at_the_wrap_of_the_ids_and_out_of_order() {
        for ids in [[0, 2, 4, 6], [1, 3, 101, 10_001], [u32::MAX - 3, u32::MAX - 1, 0, 2], [6, 2, 4, 0], [8, 6, 10, 2]]
        {
            let mut table = table_of(ids);
            for id in ids {
                let at = table.find(id).unwrap();
                assert_eq!(table.at(at).waiter, id);
                assert_eq!(table.remove(at).waiter, id);
                assert_eq!(table.find(id), None);
            }
            assert!(table.is_empty());
        }
    }

    #[test]
    fn calls_that_end_behind_a_long_one_leave_few_slots() {
        let mut table = table_of([0]);
        for id in (2..20_000).step_by(2) {
            table.push(call(id, id));
            if id >= 20 {
                let at = table.find(id - 10).unwrap();
                table.remove(at);
            }
            assert!(table.slots.len() <= 2 * table.len() + MOST_EMPTY + 1, "{} slots", table.slots.len());
        }
        let at = table.find(0).unwrap();
        assert_eq!(table.remove(at).waiter, 0);
    }

    proptest! {
        #[test]
        fn the_table_has_the_calls_that_began_and_did_not_end(steps in vec((0..60u32, any::<bool>()), 0..200)) {
            let (mut table, mut expected) = (CallTable::default(), BTreeMap::new());
            for (step, (id, ends)) in (0..).zip(steps) {
                let slot = table.find(id);
                prop_assert_eq!(slot.map(|at| table.at(at).waiter), expected.get(&id).copied());
                match slot {
                    Some(at) if ends => {
                        prop_assert_eq!(Some(table.remove(at).waiter), expected.remove(&id));
                    }
                    None if !ends => {
                        table.push(call(id, step));
                        expected.insert(id, step);
                    }
                    _ => {}
                }
                prop_assert_eq!(table.len(), expected.len());
                prop_assert_eq!(table.is_empty(), expected.is_empty());
                let calls: BTreeMap<_, _> = table.iter().map(|call| (call.request_id, call.waiter)).collect();
                prop_assert_eq!(&calls, &expected);
            }
            let odd = table.extract(|call| call.request_id % 2 == 1);
            prop_assert!(odd.iter().all(|call| expected.remove(&call.request_id) == Some(call.waiter)));
            prop_assert!(expected.keys().all(|id| id % 2 == 0 && table.find(*id).is_some()));
        }
    }
}
