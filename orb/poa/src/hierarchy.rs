//! Creation and destruction of adapters in the tree of an ORB (CORBA 3.3 Part 1, 15.3.9.2 and 15.3.9.4).

use std::sync::OnceLock;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{
    AdapterState, Orb, Policy,
    internal::adapter_references::{References, adapter_state_changed},
};
use spandrel_server::Servant;
use spandrel_sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    AdapterActivator, EtherealizeObjects, PoaError, ServantManager, WaitForCompletion,
    adapter::{Adapter, AdapterParameters, Children, Phase, Root},
    adapter_description::NewAdapter,
    adapter_name::full_name_text,
    directory::Directory,
    error, frames,
    key::{self, Incarnation, SystemIdFormat},
    manager::{Manager, Managers, State},
    objects::Objects,
    orb_handle::OrbHandle,
    policies::{InvalidPolicy, Policies},
};

/// The application's objects that an adapter has from its creation on.
#[derive(Default)]
pub(crate) struct AdapterCallbacks {
    pub(crate) servant_manager: Option<ServantManager>,
    pub(crate) default_servant: Option<Arc<dyn Servant>>,
    pub(crate) activator: Option<Arc<dyn AdapterActivator>>,
}

/// The id of the root adapter's manager (15.3.2.8).
pub(crate) const ROOT_MANAGER: &str = "RootPOAManager";

impl Root {
    pub(crate) fn new(orb: Orb) -> Arc<Self> {
        let settings = orb.server_settings();
        let root = Arc::new_cyclic(|weak_self| Self {
            weak_self: Weak::clone(weak_self),
            incarnation: Incarnation::random(),
            orb: Arc::new(OrbHandle::new(orb)),
            root_adapter: OnceLock::new(),
            directory: Directory::default(),
            managers: Managers::default(),
            long_wait_warning: settings.long_wait_warning,
            tables: settings.demux,
            has_warned_of_port: AtomicBool::new(false),
        });
        let manager = root.managers.create(&root.orb, Some(ROOT_MANAGER), State::Active);
        let manager = manager.expect("the first manager has a unique id");
        let root_adapter = root.make(None, Vec::new(), &manager, Policies::of_root(settings.demux), Vec::new());
        root.root_adapter.get_or_init(|| root_adapter.expect("an empty table has room"));
        root
    }

