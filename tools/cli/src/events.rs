//! `spandrel events`: channels of an event or notification service, their events and the lag of consumers.

mod args;
mod lag;
mod notification;

use anyhow::Context as _;
use spandrel::ObjectRef;
use spandrel::net::error::escape;
use spandrel::net::sync::time::Deadline;
use spandrel::services::cos_event_channel_admin::{EventChannel, ProxyPullSupplier};
use spandrel::services::cos_notify_channel_admin::EventChannelFactory;
use spandrel::services::event_monitoring::{ChannelState, ConsumerState, Monitor, MonitoredFactory};
use spandrel::types::{Any, Interface as _};
use spandrel::{Orb, dynamic::DynAny};

use self::args::{ChannelArgs, CreateArgs, PushArgs, ServiceArgs, WatchArgs, print_events};
use self::lag::{PAGE, consumers_of, lag_text, usable_monitor};
use self::notification::Notification;
use crate::client_args::bound;
use crate::json::{JsonObject, array};
use crate::trade::{Table, read_value, value_text};
use crate::{common, naming};

const EXAMPLES: &str = "\
Examples:
  spandrel events create Alarms
  spandrel events push Alarms 'string \"the tank is empty\"'
  spandrel events watch Alarms --events 10 --json
  spandrel events lag Alarms
  spandrel events list --at corbaloc::events.example:11169/omniEvents

  spandrel events watch 1 --filter '$level > 5' --at corbaloc::127.0.0.1:11166/NotificationService
  spandrel events push 1 'string \"empty\"' --type Plant/Alarm --field 'level=long 7' --at corbaloc::…/NotificationService

A channel is its name in the service, or a URL. Without --at, the service is that at 127.0.0.1:11169. Values have their type before
them, as in `spandrel call`. With the factory of a notification service, also another one's, a channel is its number, its name in
the naming service, or a URL, and events are structured ones. The list of an event service, and lag, need Spandrel's services.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// Create event channels, push and watch events, and show the lag of consumers.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a channel, and print its reference
    Create(CreateArgs),
    /// Show the channels of a service
    List(ServiceArgs),
    /// Print the events of a channel as they come
    Watch(WatchArgs),
    /// Push an event into a channel
    Push(PushArgs),
    /// Show the consumers of a channel, those with the longest queues first
    Lag(ChannelArgs),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match &self.command {
            Command::Create(args) => run(&args.service, |service| match service.notification()? {
                Some(notification) => notification.create(args),
                None if args.persistent => Err(no_notification("--persistent")),
                None => service.create(&args.channel),
            }),
            Command::List(args) => run(args, |service| match service.notification()? {
                Some(notification) => notification.list(),
                None => service.list(),
            }),
            Command::Watch(args) => run(&args.channel.service, |service| match service.notification()? {
                Some(notification) => notification.watch(args),
                None if !args.filter.is_empty() => Err(no_notification("--filter")),
                None => service.watch(args),
            }),
            Command::Push(args) => run(&args.channel.service, |service| match service.notification()? {
                Some(notification) => notification.push(args),
                None if !args.structured.is_empty() => Err(no_notification("a structured event")),
                None => service.push(args),
            }),
            Command::Lag(args) => run(&args.service, |service| match service.notification()? {
                Some(notification) => Ok(lag_text(&notification.lag(&args.channel)?, args.service.client.json)),
                None => Ok(lag_text(&service.lag(&args.channel)?, args.service.client.json)),
            }),
        }
    }
}

/// Runs a subcommand, whose result is the text to print.
fn run(args: &ServiceArgs, act: impl FnOnce(&Service<'_>) -> anyhow::Result<String>) -> anyhow::Result<()> {
    let service = || {
        let (orb, deadline) = (args.client.orb()?, args.client.deadline());
        Ok(Service { args, orb, deadline })
    };
    let text = args.client.reported(service().and_then(|service| act(&service)))?;
    common::print(&text)
}

/// The event service of a command, with one time limit for all its calls apart from the wait for events.
struct Service<'a> {
    args: &'a ServiceArgs,
    orb: Orb,
    deadline: Deadline,
}

/// The error of an option for a notification service where another service is called.
fn no_notification(option: &str) -> anyhow::Error {
    anyhow::anyhow!("{option} needs a notification service: --at corbaloc::HOST:11166/NotificationService")
}

