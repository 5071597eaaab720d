//! The state on disk: a `redb` database with the registered servers and the running processes.
//!
//! | table | key | value (JSON) |
//! | --- | --- | --- |
//! | `servers` | name of the server | [`Registration`] |
//! | `running` | name of the server | [`RunningProcess`] |
//!
//! A change is on disk before it is acknowledged. A start is recorded before the process is made, so that a process
//! without a recorded id can be found by its token. After an error of input or output `redb` refuses all further work;
//! the database is then opened again before the next change.

use std::path::PathBuf;

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use spandrel::net::sync::Mutex;
use spandrel::services::implementation_repository::{ActivationMode, StartupOptions};
use spandrel_daemon::{Storage, begin_write, catch_damage};

const SERVERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("servers");
const RUNNING: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("running");

/// The memory for pages.
const CACHE: usize = 4 << 20;

/// The registration of a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Registration {
    pub(crate) command: String,
    pub(crate) activation: Mode,
    pub(crate) start_limit: u32,
    /// In milliseconds.
    pub(crate) start_timeout: u32,
    pub(crate) owner: String,
    pub(crate) permissions: String,
    pub(crate) description: String,
    pub(crate) is_enabled: bool,
}

/// [`ActivationMode`] on disk.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    Normal,
    Manual,
    AutoStart,
}

/// A process of a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct RunningProcess {
    /// The process, if the activator has started it. `None` also for a start that is being made.
    pub(crate) process: Option<ProcessId>,
    /// Whether the activator has started it.
    pub(crate) is_started_here: bool,
    pub(crate) token: String,
    /// The reference of its server object, once it has registered: `IOR:…`.
    pub(crate) reference: Option<String>,
}

/// A process id with the start time of the process, which tells it from later processes with the same id.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ProcessId {
    pub(crate) pid: u32,
    /// In clock ticks after the boot of the machine; 0 where that is not known.
    pub(crate) start_time: u64,
}

impl Registration {
    pub(crate) fn new(options: &StartupOptions, is_enabled: bool) -> Self {
        let StartupOptions { command, activation, start_limit, start_timeout, owner, permissions, description } =
            options.clone();
        let activation = match activation {
            ActivationMode::Normal => Mode::Normal,
            ActivationMode::Manual => Mode::Manual,
            ActivationMode::AutoStart => Mode::AutoStart,
        };
        Self { command, activation, start_limit, start_timeout, owner, permissions, description, is_enabled }
    }

    pub(crate) fn options(&self) -> StartupOptions {
        let activation = match self.activation {
            Mode::Normal => ActivationMode::Normal,
            Mode::Manual => ActivationMode::Manual,
            Mode::AutoStart => ActivationMode::AutoStart,
        };
        let Self { command, start_limit, start_timeout, owner, permissions, description, .. } = self.clone();
        StartupOptions { command, activation, start_limit, start_timeout, owner, permissions, description }
    }
}

/// The reason why the state cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the store {}: {reason}", .file.display())]
pub struct StoreError {
    file: PathBuf,
    reason: String,
}

/// The store.
pub(crate) struct Store {
    storage: Storage,
    /// `None` after an error.
    database: Mutex<Option<Database>>,
}

impl Store {
    pub(crate) fn open(storage: Storage) -> Result<Self, StoreError> {
        let store = Self { storage, database: Mutex::new(None) };
        store.with(|_| Ok(()))?;
        Ok(store)
    }

    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        let mut place = self.database.lock();
        let open = place.take();
        let done = catch_damage(|| {
            let database = open.map_or_else(|| open_database(&self.storage), Ok)?;
            let outcome = work(&database)?;
            Ok::<_, redb::Error>((database, outcome))
        });
        let (database, outcome) = done.map_err(|error| self.error(error.to_string()))?;
        *place = Some(database);
        Ok(outcome)
    }

    fn error(&self, reason: String) -> StoreError {
        StoreError { file: self.storage.path().to_owned(), reason }
    }

    fn put<V: Serialize>(
        &self,
        table: TableDefinition<'_, &str, &[u8]>,
        server: &str,
        value: Option<&V>,
    ) -> Result<(), StoreError> {
        let value = value.map(|value| serde_json::to_vec(value).expect("it has no maps with other keys than texts"));
        self.with(|database| {
            let transaction = begin_write(database)?;
            {
                let mut table = transaction.open_table(table)?;
                match &value {
                    Some(value) => drop(table.insert(server, &**value)?),
                    None => drop(table.remove(server)?),
                }
            }
            Ok(transaction.commit()?)
        })
    }

    fn all<V: DeserializeOwned>(
        &self,
        table: TableDefinition<'_, &str, &[u8]>,
    ) -> Result<Vec<(String, V)>, StoreError> {
        let entries = self.with(|database| {
            let table = database.begin_read()?.open_table(table)?;
            let mut entries = Vec::new();
            for entry in table.iter()? {
                let (server, value) = entry?;
                entries.push((server.value().to_owned(), value.value().to_vec()));
            }
            Ok(entries)
        })?;
        let parse = |(server, value): (String, Vec<u8>)| match serde_json::from_slice(&value) {
            Ok(value) => Ok((server, value)),
            Err(error) => Err(self.error(format!("entry of server `{server}`: {error}"))),
        };
        entries.into_iter().map(parse).collect()
    }

    pub(crate) fn set_server(&self, server: &str, registration: &Registration) -> Result<(), StoreError> {
        self.put(SERVERS, server, Some(registration))
    }

    pub(crate) fn remove_server(&self, server: &str) -> Result<(), StoreError> {
        self.put::<Registration>(SERVERS, server, None)
    }

    pub(crate) fn servers(&self) -> Result<Vec<(String, Registration)>, StoreError> {
        self.all(SERVERS)
    }

    /// Records the process of a server, or that it has none.
    pub(crate) fn set_running(&self, server: &str, process: Option<&RunningProcess>) -> Result<(), StoreError> {
        self.put(RUNNING, server, process)
    }

    pub(crate) fn running(&self) -> Result<Vec<(String, RunningProcess)>, StoreError> {
        self.all(RUNNING)
    }
}

fn open_database(storage: &Storage) -> Result<Database, redb::Error> {
    let database = storage.open(CACHE)?;
    let transaction = begin_write(&database)?;
    transaction.open_table(SERVERS)?;
    transaction.open_table(RUNNING)?;
    transaction.commit()?;
    Ok(database)
}
