//! Finding adapters, by their names and by keys; those that are not there their parents' activators are asked for (CORBA 3.3 Part 1,
//! 15.3.4).

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::{Arc, thread};

use crate::{
    AdapterActivator, Poa, PoaError,
    adapter::{Adapter, Family, MAX_WAITING, Phase, Root},
    error,
    key::{self, Home},
    signal::{Signal, Ticket},
};

/// What came of looking for an adapter.
pub(crate) enum Search {
    Found(Arc<Adapter>),
    /// It is being made.
    Wait(Ticket),
    /// Something has changed meanwhile.
    Again,
}

/// What came of asking for a child.
enum Child {
    Found(Arc<Adapter>),
    /// Another thread has it made.
    Expected(Arc<Signal>),
    None,
}

impl Root {
    /// A child that is there or can be made (15.3.9.3).
    pub(crate) fn find(&self, parent: &Arc<Adapter>, name: &str, activate: bool) -> Result<Arc<Adapter>, PoaError> {
        loop {
            parent.check_exists()?;
            // Looked at first: nothing is done under the lock.
            let known = child(&parent.family.lock(), name);
            match known {
                Child::Found(adapter) => return Ok(adapter),
                Child::Expected(signal) => signal.wait(),
                Child::None if activate => {
                    if let Search::Found(adapter) = self.activate(parent, name)? {
                        return Ok(adapter);
                    }
                }
                Child::None => return Err(PoaError::AdapterNonExistent),
            }
        }
    }

    /// Asks the parent's activator for a child that is not there (15.3.4.1).
    fn activate(&self, parent: &Arc<Adapter>, name: &str) -> Result<Search, PoaError> {
        let activator = parent.activator.lock().clone().ok_or(PoaError::AdapterNonExistent)?;
        let poa = Poa::of(parent)?;
        {
            let mut family = parent.family.lock();
            match child(&family, name) {
                Child::None if !family.expected.contains_key(name) => {}
                // Inside of its own activation nobody else can make it.
                Child::None => return Err(PoaError::AdapterNonExistent),
                Child::Found(_) | Child::Expected(_) => return Ok(Search::Again),
            }
            family.expected.insert(name.to_owned(), (thread::current().id(), Arc::default()));
        }
        let expecting = Expecting { root: self, parent, name };
        let answer = ask(&*activator, &poa, name);
        // Before others see it: should they destroy it at once, the request begins anew, and is not told that nothing was made.
        let found = parent.family.lock().children.get(name).cloned();
        drop(expecting);
        if !answer? {
            return Err(PoaError::AdapterNonExistent);
        }
        found.map(Search::Found).ok_or(PoaError::AdapterNonExistent)
    }

    /// The adapter that a key means, which may have to be made first.
    pub(crate) fn search(&self, object_key: &[u8]) -> Result<Search, SystemException> {
        match key::home(self.incarnation, object_key).ok_or_else(error::not_active)? {
            Home::Transient(place) => match self.directory.at(place) {
                Some(adapter) if !adapter.policies.is_persistent() => Ok(Search::Found(adapter)),
                _ => Err(error::no_adapter()),
            },
            Home::Persistent { prefix, path } => {
                let known = self.directory.published(prefix);
                known.map_or_else(|| self.search_path(&path), |adapter| Ok(Search::Found(adapter)))
            }
        }
    }

