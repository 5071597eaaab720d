//! The tree of an ORB's adapters as it grows and shrinks (CORBA 3.3 Part 1, 15.3.9.2 and 15.3.9.4).

use std::sync::OnceLock;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{AdapterState, Orb, Policy};
use spandrel_sync::{Arc, Weak, atomic::Ordering};

use crate::{
    PoaError,
    adapter::{Adapter, Family, Phase, Plan, Root},
    directory::Directory,
    error,
    establishing::Described,
    frames,
    key::{self, IdForm, Incarnation},
    live_orb::LiveOrb,
    manager::{Manager, Managers, State},
    objects::Objects,
    policies::Policies,
};

/// What its manager is called (15.3.2.8).
pub(crate) const ROOT_MANAGER: &str = "RootPOAManager";

impl Root {
    pub(crate) fn new(orb: Orb) -> Arc<Self> {
        let root = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            incarnation: Incarnation::random(),
            orb: Arc::new(LiveOrb::new(orb)),
            top: OnceLock::new(),
            directory: Directory::default(),
            managers: Managers::default(),
        });
        let manager = root.managers.create(&root.orb, Some(ROOT_MANAGER), State::Active);
        let manager = manager.expect("it is the first");
        let top = root.make(None, Vec::new(), &manager, Policies::of_root(), Vec::new());
        root.top.get_or_init(|| top.expect("there is room for one"));
        root
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
        let mut plan = Some((parent, path, given, objects, persistent));
        let made = self.directory.insert_with(|place| {
            let (parent, path, given, objects, persistent) = plan.take().expect("it is asked for once");
            let prefix = if policies.is_persistent() { persistent } else { key::transient(self.incarnation, place) };
            let (root, manager) = (Weak::clone(&self.me), Arc::clone(manager));
            Adapter::new(Plan { root, parent, path, place, prefix, policies, given, manager, objects })
        });
        let adapter = made.ok_or_else(error::no_more_ids)?;
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
            self.directory.publish(&adapter.prefix, &adapter);
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
        self.directory.remove(adapter.place);
        if adapter.policies.is_persistent() {
            self.directory.withdraw(&adapter.prefix, adapter);
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
