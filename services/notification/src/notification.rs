//! Events as the queues have them, and the properties in their headers.

use std::time::{Instant, SystemTime};

use spandrel::net::sync::Arc;
use spandrel::services::cos_notification as names;

use crate::content::Content;
use crate::durable::Target;
use crate::encoded_content::EncodedContent;
use crate::qos::{Qos, span};

/// An event in the queues of consumers.
#[derive(Debug)]
pub(crate) struct Notification {
    pub(crate) content: Arc<EncodedContent>,
    /// The record of the consumer that has the event, if it is in the store.
    pub(crate) target: Option<Target>,
}

/// The properties of an event by its header and the objects of its supplier.
pub(crate) struct EventTimes {
    pub(crate) priority: Option<i16>,
    pub(crate) expires: Option<Option<Instant>>,
    /// The time at which it may be delivered, if it is in the future.
    pub(crate) starts: Option<Instant>,
}

impl EventTimes {
    /// The properties of an event that was received now.
    pub(crate) fn new(content: &Content, supplier: &Qos, now: Instant) -> Self {
        let header_timeout = content.header(names::TIMEOUT).and_then(|value| value.extract().ok()).map(span);
        let stop = content.time(names::STOP_TIME).filter(|_| supplier.has_stop_times());
        // A time in the past is now.
        let stop = stop.and_then(|stop| now.checked_add(stop.duration_since(SystemTime::now()).unwrap_or_default()));
        let timeout = header_timeout.or(supplier.lifetime());
        let expires = match (stop, timeout) {
            (None, None) => None,
            (stop, timeout) => {
                let timeout = timeout.filter(|timeout| !timeout.is_zero()).and_then(|timeout| now.checked_add(timeout));
                Some(stop.into_iter().chain(timeout).min())
            }
        };
        let starts = content.time(names::START_TIME).filter(|_| supplier.has_start_times());
        let starts = starts.and_then(|start| now.checked_add(start.duration_since(SystemTime::now()).ok()?));
        let priority = content.header(names::PRIORITY).and_then(|value| value.extract().ok()).or(supplier.priority);
        Self { priority, expires, starts }
    }
}
