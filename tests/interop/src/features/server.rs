//! The servants, and the adapters that they are in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use spandrel::poa::{
    Current, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, ObjectId, OperationDemux, Poa, PoaError,
    PoaManager, RequestProcessingPolicy, ServantManager, ServantRetentionPolicy,
};
use spandrel::{Interface, ObjectRef, Orb, Policy, SystemException};

use super::contexts;
use super::managers::{Activator, Locator, Maker, adapted_policies};
use crate::features_idl::*;

type Answer<T> = Result<T, SystemException>;

/// What every object here can do.
#[derive(Debug, Default)]
pub(super) struct OneTarget {
    /// None asks who it is.
    name: Option<String>,
    noted: AtomicI32,
}

impl OneTarget {
    pub(super) fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }
}

impl TargetServant for OneTarget {
    fn name(&self) -> Answer<String> {
        let id = || Current::new().object_id().expect("it runs for an object");
        Ok(self.name.clone().unwrap_or_else(|| String::from_utf8_lossy(id().as_bytes()).into_owned()))
    }

    fn halve(&self, whole: i32, text: &mut String) -> Result<(i32, f64), target::HalveError> {
        if whole < 0 {
            return Err(Refused { why: "negative".to_owned() }.into());
        }
        *text = text.repeat(2);
        Ok((whole / 2, f64::from(whole) / 2.0))
    }

    fn note(&self, number: i32, milliseconds: u32) -> Answer<()> {
        thread::sleep(Duration::from_millis(milliseconds.into()));
        self.noted.store(number, Ordering::Release);
        Ok(())
    }

    fn noted(&self) -> Answer<i32> {
        Ok(self.noted.load(Ordering::Acquire))
    }

    fn heard(&self) -> Answer<String> {
        Ok(contexts::heard())
    }
}

/// The adapters and where the calls of a client begin.
struct Server {
    orb: Orb,
    generation: u32,
    /// Set once the server is to begin anew.
    again: Arc<AtomicBool>,
    plain: Target,
    dynamically: Target,
    held: Target,
    holding: PoaManager,
    discarded: Target,
    destroyed: Target,
    persistent: Target,
    located: Poa,
    activated: Poa,
    made: Arc<Mutex<HashMap<String, u32>>>,
    by_default: Poa,
    root: Poa,
}

/// Serves until told to stop, starting anew when told; `say` gets the reference of the desk, which stays the same, and `now` each ORB.
///
/// # Errors
/// If an ORB cannot be made, or cannot listen.
pub fn run(make: impl Fn() -> anyhow::Result<Orb>, say: impl FnOnce(&str), now: impl Fn(&Orb)) -> anyhow::Result<()> {
    let again = Arc::new(AtomicBool::new(true));
    let mut say = Some(say);
    for generation in 1.. {
        if !again.swap(false, Ordering::AcqRel) {
            break;
        }
        let orb = make()?;
        now(&orb);
        let reference = activate(&orb, generation, &again)?;
        if let Some(say) = say.take() {
            say(&reference);
        }
        orb.run();
        orb.shutdown(true)?;
    }
    Ok(())
}

/// Activates everything; the reference of the desk.
///
/// # Errors
/// If the ORB cannot listen.
fn activate(orb: &Orb, generation: u32, again: &Arc<AtomicBool>) -> Result<String, PoaError> {
    let root = Poa::root(orb)?;
    let plain = root.activate(TargetSkeleton::new(OneTarget::named("plain")))?;
    orb.set_object_key_alias("Greeter", &plain)?;
    let server = Server::new(orb, &root, &plain, generation, again)?;
    let desk = persistent(&root, "desk", Arc::new(DeskSkeleton::new(server)))?;
    Ok(orb.object_to_string(&desk))
}

const USER_ID: IdAssignmentPolicy = IdAssignmentPolicy::UserId;

/// An object that outlives restarts.
fn persistent(root: &Poa, name: &str, servant: Arc<dyn spandrel::Servant>) -> Result<ObjectRef, PoaError> {
    // Whoever is not of our kind has no use for what its references say of operations.
    let policies: [Policy; 3] = [USER_ID.into(), LifespanPolicy::Persistent.into(), OperationDemux::Active.into()];
    let poa = root.create_poa(name, Some(&root.the_poa_manager()), policies)?;
    let id = ObjectId::from(name);
    poa.activate_object_with_id(&id, servant)?;
    poa.id_to_reference(&id)
}

