//! The header of a store: a record in a table of its own, which says what the store is.
//!
//! The table `spandrel_store` has one entry, `header`, with numbers in little-endian order:
//!
//! | octets | contents |
//! | --- | --- |
//! | 8 | `Spandrel` |
//! | 16 | name of the service, filled up with NUL |
//! | 4 | version of the service's tables |
//! | 16 | random id of the store |
//! | 16 | id of the store that this one is a backup of; 0 for none |
//! | 8 | generation: the number of checkpoints so far |
//! | 1 | 0: the database has all changes; 1: its log may have others; 2: as 0, and the log beside it is of a version without a header |
//! | 8 | salt of the records of the log |
//! | 8 | octets that the log has at least |
//! | 8 | generation of the log's header at least |
//! | 4 | CRC-32 of the octets above |

use std::io;

use redb::{ReadTransaction, TableDefinition, WriteTransaction};

use crate::error::OpenCause;
use crate::service::Service;

const HEADER: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("spandrel_store");
const KEY: &str = "header";
const MAGIC: &[u8; 8] = b"Spandrel";
const NAME: usize = 16;
const LENGTH: usize = 8 + NAME + 4 + 16 + 16 + 8 + 1 + 8 + 8 + 8 + 4;

/// The record by which a database file says which service it belongs to, its version, and its redo log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoreHeader {
    service: Service,
    version: u32,
    pub(crate) id: u128,
    pub(crate) origin: u128,
    pub(crate) generation: u64,
    pub(crate) log: LogState,
}

/// The relation of a database to its redo log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LogState {
    /// The database has all changes.
    Complete,
    /// The log may have changes that the database has not.
    Needed {
        salt: u64,
        size: u64,
        /// The generation that the header of the log has at least.
        floor: u64,
    },
    /// The database has all changes, and a log beside it may be of a version without a header.
    Earlier,
}

impl StoreHeader {
    /// The header of a new store, which has all changes.
    ///
    /// # Errors
    /// No random numbers.
    pub(crate) fn new(service: Service, version: u32) -> Result<Self, redb::Error> {
        let id = u128::from(random()?) << 64 | u128::from(random()?);
        Ok(Self { service, version, id, origin: 0, generation: 0, log: LogState::Complete })
    }

    /// The header of a backup of this store, which has all changes.
    ///
    /// # Errors
    /// No random numbers.
    pub fn backup(&self) -> Result<Self, redb::Error> {
        let id = u128::from(random()?) << 64 | u128::from(random()?);
        Ok(Self { id, origin: self.id, generation: 0, log: LogState::Complete, ..self.clone() })
    }

    /// Whether the redo log may have changes that the database has not.
    #[must_use]
    pub fn needs_log(&self) -> bool {
        matches!(self.log, LogState::Needed { .. })
    }

    /// The header of this store once the database has all changes.
    #[must_use]
    pub fn completed(&self) -> Self {
        let log = if self.log == LogState::Earlier { LogState::Earlier } else { LogState::Complete };
        Self { log, ..self.clone() }
    }

    /// The header after the next checkpoint, with a log of this many octets whose header has this generation at least.
    pub(crate) fn next_generation(&self, size: u64, floor: u64) -> Result<Self, redb::Error> {
        // Clients must not guess it, since their data are in the records.
        let log = LogState::Needed { salt: random()?.max(1), size, floor };
        Ok(Self { generation: self.generation + 1, log, ..self.clone() })
    }

    /// Writes the record in a transaction. It is on the disk with the commit.
    ///
    /// # Errors
    /// Those of `redb`.
    pub fn write(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        transaction.open_table(HEADER)?.insert(KEY, self.encode().as_slice())?;
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let (state, salt, size, floor) = match self.log {
            LogState::Complete => (0, 0, 0, 0),
            LogState::Needed { salt, size, floor } => (1, salt, size, floor),
            LogState::Earlier => (2, 0, 0, 0),
        };
        let mut octets = Vec::with_capacity(LENGTH);
        octets.extend(MAGIC);
        octets.extend(name_field(self.service));
        octets.extend(self.version.to_le_bytes());
        octets.extend(self.id.to_le_bytes());
        octets.extend(self.origin.to_le_bytes());
        octets.extend(self.generation.to_le_bytes());
        octets.push(state);
        octets.extend(salt.to_le_bytes());
        octets.extend(size.to_le_bytes());
        octets.extend(floor.to_le_bytes());
        octets.extend(crc32fast::hash(&octets).to_le_bytes());
        octets
    }

