//! The executable of a naming server over etcd: glue.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use spandrel::net::sync::Arc;
use spandrel_daemon::{DaemonArgs, Failure, FailureKind};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_naming_etcd::{EtcdOptions, EtcdStore};

/// The standard port of naming services.
const PORT: u16 = 2809;

/// One of several naming servers that share one graph in etcd.
#[derive(Debug, Parser)]
#[command(name = "spandrel-naming-etcd", version, max_term_width = 110)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// A member of the cluster; may be given more than once
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:2379")]
    etcd: Vec<String>,
    /// The beginning of all keys in etcd
    #[arg(long, value_name = "TEXT", default_value = "spandrel/naming/")]
    prefix: String,
    /// The time limit of an operation of etcd, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    timeout: u64,
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        let daemon = args.daemon.start(PORT)?;
        let timeout = Duration::from_secs(args.timeout);
        let store = EtcdStore::open(&EtcdOptions { members: args.etcd, prefix: args.prefix, timeout })
            .map_err(|error| Failure::new(FailureKind::Data, error))?;
        let service = NamingService::start_with(daemon.orb(), Arc::new(store), NamingOptions::new(daemon.data()))
            .context("cannot start the naming service")
            .map_err(Failure::failed)?;
        let address = daemon.address()?;
        daemon.serve(&[format!("NameService corbaloc::{address}/NameService")])?;
        service.stop().map_err(Failure::failed)
    })
}
