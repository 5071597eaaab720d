//! The connections that one acceptor or connector has made and that are still open: counted, drained and cut together.

use std::collections::HashMap;
use std::fmt;
use std::net::Shutdown;
use std::time::Duration;

use spandrel_ipc::Transfer;
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Condition, Mutex, Weak};

/// Something that is open.
pub(crate) trait Member: Send {
    /// Lets it end what it has begun.
    fn drain(&self);
    /// Ends it now.
    fn cut(&self);
}

/// A stream of this process: draining ends its input, so that its handler receives what has come and then the end.
impl<S: Transfer> Member for Weak<S> {
    fn drain(&self) {
        if let Some(stream) = self.upgrade() {
            let _ = stream.shutdown(Shutdown::Read);
        }
    }

    fn cut(&self) {
        if let Some(stream) = self.upgrade() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Default)]
struct Members {
    next: u64,
    open: HashMap<u64, Box<dyn Member>>,
    is_draining: bool,
}

/// All that is open.
#[derive(Default)]
pub(crate) struct Population {
    members: Mutex<Members>,
    /// Somebody has left.
    left: Condition,
}

impl fmt::Debug for Population {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Population").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Population {
    pub(crate) fn len(&self) -> usize {
        self.members.lock().open.len()
    }

    /// One more; nobody comes in any more once it is being drained.
    pub(crate) fn enter(self: &Arc<Self>, member: impl Member + 'static) -> Option<Guest> {
        let mut members = self.members.lock();
        if members.is_draining {
            return None;
        }
        let number = members.next;
        members.next += 1;
        members.open.insert(number, Box::new(member));
        Some(Guest { population: Arc::clone(self), number, on_leave: None })
    }

    /// Takes the place of what the guest was.
    pub(crate) fn replace(&self, guest: &Guest, member: impl Member + 'static) {
        let mut members = self.members.lock();
        let is_draining = members.is_draining;
        if let Some(open) = members.open.get_mut(&guest.number) {
            if is_draining {
                member.drain();
            }
            *open = Box::new(member);
        }
    }

    /// Lets all end what they have begun, and waits until they have; after `timeout` the rest is cut. The number of those cut.
    pub(crate) fn drain(&self, timeout: Duration) -> usize {
        let start = Instant::now();
        let mut members = self.members.lock();
        members.is_draining = true;
        members.open.values().for_each(|member| member.drain());
        while !members.open.is_empty() {
            let left = timeout.saturating_sub(Instant::now().saturating_duration_since(start));
            if left.is_zero() {
                break;
            }
            self.left.wait_for(&mut members, left);
        }
        members.open.values().for_each(|member| member.cut());
        members.open.len()
    }
}

/// One that is open. It leaves when this is dropped.
pub(crate) struct Guest {
    population: Arc<Population>,
    number: u64,
    on_leave: Option<Box<dyn FnOnce() + Send>>,
}

impl Guest {
    pub(crate) fn population(&self) -> &Arc<Population> {
        &self.population
    }

    /// Calls this when it leaves.
    pub(crate) fn on_leave(&mut self, call: impl FnOnce() + Send + 'static) {
        self.on_leave = Some(Box::new(call));
    }
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guest").field(&self.number).finish()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let gone = self.population.members.lock().open.remove(&self.number);
        self.population.left.notify_all();
        drop(gone);
        if let Some(call) = self.on_leave.take() {
            call();
        }
    }
}
