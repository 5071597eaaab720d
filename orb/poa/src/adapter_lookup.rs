//! Lookup of adapters, by name and by key; adapter activators create missing ones (CORBA 3.3 Part 1, 15.3.4).

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::{Arc, thread};

use crate::{
    AdapterActivator, IfMissing, Poa, PoaError,
    adapter::{Adapter, Children, MAX_WAITING, Phase, Root},
    error,
    key::{self, KeyTarget},
    waiting::{Event, Ticket},
};

/// The result of the lookup of an adapter.
pub(crate) enum AdapterLookup {
    Found(Arc<Adapter>),
    /// It is being created.
    Wait(Ticket),
    /// The state has changed meanwhile; look again.
    Retry,
}

/// The result of the lookup of a child.
enum ChildLookup {
    Found(Arc<Adapter>),
    /// Another thread is creating it.
    Activating(Arc<Event>),
    None,
}

impl Root {
    /// A child that exists or can be created (15.3.9.3).
    pub(crate) fn find(
        &self,
        parent: &Arc<Adapter>,
        name: &str,
        if_missing: IfMissing,
    ) -> Result<Arc<Adapter>, PoaError> {
        loop {
            parent.check_exists()?;
            // Looked up first: nothing is done under the lock.
            let child = find_child(&parent.children_state.lock(), name);
            match child {
                ChildLookup::Found(adapter) => return Ok(adapter),
                ChildLookup::Activating(event) => event.wait(),
                ChildLookup::None if if_missing == IfMissing::Activate => {
                    if let AdapterLookup::Found(adapter) = self.activate(parent, name)? {
                        return Ok(adapter);
                    }
                }
                ChildLookup::None => return Err(parent.no_child(name)),
            }
        }
    }

    /// Calls the parent's activator for a missing child (15.3.4.1).
    fn activate(&self, parent: &Arc<Adapter>, name: &str) -> Result<AdapterLookup, PoaError> {
        let activator = parent.activator.lock().clone().ok_or_else(|| parent.no_child(name))?;
        let poa = Poa::of(parent)?;
        {
            let mut children_state = parent.children_state.lock();
            match find_child(&children_state, name) {
                ChildLookup::None if !children_state.activating.contains_key(name) => {}
                // During its own activation no other thread can create it.
                ChildLookup::None => return Err(parent.no_child(name)),
                ChildLookup::Found(_) | ChildLookup::Activating(_) => return Ok(AdapterLookup::Retry),
            }
            children_state.activating.insert(name.to_owned(), (thread::current().id(), Arc::default()));
        }
        let guard = ActivationGuard { root: self, parent, name };
        let answer = call_activator(&*activator, &poa, name);
        // Before it becomes visible: if another thread destroys it at once, the request starts again and gets
        // no error.
        let child = parent.children_state.lock().children.get(name).cloned();
        drop(guard);
        if !answer? {
            return Err(parent.no_child(name));
        }
        child.map(AdapterLookup::Found).ok_or_else(|| parent.no_child(name))
    }

    /// The adapter of a key, created on demand.
    pub(crate) fn search(&self, object_key: &[u8]) -> Result<AdapterLookup, SystemException> {
        match key::parse(self.incarnation, object_key).ok_or_else(error::not_active)? {
            KeyTarget::Transient(slot_id) => match self.directory.at(slot_id) {
                Some(adapter) if !adapter.policies.is_persistent() => Ok(AdapterLookup::Found(adapter)),
                _ => Err(error::no_adapter()),
            },
            KeyTarget::Persistent { prefix, path } => {
                let published = self.directory.published(prefix);
                published.map_or_else(|| self.search_path(&path), |adapter| Ok(AdapterLookup::Found(adapter)))
            }
        }
    }

