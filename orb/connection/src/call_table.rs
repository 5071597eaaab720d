//! The calls that wait for replies on one connection, by their request ids.
//!
//! The ids of a connection ascend, and replies mostly arrive in the order of the requests: then the place of a call follows
//! from its id, and it is the first one when it ends. Another one changes places with the first before it is removed, and
//! calls that are not at their place are searched.

use std::{collections::VecDeque, mem};

use crate::Written;

/// The difference between two ids that follow each other: those of one side are even, those of the other odd (9.4.2.1).
const STEP: u32 = 2;

/// A request without a reply.
#[derive(Debug)]
pub(crate) struct PendingCall<W> {
    pub(crate) request_id: u32,
    pub(crate) written: Written,
    pub(crate) waiter: W,
}

/// The calls, mostly in the order of their beginning.
#[derive(Debug)]
pub(crate) struct CallTable<W>(VecDeque<PendingCall<W>>);

impl<W> Default for CallTable<W> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<W> CallTable<W> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn push(&mut self, call: PendingCall<W>) {
        self.0.push_back(call);
    }

    /// The calls in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingCall<W>> {
        self.0.iter()
    }

    /// The place of the call with this request id.
    #[inline]
    pub(crate) fn find(&self, request_id: u32) -> Option<usize> {
        let first = self.0.front()?.request_id;
        let at = (request_id.wrapping_sub(first) / STEP) as usize;
        if self.0.get(at).is_some_and(|call| call.request_id == request_id) {
            return Some(at);
        }
        self.0.iter().position(|call| call.request_id == request_id)
    }

    /// The call at a place that was found.
    #[inline]
    pub(crate) fn at(&self, at: usize) -> &PendingCall<W> {
        &self.0[at]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, at: usize) -> &mut PendingCall<W> {
        &mut self.0[at]
    }

    /// Removes the call at a place that was found.
    #[inline]
    pub(crate) fn remove(&mut self, at: usize) -> PendingCall<W> {
        self.0.swap_remove_front(at).expect("the place has a call")
    }

    /// Removes the calls that `is_removed` accepts.
    pub(crate) fn extract(&mut self, is_removed: impl Fn(&PendingCall<W>) -> bool) -> Vec<PendingCall<W>> {
        let mut removed = Vec::new();
        for call in mem::take(&mut self.0) {
            if is_removed(&call) {
                removed.push(call);
            } else {
                self.0.push_back(call);
            }
        }
        removed
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