/// An object in an adapter of its own, with a manager of its own.
fn alone(root: &Poa, name: &str) -> Result<(Target, Poa), PoaError> {
    let poa = root.create_poa(name, None, [USER_ID.into()])?;
    poa.activate_object_with_id(&ObjectId::from(name), Arc::new(TargetSkeleton::new(OneTarget::named(name))))?;
    Ok((Target::unchecked_narrow(&poa.id_to_reference(&ObjectId::from(name))?), poa))
}

impl Server {
    fn new(
        orb: &Orb,
        root: &Poa,
        plain: &ObjectRef,
        generation: u32,
        again: &Arc<AtomicBool>,
    ) -> Result<Self, PoaError> {
        let active = root.the_poa_manager();
        let managed = |name, more: Vec<Policy>| root.create_poa(name, Some(&active), more);
        let by_manager: Policy = RequestProcessingPolicy::UseServantManager.into();
        let located =
            managed("located", vec![USER_ID.into(), ServantRetentionPolicy::NonRetain.into(), by_manager.clone()])?;
        located.set_servant_manager(ServantManager::Locator(Arc::new(Locator { plain: plain.clone() })))?;
        let activated = managed("activated", vec![USER_ID.into(), by_manager])?;
        let made = Arc::default();
        let activator = Activator { plain: plain.clone(), made: Arc::clone(&made) };
        activated.set_servant_manager(ServantManager::Activator(Arc::new(activator)))?;
        let by_default = managed(
            "by_default",
            vec![
                USER_ID.into(),
                IdUniquenessPolicy::MultipleId.into(),
                ServantRetentionPolicy::NonRetain.into(),
                RequestProcessingPolicy::UseDefaultServant.into(),
            ],
        )?;
        by_default.set_servant(Arc::new(TargetSkeleton::new(OneTarget::default())))?;
        root.set_the_activator(Some(Arc::new(Maker { plain: plain.clone() })));
        let (held, holder) = alone(root, "held")?;
        let (discarded, discarder) = alone(root, "discarded")?;
        discarder.the_poa_manager().discard_requests(false)?;
        let (destroyed, doomed) = alone(root, "destroyed")?;
        doomed.the_poa_manager().activate()?;
        doomed.destroy(true, true)?;
        let kept = persistent(root, "persistent", Arc::new(TargetSkeleton::new(OneTarget::named("persistent"))))?;
        Ok(Self {
            orb: orb.clone(),
            generation,
            again: Arc::clone(again),
            plain: Target::unchecked_narrow(plain),
            dynamically: super::dynamically::activate(root)?,
            held,
            holding: holder.the_poa_manager(),
            discarded,
            destroyed,
            persistent: Target::unchecked_narrow(&kept),
            located,
            activated,
            made,
            by_default,
            root: root.clone(),
        })
    }
}

fn named(poa: &Poa, name: &str) -> Answer<Option<Target>> {
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
        named(&self.located, name)
    }

    fn activated(&self, name: &str) -> Answer<Option<Target>> {
        named(&self.activated, name)
    }

    fn incarnations(&self, name: &str) -> Answer<u32> {
        Ok(self.made.lock().expect("nothing panics while it is held").get(name).copied().unwrap_or(0))
    }

    fn by_default(&self, name: &str) -> Answer<Option<Target>> {
        named(&self.by_default, name)
    }

    /// The adapter that makes the reference is gone before anyone can use it.
    fn adapted(&self, name: &str) -> Answer<Option<Target>> {
        let active = self.root.the_poa_manager();
        let before = self.root.find_poa("adapted", false);
        let poa = before.or_else(|_| self.root.create_poa("adapted", Some(&active), adapted_policies()))?;
        let target = named(&poa, name);
        poa.destroy(false, false)?;
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
        self.again.store(true, Ordering::Release);
        self.orb.shutdown(false)
    }

    fn shutdown(&self) -> Answer<()> {
        self.orb.shutdown(false)
    }
}
