//! Removal of bindings whose object or context does not exist any more.
//!
//! A round visits all contexts that names of the root context lead to, and calls `_non_existent` of each bound reference of
//! another server. Only the answer OBJECT_NOT_EXIST ends a binding, unless the options say otherwise: a server that is
//! down for a while keeps its names.

use std::collections::{HashSet, VecDeque};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use spandrel::net::sync::Arc;
use spandrel::services::cos_naming::NameComponent;
use spandrel::types::Ior;
use spandrel::{Orb, SystemExceptionKind};

use crate::store::{ContextId, Store, StoreError, Target};

/// The bindings that are read at once.
const PAGE: usize = 100;

/// The settings of the removal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PurgeOptions {
    /// The time between two rounds.
    pub interval: Duration,
    /// Whether bindings to objects of unreachable servers are removed, too (default: no).
    pub removes_unreachable: bool,
    /// The time limit of the call on each object (default 5 seconds).
    pub timeout: Duration,
}

impl PurgeOptions {
    /// The defaults, with this interval.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, removes_unreachable: false, timeout: Duration::from_secs(5) }
    }
}

/// The thread that removes bindings. It ends when this is dropped, after the call that it waits for.
#[derive(Debug)]
pub(crate) struct Purger {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Purger {
    pub(crate) fn start(orb: Orb, store: Arc<dyn Store>, options: PurgeOptions) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut round = Round { orb, store, options, stopped };
            while !round.is_stopped_within(options.interval) {
                match round.run() {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "bindings to objects that do not exist were removed"),
                    Err(error) => tracing::warn!(%error, "the removal of bindings ended early"),
                }
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Purger {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// One visit of all contexts.
struct Round {
    orb: Orb,
    store: Arc<dyn Store>,
    options: PurgeOptions,
    stopped: mpsc::Receiver<()>,
}

impl Round {
    fn is_stopped_within(&mut self, time: Duration) -> bool {
        self.stopped.recv_timeout(time) != Err(mpsc::RecvTimeoutError::Timeout)
    }

    /// Removes bindings; returns their number.
    fn run(&mut self) -> Result<usize, StoreError> {
        let mut removed = 0;
        let mut known = HashSet::from([ContextId::ROOT]);
        let mut waiting = VecDeque::from([ContextId::ROOT]);
        while let Some(context) = waiting.pop_front() {
            let mut after: Option<NameComponent> = None;
            loop {
                let page = match self.store.list(context, after.as_ref(), PAGE) {
                    Err(StoreError::NoContext(_)) => break, // destroyed meanwhile
                    page => page?,
                };
                let Some((last, _)) = page.last() else { break };
                after = Some(last.clone());
                for (name, _) in page {
                    if self.is_stopped_within(Duration::ZERO) {
                        return Ok(removed);
                    }
                    let target = match self.store.lookup(context, &name) {
                        Err(StoreError::NotBound | StoreError::NoContext(_)) => continue,
                        target => target?,
                    };
                    if self.is_gone(&target)? {
                        removed += usize::from(self.remove(context, &name, &target)?);
                    } else if let Target::Context(next) = target
                        && known.insert(next)
                    {
                        waiting.push_back(next);
                    }
                }
            }
        }
        Ok(removed)
    }

    fn is_gone(&self, target: &Target) -> Result<bool, StoreError> {
        match target {
            Target::Context(context) => match self.store.path(*context) {
                Err(StoreError::NoContext(_)) => Ok(true),
                path => path.map(|_| false),
            },
            Target::Object(ior) if ior.is_nil() => Ok(false),
            Target::Object(ior) | Target::ForeignContext(ior) => Ok(self.does_not_exist(ior)),
        }
    }

    fn does_not_exist(&self, ior: &Ior) -> bool {
        use SystemExceptionKind::{CommFailure, NoResponse, Timeout, Transient};
        let object = self.orb.reference(ior.clone()).with_timeout(Some(self.options.timeout));
        match object.non_existent() {
            Ok(does_not_exist) => does_not_exist,
            Err(exception) => {
                let is_unreachable = matches!(exception.kind(), CommFailure | NoResponse | Timeout | Transient);
                self.options.removes_unreachable && is_unreachable
            }
        }
    }

    /// Removes a binding, unless it has another target by now.
    fn remove(&self, context: ContextId, name: &NameComponent, target: &Target) -> Result<bool, StoreError> {
        match self.store.unbind_target(context, name, target) {
            Ok(()) => Ok(true),
            Err(StoreError::NotBound | StoreError::NoContext(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
