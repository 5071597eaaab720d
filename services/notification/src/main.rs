//! The executable of the notification service: glue of command line and service.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use spandrel_daemon::{Daemon, DaemonArgs, EXIT_CODES, Failure, Publication};
use spandrel_delivery::DeliveryArgs;
use spandrel_notification::{FACTORY_KEY, Limits, NotificationOptions, NotificationService};

/// The default port, that of omniNotify.
const PORT: u16 = 11_166;

/// The OMG's notification service: channels of structured events with filters and qualities of service.
#[derive(Debug, Parser)]
#[command(name = "spandrel-notification", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Bind the factory in the naming service, as `NotifyEventChannelFactory` unless another name is given, and the channels
    /// of --channel (--orb `-ORBInitRef NameService=…`)
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "NotifyEventChannelFactory")]
    publish: Option<String>,
    /// A channel that is created and bound in the naming service with this name (needs --publish); may be given more than once
    #[arg(long, value_name = "NAME", requires = "publish")]
    channel: Vec<String>,
    #[command(flatten)]
    delivery: DeliveryArgs,
    /// Show the numbers of channels, consumers and the ORB to Prometheus: http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| serve(&spandrel_daemon::parse::<Args>()))
}

fn serve(args: &Args) -> Result<(), Failure> {
    let daemon = args.daemon.start(PORT)?;
    let options = NotificationOptions {
        limits: Limits {
            queue_events: args.delivery.queue_events(),
            octets: args.delivery.octets(),
            ..Limits::default()
        },
        peers: args.delivery.peers(),
    };
    let service = NotificationService::start(daemon.orb(), options).map_err(Failure::failed)?;
    let published = publish(args, &daemon, &service)?;
    let _endpoint = args.metrics.map(|address| daemon.open_metrics(address, service.metrics())).transpose()?;
    let url = daemon.url(FACTORY_KEY, service.factory())?;
    daemon.serve_published(&[format!("{FACTORY_KEY} {url}")], published)?;
    service.stop().map_err(Failure::failed)
}

/// Creates the channels of the command line, and binds them and the factory.
fn publish(args: &Args, daemon: &Daemon, service: &NotificationService) -> Result<Option<Publication>, Failure> {
    let Some(factory) = &args.publish else { return Ok(None) };
    let mut objects = vec![(factory.clone(), service.factory().clone())];
    for name in &args.channel {
        objects.push((name.clone(), service.create_channel().map_err(Failure::failed)?));
    }
    Publication::new(daemon, objects).map(Some)
}
