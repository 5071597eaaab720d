//! The executable of the naming service: glue of command line, store and service.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Parser, Subcommand};
use spandrel::Orb;
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure, FailureKind};
use spandrel_naming::{
    NamingArgs, ROOT_KEY, RedbStore, RedbStoreOptions, STORE_FILE, Synchronization,
    omni_log::{self, CodeSet},
};
use spandrel_store::{BackupCommand, Service};

/// The standard port of naming services.
const PORT: u16 = 2809;
/// Options of the ORB unless the command line has others. Calls are short: many clients cost the least processor time
/// if they share threads.
const ORB_OPTIONS: [[&str; 2]; 1] = [["-ORBConcurrency", "thread-per-connection:2"]];

/// The OMG's naming service: names for object references, kept on disk.
#[derive(Debug, Parser)]
#[command(name = "spandrel-naming", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    #[command(flatten)]
    naming: NamingArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify the store of a service that does not run. No file is written
    Check,
    /// Open the store of a service that does not run without the changes of its redo log that cannot be read
    Recover,
    /// Make a running service copy its store into the folder `backups/naming` below its data folder
    Backup(BackupCommand),
    /// Add the bindings of an omniNames file (omninames-HOST.dat) to the store of a service that does not run
    Import {
        /// The file that omniNames has written
        file: PathBuf,
        /// The code set of omniNames (its option nativeCharCodeSet)
        #[arg(long, value_enum, ignore_case = true, default_value_t)]
        code_set: CodeSet,
    },
    /// Write the store of a service that does not run as an omniNames file. Its own files are not written
    Export {
        /// The file, which must not exist: omninames-HOST.dat in omniNames' folder
        file: PathBuf,
        /// The host of omniNames' contexts: an address at which it listens (its option endPoint)
        #[arg(long, default_value = "127.0.0.1")]
        host: String,
        /// The port of omniNames
        #[arg(long, default_value_t = PORT)]
        port: u16,
        /// The code set of omniNames (its option nativeCharCodeSet)
        #[arg(long, value_enum, ignore_case = true, default_value_t)]
        code_set: CodeSet,
    },
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        match &args.command {
            None => args.serve(),
            Some(Command::Check) => {
                let mut store = args.store()?;
                let bindings = store.check().context("the store is damaged").map_err(data)?;
                spandrel_daemon::print(&format!("the store is sound: {bindings} bindings\n"))?;
                Ok(())
            }
            Some(Command::Recover) => args.recover(),
            Some(Command::Backup(backup)) => backup.run(Service::Naming, &args.daemon, PORT),
            Some(Command::Import { file, code_set }) => args.import(file, *code_set),
            Some(Command::Export { file, host, port, code_set }) => args.export(file, host, *port, *code_set),
        }
    })
}

fn data(error: impl Into<anyhow::Error>) -> Failure {
    Failure::new(FailureKind::Data, error)
}

impl Args {
    fn serve(&self) -> Result<(), Failure> {
        let with_option = |args: DaemonArgs, [option, value]: &[&str; 2]| args.with_orb_option(option, value);
        let daemon = ORB_OPTIONS.iter().fold(self.daemon.clone(), with_option).start(PORT)?;
        let service = self.naming.start(&daemon)?;
        daemon.serve(&[format!("{ROOT_KEY} {}", daemon.url(ROOT_KEY, service.reference())?)])?;
        service.stop().map_err(Failure::failed)
    }

    /// The file of a store that exists.
    fn store_file(&self) -> Result<PathBuf, Failure> {
        let file = self.daemon.data_folder()?.join(STORE_FILE);
        if !file.exists() {
            return Err(data(anyhow!("there is no store {} (--data names its folder)", file.display())));
        }
        Ok(file)
    }

    /// The store of a service that does not run, for reading.
    fn store(&self) -> Result<RedbStore, Failure> {
        RedbStore::open_read_only(&self.store_file()?).map_err(data)
    }

    fn recover(&self) -> Result<(), Failure> {
        let mut store = RedbStore::recover(&self.store_file()?, &RedbStoreOptions::default()).map_err(data)?;
        let bindings = store.check().context("the store is damaged").map_err(data)?;
        spandrel_daemon::print(&format!("the store has {bindings} bindings\n"))?;
        Ok(())
    }

    fn import(&self, file: &Path, code_set: CodeSet) -> Result<(), Failure> {
        let octets = fs::read(file).with_context(|| format!("cannot read {}", file.display()));
        let text = code_set.decode(octets.map_err(Failure::failed)?);
        let text = text.with_context(|| format!("cannot import {}", file.display())).map_err(Failure::failed)?;
        let folder = self.daemon.data_folder()?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display())).map_err(data)?;
        // Many bindings share a write to the disk.
        let synchronization = Synchronization::Every(Duration::from_secs(1));
        let options = RedbStoreOptions { synchronization, ..RedbStoreOptions::default() };
        let store = RedbStore::open(&folder.join(STORE_FILE), &options).map_err(data)?;
        let orb = Orb::builder().build().map_err(Failure::failed)?;
        let entries = omni_log::import(&text, &orb, &store)
            .with_context(|| format!("cannot import {}", file.display()))
            .map_err(Failure::failed)?;
        store.synchronize().with_context(|| format!("cannot import {}", file.display())).map_err(data)?;
        spandrel_daemon::print(&format!(
            "{} bindings and {} contexts were added\n",
            entries.bindings, entries.contexts
        ))?;
        Ok(())
    }

    fn export(&self, file: &Path, host: &str, port: u16, code_set: CodeSet) -> Result<(), Failure> {
        let store = self.store()?;
        let orb = Orb::builder().build().map_err(Failure::failed)?;
        let (text, entries) = omni_log::export(&store, &orb, host, port).map_err(Failure::failed)?;
        let octets = code_set.encode(text).context("cannot export the names").map_err(Failure::failed)?;
        let written = fs::File::create_new(file).and_then(|mut out| std::io::Write::write_all(&mut out, &octets));
        written.with_context(|| format!("cannot write {}", file.display())).map_err(Failure::failed)?;
        spandrel_daemon::print(&format!(
            "{} bindings and {} contexts were written\n",
            entries.bindings, entries.contexts
        ))?;
        Ok(())
    }
}
