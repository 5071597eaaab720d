//! Batches of structured events that several consumers get: the first push encodes a batch, and the others send its octets.
//!
//! Consumers without filters of their own get the same events at the same time. A batch lives as long as a push with it is in
//! progress. That push has the events themselves as well, so a batch counts against no bound of its own.

use std::collections::VecDeque;
use std::sync::Weak;

use spandrel::messaging::SharedArguments;
use spandrel::net::sync::{Arc, Mutex};
use spandrel_cdr::{CdrError, Encode, Encoder};
use spandrel_delivery::Event;

use crate::encoded_content::EncodedContent;
use crate::notification::Notification;

/// The batches of a channel that can be found: those of the last pushes that began a batch.
const RECENT: usize = 16;

/// The argument of a push of structured events, for all consumers that get the same ones.
#[derive(Debug)]
pub(crate) struct Batch {
    events: Vec<Arc<EncodedContent>>,
    pub(crate) arguments: SharedArguments,
}

impl Batch {
    fn has(&self, events: &[Arc<Event<Notification>>]) -> bool {
        self.events.len() == events.len()
            && self.events.iter().zip(events).all(|(own, event)| Arc::ptr_eq(own, &event.value.content))
    }
}

/// The sequence of structured events that a push of a batch has.
impl Encode for Batch {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.len(self.events.len())?;
        self.events.iter().try_for_each(|event| event.encode(out))
    }
}

/// The recent batches of a channel, whose events are in use as long as a push has them.
#[derive(Debug, Default)]
pub(crate) struct Batches(Mutex<VecDeque<Weak<Batch>>>);

impl Batches {
    /// The batch with these events, which are at least one.
    pub(crate) fn batch(&self, events: &[Arc<Event<Notification>>]) -> Arc<Batch> {
        let mut recent = self.0.lock();
        let batch = recent.iter().rev().filter_map(Weak::upgrade).find(|batch| batch.has(events));
        batch.unwrap_or_else(|| {
            let events = events.iter().map(|event| Arc::clone(&event.value.content)).collect();
            let batch = Arc::new(Batch { events, arguments: SharedArguments::new() });
            if recent.len() == RECENT {
                recent.pop_front();
            }
            recent.push_back(Arc::downgrade(&batch));
            batch
        })
    }
}
