//! Options of `spandrel events`, and the loop of its `watch`.

use std::time::Duration;

use spandrel::net::error::output::has_no_reader;
use spandrel::net::sync::time::Deadline;

use crate::client_args::ClientArgs;
use crate::common;

/// The factory where none is given.
const FACTORY: &str = "corbaloc::127.0.0.1:11169/omniEvents";
/// The pause between two looks for an event.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub(super) struct ServiceArgs {
    /// The factory of the event service: a URL, or a name in the naming service
    #[arg(long, value_name = "FACTORY", default_value = FACTORY)]
    pub(super) at: String,
    #[command(flatten)]
    pub(super) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct ChannelArgs {
    /// The channel: its name in the service, or a URL
    #[arg(value_name = "CHANNEL")]
    pub(super) channel: String,
    #[command(flatten)]
    pub(super) service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// The name of the channel in its service. In a notification service, which has no names, it is bound in the naming
    /// service
    #[arg(value_name = "CHANNEL")]
    pub(super) channel: String,
    /// Persistent connections and events, in a notification service
    #[arg(long)]
    pub(super) persistent: bool,
    #[command(flatten)]
    pub(super) service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    #[command(flatten)]
    pub(super) channel: ChannelArgs,
    /// Events that match this constraint, in a notification service; several are alternatives
    #[arg(long, value_name = "CONSTRAINT")]
    pub(super) filter: Vec<String>,
    /// End after this many events
    #[arg(short = 'n', long, value_name = "N", value_parser = common::whole(1..=u64::MAX))]
    pub(super) events: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = common::positive_time)]
    pub(super) time: Option<Duration>,
}

#[derive(Debug, clap::Args)]
pub(super) struct PushArgs {
    #[command(flatten)]
    pub(super) channel: ChannelArgs,
    /// The event: a value with its type before it, such as `long 5`. The remainder of the body of a structured event
    #[arg(value_name = "EVENT")]
    pub(super) event: String,
    #[command(flatten)]
    pub(super) structured: StructuredArgs,
}

/// The parts of a structured event, for a notification service.
#[derive(Debug, clap::Args)]
pub(super) struct StructuredArgs {
    /// Domain and name of the event's type
    #[arg(long = "type", value_name = "DOMAIN/TYPE")]
    pub(super) event_type: Option<String>,
    /// The name of the event
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// A property of the header, such as `Priority=short 5`; may be given more than once
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) header: Vec<String>,
    /// A property of the filterable data, such as `level=long 7`; may be given more than once
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) field: Vec<String>,
}

impl StructuredArgs {
    pub(super) fn is_empty(&self) -> bool {
        self.event_type.is_none() && self.name.is_none() && self.header.is_empty() && self.field.is_empty()
    }
}

/// Prints the lines of events; `next` returns none if there is no event.
pub(super) fn print_events(args: &WatchArgs, next: impl Fn() -> anyhow::Result<Option<String>>) -> anyhow::Result<()> {
    let (deadline, mut left) = (Deadline::after(args.time), args.events);
    while left != Some(0) && !deadline.is_over() && !has_no_reader() {
        if let Some(event) = next()? {
            common::print(&format!("{event}\n"))?;
            left = left.map(|left| left - 1);
        } else {
            std::thread::sleep(deadline.remaining().map_or(LOOK, |remaining| remaining.min(LOOK)));
        }
    }
    Ok(())
}