    /// Goes down the tree; what is not there is asked for, if the parent's manager lets requests pass (15.3.4.1).
    fn search_path(&self, path: &[&str]) -> Result<Search, SystemException> {
        let mut adapter = Arc::clone(self.top());
        if adapter.phase() == Phase::Gone {
            return Err(error::no_adapter());
        }
        for name in path {
            let known = child(&adapter.family.lock(), name);
            adapter = match known {
                Child::Found(child) => child,
                Child::Expected(signal) => return wait_for_adapter(&signal),
                Child::None if adapter.activator.lock().is_none() => return Err(error::no_adapter()),
                Child::None if !adapter.is_open() => {
                    return Ok(adapter.refuse()?.map_or(Search::Again, Search::Wait));
                }
                Child::None => match self.activate(&adapter, name) {
                    Ok(Search::Found(child)) => child,
                    Ok(other) => return Ok(other),
                    Err(PoaError::System(exception)) => return Err(exception),
                    Err(_) => return Err(error::no_adapter()),
                },
            };
        }
        // Of the same name, but perhaps of another kind than the key's.
        let is_persistent = adapter.policies.is_persistent() && !path.is_empty();
        if is_persistent { Ok(Search::Found(adapter)) } else { Err(error::no_adapter()) }
    }

    /// Where the adapter of a key is, without making it: `None` if it may have to be made.
    pub(crate) fn known(&self, object_key: &[u8]) -> Result<Option<Arc<Adapter>>, SystemException> {
        match key::home(self.incarnation, object_key).ok_or_else(error::not_active)? {
            Home::Transient(_) => match self.search(object_key)? {
                Search::Found(adapter) => Ok(Some(adapter)),
                Search::Wait(_) | Search::Again => Ok(None),
            },
            Home::Persistent { prefix, path } => {
                if let Some(adapter) = self.directory.published(prefix) {
                    return Ok(Some(adapter));
                }
                let may_be_made = self.may_be_made(&path);
                if may_be_made { Ok(None) } else { Err(error::no_adapter()) }
            }
        }
    }

    /// Whether the first adapter of a path that is not there may be made.
    fn may_be_made(&self, path: &[&str]) -> bool {
        let mut adapter = Arc::clone(self.top());
        for name in path {
            let family = adapter.family.lock();
            let next = match (family.children.get(*name), family.expected.contains_key(*name)) {
                (Some(child), false) => Arc::clone(child),
                (_, true) => return true,
                (None, false) => {
                    drop(family);
                    return adapter.activator.lock().is_some();
                }
            };
            drop(family);
            adapter = next;
        }
        false
    }
}

/// The time in which an activator is asked; whatever it does, the others must not wait for ever.
struct Expecting<'a> {
    root: &'a Root,
    parent: &'a Arc<Adapter>,
    name: &'a str,
}

impl Drop for Expecting<'_> {
    fn drop(&mut self) {
        let mut family = self.parent.family.lock();
        let expected = family.expected.remove(self.name);
        if let Some(adapter) = family.children.get(self.name)
            && adapter.policies.is_persistent()
        {
            self.root.directory.publish(&adapter.prefix, adapter);
        }
        drop(family);
        if let Some((_, signal)) = expected {
            signal.give();
        }
    }
}

/// A system exception from an activator is a panic here, and OBJ_ADAPTER for whoever wanted the adapter (15.3.4.1).
fn ask(activator: &dyn AdapterActivator, parent: &Poa, name: &str) -> Result<bool, PoaError> {
    spandrel_sync::held::assert_none("an adapter activator");
    catch_unwind(AssertUnwindSafe(|| activator.unknown_adapter(parent, name))).map_err(|_| {
        tracing::error!(%name, "an adapter activator panicked");
        SystemException::obj_adapter(minor::UNKNOWN_ADAPTER_FAILED, CompletionStatus::No)
            .with_detail("the adapter activator failed")
            .into()
    })
}

/// A child as this thread may see it: until it has been set up, only its own activation does.
fn child(family: &Family, name: &str) -> Child {
    let found = || family.children.get(name).map_or(Child::None, |child| Child::Found(Arc::clone(child)));
    match family.expected.get(name) {
        Some((thread, signal)) if *thread != thread::current().id() => Child::Expected(Arc::clone(signal)),
        _ => found(),
    }
}

fn wait_for_adapter(signal: &Arc<Signal>) -> Result<Search, SystemException> {
    let ticket = signal.ticket(MAX_WAITING);
    ticket.map(Search::Wait).ok_or_else(|| error::discarded("too many requests wait for the object's adapter"))
}
