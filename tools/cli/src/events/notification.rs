//! Channels of a notification service, by the standard's interfaces alone: structured events and filters.

use anyhow::Context as _;
use spandrel::dynamic::DynAny;
use spandrel::net::error::escape;
use spandrel::net::sync::time::Deadline;
use spandrel::services::NamingClient;
use spandrel::services::cos_notification::{
    CONNECTION_RELIABILITY, EVENT_RELIABILITY, EventHeader, EventType, FixedEventHeader, PERSISTENT, Property,
    StructuredEvent,
};
use spandrel::services::cos_notify_channel_admin::{
    ClientType, ConsumerAdmin, EventChannel, EventChannelFactory, StructuredProxyPullSupplier,
    StructuredProxyPushConsumer, SupplierAdmin,
};
use spandrel::services::cos_notify_filter::{ConstraintExp, FilterFactory};
use spandrel::services::event_monitoring::{ChannelState, ConsumerState};
use spandrel::services::notification_monitoring::MonitoredFactory;
use spandrel::types::{Any, Interface};
use spandrel::{ObjectRef, Orb};

use super::args::{CreateArgs, PushArgs, WatchArgs, print_events};
use super::lag::{PAGE, consumers_of, usable_monitor};
use crate::client_args::bound;
use crate::json::{JsonObject, array};
use crate::trade::{Table, read_value, value_text};
use crate::{common, naming};

/// A notification service of a command.
pub(super) struct Notification<'a> {
    pub(super) orb: &'a Orb,
    /// The time limit of all calls apart from the wait for events.
    pub(super) deadline: Deadline,
    /// Whether the output is JSON.
    pub(super) json: bool,
    pub(super) factory: EventChannelFactory,
}

