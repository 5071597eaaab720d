//! The options of an activator, for its own executable and for those that serve it beside others.

use std::path::PathBuf;
use std::time::Duration;

use spandrel_daemon::{Daemon, DaemonArgs, Failure, FailureKind};

use crate::{ADAPTER, Activator, ActivatorError, ActivatorOptions, COMMANDS_FILE, Commands, Limits};

/// The options of an activator as arguments of an executable.
#[derive(Clone, Debug, clap::Args)]
pub struct ActivatorArgs {
    /// The programs that may be run [default: commands.toml in the data folder, if it exists]; read again upon SIGHUP
    #[arg(long, value_name = "FILE")]
    commands: Option<PathBuf>,
    /// The time from the start of a server to its registration, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    start_timeout: u64,
    /// The failures in sequence after which a server is not started again
    #[arg(long, value_name = "N", default_value_t = 5)]
    start_limit: u32,
    /// The time in which a drained server has to end its requests, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60_000)]
    drain_limit: u64,
    /// The time between SIGTERM and SIGKILL, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    kill_grace: u64,
    /// The size from which the output of a server is moved to an older file, in octets
    #[arg(long, value_name = "OCTETS", default_value_t = 10 << 20)]
    max_log: u64,
}

/// The commands of an activator, read before its process becomes a server.
#[derive(Debug)]
pub struct ReadCommands {
    commands: Commands,
    file: Option<PathBuf>,
}

impl ActivatorArgs {
    /// Reads the commands: those of `--commands`, else of the data folder, else none.
    ///
    /// # Errors
    /// A file that cannot be read, or is malformed.
    pub fn read_commands(&self, daemon: &DaemonArgs) -> Result<ReadCommands, Failure> {
        let default = daemon.data_folder()?.join(COMMANDS_FILE);
        let file = self.commands.clone().or_else(|| default.exists().then_some(default));
        let commands = file.as_ref().map(|file| Commands::read(file)).transpose().map_err(Failure::usage)?;
        Ok(ReadCommands { commands: commands.unwrap_or_default(), file })
    }

    /// Starts the activator on the ORB of a process. It makes the ORB listen.
    ///
    /// # Errors
    /// A store that cannot be opened, with the exit code 4; an address in use, with 3; an adapter that cannot be created.
    pub fn start(&self, daemon: &Daemon, ReadCommands { commands, file }: ReadCommands) -> Result<Activator, Failure> {
        let reload = file.as_ref().map(|_| spandrel_daemon::hangup_flag()).transpose().map_err(Failure::failed)?;
        let limits = Limits {
            start_timeout: Duration::from_millis(self.start_timeout),
            start_limit: self.start_limit.max(1),
            drain_limit: Duration::from_millis(self.drain_limit),
            kill_grace: Duration::from_millis(self.kill_grace),
            max_log: self.max_log.max(1),
            reload,
            commands_file: file,
            ..Limits::default()
        };
        // Servers have working directories of their own.
        let data = daemon.data().canonicalize().map_err(|error| Failure::new(FailureKind::Data, error))?;
        let path_check = daemon.path_check(ADAPTER);
        let options = ActivatorOptions { limits, path_check, ..ActivatorOptions::new(data, commands) };
        Activator::start(daemon.orb(), options).map_err(|error| match error {
            ActivatorError::Store(error) => Failure::new(FailureKind::Data, error),
            ActivatorError::Listen(exception) => Failure::cannot_listen(exception),
            error => Failure::failed(error),
        })
    }
}
