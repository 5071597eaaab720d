//! The state of channels and consumers, for `spandrel events`, the console and Prometheus.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use spandrel::SystemException;
use spandrel::net::sync::Arc;
use spandrel::services::event_monitoring::monitor::ConsumersError;
use spandrel::services::event_monitoring::{ChannelState, ConsumerState, MonitorServant, UnknownChannel};
use spandrel_metrics::{Kind, escape_label, write_header, write_sample};

use crate::registry::{Connection, ProxyId, ProxyKind, Registry};

/// The most states in one reply.
const PAGE: u32 = 100;

/// The servant of the monitor. Counts are those of this server; queues are those of the broker.
#[derive(Clone, Debug)]
pub(crate) struct MonitorState(pub(crate) Arc<Registry>);

impl MonitorState {
    /// The state of a channel. The queues are those of its consumers in the broker.
    fn channel_state(&self, name: &str, queues: &BTreeMap<String, u64>) -> Result<ChannelState, SystemException> {
        let connections = self.0.connections(name);
        let (consumers, suppliers): (Vec<_>, Vec<_>) =
            connections.into_iter().partition(|(_, connection)| connection.kind.is_of_consumer());
        let sum = |count: fn(&Connection) -> u64| consumers.iter().map(|(_, connection)| count(connection)).sum();
        Ok(ChannelState {
            name: name.to_owned(),
            channel: Some(self.0.channel_reference(name)?.unchecked_narrow()),
            consumers: clamped(consumers.len()),
            suppliers: clamped(suppliers.len()),
            received: self.0.received(name).map_or(0, |received| received.load(Ordering::Relaxed)),
            delivered: sum(|connection| connection.counts.delivered.load(Ordering::Relaxed)),
            dropped: sum(|connection| connection.counts.discarded.load(Ordering::Relaxed)),
            longest_queue: u32::try_from(queues.values().copied().max().unwrap_or(0)).unwrap_or(u32::MAX),
            ..ChannelState::default()
        })
    }

    /// The events that wait in the broker for the consumers of a channel, by the names of their proxies; `None` if the
    /// broker does not answer.
    fn queues(&self, channel: &str) -> Option<BTreeMap<String, u64>> {
        self.0.broker.wait(self.0.broker.queues(channel)).ok()
    }
}

impl MonitorServant for MonitorState {
    fn channels(&self, after: &str, how_many: u32) -> Result<Vec<ChannelState>, SystemException> {
        let how_many = usize::try_from(how_many.min(PAGE)).unwrap_or(usize::MAX);
        let names = self.0.channels();
        let page = names.iter().filter(|name| name.as_str() > after).take(how_many);
        let mut answers = true;
        let states = page.map(|name| {
            // A broker that is away is waited for once.
            let queues = if answers { self.queues(name) } else { None };
            answers = queues.is_some();
            self.channel_state(name, &queues.unwrap_or_default())
        });
        states.collect()
    }

    fn consumers(&self, name: &str, how_many: u32) -> Result<Vec<ConsumerState>, ConsumersError> {
        if !self.0.has_channel(name) {
            return Err(UnknownChannel {}.into());
        }
        let queues = self.queues(name).unwrap_or_default();
        let consumers = self.0.connections(name).into_iter().filter(|(_, connection)| connection.kind.is_of_consumer());
        let mut states: Vec<_> = consumers.map(|(id, connection)| state(&id, connection, &queues)).collect();
        states.sort_by_key(|state| std::cmp::Reverse(state.queued));
        states.truncate(usize::try_from(how_many.min(PAGE)).unwrap_or(usize::MAX));
        Ok(states)
    }
}

fn state(id: &ProxyId, connection: Connection, queues: &BTreeMap<String, u64>) -> ConsumerState {
    let number = id.name.rsplit('-').next().and_then(|number| u64::from_str_radix(number.get(..16)?, 16).ok());
    ConsumerState {
        number: number.unwrap_or_default(),
        is_pushed: connection.kind == ProxyKind::PushSupplier,
        consumer: connection.peer,
        queued: u32::try_from(queues.get(&id.name).copied().unwrap_or(0)).unwrap_or(u32::MAX),
        delivered: connection.counts.delivered.load(Ordering::Relaxed),
        dropped: connection.counts.discarded.load(Ordering::Relaxed),
        failures: u32::try_from(connection.counts.failures.load(Ordering::Relaxed)).unwrap_or(u32::MAX),
        ..ConsumerState::default()
    }
}

fn clamped(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The state as Prometheus reads it. At most [`PAGE`] channels have series of their own.
pub(crate) fn render(registry: &Arc<Registry>) -> String {
    let monitor = MonitorState(Arc::clone(registry));
    let states = monitor.channels("", PAGE).unwrap_or_default();
    let mut text = String::new();
    write_header(&mut text, "spandrel_event_channels", "Event channels.", Kind::Gauge);
    write_sample(&mut text, "spandrel_event_channels", "", registry.channels().len());
    type Column = (&'static str, &'static str, Kind, fn(&ChannelState) -> u64);
    let columns: [Column; 5] = [
        ("spandrel_events_received_total", "Events of suppliers of this server.", Kind::Counter, |s| s.received),
        ("spandrel_events_delivered_total", "Deliveries by this server.", Kind::Counter, |s| s.delivered),
        ("spandrel_events_dropped_total", "Events that this server discarded.", Kind::Counter, |s| s.dropped),
        ("spandrel_event_consumers", "Connected consumers.", Kind::Gauge, |s| s.consumers.into()),
        ("spandrel_event_queue_length", "Events that wait for one consumer, at most.", Kind::Gauge, |s| {
            s.longest_queue.into()
        }),
    ];
    for (name, help, kind, value) in columns {
        write_header(&mut text, name, help, kind);
        for state in &states {
            let labels = format!(r#"channel="{}""#, escape_label(&state.name));
            write_sample(&mut text, name, &labels, value(state));
        }
    }
    text
}