    /// Creates an adapter that cannot be found by name yet.
    fn make(
        &self,
        parent: Option<Arc<Adapter>>,
        path: Vec<String>,
        manager: &Arc<Manager>,
        policies: Policies,
        explicit_policies: Vec<Policy>,
    ) -> Result<Arc<Adapter>, PoaError> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let persistent = key::persistent(&names).ok_or_else(bad_name)?;
        let incarnation = policies.is_persistent().then_some(self.incarnation);
        let objects = Objects::new(&policies, SystemIdFormat { incarnation });
        let mut parameters = Some((parent, path, explicit_policies, objects, persistent));
        let new_adapter = self.directory.insert_with(|slot_id| {
            let (parent, path, explicit_policies, objects, persistent) =
                parameters.take().expect("the closure is called once");
            let prefix = if policies.is_persistent() { persistent } else { key::transient(self.incarnation, slot_id) };
            let (root, manager) = (Weak::clone(&self.weak_self), Arc::clone(manager));
            let operation_demux =
                explicit_policies.iter().find_map(Policy::value).copied().unwrap_or(self.tables.operations);
            Adapter::new(AdapterParameters {
                root,
                parent,
                path,
                slot_id,
                prefix,
                policies,
                operation_demux,
                explicit_policies,
                manager,
                objects,
            })
        });
        let adapter = new_adapter.ok_or_else(error::no_more_ids)?;
        let own = Arc::downgrade(&adapter);
        adapter.manager.attach(own);
        Ok(adapter)
    }

    /// Creates a child (15.3.9.2).
    pub(crate) fn create(
        &self,
        parent: &Arc<Adapter>,
        name: &str,
        manager: Option<&Arc<Manager>>,
        explicit_policies: Vec<Policy>,
        callbacks: AdapterCallbacks,
    ) -> Result<Arc<Adapter>, PoaError> {
        let path = parent.child_path(name);
        let invalid = |invalid: InvalidPolicy| invalid.error(full_name_text(&path), &explicit_policies);
        let policies = Policies::resolve(&explicit_policies, self.tables).map_err(invalid)?;
        let bidirectional = Policies::bidirectional(&explicit_policies).map_err(invalid)?;
        let own_manager = match manager {
            Some(_) => None,
            None => Some(self.managers.create(&self.orb, None, State::Holding)?),
        };
        let manager = manager.or(own_manager.as_ref()).expect("a manager is given or created");
        if !manager.belongs_to(&self.orb) {
            return Err(SystemException::bad_param(0, CompletionStatus::No)
                .with_detail("the manager belongs to another ORB")
                .into());
        }
        check_new_child(parent, &parent.children_state.lock(), name)?;
        if let (Some(policy), Some(servant)) = (Policies::executor(&explicit_policies), &callbacks.default_servant) {
            policy.check_servant(&**servant)?;
        }
        let new_adapter =
            NewAdapter { path: &path, manager, policies: &policies, explicit_policies: &explicit_policies };
        let orb = self.orb.get()?;
        let references = References::establish_components(&orb, &new_adapter)?;
        bidirectional.iter().for_each(|policy| orb.record_bidirectional_policy(*policy));
        self.warn_of_unstable_address(&orb, &new_adapter);
        let mut children_state = parent.children_state.lock();
        // Checked again: interceptors have run since.
        check_new_child(parent, &children_state, name)?;
        let adapter = self.make(Some(Arc::clone(parent)), path, manager, policies, explicit_policies)?;
        adapter.references.get_or_init(|| references);
        *adapter.servant_manager.write() = callbacks.servant_manager;
        *adapter.default_servant.write() = callbacks.default_servant;
        *adapter.activator.lock() = callbacks.activator;
        children_state.children.insert(name.to_owned(), Arc::clone(&adapter));
        // While an activator sets it up its requests wait (15.3.4.1); afterwards they find it.
        if adapter.policies.is_persistent() && !children_state.activating.contains_key(name) {
            self.directory.publish(&adapter.prefix, &adapter);
        }
        Ok(adapter)
    }

    /// Warns, once, of a persistent adapter in a server whose port changes with each start.
    fn warn_of_unstable_address(&self, orb: &Orb, adapter: &NewAdapter<'_>) {
        if adapter.policies.is_persistent()
            && !orb.server_settings().has_stable_address()
            && !orb.uses_implementation_repository()
            && !self.has_warned_of_port.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                adapter = adapter.path.join("/"),
                "the references of a persistent adapter become invalid when the server ends, because the system \
                 chooses its port; for a fixed one: -ORBListenEndpoints iiop://HOST:PORT"
            );
        }
    }

    /// Establishes the root adapter's references, once (16.5.4).
    pub(crate) fn establish_root_references(&self) -> Result<(), SystemException> {
        let root_adapter = self.root_adapter();
        if root_adapter.references.get().is_none() {
            let new_adapter = NewAdapter {
                path: &root_adapter.path,
                manager: &root_adapter.manager,
                policies: &root_adapter.policies,
                explicit_policies: &root_adapter.explicit_policies,
            };
            let references = References::establish_components(&self.orb.get()?, &new_adapter)?;
            root_adapter.references.get_or_init(|| references);
        }
        Ok(())
    }

    /// Destroys an adapter and its descendants (15.3.9.4).
    pub(crate) fn destroy(
        &self,
        adapter: &Arc<Adapter>,
        etherealize: EtherealizeObjects,
        wait: WaitForCompletion,
    ) -> Result<(), PoaError> {
        frames::check_may_wait(&self.orb, wait)?;
        let is_first = adapter.phase() == Phase::Active;
        let mut all = Vec::new();
        Self::collect_descendants(adapter, &mut all);
        self.remove_from_tree(adapter, etherealize);
        if is_first && let Ok(orb) = self.orb.get() {
            let names: Vec<_> = all.iter().map(|adapter| adapter.full_name()).collect();
            adapter_state_changed(&orb, &names, AdapterState::NonExistent);
        }
        if wait == WaitForCompletion::Yes {
            all.iter().for_each(Adapter::await_end);
        }
        Ok(())
    }

    fn remove_from_tree(&self, adapter: &Arc<Adapter>, etherealize: EtherealizeObjects) {
        if !adapter.advance(Phase::Destroying) {
            return; // another thread is destroying it, and its choice counts
        }
        adapter.etherealizes_at_end.store(etherealize == EtherealizeObjects::Yes, Ordering::SeqCst);
        // Under the lock that the creation of children takes: none is created after this.
        let children: Vec<_> = adapter.children_state.lock().children.values().cloned().collect();
        children.iter().for_each(|child| self.remove_from_tree(child, etherealize));
        if let Some(parent) = &adapter.parent {
            parent.children_state.lock().children.remove(adapter.name());
        }
        self.directory.remove(adapter.slot_id);
        if adapter.policies.is_persistent() {
            self.directory.withdraw(&adapter.prefix, adapter);
        }
        // Counted as an object, so that the adapter is not considered idle before all objects have begun to
        // end.
        adapter.usage.begin_ending();
        adapter.advance(Phase::Destroyed);
        adapter.manager.detach(&**adapter);
        adapter.objects.close();
        adapter.deactivate_all(etherealize);
        adapter.usage.ended();
        adapter.release_if_destroyed();
    }
}

impl Root {
    /// Collects an adapter and its descendants.
    pub(crate) fn collect_descendants(adapter: &Arc<Adapter>, all: &mut Vec<Arc<Adapter>>) {
        let children: Vec<_> = adapter.children_state.lock().children.values().cloned().collect();
        children.iter().for_each(|child| Self::collect_descendants(child, all));
        all.push(Arc::clone(adapter));
    }
}

/// Checks whether a parent may have one more child, of this name.
fn check_new_child(parent: &Arc<Adapter>, children_state: &Children, name: &str) -> Result<(), PoaError> {
    check_not_destroyed(parent)?;
    if children_state.children.contains_key(name) {
        return Err(PoaError::AdapterAlreadyExists { adapter: full_name_text(&parent.child_path(name)) });
    }
    Ok(())
}

/// BAD_INV_ORDER for a child of an adapter under destruction, OBJECT_NOT_EXIST after it (15.3.9.2).
fn check_not_destroyed(parent: &Adapter) -> Result<(), PoaError> {
    match parent.phase() {
        Phase::Active => Ok(()),
        Phase::Destroyed if parent.usage.is_quiet() => Err(error::destroyed(&parent.path).into()),
        Phase::Destroying | Phase::Destroyed => {
            Err(SystemException::bad_inv_order(minor::POA_BEING_DESTROYED, CompletionStatus::No)
                .with_detail(|| format!("the parent `{}` is being destroyed", parent.full_name_text()))
                .into())
        }
    }
}

fn bad_name() -> SystemException {
    SystemException::bad_param(0, CompletionStatus::No)
        .with_detail("the name is longer than 65535 octets, or the adapter is nested deeper than 64 levels")
}
