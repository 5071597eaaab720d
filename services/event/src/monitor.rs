//! The state of channels and consumers, for commands and for Prometheus.

use std::ops::Bound;

use spandrel::SystemException;
use spandrel::net::sync::Arc;
use spandrel::services::event_monitoring::monitor::ConsumersError;
use spandrel::services::event_monitoring::{ChannelState, ConsumerState, MonitorServant, UnknownChannel};
use spandrel_delivery::{Connection, QueueCounts};
use spandrel_metrics::{Kind, escape_label, write_header, write_sample};

use crate::channel::{Channel, ChannelNumbers};
use crate::channels::{find, reference};
use crate::registry::Registry;
use crate::store::ProxyKind;

/// The most states in one reply.
const PAGE: u32 = 1_000;
/// The channels and the consumers that have series of their own: those with the longest queues.
const LABELLED: usize = 100;

/// The servant of the monitor.
#[derive(Clone, Debug)]
pub(crate) struct MonitorState(pub(crate) Arc<Registry>);

impl MonitorServant for MonitorState {
    fn channels(&self, after: &str, how_many: u32) -> Result<Vec<ChannelState>, SystemException> {
        let how_many = usize::try_from(how_many.min(PAGE)).unwrap_or(usize::MAX);
        let channels: Vec<Arc<Channel>> = {
            let channels = self.0.channels.read();
            let rest = channels.by_name.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
            rest.take(how_many).map(|(_, channel)| Arc::clone(channel)).collect()
        };
        let states = channels.iter().map(|channel| {
            let numbers = channel.numbers();
            Ok(ChannelState {
                name: channel.name.clone(),
                alias: String::new(),
                channel: Some(reference(channel)?.unchecked_narrow()),
                consumers: clamped(numbers.consumers),
                suppliers: clamped(numbers.suppliers),
                received: numbers.received,
                delivered: numbers.delivered,
                dropped: numbers.dropped,
                longest_queue: clamped(numbers.longest_queue),
                expired: 0, // events have no end of life here
                lag_ms: numbers.lag_ms,
            })
        });
        states.collect()
    }

    fn consumers(&self, name: &str, how_many: u32) -> Result<Vec<ConsumerState>, ConsumersError> {
        let channel = find(&self.0, name).ok_or(UnknownChannel {})?;
        let how_many = usize::try_from(how_many.min(PAGE)).unwrap_or(usize::MAX);
        let states = channel.consumers(how_many).into_iter().map(|(proxy, counts)| ConsumerState {
            number: proxy.number,
            is_pushed: proxy.kind == ProxyKind::PushSupplier,
            consumer: match proxy.connection.get() {
                Connection::Connected(peer) => peer,
                _ => None,
            },
            queued: clamped(counts.queued),
            queued_octets: u64::try_from(counts.octets).unwrap_or(u64::MAX),
            lag_ms: counts.lag_ms,
            delivered: counts.delivered,
            dropped: counts.dropped,
            failures: counts.failures,
            expired: counts.expired,
        });
        Ok(states.collect())
    }
}

fn clamped(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The state as Prometheus reads it. At most [`LABELLED`] channels and consumers have series of their own.
pub(crate) fn render(registry: &Registry) -> String {
    let all: Vec<Arc<Channel>> = registry.channels.read().by_name.values().cloned().collect();
    let mut numbers: Vec<_> = all.iter().map(|channel| (channel, channel.numbers())).collect();
    numbers.sort_by_key(|(_, numbers)| std::cmp::Reverse((numbers.longest_queue, numbers.received)));
    let mut text = String::new();
    let mut single = |name: &str, help: &str, value: usize| {
        write_header(&mut text, name, help, Kind::Gauge);
        write_sample(&mut text, name, "", value);
    };
    single("spandrel_event_channels", "Event channels.", all.len());
    single("spandrel_event_memory_octets", "Octets of the events in all queues.", registry.shared.memory.used());
    type Column = (&'static str, &'static str, Kind, fn(&ChannelNumbers) -> u64);
    let columns: [Column; 9] = [
        ("spandrel_events_received_total", "Events of suppliers.", Kind::Counter, |n| n.received),
        ("spandrel_events_filtered_total", "Events of other types than FilterId.", Kind::Counter, |n| n.filtered),
        ("spandrel_events_refused_total", "Events too large, or without memory.", Kind::Counter, |n| n.refused),
        ("spandrel_events_delivered_total", "Deliveries to consumers.", Kind::Counter, |n| n.delivered),
        ("spandrel_events_dropped_total", "Events that consumers did not get.", Kind::Counter, |n| n.dropped),
        ("spandrel_event_consumers", "Connected consumers.", Kind::Gauge, |n| u64::from(clamped(n.consumers))),
        ("spandrel_event_suppliers", "Connected suppliers.", Kind::Gauge, |n| u64::from(clamped(n.suppliers))),
        ("spandrel_event_queue_length", "Events in the longest queue.", Kind::Gauge, |n| {
            u64::from(clamped(n.longest_queue))
        }),
        ("spandrel_event_lag_milliseconds", "Age of the oldest event in a queue.", Kind::Gauge, |n| n.lag_ms),
    ];
    for (name, help, kind, value) in columns {
        write_header(&mut text, name, help, kind);
        for (channel, numbers) in numbers.iter().take(LABELLED) {
            let labels = format!(r#"channel="{}""#, escape_label(&channel.name));
            write_sample(&mut text, name, &labels, value(numbers));
        }
    }
    let of_channels = numbers.iter().flat_map(|(channel, _)| {
        channel.consumers(LABELLED).into_iter().map(|(proxy, counts)| (&channel.name, proxy.part(), counts))
    });
    let mut consumers: Vec<_> = of_channels.collect();
    consumers.sort_by_key(|(_, _, counts)| std::cmp::Reverse((counts.queued, counts.dropped)));
    consumers.truncate(LABELLED);
    type ConsumerColumn = (&'static str, &'static str, Kind, fn(&QueueCounts) -> u64);
    let columns: [ConsumerColumn; 3] = [
        ("spandrel_event_consumer_queue_length", "Events in the queue of a consumer.", Kind::Gauge, |counts| {
            u64::from(clamped(counts.queued))
        }),
        ("spandrel_event_consumer_lag_milliseconds", "Age of its oldest event.", Kind::Gauge, |counts| counts.lag_ms),
        ("spandrel_event_consumer_dropped_total", "Events that it did not get.", Kind::Counter, |counts| {
            counts.dropped
        }),
    ];
    for (name, help, kind, value) in columns {
        write_header(&mut text, name, help, kind);
        for (channel, consumer, counts) in &consumers {
            let labels = format!(r#"channel="{}",consumer="{consumer}""#, escape_label(channel));
            write_sample(&mut text, name, &labels, value(counts));
        }
    }
    text
}
