//! The implementation repository: starts servers on demand, and forwards their clients.
//!
//! References of persistent objects denote the repository (`spandrel::services::activation`). It starts the server of the
//! object if none runs, waits until that has registered its addresses, and answers LOCATION_FORWARD. From then on
//! the client calls the server, until that cannot be reached: then it comes back to the repository.
//!
//! [`Activator`] serves on a given ORB; the executable `spandrel-activator` adds a command line. Only the programs of
//! the configuration ([`Commands`]) are run. Registrations and running processes are kept on disk, so that an
//! activator that has been killed finds its servers again.
#![forbid(unsafe_code)]

mod administration;
mod arguments;
mod commands;
mod control;
mod limits;
mod logs;
mod process;
mod server;
mod service;
mod store;

pub use arguments::{ActivatorArgs, ReadCommands};
pub use commands::{Command, Commands, CommandsError, ResourceLimits};
pub use limits::Limits;
pub use logs::output_of;
pub use service::{ADAPTER, Activator, ActivatorError, ActivatorOptions, COMMANDS_FILE, CurrentCommands, STORE_FILE};
pub use store::{StoreError, check_store};
