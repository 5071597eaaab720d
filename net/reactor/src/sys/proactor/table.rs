//! The pending operations of a proactor.

use std::io;

/// An operation of one proactor. No later operation is equal to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationId {
    slot: usize,
    number: u64,
}

impl OperationId {
    /// The index of the operation in its table.
    pub(super) fn slot(self) -> usize {
        self.slot
    }
}

/// Pending operations, up to a limit.
pub(super) struct Table<T> {
    slots: Vec<Option<(u64, T)>>,
    free: Vec<usize>,
    next: u64,
    limit: usize,
}

impl<T> Table<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), next: 0, limit }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds an operation.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] beyond the limit.
    pub(super) fn insert(&mut self, operation: T) -> io::Result<OperationId> {
        if self.len() >= self.limit {
            let text = format!("{} operations are not completed, the limit of the proactor", self.limit);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let number = self.next;
        self.next += 1;
        self.slots[slot] = Some((number, operation));
        Ok(OperationId { slot, number })
    }

    /// The operation, unless it has been completed.
    pub(super) fn get_mut(&mut self, id: OperationId) -> Option<&mut T> {
        self.slot_mut(id.slot).filter(|(present, _)| *present == id).map(|(_, operation)| operation)
    }

    /// The operation at an index.
    pub(super) fn slot_mut(&mut self, slot: usize) -> Option<(OperationId, &mut T)> {
        let (number, operation) = self.slots.get_mut(slot)?.as_mut()?;
        Some((OperationId { slot, number: *number }, operation))
    }

    /// Takes an operation out.
    pub(super) fn remove(&mut self, slot: usize) -> Option<T> {
        let (_, operation) = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(operation)
    }

    /// All operations that have not ended.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten().map(|(_, operation)| operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_not_confused_with_a_later_one_at_its_index() {
        let mut table = Table::new(2);
        let first = table.insert('a').unwrap();
        assert_eq!(table.remove(first.slot()), Some('a'));
        let second = table.insert('b').unwrap();
        assert_eq!(first.slot(), second.slot());
        assert_eq!(table.get_mut(first), None);
        assert_eq!(table.get_mut(second), Some(&mut 'b'));
    }

    #[test]
    fn operations_beyond_the_limit_are_refused() {
        let mut table = Table::new(1);
        let id = table.insert(()).unwrap();
        assert_eq!(table.insert(()).unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        table.remove(id.slot());
        assert!(table.insert(()).is_ok());
    }
}
