//! Changes of events that are in the redo log, and not yet in the database.
//!
//! A persistent event seldom lives long: its record is written, its consumers get it, and it is removed. So these changes are
//! records of the redo log, which is the one synchronization that a push waits for, and are kept in memory in place of the
//! pages of the database. The next checkpoint writes those that have not cancelled each other. The octets of the log bound
//! the memory.
//!
//! *Durability.* A push is acknowledged after the synchronization of the record that has its event and its targets. A record
//! has all changes of its batch or none, and records are repeated in their order. The removal of a target or an event may
//! be lost with the process: the consumer then gets the event once more. A removal is never before its insertion, because
//! the event is put into queues after the synchronization.
//!
//! A record is a sequence of changes, with numbers in little-endian order:
//!
//! | octets | contents |
//! | --- | --- |
//! | 1 | 0: an event, 1: the removal of one, 2: a target, 3: the removal of one |
//! | 4, 4 | of targets: the ids of channel and proxy |
//! | 8 | the number of the event |
//! | 4, … | of an event: the length of its record, and the record |
//! | 2, 8 | of a target: the priority, and the end of its life |

use std::collections::BTreeMap;

use redb::WriteTransaction;
use spandrel_store::set_record;

use crate::edit::{EVENTS, Edit, TARGETS, TargetKey, TargetLifetime};

/// The changes since the last checkpoint, by the objects that they concern; `None` is a removal.
#[derive(Debug, Default)]
pub(crate) struct PendingEvents {
    events: BTreeMap<u64, Option<Vec<u8>>>,
    targets: BTreeMap<TargetKey, Option<TargetLifetime>>,
    /// The database has no event or target with a higher number.
    last_written: u64,
}

impl PendingEvents {
    /// No changes of a database whose events and targets have numbers up to this one.
    pub(crate) fn new(last_written: u64) -> Self {
        Self { last_written, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.targets.is_empty()
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = (u64, Option<&Vec<u8>>)> {
        self.events.iter().map(|(number, record)| (*number, record.as_ref()))
    }

    pub(crate) fn targets(&self) -> impl Iterator<Item = (TargetKey, Option<TargetLifetime>)> {
        self.targets.iter().map(|(key, lifetime)| (*key, *lifetime))
    }

    /// Adds a change of an event or target; others are not changed. The removal of what the database cannot have leaves nothing.
    pub(crate) fn add(&mut self, edit: &Edit) {
        match edit {
            Edit::Event(number, None) if *number > self.last_written => _ = self.events.remove(number),
            Edit::Event(number, record) => _ = self.events.insert(*number, record.clone()),
            Edit::Target(key, None) if key.2 > self.last_written => _ = self.targets.remove(key),
            Edit::Target(key, lifetime) => _ = self.targets.insert(*key, *lifetime),
            _ => {}
        }
    }

    /// Makes the changes in a transaction.
    pub(crate) fn apply(&self, writing: &WriteTransaction) -> Result<(), redb::Error> {
        let mut events = writing.open_table(EVENTS)?;
        for (number, record) in &self.events {
            set_record(&mut events, number, record.as_deref())?;
        }
        let mut targets = writing.open_table(TARGETS)?;
        for (key, lifetime) in &self.targets {
            set_record(&mut targets, key, lifetime.as_ref())?;
        }
        Ok(())
    }

    /// Counts the numbers of these edits, and of the changes, as those that the database may have, before they are written.
    pub(crate) fn begin_write<'e>(&mut self, edits: impl Iterator<Item = &'e Edit>) {
        let numbers = edits.filter_map(|edit| match edit {
            Edit::Event(number, _) | Edit::Target((_, _, number), _) => Some(*number),
            _ => None,
        });
        let pending = self.events.last_key_value().map(|(number, _)| *number);
        let of_targets = self.targets.keys().map(|key| key.2).max();
        self.last_written = numbers.chain(pending).chain(of_targets).fold(self.last_written, u64::max);
    }

    /// Ends the changes: the database has them.
    pub(crate) fn end_write(&mut self) {
        self.events.clear();
        self.targets.clear();
    }
}

/// The record of edits in the redo log; `None` if one of them is not of an event or target, or is too long.
pub(crate) fn encode_record<'e>(edits: impl Iterator<Item = &'e Edit>) -> Option<Vec<u8>> {
    let mut record = Vec::new();
    for edit in edits {
        match edit {
            Edit::Event(number, contents) => {
                record.push(u8::from(contents.is_none()));
                record.extend(number.to_le_bytes());
                if let Some(contents) = contents {
                    record.extend(u32::try_from(contents.len()).ok()?.to_le_bytes());
                    record.extend(contents);
                }
            }
            Edit::Target((channel, proxy, number), lifetime) => {
                record.push(2 + u8::from(lifetime.is_none()));
                record.extend(channel.to_le_bytes());
                record.extend(proxy.to_le_bytes());
                record.extend(number.to_le_bytes());
                if let Some((priority, expires)) = lifetime {
                    record.extend(priority.to_le_bytes());
                    record.extend(expires.to_le_bytes());
                }
            }
            _ => return None,
        }
    }
    Some(record)
}

/// The edits of a record; `None` for octets that are none.
pub(crate) fn decode_record(mut octets: &[u8]) -> Option<Vec<Edit>> {
    fn take<const N: usize>(octets: &mut &[u8]) -> Option<[u8; N]> {
        let (field, rest) = octets.split_first_chunk::<N>()?;
        *octets = rest;
        Some(*field)
    }
    let mut edits = Vec::new();
    while !octets.is_empty() {
        let [kind] = take(&mut octets)?;
        edits.push(if kind < 2 {
            let number = u64::from_le_bytes(take(&mut octets)?);
            let mut contents = None;
            if kind == 0 {
                let length = usize::try_from(u32::from_le_bytes(take(&mut octets)?)).ok()?;
                let (record, rest) = octets.split_at_checked(length)?;
                (contents, octets) = (Some(record.to_vec()), rest);
            }
            Edit::Event(number, contents)
        } else {
            let [channel, proxy] = [take(&mut octets)?, take(&mut octets)?].map(i32::from_le_bytes);
            let key = (channel, proxy, u64::from_le_bytes(take(&mut octets)?));
            let lifetime = match kind {
                2 => Some((i16::from_le_bytes(take(&mut octets)?), u64::from_le_bytes(take(&mut octets)?))),
                3 => None,
                _ => return None,
            };
            Edit::Target(key, lifetime)
        });
    }
    Some(edits)
}
