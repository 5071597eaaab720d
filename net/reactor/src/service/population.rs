//! The connections that one acceptor or connector has made and that are still open: counted, drained and cut together.

use std::collections::HashMap;
use std::fmt;
use std::net::Shutdown;
use std::time::Duration;

use spandrel_ipc::{Interest, Transfer};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Condition, Mutex, Weak};

use crate::{HandlerId, Registry};

/// Something that is open. Its methods are called without any lock, since they may close a handler, which leaves then.
pub(crate) trait Member: Send + Sync {
    /// Lets it end what it has begun.
    fn drain(&self);
    /// Ends it now.
    fn cut(&self);
}

/// A stream that a thread serves: draining ends its input, so that its handler receives what has come and then the end.
impl<S: Transfer> Member for Weak<S> {
    fn drain(&self) {
        shut(self, Shutdown::Read);
    }

    fn cut(&self) {
        shut(self, Shutdown::Both);
    }
}

/// A stream that a reactor serves.
pub(crate) struct InReactor<S> {
    pub(crate) stream: Weak<S>,
    pub(crate) registry: Registry,
    pub(crate) id: HandlerId,
}

impl<S: Transfer> Member for InReactor<S> {
    fn drain(&self) {
        shut(&self.stream, Shutdown::Read);
        // Where the handle does not show the end of the input (shared memory), the stream has to be asked anew.
        self.registry.resume(self.id);
        if cfg!(windows) {
            self.registry.mark_ready(self.id, Interest::INPUT);
        }
    }

    fn cut(&self) {
        shut(&self.stream, Shutdown::Both);
        // It need not be waiting for anything.
        self.registry.remove(self.id);
    }
}

fn shut<S: Transfer>(stream: &Weak<S>, how: Shutdown) {
    if let Some(stream) = stream.upgrade() {
        // One that has ended already fails.
        let _ = stream.shutdown(how);
    }
}

#[derive(Default)]
struct Members {
    next: u64,
    open: HashMap<u64, Arc<dyn Member>>,
    is_draining: bool,
    /// Time is up for all that are still open, also for what they become.
    is_cut: bool,
}

impl Members {
    fn all(&self) -> Vec<Arc<dyn Member>> {
        self.open.values().map(Arc::clone).collect()
    }
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
        members.open.insert(number, Arc::new(member));
        Some(Guest { population: Arc::clone(self), number, on_leave: None })
    }

    /// Takes the place of what the guest was.
    pub(crate) fn replace(&self, guest: &Guest, member: impl Member + 'static) {
        let member: Arc<dyn Member> = Arc::new(member);
        let mut members = self.members.lock();
        let Members { is_draining, is_cut, .. } = *members;
        let before = members.open.insert(guest.number, Arc::clone(&member));
        drop(members);
        drop(before);
        if is_cut {
            member.cut();
        } else if is_draining {
            member.drain();
        }
    }

    /// Lets nobody in any more, and all who are in end what they have begun.
    pub(crate) fn begin_drain(&self) {
        let mut members = self.members.lock();
        members.is_draining = true;
        let all = members.all();
        drop(members);
        all.iter().for_each(|member| member.drain());
    }

    /// As [`begin_drain`](Self::begin_drain), and waits until all have ended; after `timeout` the rest is cut. The number of those cut.
    pub(crate) fn drain(&self, timeout: Duration) -> usize {
        let start = Instant::now();
        self.begin_drain();
        let mut members = self.members.lock();
        while !members.open.is_empty() {
            let left = timeout.saturating_sub(Instant::now().saturating_duration_since(start));
            if left.is_zero() {
                break;
            }
            self.left.wait_for(&mut members, left);
        }
        members.is_cut = true;
        let rest = members.all();
        drop(members);
        rest.iter().for_each(|member| member.cut());
        rest.len()
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

    /// Calls nobody when it leaves.
    #[cfg(target_os = "linux")]
    pub(crate) fn leave_quietly(&mut self) {
        self.on_leave = None;
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
