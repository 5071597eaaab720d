//! The executable of an event server over JetStream: glue of command line and service.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure, FailureKind};
use spandrel_event::FACTORY_KEY;
use spandrel_event_jetstream::{BrokerOptions, JetStreamEventService, ServiceError, ServiceOptions};

/// The default port, that of omniEvents.
const PORT: u16 = 11_169;

/// One of several event servers whose channels are streams of a JetStream broker.
#[derive(Debug, Parser)]
#[command(name = "spandrel-event-jetstream", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// A node of the broker; may be given more than once
    #[arg(long, value_name = "URL", default_value = "nats://127.0.0.1:4222")]
    nats: Vec<String>,
    /// A file with the credentials of a user of the broker
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// The name of the bucket of connections in the broker, with which the names of streams begin
    #[arg(long, value_name = "NAME", default_value = "events", value_parser = prefix)]
    prefix: String,
    /// The nodes of the broker that store each event: 1, 3 or 5
    #[arg(long, value_name = "NODES", default_value_t = 1, value_parser = replicas)]
    replicas: u8,
    /// The events that may wait for one consumer; beyond it the oldest are discarded
    #[arg(long, value_name = "EVENTS", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    queue: u32,
    /// The time limit of an operation of the broker, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
    /// The time limit of a call on a consumer or pull supplier, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=86_400_000))]
    peer_timeout: u32,
    /// The hours for which events of a consumer that fails are kept, before it is disconnected
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=87_600))]
    keep: u32,
    /// A channel that is created if it does not exist; may be given more than once
    #[arg(long, value_name = "NAME")]
    channel: Vec<String>,
    /// Show the numbers of channels and the ORB to Prometheus: http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

/// The number of nodes with a majority of their own: others store more and survive no more deaths.
fn replicas(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(nodes @ (1 | 3 | 5)) => Ok(nodes),
        _ => Err("expected 1, 3 or 5".to_owned()),
    }
}

/// A name of the broker's buckets.
fn prefix(text: &str) -> Result<String, String> {
    let fits = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
    if (1..=64).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err("expected at most 64 letters, digits, `-` and `_`".to_owned())
}

fn failure(error: ServiceError) -> Failure {
    match error {
        ServiceError::Broker(error) => Failure::new(FailureKind::Data, error),
        error @ ServiceError::Name(_) => Failure::usage(error),
        error => Failure::failed(error),
    }
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        let daemon = args.daemon.start(PORT)?;
        let options = ServiceOptions {
            broker: BrokerOptions {
                nodes: args.nats,
                credentials: args.credentials,
                prefix: args.prefix,
                replicas: args.replicas.into(),
                queue: args.queue.into(),
                timeout: Duration::from_secs(args.timeout),
            },
            peer_timeout: Duration::from_millis(args.peer_timeout.into()),
            keep: Duration::from_secs(u64::from(args.keep) * 3_600),
        };
        let service = JetStreamEventService::start(daemon.orb(), options).map_err(failure)?;
        for name in &args.channel {
            service.channel(name).map_err(failure)?;
        }
        let _endpoint = args.metrics.map(|address| daemon.open_metrics(address, service.metrics())).transpose()?;
        let url = daemon.url(FACTORY_KEY, service.factory())?;
        daemon.serve(&[format!("{FACTORY_KEY} {url}")])?;
        service.stop().map_err(failure)
    })
}
