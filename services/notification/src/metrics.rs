//! The state of channels and consumers for Prometheus.

use spandrel_delivery::QueueCounts;
use spandrel_metrics::{Kind, write_header, write_sample};

use crate::channel_counts::ChannelNumbers;
use crate::registry::Registry;

/// The channels and the consumers that have series of their own: those with the longest queues.
const LABELLED: usize = 100;

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

type Column<T> = (&'static str, &'static str, Kind, fn(&T) -> u64);

const CHANNEL_COLUMNS: [Column<ChannelNumbers>; 10] = [
    ("spandrel_notifications_received_total", "Events of suppliers.", Kind::Counter, |n| n.received),
    ("spandrel_notifications_filtered_total", "Events that their suppliers' filters stopped.", Kind::Counter, |n| {
        n.filtered
    }),
    ("spandrel_notifications_refused_total", "Events too large, rejected, or without memory.", Kind::Counter, |n| {
        n.refused
    }),
    ("spandrel_notifications_delivered_total", "Deliveries to consumers.", Kind::Counter, |n| n.delivered),
    ("spandrel_notifications_dropped_total", "Events that consumers did not get.", Kind::Counter, |n| n.dropped),
    ("spandrel_notifications_expired_total", "Events whose life ended in a queue.", Kind::Counter, |n| n.expired),
    ("spandrel_notification_consumers", "Connected consumers.", Kind::Gauge, |n| number(n.consumers)),
    ("spandrel_notification_suppliers", "Connected suppliers.", Kind::Gauge, |n| number(n.suppliers)),
    ("spandrel_notification_queue_length", "Events in the longest queue.", Kind::Gauge, |n| number(n.longest_queue)),
    ("spandrel_notification_lag_milliseconds", "Age of the next event of a queue.", Kind::Gauge, |n| n.lag_ms),
];

const CONSUMER_COLUMNS: [Column<QueueCounts>; 3] = [
    ("spandrel_notification_consumer_queue_length", "Events in the queue of a consumer.", Kind::Gauge, |counts| {
        number(counts.queued)
    }),
    ("spandrel_notification_consumer_lag_milliseconds", "Age of its next event.", Kind::Gauge, |counts| counts.lag_ms),
    ("spandrel_notification_consumer_dropped_total", "Events that it did not get.", Kind::Counter, |counts| {
        counts.dropped
    }),
];

/// The state as Prometheus reads it. At most [`LABELLED`] channels and consumers have series of their own.
pub(crate) fn render(registry: &Registry) -> String {
    let all = registry.all();
    let mut text = String::new();
    let mut single = |name: &str, help: &str, value: usize| {
        write_header(&mut text, name, help, Kind::Gauge);
        write_sample(&mut text, name, "", value);
    };
    single("spandrel_notification_channels", "Notification channels.", all.len());
    single("spandrel_notification_memory_octets", "Octets of the events in all queues.", registry.shared.memory.used());
    let constraints = registry.shared.filter_bounds.memory.used();
    single("spandrel_notification_filter_octets", "Octets of the constraints of all filters.", constraints);
    let mut numbers: Vec<_> = all.iter().map(|channel| (channel, channel.numbers())).collect();
    numbers.sort_by_key(|(_, numbers)| std::cmp::Reverse((numbers.longest_queue, numbers.received)));
    for (name, help, kind, value) in CHANNEL_COLUMNS {
        write_header(&mut text, name, help, kind);
        for (channel, numbers) in numbers.iter().take(LABELLED) {
            write_sample(&mut text, name, &format!(r#"channel="{}""#, channel.id), value(numbers));
        }
    }
    let of_channels = numbers.iter().flat_map(|(channel, _)| {
        channel.consumers(LABELLED).into_iter().map(|(proxy, counts)| (channel.id, proxy.id, counts))
    });
    let mut consumers: Vec<_> = of_channels.collect();
    consumers.sort_by_key(|(_, _, counts)| std::cmp::Reverse((counts.queued, counts.dropped)));
    consumers.truncate(LABELLED);
    for (name, help, kind, value) in CONSUMER_COLUMNS {
        write_header(&mut text, name, help, kind);
        for (channel, consumer, counts) in &consumers {
            let labels = format!(r#"channel="{channel}",consumer="{consumer}""#);
            write_sample(&mut text, name, &labels, value(counts));
        }
    }
    text
}
