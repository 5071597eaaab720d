//! Events that a channel has received, before they are in queues.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use spandrel::SystemException;
use spandrel::net::sync::Arc;
use spandrel_delivery::{Event, Lifetime, MemoryCharge};

use crate::content::Content;
use crate::durable::{StoredEvent, Target};
use crate::edit::{Edit, TargetLifetime};
use crate::encoded_content::EncodedContent;
use crate::encoding::encoded;
use crate::notification::Notification;

/// An event that a channel has accepted. Properties of its header and of its supplier's proxy are resolved.
#[derive(Debug)]
pub(crate) struct ReceivedEvent {
    pub(crate) content: Arc<EncodedContent>,
    pub(crate) priority: Option<i16>,
    /// The end of its life by the header, the supplier's proxy and administrator: `Some(None)` is an event without end.
    pub(crate) expires: Option<Option<Instant>>,
    pub(crate) received: Instant,
    pub(crate) charge: Arc<MemoryCharge>,
    /// The time at which it may be delivered, if it was in the future.
    pub(crate) starts: Option<Instant>,
    /// The number of a persistent event.
    pub(crate) stored: Option<Arc<StoredEvent>>,
}

impl ReceivedEvent {
    /// The event for queues: of all consumers, or of the one with this target.
    pub(crate) fn event(&self, target: Option<Target>) -> Arc<Event<Notification>> {
        let notification = Notification { content: Arc::clone(&self.content), target };
        Arc::new(Event::new(notification, Arc::clone(&self.charge)).received_at(self.received))
    }

    /// The record of the event in a channel, with its start until it is distributed.
    pub(crate) fn record(
        &self,
        channel: i32,
        stored: &StoredEvent,
        starts: Option<Instant>,
    ) -> Result<Edit, SystemException> {
        let (value, event) = match &**self.content {
            Content::Any(value) => (Some(value), None),
            Content::Structured(_) => (None, Some(&*self.content)),
        };
        let clock = Clock::now();
        let expires = self.expires.map(|end| clock.micros(end));
        // As `EventRecord`, without copies.
        let record = (
            (value.as_slice(), event.as_slice()),
            channel,
            self.priority.as_slice(),
            expires.as_slice(),
            clock.micros(Some(self.received)),
            clock.micros(starts),
        );
        Ok(Edit::Event(stored.number, Some(encoded(&record)?)))
    }
}

/// Both clocks at one time, to convert between times of this process and those of records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    instant: Instant,
    /// The time since 1970.
    time: Duration,
}

impl Clock {
    pub(crate) fn now() -> Self {
        Self { instant: Instant::now(), time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() }
    }

    /// A time in microseconds since 1970; zero is none.
    pub(crate) fn micros(self, instant: Option<Instant>) -> u64 {
        let Some(instant) = instant else { return 0 };
        let ahead = instant.saturating_duration_since(self.instant);
        let behind = self.instant.saturating_duration_since(instant);
        let time = self.time.saturating_add(ahead).saturating_sub(behind);
        u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1)
    }

    /// The time of a record in this process; one that cannot be expressed is now.
    pub(crate) fn instant(self, micros: u64) -> Option<Instant> {
        let time = Duration::from_micros(Some(micros).filter(|micros| *micros != 0)?);
        let instant = match time.checked_sub(self.time) {
            Some(ahead) => self.instant.checked_add(ahead),
            None => self.instant.checked_sub(self.time.saturating_sub(time)),
        };
        Some(instant.unwrap_or(self.instant))
    }

    pub(crate) fn target(self, lifetime: Lifetime) -> TargetLifetime {
        (lifetime.priority, self.micros(lifetime.expires))
    }

    pub(crate) fn lifetime(self, (priority, expires): TargetLifetime) -> Lifetime {
        Lifetime { priority, expires: self.instant(expires) }
    }
}
