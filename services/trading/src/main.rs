//! The executable of the trading service: glue of command line, store and service.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure, FailureKind, Publication};
use spandrel_store::{BackupCommand, Service};
use spandrel_trading::dynamic::DynamicOptions;
use spandrel_trading::{
    LOOKUP_KEY, PurgeOptions, STORE_FILE, TradingError, TradingOptions, TradingService, check_store,
};

/// The default port, beside those of the naming service and the activator.
const PORT: u16 = 2811;

/// The OMG's trading service: objects found by the properties of their offers, which are kept on disk.
#[derive(Debug, Parser)]
#[command(name = "spandrel-trading", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Keep service types and offers in memory: they end with the process
    #[arg(long)]
    transient: bool,
    /// The time after which a query ends with the offers found until then, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    query_time: u64,
    /// The time for which later queries use the value of a dynamic property again, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    dynamic_lifetime: u64,
    /// Ask each exported object whether it has the interface of its service type
    #[arg(long)]
    check_interfaces: bool,
    /// The time between two withdrawals of offers whose object does not exist any more, in seconds: each object is called
    /// [default: none are withdrawn]
    #[arg(long, value_name = "SECONDS")]
    purge: Option<u64>,
    /// Withdraw offers of unreachable objects, too
    #[arg(long, requires = "purge")]
    purge_unreachable: bool,
    /// A name of the naming service under which the trader is found (--orb `-ORBInitRef NameService=…`)
    #[arg(long, value_name = "NAME")]
    publish: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify the store of a service that does not run. No file is written
    Check,
    /// Make a running service copy its store into the folder `backups/trading` below its data folder
    Backup(BackupCommand),
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        match &args.command {
            None => serve(&args),
            Some(Command::Check) => check(&args.daemon),
            Some(Command::Backup(backup)) => backup.run(Service::Trading, &args.daemon, PORT),
        }
    })
}

fn serve(args: &Args) -> Result<(), Failure> {
    let daemon = args.daemon.start(PORT)?;
    let purge = args.purge.map(|seconds| PurgeOptions {
        removes_unreachable: args.purge_unreachable,
        ..PurgeOptions::new(Duration::from_secs(seconds.max(1)))
    });
    let options = TradingOptions {
        data: (!args.transient).then(|| daemon.data().to_owned()),
        query_time: Duration::from_millis(args.query_time),
        checks_interfaces: args.check_interfaces,
        purge,
        dynamic: DynamicOptions { lifetime: Duration::from_millis(args.dynamic_lifetime), ..DynamicOptions::default() },
        ..TradingOptions::default()
    };
    let service = TradingService::start(daemon.orb(), options).map_err(|error| match error {
        TradingError::Store(error) => Failure::new(FailureKind::Data, error),
        error => Failure::failed(error),
    })?;
    let publish = |name: &String| Publication::new(&daemon, vec![(name.clone(), service.lookup().clone())]);
    let publication = args.publish.as_ref().map(publish).transpose()?;
    let url = daemon.url(LOOKUP_KEY, service.lookup())?;
    daemon.serve_published(&[format!("{LOOKUP_KEY} {url}")], publication)?;
    service.stop().map_err(Failure::failed)
}

fn check(args: &DaemonArgs) -> Result<(), Failure> {
    let file = args.data_folder()?.join(STORE_FILE);
    let (types, offers) = check_store(&file).map_err(|error| Failure::new(FailureKind::Data, error))?;
    spandrel_daemon::print(&format!("the store is sound: {types} service types and {offers} offers\n"))
}
