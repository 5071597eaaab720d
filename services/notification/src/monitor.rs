//! The state of channels and consumers, for commands and consoles.

use spandrel::SystemException;
use spandrel::net::sync::Arc;
use spandrel::services::event_monitoring::monitor::ConsumersError;
use spandrel::services::event_monitoring::{ChannelState, ConsumerState, MonitorServant, UnknownChannel};
use spandrel_delivery::Connection;

use crate::registry::Registry;

/// The most states in one reply.
const PAGE: u32 = 1_000;

/// The servant of the monitor.
#[derive(Clone, Debug)]
pub(crate) struct MonitorState(pub(crate) Arc<Registry>);

impl MonitorServant for MonitorState {
    fn channels(&self, after: &str, how_many: u32) -> Result<Vec<ChannelState>, SystemException> {
        let after: i32 = after.parse().unwrap_or_default(); // numbers begin at 1
        let how_many = usize::try_from(how_many.min(PAGE)).unwrap_or(usize::MAX);
        let states = self.0.after(after, how_many).into_iter().map(|channel| {
            let numbers = channel.numbers();
            Ok(ChannelState {
                name: channel.id.to_string(),
                alias: channel.name.clone(),
                channel: Some(channel.reference(None)?.unchecked_narrow()),
                consumers: clamped(numbers.consumers),
                suppliers: clamped(numbers.suppliers),
                received: numbers.received,
                delivered: numbers.delivered,
                dropped: numbers.dropped,
                longest_queue: clamped(numbers.longest_queue),
                expired: numbers.expired,
                lag_ms: numbers.lag_ms,
            })
        });
        states.collect()
    }

    fn consumers(&self, name: &str, how_many: u32) -> Result<Vec<ConsumerState>, ConsumersError> {
        let channel = name.parse().ok().and_then(|id| self.0.get(id)).ok_or(UnknownChannel {})?;
        let how_many = usize::try_from(how_many.min(PAGE)).unwrap_or(usize::MAX);
        let states = channel.consumers(how_many).into_iter().map(|(proxy, counts)| ConsumerState {
            number: u64::try_from(proxy.id).unwrap_or_default(),
            is_pushed: proxy.kind.is_push,
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
