//! The servants and their adapters.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use spandrel::{ObjectRef, Orb, SystemException, policy::Policy, types::Interface};
use spandrel::{
    Poa,
    poa::{
        EtherealizeObjects, IdAssignmentPolicy, IdUniquenessPolicy, IfMissing, LifespanPolicy, ObjectId,
        OperationDemux, PoaError, PoaManager, RequestProcessingPolicy, ServantManager, ServantRetentionPolicy,
        WaitForCompletion,
    },
};

use super::managers::{Activator, AdapterCreator, Locator, adapted_policies};
use super::target::NamedTarget;
use crate::features_idl::*;

type Answer<T> = Result<T, SystemException>;

/// The desk: it creates the adapters, and returns the references of their objects.
struct Server {
    orb: Orb,
    generation: u32,
    restart_requested: Arc<AtomicBool>,
    plain: Target,
    dynamically: Target,
    held: Target,
    holding: PoaManager,
    discarded: Target,
    destroyed: Target,
    persistent: Target,
    located: Poa,
    activated: Poa,
    incarnation_counts: Arc<Mutex<HashMap<String, u32>>>,
    by_default: Poa,
    root: Poa,
}

/// Serves until `Desk::shutdown`, with a new ORB after each `Desk::restart`; calls `say` once with the desk's
/// reference, which stays valid, and `set_running` with each ORB.
///
/// # Errors
/// If an ORB cannot be created, or cannot listen.
pub fn run(
    make: impl Fn() -> anyhow::Result<Orb>,
    say: impl FnOnce(&str),
    set_running: impl Fn(&Orb),
) -> anyhow::Result<()> {
    let restart_requested = Arc::new(AtomicBool::new(true));
    let mut say = Some(say);
    for generation in 1.. {
        if !restart_requested.swap(false, Ordering::AcqRel) {
            break;
        }
        let orb = make()?;
        set_running(&orb);
        let reference = activate(&orb, generation, &restart_requested)?;
        if let Some(say) = say.take() {
            say(&reference);
        }
        orb.run();
        orb.shutdown()?;
    }
    Ok(())
}

/// Activates all objects and returns the desk's reference.
///
/// # Errors
/// If the ORB cannot listen.
fn activate(orb: &Orb, generation: u32, restart_requested: &Arc<AtomicBool>) -> Result<String, PoaError> {
    let root = Poa::root(orb)?;
    let plain = root.activate(TargetSkeleton::new(NamedTarget::new("plain")))?;
    orb.set_object_key_alias("Greeter", &plain)?;
    let server = Server::new(orb, &root, &plain, generation, restart_requested)?;
    let desk = persistent(&root, "desk", Arc::new(DeskSkeleton::new(server)))?;
    Ok(orb.object_to_string(&desk))
}

const USER_ID: IdAssignmentPolicy = IdAssignmentPolicy::UserId;

/// A persistent object: its reference stays valid after a restart.
fn persistent(root: &Poa, name: &str, servant: Arc<dyn spandrel::server::Servant>) -> Result<ObjectRef, PoaError> {
    // Operation numbers in references: other ORBs ignore the component.
    let policies: [Policy; 3] = [USER_ID.into(), LifespanPolicy::Persistent.into(), OperationDemux::Active.into()];
    let poa = root.create_poa(name, Some(&root.the_poa_manager()), policies)?;
    let id = ObjectId::from(name);
    poa.activate_object_with_id(&id, servant)?;
    poa.id_to_reference(&id)
}

/// An object in an adapter with its own POA manager.
fn with_own_manager(root: &Poa, name: &str) -> Result<(Target, Poa), PoaError> {
    let poa = root.create_poa(name, None, [USER_ID.into()])?;
    poa.activate_object_with_id(&ObjectId::from(name), Arc::new(TargetSkeleton::new(NamedTarget::new(name))))?;
    Ok((Target::unchecked_narrow(&poa.id_to_reference(&ObjectId::from(name))?), poa))
}