    /// Descends the tree; missing adapters are created if the parent's manager admits requests (15.3.4.1).
    fn search_path(&self, path: &[&str]) -> Result<AdapterLookup, SystemException> {
        let mut adapter = Arc::clone(self.root_adapter());
        if adapter.phase() == Phase::Destroyed {
            return Err(error::no_adapter_at(path));
        }
        for name in path {
            let child = find_child(&adapter.children_state.lock(), name);
            adapter = match child {
                ChildLookup::Found(child) => child,
                ChildLookup::Activating(event) => return wait_for_adapter(&event),
                ChildLookup::None if adapter.activator.lock().is_none() => return Err(error::no_adapter_at(path)),
                ChildLookup::None if !adapter.is_open() => {
                    return Ok(adapter.hold_or_reject()?.map_or(AdapterLookup::Retry, AdapterLookup::Wait));
                }
                ChildLookup::None => match self.activate(&adapter, name) {
                    Ok(AdapterLookup::Found(child)) => child,
                    Ok(other) => return Ok(other),
                    Err(PoaError::System(exception)) => return Err(exception),
                    Err(_) => return Err(error::no_adapter_at(path)),
                },
            };
        }
        // Of the same name, but perhaps of another kind than the key's.
        let is_persistent = adapter.policies.is_persistent() && !path.is_empty();
        if is_persistent { Ok(AdapterLookup::Found(adapter)) } else { Err(error::no_adapter_at(path)) }
    }

    /// The adapter of a key, without creation: `None` if it may have to be created.
    pub(crate) fn find_existing(&self, object_key: &[u8]) -> Result<Option<Arc<Adapter>>, SystemException> {
        match key::parse(self.incarnation, object_key).ok_or_else(error::not_active)? {
            KeyTarget::Transient(_) => match self.search(object_key)? {
                AdapterLookup::Found(adapter) => Ok(Some(adapter)),
                AdapterLookup::Wait(_) | AdapterLookup::Retry => Ok(None),
            },
            KeyTarget::Persistent { prefix, path } => {
                if let Some(adapter) = self.directory.published(prefix) {
                    return Ok(Some(adapter));
                }
                let can_be_created = self.can_be_created(&path);
                if can_be_created { Ok(None) } else { Err(error::no_adapter_at(&path)) }
            }
        }
    }

    /// Whether the first missing adapter of a path can be created.
    fn can_be_created(&self, path: &[&str]) -> bool {
        let mut adapter = Arc::clone(self.root_adapter());
        for name in path {
            let children_state = adapter.children_state.lock();
            let next = match (children_state.children.get(*name), children_state.activating.contains_key(*name)) {
                (Some(child), false) => Arc::clone(child),
                (_, true) => return true,
                (None, false) => {
                    drop(children_state);
                    return adapter.activator.lock().is_some();
                }
            };
            drop(children_state);
            adapter = next;
        }
        false
    }
}

/// Guard of a call to an adapter activator; its end releases the waiting requests in any case.
struct ActivationGuard<'a> {
    root: &'a Root,
    parent: &'a Arc<Adapter>,
    name: &'a str,
}

impl Drop for ActivationGuard<'_> {
    fn drop(&mut self) {
        let mut children_state = self.parent.children_state.lock();
        let activation = children_state.activating.remove(self.name);
        if let Some(adapter) = children_state.children.get(self.name)
            && adapter.policies.is_persistent()
        {
            self.root.directory.publish(&adapter.prefix, adapter);
        }
        drop(children_state);
        if let Some((_, event)) = activation {
            event.set();
        }
    }
}

/// A panic of an activator counts as its system exception: OBJ_ADAPTER for the request that needs the adapter
/// (15.3.4.1).
fn call_activator(activator: &dyn AdapterActivator, parent: &Poa, name: &str) -> Result<bool, PoaError> {
    spandrel_sync::held::assert_none("an adapter activator");
    catch_unwind(AssertUnwindSafe(|| activator.unknown_adapter(parent, name))).map_err(|_| {
        tracing::error!(%name, "an adapter activator panicked");
        SystemException::obj_adapter(minor::UNKNOWN_ADAPTER_FAILED, CompletionStatus::No)
            .with_detail("the adapter activator failed")
            .into()
    })
}

/// A child as visible to this thread: until it is set up, only its own activation sees it.
fn find_child(children_state: &Children, name: &str) -> ChildLookup {
    let find_set_up =
        || children_state.children.get(name).map_or(ChildLookup::None, |child| ChildLookup::Found(Arc::clone(child)));
    match children_state.activating.get(name) {
        Some((thread, event)) if *thread != thread::current().id() => ChildLookup::Activating(Arc::clone(event)),
        _ => find_set_up(),
    }
}

fn wait_for_adapter(event: &Arc<Event>) -> Result<AdapterLookup, SystemException> {
    let ticket = event.ticket(MAX_WAITING);
    ticket.map(AdapterLookup::Wait).ok_or_else(|| error::discarded("too many requests wait for the object's adapter"))
}