impl Notification<'_> {
    /// An object of the service, with the time limit of the command.
    fn limited<T: Interface>(&self, object: Option<T>, missing: &'static str) -> anyhow::Result<T> {
        let object = object.context(missing)?;
        Ok(bound(object.as_object(), self.deadline)?.unchecked_narrow())
    }

    /// The channel with a number, a name in the naming service, or a URL.
    fn channel(&self, text: &str) -> anyhow::Result<EventChannel> {
        let object = match text.parse() {
            Ok(number) => {
                let channel = self.factory.get_event_channel(number);
                let channel = channel.with_context(|| format!("cannot use the channel {number}"))?;
                ObjectRef::from(channel.with_context(|| format!("the channel {number} is nil"))?)
            }
            Err(_) => naming::object(self.orb, text)?,
        };
        Ok(bound(&object, self.deadline)?.unchecked_narrow())
    }

    pub(super) fn create(&self, args: &CreateArgs) -> anyhow::Result<String> {
        let name = &*args.channel;
        anyhow::ensure!(
            !naming::is_url(name) && name.parse::<i64>().is_err(),
            common::usage(format!("`{}` cannot be the name of a channel: it is a URL or number", escape(name)))
        );
        // Without a naming service or with a name in use, no channel is created.
        let names = NamingClient::new(self.orb).context("cannot bind the channel in the naming service")?;
        let is_bound = naming::object(self.orb, name).is_ok();
        anyhow::ensure!(!is_bound, "cannot bind the channel `{}`: the name is bound already", escape(name));
        let persistent = |name: &str| -> anyhow::Result<Property> {
            Ok(Property { name: name.to_owned(), value: Any::new(PERSISTENT)? })
        };
        let qos = match args.persistent {
            true => vec![persistent(EVENT_RELIABILITY)?, persistent(CONNECTION_RELIABILITY)?],
            false => Vec::new(),
        };
        let created = self.factory.create_channel(&qos, &[]);
        let (channel, number) = created.with_context(|| format!("cannot create the channel `{}`", escape(name)))?;
        let channel = self.limited(channel, "the channel is nil")?;
        if let Err(error) = names.publish(name, &channel) {
            _ = channel.destroy(); // it would have no name
            return Err(error).with_context(|| format!("cannot bind the channel `{}`", escape(name)));
        }
        let reference = channel.as_object().to_string();
        Ok(match self.json {
            true => {
                let object = JsonObject::new().value("created", name).value("number", number);
                format!("{}\n", object.value("reference", reference).finish())
            }
            false => format!("{reference}\n"),
        })
    }

    pub(super) fn list(&self) -> anyhow::Result<String> {
        let numbers = self.factory.get_all_channels().context("cannot list the channels")?;
        let mut rows = Vec::new();
        for number in numbers {
            // It may have been destroyed meanwhile.
            let Ok(channel) = self.channel(&number.to_string()) else { continue };
            let (mut consumers, mut suppliers) = (0, 0);
            for admin in channel.get_all_consumeradmins()? {
                let admin: ConsumerAdmin =
                    self.limited(channel.get_consumeradmin(admin)?, "an administrator is nil")?;
                consumers += admin.push_suppliers()?.len() + admin.pull_suppliers()?.len();
            }
            for admin in channel.get_all_supplieradmins()? {
                let admin: SupplierAdmin =
                    self.limited(channel.get_supplieradmin(admin)?, "an administrator is nil")?;
                suppliers += admin.push_consumers()?.len() + admin.pull_consumers()?.len();
            }
            let qos = channel.get_qos()?;
            let is_persistent = |name: &str| {
                let property = qos.iter().find(|property| property.name == name);
                property.is_some_and(|property| property.value.extract::<i16>().is_ok_and(|value| value == PERSISTENT))
            };
            let reliability = (is_persistent(CONNECTION_RELIABILITY), is_persistent(EVENT_RELIABILITY));
            rows.push((number, consumers, suppliers, reliability));
        }
        if self.json {
            let json = |(number, consumers, suppliers, (connections, events)): &(i32, usize, usize, (bool, bool))| {
                let object = JsonObject::new().value("number", *number).value("consumers", *consumers);
                let object = object.value("suppliers", *suppliers).value("persistent_connections", *connections);
                object.value("persistent_events", *events).finish()
            };
            return Ok(format!("{}\n", array(rows.iter().map(json))));
        }
        let mut table = Table::new(["CHANNEL", "CONSUMERS", "SUPPLIERS", "PERSISTENT"]);
        for (number, consumers, suppliers, reliability) in rows {
            let persistent = match reliability {
                (false, _) => "no",
                (true, false) => "connections",
                (true, true) => "connections, events",
            };
            table.row([number.to_string(), consumers.to_string(), suppliers.to_string(), persistent.to_owned()]);
        }
        Ok(table.finish())
    }

    /// The consumers of a channel.
    pub(super) fn lag(&self, text: &str) -> anyhow::Result<Vec<ConsumerState>> {
        let factory: MonitoredFactory = self.factory.as_object().unchecked_narrow();
        let monitor = usable_monitor(factory.event_monitor(), "notification", self.deadline)?;
        if text.parse::<i32>().is_ok() {
            return consumers_of(&monitor, text);
        }
        // The number of the channel with this reference.
        let object = naming::object(self.orb, text)?;
        let mut after = String::new();
        loop {
            let page = monitor.channels(&after, PAGE).context("cannot list the channels")?;
            let is_same = |state: &&ChannelState| {
                state.channel.as_ref().is_some_and(|channel| channel.as_object().is_equivalent(&object))
            };
            if let Some(state) = page.iter().find(is_same) {
                return consumers_of(&monitor, &state.name);
            }
            // A page that does not advance is the end, also of a server that repeats itself.
            let number = |name: &str| name.parse::<i32>().unwrap_or_default();
            let Some(last) = page.last().filter(|last| number(&last.name) > number(&after)) else {
                anyhow::bail!("`{}` is no channel of this notification service", escape(text));
            };
            after.clone_from(&last.name);
        }
    }

    pub(super) fn push(&self, args: &PushArgs) -> anyhow::Result<String> {
        let event = self.event(args)?;
        let channel = self.channel(&args.channel.channel)?;
        let admin: SupplierAdmin = self.limited(channel.default_supplier_admin()?, "the channel has no suppliers")?;
        let (proxy, _) = admin.obtain_notification_push_consumer(ClientType::StructuredEvent)?;
        let proxy = self.limited(proxy, "the channel has no proxy")?;
        let proxy: StructuredProxyPushConsumer = proxy.as_object().unchecked_narrow();
        proxy.connect_structured_push_supplier(None).context("cannot connect to the channel")?;
        let pushed = proxy.push_structured_event(&event).context("cannot push the event");
        _ = proxy.disconnect_structured_push_consumer(); // the outcome is that of the push
        pushed.map(|()| String::new())
    }

    /// The event of the options.
    fn event(&self, args: &PushArgs) -> anyhow::Result<StructuredEvent> {
        let orb = self.orb;
        let value =
            |text: &str| read_value(orb, text).map_err(|error| common::as_usage(error.context("invalid event")));
        let property = |text: &String| {
            let (name, text) =
                text.split_once('=').ok_or_else(|| common::usage(format!("`{}` is not NAME=VALUE", escape(text))))?;
            Ok::<_, anyhow::Error>(Property { name: name.to_owned(), value: value(text)? })
        };
        let parts = &args.structured;
        let (domain_name, type_name) = match &parts.event_type {
            None => ("", ""),
            Some(text) => {
                text.split_once('/').ok_or_else(|| common::usage(format!("`{}` is not DOMAIN/TYPE", escape(text))))?
            }
        };
        let event_type = EventType { domain_name: domain_name.to_owned(), type_name: type_name.to_owned() };
        let fixed_header = FixedEventHeader { event_type, event_name: parts.name.clone().unwrap_or_default() };
        let variable_header = parts.header.iter().map(property).collect::<Result<_, _>>()?;
        Ok(StructuredEvent {
            header: EventHeader { fixed_header, variable_header },
            filterable_data: parts.field.iter().map(property).collect::<Result<_, _>>()?,
            remainder_of_body: value(&args.event)?,
        })
    }

    pub(super) fn watch(&self, args: &WatchArgs) -> anyhow::Result<String> {
        let channel = self.channel(&args.channel.channel)?;
        let admin: ConsumerAdmin = self.limited(channel.default_consumer_admin()?, "the channel has no consumers")?;
        let (proxy, _) = admin.obtain_notification_pull_supplier(ClientType::StructuredEvent)?;
        let proxy = proxy.context("the channel has no proxy")?;
        // Each call has the time limit of the options: events come later than the deadline of the command.
        let proxy: StructuredProxyPullSupplier = self.orb.reference(proxy.as_object().ior().clone()).unchecked_narrow();
        let filter = match &*args.filter {
            [] => None,
            constraints => {
                let filters: FilterFactory =
                    self.limited(channel.default_filter_factory()?, "the channel has no factory of filters")?;
                let filter = self.limited(filters.create_filter("EXTENDED_TCL")?, "the filter is nil")?;
                let constraints: Vec<_> = constraints
                    .iter()
                    .map(|text| ConstraintExp { event_types: Vec::new(), constraint_expr: text.clone() })
                    .collect();
                let used = filter.add_constraints(&constraints).context("cannot use the filter");
                let used = used.and_then(|_| proxy.add_filter(Some(&filter)).context("cannot use the filter"));
                if let Err(error) = used {
                    _ = filter.destroy();
                    _ = proxy.disconnect_structured_pull_supplier();
                    return Err(error);
                }
                Some(filter)
            }
        };
        // A watch does not outlive its command; a service without persistence does not know the property.
        let best_effort = Property { name: CONNECTION_RELIABILITY.to_owned(), value: Any::new(0_i16)? };
        _ = proxy.set_qos(&[best_effort]);
        let connected = proxy.connect_structured_pull_consumer(None).context("cannot connect to the channel");
        let ended = connected.and_then(|()| {
            print_events(args, || {
                let (event, has_event) = proxy.try_pull_structured_event().context("cannot get an event")?;
                Ok(has_event.then(|| self.shown(&event)))
            })
        });
        _ = proxy.disconnect_structured_pull_supplier(); // the outcome is that of the events
        if let Some(filter) = filter {
            _ = filter.destroy();
        }
        ended.map(|()| String::new())
    }

    /// An event on one line, escaped; or as JSON.
    fn shown(&self, event: &StructuredEvent) -> String {
        let header = &event.header;
        let event_type = &header.fixed_header.event_type;
        if self.json {
            let json = |value: &Any| DynAny::new(value).ok().and_then(|value| value.to_json().ok());
            let properties = |properties: &[Property]| {
                let object = properties.iter().fold(JsonObject::new(), |object, property| {
                    object.json(&property.name, json(&property.value).as_deref().unwrap_or("null"))
                });
                object.finish()
            };
            let object = JsonObject::new().value("domain", &*event_type.domain_name);
            let object = object.value("type", &*event_type.type_name).value("name", &*header.fixed_header.event_name);
            let object = object.json("header", &properties(&header.variable_header));
            let object = object.json("fields", &properties(&event.filterable_data));
            return object.json("body", json(&event.remainder_of_body).as_deref().unwrap_or("null")).finish();
        }
        let mut text =
            format!("{}/{} {}", event_type.domain_name, event_type.type_name, header.fixed_header.event_name);
        for property in header.variable_header.iter().chain(&event.filterable_data) {
            text.push_str(&format!(" {}={}", property.name, value_text(&property.value)));
        }
        text.push_str(&format!(": {}", value_text(&event.remainder_of_body)));
        escape(&text).to_string()
    }
}
