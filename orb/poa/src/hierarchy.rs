//! All adapters of one ORB: the tree, and the tables that lead from a key to an adapter (CORBA 3.3 Part 1, 15.2.3).

use std::{
    collections::HashMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{AdapterState, Orb, Policy};
use spandrel_sync::{Arc, RwLock, Weak, atomic::Ordering, thread};

use crate::{
    AdapterActivator, Poa, PoaError,
    adapter::{Adapter, Entrance, Family, MAX_WAITING, Phase, Plan},
    error,
    establishing::Described,
    frames,
    key::{self, Home, IdForm, Incarnation},
    live_orb::LiveOrb,
    manager::{Manager, Managers, State},
    objects::Objects,
    policies::Policies,
    signal::{Signal, Ticket},
    slots::Slots,
};

/// What the root adapter is called (15.3.9.1).
pub(crate) const ROOT_NAME: &str = "RootPOA";
/// What its manager is called (15.3.2.8).
pub(crate) const ROOT_MANAGER: &str = "RootPOAManager";

/// What the core dispatches to: all adapters of an ORB.
pub(crate) struct Root {
    pub(crate) me: Weak<Self>,
    pub(crate) incarnation: Incarnation,
    pub(crate) orb: Arc<LiveOrb>,
    top: OnceLock<Arc<Adapter>>,
    /// All adapters, by their places; transient keys have those.
    adapters: RwLock<Slots<Arc<Adapter>>>,
    /// Persistent adapters, by how their keys begin.
    persistent: RwLock<HashMap<Vec<u8>, Arc<Adapter>>>,
    pub(crate) managers: Managers,
}

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
    pub(crate) fn new(orb: Orb) -> Arc<Self> {
        let root = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            incarnation: Incarnation::random(),
            orb: Arc::new(LiveOrb::new(orb)),
            top: OnceLock::new(),
            adapters: RwLock::default(),
            persistent: RwLock::default(),
            managers: Managers::default(),
        });
        let manager = root.managers.create(&root.orb, Some(ROOT_MANAGER), State::Active);
        let manager = manager.expect("it is the first");
        let top = root.make(None, Vec::new(), &manager, Policies::of_root(), Vec::new());
        root.top.get_or_init(|| top.expect("there is room for one"));
        root
    }

    pub(crate) fn top(&self) -> &Arc<Adapter> {
        self.top.get().expect("it is made with the root")
    }

    /// Makes an adapter that nobody finds by its name yet.
    fn make(
        &self,
        parent: Option<Arc<Adapter>>,
        path: Vec<String>,
        manager: &Arc<Manager>,
        policies: Policies,
        given: Vec<Policy>,
    ) -> Result<Arc<Adapter>, PoaError> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let persistent = key::persistent(&names).ok_or_else(bad_name)?;
        let incarnation = policies.is_persistent().then_some(self.incarnation);
        let objects = Objects::new(&policies, IdForm { incarnation });
        let mut adapters = self.adapters.write();
        let mut plan = Some((parent, path, given, objects, persistent));
        let made = adapters.insert_with(|place| {
            let (parent, path, given, objects, persistent) = plan.take().expect("it is asked for once");
            let prefix = if policies.is_persistent() { persistent } else { key::transient(self.incarnation, place) };
            let (root, manager) = (Weak::clone(&self.me), Arc::clone(manager));
            Adapter::new(Plan { root, parent, path, place, prefix, policies, given, manager, objects })
        });
        let adapter = Arc::clone(made.ok_or_else(error::no_more_ids)?);
        drop(adapters);
        let own = Arc::downgrade(&adapter);
        adapter.manager.attach(own);
        Ok(adapter)
    }

    /// Makes a child (15.3.9.2).
    pub(crate) fn create(
        &self,
        parent: &Arc<Adapter>,
        name: &str,
        manager: Option<&Arc<Manager>>,
        given: Vec<Policy>,
    ) -> Result<Arc<Adapter>, PoaError> {
        let policies = Policies::resolve(&given)?;
        let both_ways = Policies::bidirectional(&given)?;
        let made = match manager {
            Some(_) => None,
            None => Some(self.managers.create(&self.orb, None, State::Holding)?),
        };
        let manager = manager.or(made.as_ref()).expect("there is one or the other");
        if !manager.is_of(&self.orb) {
            return Err(SystemException::bad_param(0, CompletionStatus::No)
                .with_detail("the manager is another ORB's")
                .into());
        }
        check_may_have(parent, &parent.family.lock(), name)?;
        let path: Vec<String> = parent.path.iter().cloned().chain([name.to_owned()]).collect();
        let described = Described { path: &path, manager, policies: &policies, given: &given };
        let orb = self.orb.get()?;
        let references = orb.establish_components(&described)?;
        both_ways.iter().for_each(|policy| orb.note_bidirectional_policy(*policy));
        let mut family = parent.family.lock();
        // Once more: interceptors have run since.
        check_may_have(parent, &family, name)?;
        let adapter = self.make(Some(Arc::clone(parent)), path, manager, policies, given)?;
        adapter.references.get_or_init(|| references);
        family.children.insert(name.to_owned(), Arc::clone(&adapter));
        // While an activator sets it up its requests wait (15.3.4.1); they find it afterwards.
        if adapter.policies.is_persistent() && !family.expected.contains_key(name) {
            self.persistent.write().insert(adapter.prefix.clone(), Arc::clone(&adapter));
        }
        Ok(adapter)
    }

    /// The root adapter's references, once (16.5.4).
    pub(crate) fn establish_top(&self) -> Result<(), SystemException> {
        let top = self.top();
        if top.references.get().is_none() {
            let described =
                Described { path: &top.path, manager: &top.manager, policies: &top.policies, given: &top.given };
            let references = self.orb.get()?.establish_components(&described)?;
            top.references.get_or_init(|| references);
        }
        Ok(())
    }

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
            Home::Transient(place) => match self.adapters.read().get(place) {
                Some(adapter) if !adapter.policies.is_persistent() => Ok(Search::Found(Arc::clone(adapter))),
                _ => Err(error::no_adapter()),
            },
            Home::Persistent { prefix, path } => {
                let known = self.persistent.read().get(prefix).cloned();
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
                    return match adapter.refuse()? {
                        Entrance::Wait(ticket) => Ok(Search::Wait(ticket)),
                        _ => Ok(Search::Again),
                    };
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
                if let Some(adapter) = self.persistent.read().get(prefix) {
                    return Ok(Some(Arc::clone(adapter)));
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

    /// Destroys an adapter and all below it (15.3.9.4).
    pub(crate) fn destroy(&self, adapter: &Arc<Adapter>, etherealize: bool, wait: bool) -> Result<(), PoaError> {
        frames::check_may_wait(&self.orb, wait)?;
        let is_first = adapter.phase() == Phase::Living;
        let mut all = Vec::new();
        Self::all_below(adapter, &mut all);
        self.make_disappear(adapter, etherealize);
        if let (true, Ok(orb)) = (is_first, self.orb.get()) {
            let names: Vec<_> = all.iter().map(|adapter| adapter.full_name()).collect();
            orb.adapter_state_changed(&names, AdapterState::NonExistent);
        }
        if wait {
            all.iter().for_each(Adapter::await_end);
        }
        Ok(())
    }

    fn make_disappear(&self, adapter: &Arc<Adapter>, etherealize: bool) {
        if !adapter.advance(Phase::Ending) {
            return; // another destroys it already, and its choice counts
        }
        adapter.etherealizes_at_end.store(etherealize, Ordering::SeqCst);
        // Under the lock that making a child takes: none is made after this.
        let children: Vec<_> = adapter.family.lock().children.values().cloned().collect();
        children.iter().for_each(|child| self.make_disappear(child, etherealize));
        if let Some(parent) = &adapter.parent {
            parent.family.lock().children.remove(adapter.name());
        }
        self.adapters.write().remove(adapter.place);
        if adapter.policies.is_persistent() {
            let mut persistent = self.persistent.write();
            // Another of its name may have been made already.
            if persistent.get(&adapter.prefix).is_some_and(|known| Arc::ptr_eq(known, adapter)) {
                persistent.remove(&adapter.prefix);
            }
        }
        // As if an object ended: so nobody takes the adapter for quiet before all of them have begun to.
        adapter.usage.begin_ending();
        adapter.advance(Phase::Gone);
        adapter.manager.detach(&**adapter);
        adapter.objects.shut();
        adapter.deactivate_all(etherealize);
        adapter.usage.ended();
        adapter.let_go_if_over();
    }
}

impl Root {
    /// All adapters below one, and itself.
    pub(crate) fn all_below(adapter: &Arc<Adapter>, all: &mut Vec<Arc<Adapter>>) {
        let children: Vec<_> = adapter.family.lock().children.values().cloned().collect();
        children.iter().for_each(|child| Self::all_below(child, all));
        all.push(Arc::clone(adapter));
    }
}

/// Whether a parent may have one more child, of this name.
fn check_may_have(parent: &Arc<Adapter>, family: &Family, name: &str) -> Result<(), PoaError> {
    check_may_grow(parent)?;
    if family.children.contains_key(name) { Err(PoaError::AdapterAlreadyExists) } else { Ok(()) }
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
            self.root.persistent.write().insert(adapter.prefix.clone(), Arc::clone(adapter));
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

/// BAD_INV_ORDER for a child of an adapter that is being destroyed, OBJECT_NOT_EXIST once it has been (15.3.9.2).
fn check_may_grow(parent: &Adapter) -> Result<(), PoaError> {
    match parent.phase() {
        Phase::Living => Ok(()),
        Phase::Gone if parent.usage.is_quiet() => Err(error::destroyed().into()),
        Phase::Ending | Phase::Gone => {
            Err(SystemException::bad_inv_order(minor::POA_BEING_DESTROYED, CompletionStatus::No)
                .with_detail("the parent is being destroyed")
                .into())
        }
    }
}

fn bad_name() -> SystemException {
    SystemException::bad_param(0, CompletionStatus::No)
        .with_detail("the name is longer than 65535 octets, or the adapter deeper than 64 others")
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}