    /// The header of a service and version.
    fn decode(octets: &[u8], service: Service, version: u32) -> Result<Self, OpenCause> {
        let damaged = || OpenCause::NoStore("its header is damaged".to_owned());
        let (checked, checksum) = octets.split_last_chunk::<4>().ok_or_else(damaged)?;
        if octets.len() != LENGTH || crc32fast::hash(checked) != u32::from_le_bytes(*checksum) {
            return Err(damaged());
        }
        let mut fields = Fields(checked);
        if fields.take::<8>() != *MAGIC {
            return Err(damaged());
        }
        let found = service_of(&fields.take()).ok_or_else(|| {
            OpenCause::NoStore("it is the store of a service that this version does not know".to_owned())
        })?;
        if found != service {
            return Err(OpenCause::OtherService(found));
        }
        let found = u32::from_le_bytes(fields.take());
        if found != version {
            return Err(OpenCause::Version { found: found.into(), expected: version.into() });
        }
        let [id, origin] = [0; 2].map(|_| u128::from_le_bytes(fields.take()));
        let generation = u64::from_le_bytes(fields.take());
        let [state] = fields.take();
        let [salt, size, floor] = [0; 3].map(|_| u64::from_le_bytes(fields.take()));
        let log = match state {
            0 => LogState::Complete,
            1 => LogState::Needed { salt, size, floor },
            2 => LogState::Earlier,
            _ => return Err(damaged()),
        };
        Ok(Self { service, version, id, origin, generation, log })
    }

    /// The header of a database that was opened for reading. `None` if it has no table of headers.
    pub(crate) fn read(reading: &ReadTransaction, service: Service, version: u32) -> Result<Option<Self>, OpenCause> {
        let header = match reading.open_table(HEADER) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            table => table?.get(KEY)?,
        };
        let header = header.ok_or_else(|| OpenCause::NoStore("it has no header".to_owned()))?;
        Self::decode(header.value(), service, version).map(Some)
    }
}

pub(crate) fn random() -> Result<u64, redb::Error> {
    getrandom::u64().map_err(|error| redb::Error::Io(io::Error::other(error.to_string())))
}

/// The name of a service in headers of stores and logs.
pub(crate) fn name_field(service: Service) -> [u8; NAME] {
    let mut field = [0; NAME];
    field[..service.name().len()].copy_from_slice(service.name().as_bytes());
    field
}

fn service_of(field: &[u8; NAME]) -> Option<Service> {
    Service::ALL.into_iter().find(|service| name_field(*service) == *field)
}

impl StoreHeader {
    /// The name of its service in the header of its log.
    pub(crate) fn service_field(&self) -> [u8; NAME] {
        name_field(self.service)
    }
}

/// Fields of constant length in octets that have them all.
pub(crate) struct Fields<'o>(pub(crate) &'o [u8]);

impl Fields<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk::<N>().expect("the length was compared before");
        self.0 = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> StoreHeader {
        StoreHeader::new(Service::Naming, 3).unwrap()
    }

    fn decode(octets: &[u8]) -> Result<StoreHeader, OpenCause> {
        StoreHeader::decode(octets, Service::Naming, 3)
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let new = new();
        let next = new.next_generation(128, 0).unwrap();
        let earlier = StoreHeader { log: LogState::Earlier, ..new.clone() };
        for header in [new.backup().unwrap(), new, next, earlier] {
            let octets = header.encode();
            assert_eq!(octets.len(), LENGTH);
            assert_eq!(decode(&octets).unwrap(), header);
        }
    }

    #[test]
    fn other_headers_are_refused() {
        let octets = new().encode();
        for place in 0..LENGTH {
            let mut damaged = octets.clone();
            damaged[place] ^= 1;
            assert!(matches!(decode(&damaged), Err(OpenCause::NoStore(_))), "{place}");
            assert!(matches!(decode(&octets[..place]), Err(OpenCause::NoStore(_))), "{place}");
        }
        let error = StoreHeader::decode(&octets, Service::Activator, 3).unwrap_err();
        assert_eq!(error.to_string(), "it is the store of the naming service");
        let error = StoreHeader::decode(&octets, Service::Naming, 4).unwrap_err();
        assert_eq!(error.to_string(), "its version is 3, and this program reads version 4");
    }

    #[test]
    fn a_backup_has_an_id_of_its_own_and_needs_no_log() {
        let store = new().next_generation(9, 0).unwrap();
        let backup = store.backup().unwrap();
        assert!(store.needs_log() && !backup.needs_log());
        assert_ne!(backup.id, store.id);
        assert_eq!(backup.origin, store.id);
    }
}
