//! The tables of the database, and the writes to them, which the redo log has, too.
//!
//! A write, with numbers in little-endian order:
//!
//! | octets | contents |
//! | --- | --- |
//! | 1 | 0 for a context, 1 for a binding; 2 more for a removal |
//! | 8 | length of the key |
//! | | key: that of the binding, or the id of the context in eight octets |
//! | 8 | length of the value, unless it is a removal |
//! | | value |

use redb::{ReadOnlyTable, Table, TableDefinition, WriteTransaction};
use spandrel_store::set_record;

use super::failure::Failure;
use crate::encoding::corrupt;

pub(super) const CONTEXTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("contexts");
pub(super) const BINDINGS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("bindings");
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

const CONTEXT: u8 = 0;
const BINDING: u8 = 1;
const REMOVAL: u8 = 2;

/// A state of the tables. It saves readers a transaction each.
pub(super) struct Snapshot {
    pub(super) contexts: ReadOnlyTable<u64, &'static [u8]>,
    pub(super) bindings: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

/// The tables in a transaction that writes.
pub(super) struct Tables<'t> {
    pub(super) contexts: Table<'t, u64, &'static [u8]>,
    pub(super) bindings: Table<'t, &'static [u8], &'static [u8]>,
    /// The writes so far, encoded.
    writes: Vec<u8>,
}

/// A write to a table: a value, or `None` for a removal. Repeating it changes nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TableWrite<'w> {
    Context { id: u64, record: Option<&'w [u8]> },
    Binding { key: &'w [u8], value: Option<&'w [u8]> },
}

impl<'t> Tables<'t> {
    pub(super) fn open(txn: &'t WriteTransaction) -> Result<Self, Failure> {
        Ok(Self { contexts: txn.open_table(CONTEXTS)?, bindings: txn.open_table(BINDINGS)?, writes: Vec::new() })
    }

    pub(super) fn write(&mut self, write: TableWrite<'_>) -> Result<(), Failure> {
        match write {
            TableWrite::Context { id, record } => set_record(&mut self.contexts, id, record)?,
            TableWrite::Binding { key, value } => set_record(&mut self.bindings, key, value)?,
        }
        write.encode(&mut self.writes);
        Ok(())
    }

    /// Applies the writes of a redo log record to the tables.
    pub(super) fn repeat(&mut self, mut writes: &[u8]) -> Result<(), Failure> {
        while !writes.is_empty() {
            let write = TableWrite::decode(&mut writes).ok_or_else(|| corrupt("a record of the redo log"))?;
            self.write(write)?;
        }
        Ok(())
    }

    pub(super) fn into_writes(self) -> Vec<u8> {
        self.writes
    }
}

impl<'w> TableWrite<'w> {
    fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::Context { id, record } => encode(out, CONTEXT, &id.to_le_bytes(), record),
            Self::Binding { key, value } => encode(out, BINDING, key, value),
        }
    }

    /// Reads one write. `None` for octets that are no write.
    fn decode(octets: &mut &'w [u8]) -> Option<Self> {
        let (kind, rest) = octets.split_first()?;
        *octets = rest;
        let key = take(octets)?;
        let value = if kind & REMOVAL == 0 { Some(take(octets)?) } else { None };
        match kind & !REMOVAL {
            CONTEXT => Some(Self::Context { id: u64::from_le_bytes(key.try_into().ok()?), record: value }),
            BINDING => Some(Self::Binding { key, value }),
            _ => None,
        }
    }
}

fn encode(out: &mut Vec<u8>, kind: u8, key: &[u8], value: Option<&[u8]>) {
    out.push(if value.is_some() { kind } else { kind | REMOVAL });
    for octets in [Some(key), value].into_iter().flatten() {
        out.extend((octets.len() as u64).to_le_bytes());
        out.extend(octets);
    }
}

/// Reads octets behind their length.
fn take<'w>(octets: &mut &'w [u8]) -> Option<&'w [u8]> {
    let (length, rest) = octets.split_first_chunk::<8>()?;
    let (taken, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *octets = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITES: [TableWrite<'_>; 5] = [
        TableWrite::Context { id: 0x0102, record: Some(b"\x01a") },
        TableWrite::Context { id: u64::MAX, record: None },
        TableWrite::Binding { key: b"key", value: Some(b"value") },
        TableWrite::Binding { key: b"key", value: Some(b"") },
        TableWrite::Binding { key: b"", value: None },
    ];

    fn encoded(write: TableWrite<'_>) -> Vec<u8> {
        let mut octets = Vec::new();
        write.encode(&mut octets);
        octets
    }

    #[test]
    fn writes_are_read_as_they_were_encoded() {
        let octets = WRITES.map(encoded).concat();
        let mut rest = octets.as_slice();
        for write in WRITES {
            assert_eq!(TableWrite::decode(&mut rest), Some(write));
        }
        assert!(rest.is_empty());
        let first = encoded(WRITES[0]);
        assert_eq!(first, b"\0\x08\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01a");
    }

    #[test]
    fn octets_that_are_no_write_are_refused() {
        for write in WRITES {
            let octets = encoded(write);
            for length in 0..octets.len() {
                assert_eq!(TableWrite::decode(&mut &octets[..length]), None, "{write:?} {length}");
            }
            let unknown = [&[octets[0] | 4], &octets[1..]].concat();
            assert_eq!(TableWrite::decode(&mut unknown.as_slice()), None, "{write:?}");
        }
        let short_id = [&[CONTEXT | REMOVAL], 7_u64.to_le_bytes().as_slice(), &[0; 7]].concat();
        assert_eq!(TableWrite::decode(&mut short_id.as_slice()), None);
    }
}