impl Server {
    fn new(
        orb: &Orb,
        root: &Poa,
        plain: &ObjectRef,
        generation: u32,
        restart_requested: &Arc<AtomicBool>,
    ) -> Result<Self, PoaError> {
        let active = root.the_poa_manager();
        let with_root_manager = |name, more: Vec<Policy>| root.create_poa(name, Some(&active), more);
        let by_manager: Policy = RequestProcessingPolicy::UseServantManager.into();
        let located = with_root_manager(
            "located",
            vec![USER_ID.into(), ServantRetentionPolicy::NonRetain.into(), by_manager.clone()],
        )?;
        located.set_servant_manager(ServantManager::Locator(Arc::new(Locator { plain: plain.clone() })))?;
        let activated = with_root_manager("activated", vec![USER_ID.into(), by_manager])?;
        let incarnation_counts = Arc::default();
        let activator = Activator { plain: plain.clone(), incarnation_counts: Arc::clone(&incarnation_counts) };
        activated.set_servant_manager(ServantManager::Activator(Arc::new(activator)))?;
        let by_default = with_root_manager(
            "by_default",
            vec![
                USER_ID.into(),
                IdUniquenessPolicy::MultipleId.into(),
                ServantRetentionPolicy::NonRetain.into(),
                RequestProcessingPolicy::UseDefaultServant.into(),
            ],
        )?;
        by_default.set_servant(Arc::new(TargetSkeleton::new(NamedTarget::default())))?;
        root.set_the_activator(Some(Arc::new(AdapterCreator { plain: plain.clone() })));
        let (held, holding_poa) = with_own_manager(root, "held")?;
        let (discarded, discarding_poa) = with_own_manager(root, "discarded")?;
        discarding_poa.the_poa_manager().discard_requests(WaitForCompletion::No)?;
        let (destroyed, destroyed_poa) = with_own_manager(root, "destroyed")?;
        destroyed_poa.the_poa_manager().activate()?;
        destroyed_poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes)?;
        let kept = persistent(root, "persistent", Arc::new(TargetSkeleton::new(NamedTarget::new("persistent"))))?;
        Ok(Self {
            orb: orb.clone(),
            generation,
            restart_requested: Arc::clone(restart_requested),
            plain: Target::unchecked_narrow(plain),
            dynamically: super::dynamically::activate(root)?,
            held,
            holding: holding_poa.the_poa_manager(),
            discarded,
            destroyed,
            persistent: Target::unchecked_narrow(&kept),
            located,
            activated,
            incarnation_counts,
            by_default,
            root: root.clone(),
        })
    }
}

fn create_target(poa: &Poa, name: &str) -> Answer<Option<Target>> {
    let object = poa.create_reference_with_id(&ObjectId::from(name), Target::REPOSITORY_ID)?;
    Ok(Some(Target::unchecked_narrow(&object)))
}

impl DeskServant for Server {
    fn plain(&self) -> Answer<Option<Target>> {
        Ok(Some(self.plain.clone()))
    }

    fn dynamically(&self) -> Answer<Option<Target>> {
        Ok(Some(self.dynamically.clone()))
    }

    fn located(&self, name: &str) -> Answer<Option<Target>> {
        create_target(&self.located, name)
    }

    fn activated(&self, name: &str) -> Answer<Option<Target>> {
        create_target(&self.activated, name)
    }

    fn incarnations(&self, name: &str) -> Answer<u32> {
        Ok(self.incarnation_counts.lock().expect("no thread panics with the lock held").get(name).copied().unwrap_or(0))
    }

    fn by_default(&self, name: &str) -> Answer<Option<Target>> {
        create_target(&self.by_default, name)
    }

    /// Destroys the adapter after creating the reference, so that a request activates it again.
    fn adapted(&self, name: &str) -> Answer<Option<Target>> {
        let active = self.root.the_poa_manager();
        let before = self.root.find_poa("adapted", IfMissing::Fail);
        let poa = before.or_else(|_| self.root.create_poa("adapted", Some(&active), adapted_policies()))?;
        let target = create_target(&poa, name);
        poa.destroy(EtherealizeObjects::No, WaitForCompletion::No)?;
        target
    }

    fn held(&self) -> Answer<Option<Target>> {
        Ok(Some(self.held.clone()))
    }

    fn release(&self) -> Answer<()> {
        Ok(self.holding.activate()?)
    }

    fn discarded(&self) -> Answer<Option<Target>> {
        Ok(Some(self.discarded.clone()))
    }

    fn destroyed(&self) -> Answer<Option<Target>> {
        Ok(Some(self.destroyed.clone()))
    }

    fn persistent(&self) -> Answer<Option<Target>> {
        Ok(Some(self.persistent.clone()))
    }

    fn generation(&self) -> Answer<u32> {
        Ok(self.generation)
    }

    fn restart(&self) -> Answer<()> {
        self.restart_requested.store(true, Ordering::Release);
        self.orb.begin_shutdown()
    }

    fn shutdown(&self) -> Answer<()> {
        self.orb.begin_shutdown()
    }
}
