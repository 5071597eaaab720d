//! The tables of the database, and the changes of their records.

use redb::{TableDefinition, WriteTransaction};
use spandrel_store::set_record;

use crate::kind::Side;

pub(crate) const CHANNELS: TableDefinition<'_, i32, &[u8]> = TableDefinition::new("channels");
/// By the ids of channel and administrator; the flag is that of consumers.
pub(crate) const ADMINS: TableDefinition<'_, (i32, bool, i32), &[u8]> = TableDefinition::new("admins");
/// By the ids of channel and proxy.
pub(crate) const PROXIES: TableDefinition<'_, (i32, i32), &[u8]> = TableDefinition::new("proxies");
pub(crate) const FILTERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("filters");
pub(crate) const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
/// The consumers that have not yet got an event: the ids of channel and proxy, the number of the event. Its priority and the
/// end of its life for this consumer.
pub(crate) const TARGETS: TableDefinition<'_, (i32, i32, u64), (i16, u64)> = TableDefinition::new("targets");
/// The numbers up to which ids may be in use: `channels`, `filters`.
pub(crate) const SETTINGS: TableDefinition<'_, &str, u64> = TableDefinition::new("settings");

/// The ids of channel and proxy, and the number of the event.
pub(crate) type TargetKey = (i32, i32, u64);

/// The priority of an event for a consumer, and the end of its life in microseconds since 1970; zero is none.
pub(crate) type TargetLifetime = (i16, u64);

/// The change of a record; without contents it is removed.
#[derive(Debug)]
pub(crate) enum Edit {
    Channel(i32, Vec<u8>),
    /// Removes a channel with its administrators and proxies.
    NoChannel(i32),
    Admin((i32, Side, i32), Option<Vec<u8>>),
    Proxy((i32, i32), Option<Vec<u8>>),
    Filter(u64, Option<Vec<u8>>),
    Event(u64, Option<Vec<u8>>),
    Target(TargetKey, Option<TargetLifetime>),
    Setting(&'static str, u64),
}

impl Edit {
    /// Makes the change in a transaction.
    pub(crate) fn apply(&self, writing: &WriteTransaction) -> Result<(), redb::Error> {
        match self {
            Self::Channel(id, record) => _ = writing.open_table(CHANNELS)?.insert(id, &**record)?,
            Self::NoChannel(id) => {
                writing.open_table(CHANNELS)?.remove(id)?;
                let admins = (*id, false, i32::MIN)..=(*id, true, i32::MAX);
                writing.open_table(ADMINS)?.retain_in(admins, |_, _| false)?;
                writing.open_table(PROXIES)?.retain_in((*id, i32::MIN)..=(*id, i32::MAX), |_, _| false)?;
            }
            Self::Admin((channel, side, id), record) => {
                let key = (*channel, *side == Side::Consumers, *id);
                set_record(&mut writing.open_table(ADMINS)?, key, record.as_deref())?;
            }
            Self::Proxy(key, record) => set_record(&mut writing.open_table(PROXIES)?, key, record.as_deref())?,
            Self::Filter(number, record) => set_record(&mut writing.open_table(FILTERS)?, number, record.as_deref())?,
            Self::Event(number, record) => set_record(&mut writing.open_table(EVENTS)?, number, record.as_deref())?,
            Self::Target(key, lifetime) => set_record(&mut writing.open_table(TARGETS)?, key, lifetime.as_ref())?,
            Self::Setting(name, number) => _ = writing.open_table(SETTINGS)?.insert(*name, number)?,
        }
        Ok(())
    }
}