impl Service<'_> {
    /// The service as a notification service, if it is one.
    fn notification(&self) -> anyhow::Result<Option<Notification<'_>>> {
        let factory = bound(&naming::object(&self.orb, &self.args.at)?, self.deadline)?;
        // A service that cannot be asked is reported by the command itself.
        let is_one = factory.is_a(EventChannelFactory::REPOSITORY_ID).unwrap_or(false);
        Ok(is_one.then(|| Notification {
            orb: &self.orb,
            deadline: self.deadline,
            json: self.args.client.json,
            factory: factory.unchecked_narrow(),
        }))
    }

    fn factory(&self) -> anyhow::Result<MonitoredFactory> {
        let factory = naming::object(&self.orb, &self.args.at)?;
        Ok(bound(&factory, self.deadline)?.unchecked_narrow())
    }

    fn monitor(&self) -> anyhow::Result<Monitor> {
        usable_monitor(self.factory()?.event_monitor(), "event", self.deadline)
    }

    fn channel(&self, text: &str) -> anyhow::Result<EventChannel> {
        let object = if naming::is_url(text) {
            naming::object(&self.orb, text)?
        } else {
            let joined = self.factory()?.join_channel(text);
            let channel = joined.with_context(|| format!("cannot use the channel `{}`", escape(text)))?;
            ObjectRef::from(channel.with_context(|| format!("the channel `{}` is nil", escape(text)))?)
        };
        Ok(bound(&object, self.deadline)?.unchecked_narrow())
    }

    fn create(&self, name: &str) -> anyhow::Result<String> {
        let created = self.factory()?.create_channel(name);
        let channel = created.with_context(|| format!("cannot create the channel `{}`", escape(name)))?;
        let reference = channel.map(|channel| channel.as_object().to_string()).unwrap_or_default();
        Ok(match self.args.client.json {
            true => format!("{}\n", JsonObject::new().value("created", name).value("reference", reference).finish()),
            false => format!("{reference}\n"),
        })
    }

    fn list(&self) -> anyhow::Result<String> {
        let (monitor, mut channels) = (self.monitor()?, Vec::<ChannelState>::new());
        loop {
            let after = channels.last().map_or_else(String::new, |last| last.name.clone());
            let page = monitor.channels(&after, PAGE).context("cannot list the channels")?;
            // A page that does not advance is the end, also of a server that repeats itself.
            if page.first().is_none_or(|first| first.name <= after) {
                break;
            }
            channels.extend(page);
        }
        if self.args.client.json {
            let json = |state: &ChannelState| {
                let object = JsonObject::new().value("name", state.name.as_str()).value("consumers", state.consumers);
                let object = object.value("suppliers", state.suppliers).value("received", state.received);
                let object = object.value("delivered", state.delivered).value("dropped", state.dropped);
                object.value("longest_queue", state.longest_queue).finish()
            };
            return Ok(format!("{}\n", array(channels.iter().map(json))));
        }
        let mut table = Table::new(["CHANNEL", "CONSUMERS", "SUPPLIERS", "RECEIVED", "DELIVERED", "DROPPED", "QUEUE"]);
        for state in &channels {
            let counts = [u64::from(state.consumers), u64::from(state.suppliers), state.received, state.delivered];
            let rest = [state.dropped, u64::from(state.longest_queue)];
            let numbers = counts.into_iter().chain(rest).map(|number| number.to_string());
            table.row(std::iter::once(state.name.clone()).chain(numbers));
        }
        Ok(table.finish())
    }

    fn lag(&self, name: &str) -> anyhow::Result<Vec<ConsumerState>> {
        consumers_of(&self.monitor()?, name)
    }

    fn push(&self, args: &PushArgs) -> anyhow::Result<String> {
        let event =
            read_value(&self.orb, &args.event).map_err(|error| common::as_usage(error.context("invalid event")))?;
        let suppliers =
            self.channel(&args.channel.channel)?.for_suppliers()?.context("the channel has no suppliers")?;
        let suppliers: spandrel::services::cos_event_channel_admin::SupplierAdmin =
            bound(suppliers.as_object(), self.deadline)?.unchecked_narrow();
        let proxy = suppliers.obtain_push_consumer()?.context("the channel has no proxy")?;
        let proxy: spandrel::services::cos_event_channel_admin::ProxyPushConsumer =
            bound(proxy.as_object(), self.deadline)?.unchecked_narrow();
        proxy.connect_push_supplier(None).context("cannot connect to the channel")?;
        let pushed = proxy.push(&event).context("cannot push the event");
        _ = proxy.disconnect_push_consumer(); // the outcome is that of the push
        pushed.map(|()| String::new())
    }

    fn watch(&self, args: &WatchArgs) -> anyhow::Result<String> {
        let consumers =
            self.channel(&args.channel.channel)?.for_consumers()?.context("the channel has no consumers")?;
        let consumers: spandrel::services::cos_event_channel_admin::ConsumerAdmin =
            bound(consumers.as_object(), self.deadline)?.unchecked_narrow();
        let proxy = consumers.obtain_pull_supplier()?.context("the channel has no proxy")?;
        // Each call has the time limit of the options: events come later than the deadline of the command.
        let proxy: ProxyPullSupplier = self.orb.reference(proxy.as_object().ior().clone()).unchecked_narrow();
        proxy.connect_pull_consumer(None).context("cannot connect to the channel")?;
        let ended = print_events(args, || {
            let (event, has_event) = proxy.try_pull().context("cannot get an event")?;
            Ok(has_event.then(|| self.shown(&event)))
        });
        _ = proxy.disconnect_pull_supplier(); // the outcome is that of the events
        ended.map(|()| String::new())
    }

    /// An event with its type, escaped; or as JSON.
    fn shown(&self, event: &Any) -> String {
        if self.args.client.json {
            let value = DynAny::new(event).ok().and_then(|value| value.to_json().ok());
            let type_text = event.type_code().to_string();
            let object = JsonObject::new().value("type", type_text).json("value", value.as_deref().unwrap_or("null"));
            return object.finish();
        }
        escape(&value_text(event)).to_string()
    }
}
