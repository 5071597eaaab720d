//! The state on disk: a `redb` database with the registered servers and the running processes.
//!
//! | table | key | value (JSON) |
//! | --- | --- | --- |
//! | `servers` | name of the server | [`Registration`] |
//! | `running` | name of the server | [`RunningProcess`] |
//!
//! A change is on disk before it is acknowledged. A start is recorded before the process is made, so that a process
//! without a recorded id can be found by its token.

use std::path::Path;

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use spandrel::net::sync::Mutex;
use spandrel::services::implementation_repository::{ActivationMode, StartupOptions};
use spandrel_store::{
    Backup, Layout, OpenCause, OpenError, Service, Storage, StoreFile, StoreFileError, copy_table, set_record,
};

const SERVERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("servers");
const RUNNING: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("running");

/// The memory for pages.
const CACHE: usize = 4 << 20;

static LAYOUT: Layout = Layout {
    service: Service::Activator,
    version: 2,
    create,
    convert: |transaction, _| Ok(create(transaction)?),
    copy,
};

/// Creates the tables, which are those of stores without a header.
fn create(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(SERVERS)?;
    transaction.open_table(RUNNING)?;
    Ok(())
}

fn copy(reading: &ReadTransaction, copy: &WriteTransaction) -> Result<(), redb::Error> {
    copy_table(SERVERS, reading, copy)?;
    copy_table(RUNNING, reading, copy)
}

/// The registration of a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Registration {
    pub(crate) command: String,
    pub(crate) activation: Mode,
    pub(crate) start_limit: u32,
    /// The limit in milliseconds.
    pub(crate) start_timeout: u32,
    pub(crate) owner: String,
    pub(crate) permissions: String,
    pub(crate) description: String,
    pub(crate) is_enabled: bool,
}

/// [`ActivationMode`] as it is stored.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    Normal,
    Manual,
    AutoStart,
}

/// A server that runs or is being started, as its record in the store.
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

/// A failure to open, read or write the database of registrations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened, or has an entry that cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] StoreFileError),
}

/// The store of the registered servers.
#[derive(Debug)]
pub(crate) struct Store(Mutex<StoreFile>);

impl Store {
    pub(crate) fn open(storage: Storage) -> Result<Self, StoreError> {
        Ok(Self(Mutex::new(StoreFile::open(storage, &LAYOUT, CACHE)?)))
    }

    /// Begins a copy of the state.
    pub(crate) fn begin_backup(&self) -> Result<Backup, StoreFileError> {
        self.0.lock().begin_backup()
    }

    fn put<V: Serialize>(
        &self,
        table: TableDefinition<'_, &str, &[u8]>,
        server: &str,
        value: Option<&V>,
    ) -> Result<(), StoreError> {
        let value = value.map(|value| serde_json::to_vec(value).expect("it has no maps with other keys than texts"));
        let written = self
            .0
            .lock()
            .change(|transaction| Ok(set_record(&mut transaction.open_table(table)?, server, value.as_deref())?));
        Ok(written?)
    }

    fn all<V: DeserializeOwned>(
        &self,
        table: TableDefinition<'_, &str, &[u8]>,
    ) -> Result<Vec<(String, V)>, StoreError> {
        let mut file = self.0.lock();
        let entries = file.read(|reading| {
            let table = reading.open_table(table)?;
            let mut entries = Vec::new();
            for entry in table.iter()? {
                let (server, value) = entry?;
                entries.push((server.value().to_owned(), value.value().to_vec()));
            }
            Ok(entries)
        })?;
        let parse = |(server, value): (String, Vec<u8>)| match serde_json::from_slice(&value) {
            Ok(value) => Ok((server, value)),
            Err(error) => {
                let cause = OpenCause::Contents(format!("the entry of server `{server}`: {error}"));
                Err(file.storage().error(cause).into())
            }
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

/// Verifies the store in a file, which is only read, as an activator that does not run left it. Returns the number of
/// registered servers.
///
/// # Errors
/// A file that cannot be read, is in use, is damaged, or is the store of another service or version.
pub fn check_store(file: &Path) -> Result<usize, StoreError> {
    let store = Store::open(Storage::read_only(file))?;
    store.running()?;
    Ok(store.servers()?.len())
}
