//! Tables of slots, by which services pass data from a thread to its requests (16.4). Programs reach them by
//! [`PiCurrent`](super::PiCurrent).
//!
//! There is a table of slots for each thread and ORB (the thread scope), and one for each request (the
//! request scope). On the client, a request has a copy of its thread's table, which interceptors may read. On
//! the server, interceptors fill the request's table before the adapter is called. The thread has a copy for
//! the time of the upcall, and the request a copy of that at its end. Copies are logical: unchanged tables
//! are shared.

use std::{cell::RefCell, fmt};

use spandrel_cdr::Any;
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{Arc, Weak, thread_local};

use crate::orb::interception_state::{OrbToken, SlotId};

/// The error for a slot that was not allocated when the ORB was made.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error("slot {0} was not allocated")]
pub struct InvalidSlot(pub SlotId);
spandrel_error::debug_as_report!(InvalidSlot);

impl From<InvalidSlot> for SystemException {
    /// BAD_PARAM, for interceptors that pass it on.
    fn from(invalid: InvalidSlot) -> Self {
        Self::bad_param(0, CompletionStatus::No).with_detail(|| invalid.to_string())
    }
}

/// The values that interceptors share for one request or one thread, by slot id.
#[derive(Clone, Default)]
pub(crate) struct SlotTable {
    count: u32,
    /// `None` while no slot is set.
    values: Option<Arc<[Any]>>,
}

impl SlotTable {
    /// A table of so many slots, none of them set.
    pub(crate) fn new(count: u32) -> Self {
        Self { count, values: None }
    }

    /// The value of a slot; an empty `any` if it is not set.
    pub(crate) fn get(&self, id: SlotId) -> Result<Any, InvalidSlot> {
        self.check(id)?;
        Ok(self.values.as_ref().map_or_else(Any::default, |values| values[id as usize].clone()))
    }

    pub(crate) fn set(&mut self, id: SlotId, data: Any) -> Result<(), InvalidSlot> {
        self.check(id)?;
        let mut values = match &self.values {
            Some(values) => values.to_vec(),
            None => vec![Any::default(); self.count as usize],
        };
        values[id as usize] = data;
        self.values = Some(values.into());
        Ok(())
    }

    fn check(&self, id: SlotId) -> Result<(), InvalidSlot> {
        if id < self.count { Ok(()) } else { Err(InvalidSlot(id)) }
    }
}

impl fmt::Debug for SlotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotTable").field("count", &self.count).field("is_set", &self.values.is_some()).finish()
    }
}

struct ThreadScope {
    token: Weak<()>,
    slots: SlotTable,
}

thread_local! {
    static SCOPES: RefCell<Vec<ThreadScope>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread's slots.
pub(super) fn of_thread(token: &OrbToken, count: u32) -> SlotTable {
    SCOPES.with(|scopes| {
        let scopes = scopes.borrow();
        let scope = scopes.iter().find(|scope| scope.token.as_ptr() == Arc::as_ptr(token));
        scope.map_or_else(|| SlotTable::new(count), |scope| scope.slots.clone())
    })
}

/// Gives the calling thread these slots, and returns its former ones.
pub(super) fn exchange(token: &OrbToken, slots: SlotTable) -> SlotTable {
    let count = slots.count;
    let (before, dropped) = SCOPES.with(|scopes| {
        let mut scopes = scopes.borrow_mut();
        // Slots of ORBs that no longer exist are removed here.
        let (mut remaining, dropped): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *scopes).into_iter().partition(|scope| scope.token.strong_count() > 0);
        let at = remaining.iter().position(|scope| scope.token.as_ptr() == Arc::as_ptr(token));
        let before = at.map_or_else(|| SlotTable::new(count), |at| remaining.swap_remove(at).slots);
        if slots.values.is_some() {
            remaining.push(ThreadScope { token: Arc::downgrade(token), slots });
        }
        *scopes = remaining;
        (before, dropped)
    });
    // Outside of the borrow: references in them may be the last of their ORB.
    drop(dropped);
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(value: i32) -> Any {
        Any::new(value).expect("a long has a CDR form")
    }

    #[test]
    fn slot_tables_are_copied_on_write() {
        let mut slots = SlotTable::new(2);
        assert_eq!(slots.get(1), Ok(Any::default()));
        slots.set(1, any(1)).unwrap();
        let copy = slots.clone();
        slots.set(1, any(2)).unwrap();
        assert_eq!((copy.get(1), slots.get(1), slots.get(0)), (Ok(any(1)), Ok(any(2)), Ok(Any::default())));
    }

    #[test]
    fn an_unallocated_slot_is_refused() {
        let mut slots = SlotTable::new(1);
        assert_eq!(slots.get(1), Err(InvalidSlot(1)));
        assert_eq!(slots.set(1, any(1)), Err(InvalidSlot(1)));
    }

    #[test]
    fn each_thread_and_each_orb_has_its_own_slots() {
        let (one, other) = (OrbToken::default(), OrbToken::default());
        let mut slots = SlotTable::new(1);
        slots.set(0, any(7)).unwrap();
        exchange(&one, slots);
        assert_eq!(of_thread(&one, 1).get(0), Ok(any(7)));
        assert_eq!(of_thread(&other, 1).get(0), Ok(Any::default()));
        let elsewhere = std::thread::scope(|scope| scope.spawn(|| of_thread(&one, 1).get(0)).join().unwrap());
        assert_eq!(elsewhere, Ok(Any::default()));
        drop(exchange(&one, SlotTable::new(1)));
        assert_eq!(of_thread(&one, 1).get(0), Ok(Any::default()));
    }
}
