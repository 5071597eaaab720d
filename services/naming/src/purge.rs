//! Removal of bindings whose object or context does not exist any more.
//!
//! A round visits all contexts that names of the root context lead to, and calls `_non_existent` of each bound reference of
//! another server. Only the answer OBJECT_NOT_EXIST ends a binding, unless the options say otherwise: a server that is
//! down for a while keeps its names.

use std::collections::{HashSet, VecDeque};

use spandrel::Orb;
use spandrel::net::sync::Arc;
use spandrel::services::cos_naming::NameComponent;
use spandrel_daemon::{PurgeOptions, PurgeStop, Purger};

use crate::store::{ContextId, Store, StoreError, Target};

/// The bindings that are read at once.
const PAGE: usize = 100;

/// Removes bindings from now on.
pub(crate) fn start(orb: Orb, store: Arc<dyn Store>, options: PurgeOptions) -> Purger {
    let round = Round { orb, store, options };
    Purger::start("bindings", options.interval, move |stop| round.run(stop))
}

/// One visit of all contexts.
struct Round {
    orb: Orb,
    store: Arc<dyn Store>,
    options: PurgeOptions,
}

impl Round {
    /// Removes bindings; returns their number.
    fn run(&self, stop: &PurgeStop) -> Result<usize, StoreError> {
        let mut removed = 0;
        let mut contexts = HashSet::from([ContextId::ROOT]);
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
                    if stop.is_requested() {
                        return Ok(removed);
                    }
                    let target = match self.store.lookup(context, &name) {
                        Err(StoreError::NotBound | StoreError::NoContext(_)) => continue,
                        target => target?,
                    };
                    if self.is_gone(&target)? {
                        removed += usize::from(self.remove(context, &name, &target)?);
                    } else if let Target::Context(next) = target
                        && contexts.insert(next)
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
            Target::Object(ior) | Target::ForeignContext(ior) => {
                Ok(self.options.is_gone(&self.orb.reference(ior.clone())))
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
